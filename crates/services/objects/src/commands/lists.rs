//! Commands about lists.

mod blocking;
mod edit;
mod ends;
mod read;

use raingauge_resp::{Arguments, Failure, Id};
use raingauge_values::list::{Side, TooManyMoves};

use crate::turn::Handler;

pub(super) const COMMANDS: &[(Id, Handler)] = &[
    (Id::Lpush, ends::lpush),
    (Id::Rpush, ends::rpush),
    (Id::Lpushx, ends::lpushx),
    (Id::Rpushx, ends::rpushx),
    (Id::Lpop, ends::lpop),
    (Id::Rpop, ends::rpop),
    (Id::Lmpop, ends::lmpop),
    (Id::Lmove, ends::lmove),
    (Id::Rpoplpush, ends::rpoplpush),
    (Id::Blpop, blocking::blpop),
    (Id::Brpop, blocking::brpop),
    (Id::Blmpop, blocking::blmpop),
    (Id::Blmove, blocking::blmove),
    (Id::Brpoplpush, blocking::brpoplpush),
    (Id::Llen, read::llen),
    (Id::Lrange, read::lrange),
    (Id::Lindex, read::lindex),
    (Id::Lpos, read::lpos),
    (Id::Lset, edit::lset),
    (Id::Linsert, edit::linsert),
    (Id::Lrem, edit::lrem),
    (Id::Ltrim, edit::ltrim),
];

/// Reads `LEFT` or `RIGHT`.
fn side(arguments: Arguments<'_>, index: usize) -> Result<Side, Failure> {
    if arguments.is(index, "left") {
        Ok(Side::Left)
    } else if arguments.is(index, "right") {
        Ok(Side::Right)
    } else {
        Err(Failure::Syntax)
    }
}

/// The position of an index, which counts from the end where it is negative.
fn position(index: i64, len: usize) -> Option<usize> {
    let counted = if index < 0 { index.checked_add_unsigned(len as u64)? } else { index };

    usize::try_from(counted).ok().filter(|position| *position < len)
}

/// Refuses an edit in the middle of a long list.
fn too_many_moves(refused: TooManyMoves) -> Failure {
    Failure::owned(format!("ERR {refused}"))
}

#[cfg(test)]
mod tests {
    use super::position;

    #[test]
    fn negative_indexes_count_from_the_end() {
        assert_eq!(position(0, 3), Some(0));
        assert_eq!(position(-1, 3), Some(2));
        assert_eq!(position(-3, 3), Some(0));
        assert_eq!(position(3, 3), None);
        assert_eq!(position(-4, 3), None);
        assert_eq!(position(i64::MIN, 3), None);
        assert_eq!(position(0, 0), None);
    }
}
