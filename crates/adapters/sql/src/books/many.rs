//! Statements for many rows. Their number is a power of two, so that a server meets the same few
//! texts again and again, and has them prepared.

use crate::database::{Statement, Value};

/// Most rows of one statement. They stay below the parameters (32,766) that SQLite allows, and a
/// statement of 256 entries below the packet (16 MiB) that MySQL takes by default.
pub const ROWS_MAX: usize = 256;

/// The text of a statement for any number of rows.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    pub before: &'static str,
    /// The places of the values of one row.
    pub row: &'static str,
    pub after: &'static str,
}

impl Many {
    /// Returns statements that together have each row once, in order.
    pub fn writing(&self, rows: Vec<Vec<Value>>) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let count = (1 << rows.len().ilog2()).min(ROWS_MAX);
            let mut statement = self.of_rows(count);
            statement.values.extend(rows.by_ref().take(count).flatten());
            statements.push(statement);
        }
        statements
    }

    /// Returns statements that together look for each value, behind the `first` values. The last
    /// value is repeated up to a power of two.
    pub fn finding(&self, first: &[Value], wanted: &[Vec<Value>]) -> Vec<Statement> {
        let of = |chunk: &[Vec<Value>]| {
            let count = chunk.len().next_power_of_two();
            let mut statement = self.of_rows(count);
            statement.values.extend_from_slice(first);
            let last = chunk.last().into_iter().cycle();
            let padded = chunk.iter().chain(last).take(count);
            statement.values.extend(padded.flatten().cloned());
            statement
        };
        wanted.chunks(ROWS_MAX).map(of).collect()
    }

    fn of_rows(&self, count: usize) -> Statement {
        let rows = vec![self.row; count].join(",");
        Statement::composed(format!("{}{rows}{}", self.before, self.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: Many = Many { before: "a (", row: "?", after: ")" };

    fn rows(count: i64) -> Vec<Vec<Value>> {
        (0..count).map(|number| vec![number.into()]).collect()
    }

    #[test]
    fn rows_are_written_once_and_in_order_by_few_statements() {
        let statements = MANY.writing(rows(500));
        let counts: Vec<_> = statements.iter().map(|statement| statement.values.len()).collect();
        assert_eq!(counts, [256, 128, 64, 32, 16, 4]);

        let written: Vec<_> = statements.into_iter().flat_map(|each| each.values).collect();
        assert_eq!(written, rows(500).concat());
        assert!(MANY.writing(Vec::new()).is_empty());
    }

    #[test]
    fn searches_repeat_their_last_value() {
        let statements = MANY.finding(&[Value::from(9)], &rows(3));
        assert_eq!(statements[0].text.as_str(), "a (?,?,?,?)");
        assert_eq!(statements[0].values, [9, 0, 1, 2, 2].map(Value::from));
        assert!(MANY.finding(&[], &[]).is_empty());
        assert_eq!(MANY.finding(&[], &rows(257)).len(), 2);
    }
}
