//! Answers of commands about all keys.

use bytes::Bytes;
use raingauge_resp::Replies;

/// What a command about all keys answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Count(u64),
    Name(Option<Bytes>),
    Names(Vec<Bytes>),
    Page { cursor: u64, names: Vec<Bytes> },
}

impl Answer {
    pub(crate) fn write(self, out: &mut Replies) {
        match self {
            Answer::Count(count) => out.integer(count as i64),
            Answer::Name(None) => out.null(),
            Answer::Name(Some(name)) => out.bulk(&name),
            Answer::Names(names) => write_names(&names, out),
            Answer::Page { cursor, names } => {
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
