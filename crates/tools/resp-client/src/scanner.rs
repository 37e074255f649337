//! Finds the ends of replies in a buffer that fills up, without looking at a byte twice.

use crate::Error;
use memchr::memchr;

/// Where a buffer has been read to. The caller clears both together.
#[derive(Debug, Default, Clone)]
pub struct Scanner {
    position: usize,
    /// Replies that are still missing in each open array, from the outside in.
    open: Vec<usize>,
    /// Complete replies before `position`.
    replies: usize,
    errors: usize,
}

impl Scanner {
    /// Reads on in the buffer, which begins with the same bytes as last time. Returns the number
    /// of complete replies so far.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        while let Some(end) = memchr(b'\n', bytes.get(self.position..).unwrap_or_default()) {
            let start = self.position;
            let line = &bytes[start..start + end];
            let (kind, rest) =
                line.split_first().ok_or_else(|| Error::Malformed("an empty line".to_owned()))?;

            match kind {
                b'$' | b'=' | b'!' => {
                    let after = start + end + 1;
                    let len = length(rest)?;
                    let end = len.map_or(after, |len| after + len + 2);
                    if end > bytes.len() {
                        break;
                    }
                    self.position = end;
                    self.complete();
                }
                b'*' | b'~' | b'>' | b'%' => {
                    self.position += end + 1;
                    let times = if *kind == b'%' { 2 } else { 1 };
                    match length(rest)?.unwrap_or(0) * times {
                        0 => self.complete(),
                        len => self.open.push(len),
                    }
                }
                _ => {
                    self.errors += usize::from(*kind == b'-');
                    self.position += end + 1;
                    self.complete();
                }
            }
        }
        Ok(self.replies)
    }

    /// Bytes of the complete replies.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Errors among the replies and their elements.
    pub fn errors(&self) -> usize {
        self.errors
    }

    pub fn clear(&mut self) {
        *self = Self { open: std::mem::take(&mut self.open), ..Self::default() };
        self.open.clear();
    }

    fn complete(&mut self) {
        while let Some(missing) = self.open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return;
            }
            self.open.pop();
        }
        self.replies += 1;
    }
}

/// A length; `None` for a null.
fn length(line: &[u8]) -> Result<Option<usize>, Error> {
    let text = std::str::from_utf8(line.trim_ascii_end()).unwrap_or_default();
    let number: i64 =
        text.parse().map_err(|_| Error::Malformed(format!("{text:?} is not a length")))?;
    Ok(usize::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_wherever_the_buffer_is_cut() {
        let bytes =
            b"+OK\r\n*2\r\n$3\r\na\nb\r\n*1\r\n:1\r\n-ERR x\r\n*0\r\n$-1\r\n%1\r\n+a\r\n_\r\n";
        for cut in 0..bytes.len() {
            let mut scanner = Scanner::default();
            scanner.advance(&bytes[..cut]).unwrap();
            assert_eq!(scanner.advance(bytes).unwrap(), 6, "cut at {cut}");
            assert_eq!((scanner.position(), scanner.errors()), (bytes.len(), 1));
        }
        assert!(Scanner::default().advance(b"$x\r\n").is_err());
    }
}
