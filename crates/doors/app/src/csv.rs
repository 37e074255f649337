//! Cells of CSV files (RFC 4180), as spreadsheets open them.

/// Quotes a text as one cell. A spreadsheet runs text that begins with `=`, `+`, `-` or `@` as a
/// formula, so such a text gets a leading apostrophe (OWASP, "CSV Injection").
pub fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r', ';', '\t']) || is_formula {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_not_formulas() {
        assert_eq!(cell("rain:city:7"), "rain:city:7");
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
        assert_eq!(cell("@cmd|' /C calc'!A0"), "\"'@cmd|' /C calc'!A0\"");
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
