//! A range that a caller asks for, and the answer.

/// The range of time over which a caller asks for the count of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range<'a> {
    pub key: &'a str,
    /// Seconds since 1970.
    pub from_s: i64,
    pub to_s: i64,
    /// Whether the quarter hour that is still open counts too.
    pub fresh: bool,
}

/// A count, and the range that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub from_s: i64,
    pub to_s: i64,
    pub count: i64,
}
