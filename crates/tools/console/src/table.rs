//! Tables of text, aligned.

/// The side of its column at which a text is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Renders rows under a header, each column as wide as its widest text, two spaces apart.
pub fn render(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let width = |at: usize| {
        let texts = std::iter::once(&header).chain(rows).map(|row| row[at].chars().count());
        texts.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells =
            row.iter().zip(columns).zip(&widths).map(|((text, (_, align)), width)| match align {
                Align::Left => format!("{text:<width$}"),
                Align::Right => format!("{text:>width$}"),
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };

    let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("  ");
    let lines = [line(&header), rule].into_iter().chain(rows.iter().map(|row| line(row)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a number with a comma before every three digits.
pub fn grouped(number: i64) -> String {
    raingauge_core::number::grouped(number.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["é".to_owned(), "1".to_owned()], vec!["long".to_owned(), "20".to_owned()]];
        let table = render(&[("a", Align::Left), ("n", Align::Right)], &rows);
        assert_eq!(table, "a      n\n────  ──\né      1\nlong  20");
    }
}
