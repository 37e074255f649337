//! Answers of commands about all keys.

use bytes::Bytes;
use raingauge_resp::{Failure, Replies};
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

/// Memory for the names that a command answers, or all commands of a transaction.
pub(crate) struct Budget {
    /// What is left.
    pub bytes: usize,
    /// What is answered beyond it.
    refusal: Failure,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize, refusal: impl FnOnce(usize) -> Failure) -> Self {
        Self { bytes: bytes_max, refusal: refusal(bytes_max) }
    }

    /// Keeps names as long as there is memory for them.
    pub(crate) fn take(
        &mut self,
        names: impl Iterator<Item = Bytes>,
        kept: &mut Vec<Bytes>,
    ) -> Result<(), Failure> {
        for name in names {
            let bytes = size_of::<Bytes>() + name.len();
            self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| self.refusal.clone())?;
            kept.push(name);
        }
        Ok(())
    }
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
