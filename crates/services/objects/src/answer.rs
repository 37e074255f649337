//! Answers of commands about all keys.

use bytes::Bytes;
use raingauge_resp::Replies;
use rand::seq::IndexedRandom as _;

/// What a command about all keys answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Count(u64),
    /// One of the names, whichever.
    Any(Vec<Bytes>),
    Names(Vec<Bytes>),
    Page(Page),
}

/// One step of SCAN.
#[derive(Debug)]
pub(crate) struct Page {
    pub cursor: u64,
    pub names: Vec<Bytes>,
    pub range: Range,
}

/// The names that a step of SCAN covers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range {
    /// They lie behind this one; `None` for all from the first on.
    pub after: Option<Bytes>,
    /// And go up to this one, with it; `None` up to the last.
    pub until: Option<Bytes>,
}

impl Range {
    pub(crate) fn has(&self, name: &Bytes) -> bool {
        self.after.as_ref().is_none_or(|after| name > after)
            && self.until.as_ref().is_none_or(|until| name <= until)
    }
}

impl Answer {
    pub(crate) fn write(self, out: &mut Replies) {
        match self {
            Answer::Count(count) => out.integer(count as i64),
            Answer::Any(names) => match names.choose(&mut rand::rng()) {
                Some(name) => out.bulk(name),
                None => out.null(),
            },
            Answer::Names(names) => write_names(&names, out),
            Answer::Page(Page { cursor, names, .. }) => {
                out.array(2);
                out.bulk(itoa::Buffer::new().format(cursor).as_bytes());
                write_names(&names, out);
            }
        }
    }
}

fn write_names(names: &[Bytes], out: &mut Replies) {
    out.array(names.len());
    names.iter().for_each(|name| out.bulk(name));
}
