//! Feeds the body of a request to a replay that reads it as lines.

use crate::limits::FEED_CHUNKS_MAX;
use crate::source::Lines;
use std::io::{self, BufReader, Read};
use tokio::sync::mpsc;

/// Takes the parts of a body as they arrive.
pub struct Feed(mpsc::Sender<Vec<u8>>);

/// Reads what is fed, on a thread that may block.
struct FeedReader {
    parts: mpsc::Receiver<Vec<u8>>,
    part: Vec<u8>,
    /// Of the part, what was read.
    read: usize,
}

/// Both ends of a feed. The lines end when the feed is dropped.
pub fn feed() -> (Feed, Lines) {
    let (sender, parts) = mpsc::channel(FEED_CHUNKS_MAX);
    let reader = FeedReader { parts, part: Vec::new(), read: 0 };
    (Feed(sender), Box::new(BufReader::with_capacity(1 << 16, reader)))
}

impl Feed {
    /// Hands a part over, and waits while the replay has enough to read. Returns `false` when the
    /// replay has ended.
    pub async fn push(&self, part: Vec<u8>) -> bool {
        self.0.send(part).await.is_ok()
    }
}

impl Read for FeedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.part.len() {
            let Some(part) = self.parts.blocking_recv() else { return Ok(0) };
            self.part = part;
            self.read = 0;
        }
        let rest = &self.part[self.read..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.read += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;

    #[tokio::test]
    async fn parts_are_read_as_lines() {
        let (feed, mut lines) = feed();
        let reader = tokio::task::spawn_blocking(move || {
            let mut read = Vec::new();
            for line in lines.by_ref().lines() {
                read.push(line.expect("read"));
            }
            read
        });
        for part in ["a", "b\nc", "", "\n\nd"] {
            assert!(feed.push(part.into()).await);
        }
        drop(feed);
        assert_eq!(reader.await.expect("read"), ["ab", "c", "", "d"]);
    }
}
