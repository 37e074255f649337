//! The uncompressed bytes of a file, through one buffer.

use crate::limits::{BUFFER_LEN, FINGERPRINT_LEN, ROW_LEN_MAX};
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Compressed bytes read from the file at a time.
const READ_AHEAD_LEN: usize = 128 * 1024;

pub(crate) struct Input {
    reader: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
    buffer: Vec<u8>,
    /// The unconsumed bytes are `buffer[start..end]`.
    start: usize,
    end: usize,
    ended: bool,
    /// A read error that occurred after some bytes; it is reported once those have been consumed.
    fault: Option<io::Error>,
    fingerprint: u64,
}

impl Input {
    /// Reads the start of `file`. Gzip, including files with several members, is detected by its
    /// magic bytes.
    pub(crate) fn new(file: Box<dyn Read + Send>) -> io::Result<Self> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: file, bytes_read: bytes_read.clone() };
        let mut file = BufReader::with_capacity(READ_AHEAD_LEN, counted);
        let gzip = file.fill_buf()?.starts_with(&GZIP_MAGIC);
        let reader: Box<dyn Read + Send> =
            if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };

        let buffer = vec![0; BUFFER_LEN];
        let mut input = Self {
            reader,
            bytes_read,
            buffer,
            start: 0,
            end: 0,
            ended: false,
            fault: None,
            fingerprint: 0,
        };

        input.fill()?;
        input.fingerprint = xxh3_64(&input.rest()[..input.end.min(FINGERPRINT_LEN)]);

        if input.rest().starts_with(BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        }
        Ok(input)
    }

    /// Returns the bytes that have been read but not consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The offset of [`Input::rest`] in the buffer; the bytes there stay in place until the next
    /// [`Input::fill`].
    pub(crate) fn position(&self) -> usize {
        self.start
    }

    /// Returns bytes that have been consumed since the last fill, or are about to be.
    pub(crate) fn bytes(&self, from: usize, to: usize) -> &[u8] {
        &self.buffer[from..to]
    }

    /// Whether [`Input::rest`] holds the whole remainder of the file.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Whether [`Input::rest`] has reached the maximum length of a row.
    pub(crate) fn full(&self) -> bool {
        self.end - self.start >= ROW_LEN_MAX
    }

    pub(crate) fn consume(&mut self, len: usize) {
        assert!(len <= self.end - self.start, "no more can be consumed than was read");
        self.start += len;
    }

    /// Reads until the buffer is full or the file ends; the buffer grows up to the maximum row
    /// length.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;

        if self.end == self.buffer.len() {
            self.buffer.resize((self.end * 2).min(ROW_LEN_MAX), 0);
        }
        let had = self.end;
        while !self.ended && self.end < self.buffer.len() {
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(len) => self.end += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.end == had => return Err(error),
                Err(error) => {
                    self.fault = Some(error);
                    break;
                }
            }
        }

        Ok(())
    }

    /// Bytes read from the file, before decompression.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// XXH3 of the first 64 KiB of the uncompressed bytes.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Counts the bytes read from the file, below the decompression.
struct Counted {
    inner: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}
