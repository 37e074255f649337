//! Reads the text format of Prometheus, as far as this process writes it.

/// One line: a name, its labels, a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    pub name: &'a str,
    pub labels: Vec<(&'a str, String)>,
    pub value: f64,
}

impl Line<'_> {
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Every line that carries a value. Comments and malformed lines are skipped.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(line)
}

fn line(text: &str) -> Option<Line<'_>> {
    let text = text.trim();
    if text.starts_with('#') {
        return None;
    }

    let end = text.find(['{', ' '])?;
    let (name, rest) = text.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };

    // A timestamp may follow the value.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Line { name, labels, value })
}

/// Reads `name="value",…}` and returns the rest. In values, `\`, `"` and line ends are escaped.
fn labels(mut text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches([',', ' ']);

        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = rest.char_indices();

        loop {
            match chars.next()? {
                (end, '"') => {
                    text = &rest[end + 1..];
                    break;
                }
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        }

        labels.push((name.trim(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_numbers_are_read() {
        let text = "# HELP a what it is\n# TYPE a counter\na 7\n\n\
                    b{code=\"x\",partition=\"0\"} 1.5e3 1700000000\nc_bucket{le=\"+Inf\"} 9\n";
        let found: Vec<_> = lines(text).collect();
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].name, found[0].labels.len(), found[0].value), ("a", 0, 7.0));
        assert_eq!(
            (found[1].label("partition"), found[1].label("none"), found[1].value),
            (Some("0"), None, 1_500.0)
        );
        assert_eq!((found[2].name, found[2].label("le")), ("c_bucket", Some("+Inf")));
    }

    #[test]
    fn labels_may_have_any_character() {
        let text = r#"a{x="}, y=\"1\" \\ \n{",y="☔"} 3"#;
        let line = lines(text).next().expect("a line");
        assert_eq!(line.label("x"), Some("}, y=\"1\" \\ \n{"));
        assert_eq!((line.label("y"), line.value), (Some("☔"), 3.0));
    }

    #[test]
    fn what_cannot_be_read_is_passed_over() {
        let broken = "a\nb{x=\"1\nc{x} 1\nd{x=\"1\"}\ne one\n{} 1 \nf NaN\ng 2";
        let names: Vec<&str> = lines(broken).map(|line| line.name).collect();
        assert_eq!(names, ["", "f", "g"]);
    }
}
