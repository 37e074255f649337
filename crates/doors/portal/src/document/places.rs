//! Where in a text a problem lies: the line of the member that its path names.

/// The number of the line, from 1, of the last part of a path such as `steps[0].when` that the text
/// has. It is found by the names alone, so that it works for YAML and JSON, and is a hint.
pub fn line_of(text: &str, path: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut from = 0;
    let mut found = None;

    for part in path.split('.') {
        let (name, places) = part.split_once('[').unwrap_or((part, ""));
        let Some(line) = (from..lines.len()).find(|line| has_name(lines[*line], name)) else {
            break;
        };
        (found, from) = (Some(line), line);

        for place in places.split('[') {
            let Ok(number) = place.trim_end_matches(']').parse::<usize>() else { continue };
            let Some(line) = item(&lines, from, number) else { break };
            (found, from) = (Some(line), line);
        }
    }
    found.map(|line| line + 1)
}

/// Whether a line has a member with this name.
fn has_name(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let behind = line[at + name.len()..].trim_start_matches('"').trim_start();
        let begins =
            before.is_none_or(|char| !char.is_alphanumeric() && char != '_' && char != '-');
        begins && behind.starts_with(':')
    })
}

/// The line of an item of the list that begins behind a line.
fn item(lines: &[&str], head: usize, number: usize) -> Option<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let first = (head + 1..lines.len()).find(|line| !lines[*line].trim().is_empty())?;
    if !lines[first].trim_start().starts_with('-') {
        return None;
    }

    let depth = indent(lines[first]);
    let mut items = (first..lines.len())
        .take_while(|line| lines[*line].trim().is_empty() || indent(lines[*line]) >= depth)
        .filter(|line| indent(lines[*line]) == depth && lines[*line].trim_start().starts_with('-'));
    items.nth(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "\
name: n
steps:
  - name: nudge
    when: {operator: reaches, lhs: count.orders, rhs: 2}
    actions:
      - {name: msg, kind: message}
  - name: reward
    actions:
      - name: voucher
        kind: reward
      - name: msg
        template: congrats
limits:
- {step: reward, max: 0}
";

    #[test]
    fn problems_lie_in_the_line_of_their_member() {
        for (path, line) in [
            ("name", 1),
            ("steps[0].when", 4),
            ("steps[1].name", 7),
            ("steps[1].actions[1].template", 12),
            ("steps[1].actions[0].cost", 9),
            ("limits[0]", 14),
            ("limits[0].max", 14),
        ] {
            assert_eq!(line_of(YAML, path), Some(line), "{path}");
        }
        assert_eq!(line_of(YAML, "budgets.vouchers"), None);
        assert_eq!(line_of(YAML, ""), None);
    }

    #[test]
    fn json_is_searched_by_names() {
        let json = "{\n  \"name\": \"n\",\n  \"limits\": [\n    { \"max\": 0 }\n  ]\n}";
        assert_eq!(line_of(json, "limits[0].max"), Some(4));
    }

    #[test]
    fn any_text_and_path_are_searched() {
        for text in ["", "\n", "a:", "-", "☔:\n- ☔"] {
            for path in ["a", "a[0]", "a[9].b", "[0]", "☔[0]", "..", "a[x]"] {
                line_of(text, path);
            }
        }
    }
}
