//! The events of a file as lines of JSON, for what reads them as such.

use crate::error::Error;
use crate::http::push_line;
use crate::rows::Rows;
use std::io::{self, Read};

/// Reads the rows of a file as CloudEvents, one a line. Rows that are no events are left out.
pub struct EventLines {
    rows: Rows,
    line: Vec<u8>,
    read: usize,
    left_out: u64,
}

impl EventLines {
    pub fn new(rows: Rows) -> Self {
        Self { rows, line: Vec::new(), read: 0, left_out: 0 }
    }

    /// Rows that were no events.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Reads the next event into the line. Returns `false` at the end.
    fn next_line(&mut self) -> Result<bool, Error> {
        self.line.clear();
        self.read = 0;
        while let Some(row) = self.rows.next_row()? {
            match &row.event {
                Ok(event) => {
                    push_line(event, &mut self.line);
                    return Ok(true);
                }
                Err(_) => self.left_out += 1,
            }
        }
        Ok(false)
    }
}

impl Read for EventLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.line.len() {
            if !self.next_line().map_err(io::Error::other)? {
                return Ok(0);
            }
        }
        let rest = &self.line[self.read..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.read += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mapping;
    use std::path::Path;

    #[test]
    fn rows_are_read_as_lines_of_events() {
        let mapping = Mapping::parse(
            "format = \"csv\"\ntype = \"tip\"\nsource = \"taxi\"\nid = [\"id\"]\n\
             [time]\ncolumn = \"at\"\nformat = \"rfc3339\"\n[fields]\nzone = \"zone\"\n",
        )
        .unwrap();
        let file = b"id,at,zone\n1,2024-09-24T00:00:00Z,7\n2,soon,8\n".as_slice();
        let rows = Rows::read(Box::new(file), Path::new("tips.csv"), &mapping).unwrap();
        let mut lines = EventLines::new(rows);
        let mut text = String::new();
        lines.read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(lines.left_out(), 1);
    }
}
