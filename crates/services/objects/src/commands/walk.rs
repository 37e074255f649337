//! What `HSCAN`, `SSCAN` and `ZSCAN` have in common: the cursor and the options of a walk.

use raingauge_resp::{Arguments, Failure, Replies, glob};

/// Entries that a call visits unless it asks for another number.
const COUNT: usize = 10;

/// The options of one call of a walk.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    /// How many entries to visit, about.
    pub(super) count: usize,
    pattern: Option<&'a [u8]>,
}

impl<'a> Walk<'a> {
    /// Parses the options from an index on.
    pub(super) fn parse(arguments: Arguments<'a>, from: usize) -> Result<Walk<'a>, Failure> {
        let mut walk = Walk { count: COUNT, pattern: None };
        let mut index = from;
        while index < arguments.len() {
            let next = index + 1;
            if arguments.is(index, "count") && next < arguments.len() {
                let count = arguments.integer(next)?;
                walk.count = usize::try_from(count).map_err(|_| Failure::Syntax)?;
                if walk.count == 0 {
                    return Err(Failure::Syntax);
                }
            } else if arguments.is(index, "match") && next < arguments.len() {
                walk.pattern = Some(arguments.at(next)).filter(|pattern| *pattern != b"*");
            } else {
                return Err(Failure::Syntax);
            }
            index += 2;
        }
        Ok(walk)
    }

    /// Whether the reply has entries of this name.
    pub(super) fn admits(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name, false))
    }
}

/// Replies for a collection that is not there: the end of the walk.
pub(super) fn reply_end(replies: &mut Replies) {
    replies.array(2);
    replies.bulk(b"0");
    replies.array(0);
}

/// Begins a reply: the cursor for the next call. The entries follow.
pub(super) fn reply_cursor(cursor: u64, replies: &mut Replies) {
    replies.array(2);
    replies.bulk(itoa::Buffer::new().format(cursor).as_bytes());
}
