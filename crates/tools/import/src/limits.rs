//! The limits of an import that do not come from the service.

/// Longest row, in bytes with its line end; also how far a quote that is never closed is followed.
pub(crate) const ROW_LEN_MAX: usize = 1024 * 1024;
/// Uncompressed bytes read at once, until a row asks for more.
pub(crate) const BUFFER_LEN: usize = 256 * 1024;
/// Uncompressed bytes at the start of a file that its fingerprint covers; no more than one buffer.
pub(crate) const FINGERPRINT_LEN: usize = 64 * 1024;
/// Bytes of a rejected row that are kept to be looked at.
pub(crate) const REJECTED_ROW_LEN_MAX: usize = 4 * 1024;
/// Longest mapping and longest progress file, in bytes.
pub(crate) const SMALL_FILE_LEN_MAX: u64 = 256 * 1024;
/// Most data fields of a mapping, and most columns of one id or one product.
pub(crate) const FIELDS_MAX: usize = 256;
pub(crate) const COLUMNS_JOINED_MAX: usize = 16;
/// Deepest nesting of a JSON line. Parsers call themselves for every level: some run out of stack,
/// others stop at 127.
pub(crate) const NESTING_MAX: usize = 100;
