//! A body that is read as it comes, plain or packed with gzip.

use crate::refused::{Answer, Refused};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use raingauge_core::code::Code;
use raingauge_http::Upload;
use std::io::Write as _;

/// Packed bytes that are unpacked at a time: they become a thousand times as many at most.
const PACKED_AT_ONCE: usize = 4 * 1_024;

/// The bytes of a body, unpacked.
pub struct Stream {
    upload: Upload,
    unpacking: Option<Unpacking>,
}

struct Unpacking {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// What has arrived and is still packed.
    packed: Bytes,
    has_ended: bool,
}

impl Stream {
    pub fn new(upload: Upload, headers: &HeaderMap) -> Answer<Self> {
        let unpacking = match headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"identity") => None,
            Some(b"gzip") => Some(Unpacking {
                decoder: MultiGzDecoder::new(Vec::new()),
                packed: Bytes::new(),
                has_ended: false,
            }),
            Some(_) => {
                let detail = "content-encoding may be gzip, or be left out";
                return Err(Refused::new(Code::EncodingUnknown, detail));
            }
        };
        Ok(Self { upload, unpacking })
    }

    /// Returns the next bytes; `None` at the end.
    pub async fn next(&mut self) -> Answer<Option<Bytes>> {
        let Some(unpacking) = &mut self.unpacking else { return Ok(self.upload.next().await?) };
        while !unpacking.has_ended {
            if unpacking.packed.is_empty() {
                match self.upload.next().await? {
                    Some(packed) => unpacking.packed = packed,
                    None => return Ok(Some(unpacking.end()?)),
                }
            }
            let plain = unpacking.step()?;
            if !plain.is_empty() {
                return Ok(Some(plain));
            }
        }
        Ok(None)
    }

    /// Reads the whole body, of at most this many bytes.
    pub async fn whole(mut self, bytes_max: usize) -> Answer<Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            if whole.len() + bytes.len() > bytes_max {
                let detail = format!("the body has more than {bytes_max} bytes");
                return Err(Refused::new(Code::BodyTooLarge, detail));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole)
    }
}

impl Unpacking {
    /// Unpacks some of what has arrived.
    fn step(&mut self) -> Answer<Bytes> {
        let part = self.packed.split_to(self.packed.len().min(PACKED_AT_ONCE));
        self.decoder.write_all(&part).map_err(malformed)?;
        Ok(std::mem::take(self.decoder.get_mut()).into())
    }

    fn end(&mut self) -> Answer<Bytes> {
        self.has_ended = true;
        self.decoder.try_finish().map_err(malformed)?;
        Ok(std::mem::take(self.decoder.get_mut()).into())
    }
}

fn malformed(_: std::io::Error) -> Refused {
    Refused::new(Code::GzipMalformed, "the body is not gzip, as its content-encoding says")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn unpacking(packed: Vec<u8>) -> Unpacking {
        Unpacking {
            decoder: MultiGzDecoder::new(Vec::new()),
            packed: packed.into(),
            has_ended: false,
        }
    }

    #[test]
    fn gzip_is_unpacked_in_parts() {
        let plain: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&plain).unwrap();
        let mut unpacking = unpacking(encoder.finish().unwrap());

        let mut whole = Vec::new();
        while !unpacking.packed.is_empty() {
            whole.extend_from_slice(&unpacking.step().unwrap());
        }
        whole.extend_from_slice(&unpacking.end().unwrap());
        assert_eq!(whole, plain);
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        assert!(unpacking(b"subject\nu-1\n".to_vec()).step().is_err());

        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(b"subject\n").unwrap();
        let mut packed = encoder.finish().unwrap();
        packed.truncate(packed.len() - 4);
        let mut cut = unpacking(packed);
        assert!(cut.step().and_then(|_| cut.end()).is_err());
    }
}
