//! Limits of an import that are independent of the service.

/// Maximum row length in bytes, including the line end; also the distance after which the search
/// for a closing quote stops.
pub(crate) const ROW_LEN_MAX: usize = 1024 * 1024;
/// Size of the read buffer in uncompressed bytes; it grows when a row is longer.
pub(crate) const BUFFER_LEN: usize = 256 * 1024;
/// Uncompressed bytes at the start of a file that its fingerprint covers; at most one buffer.
pub(crate) const FINGERPRINT_LEN: usize = 64 * 1024;
/// Bytes of a rejected row that are kept for inspection.
pub(crate) const REJECTED_ROW_LEN_MAX: usize = 4 * 1024;
/// Maximum size of a mapping and of a progress file, in bytes.
pub(crate) const SMALL_FILE_LEN_MAX: u64 = 256 * 1024;
/// Maximum number of data fields of a mapping, and of columns in one id or product.
pub(crate) const FIELDS_MAX: usize = 256;
pub(crate) const COLUMNS_JOINED_MAX: usize = 16;
/// Maximum nesting of a JSON line. Parsers recurse at every level: some overflow the stack, others
/// stop at 127.
pub(crate) const NESTING_MAX: usize = 100;
