//! Commands that took long: `SLOWLOG`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use raingauge_resp::{Arguments, Command, Drain, Flags, Id, Replies};

use crate::client::Client;
use crate::limits::{
    RESP_SLOWLOG_ARGUMENT_BYTES_MAX, RESP_SLOWLOG_ARGUMENTS_MAX, RESP_SLOWLOG_MAX,
};

/// What is kept in the place of a token and of the name before it.
const REDACTED: &[u8] = b"(redacted)";

/// The slow commands, newest first.
pub(crate) struct Slowlog {
    /// Commands that take longer are kept; negative, none are.
    threshold_us: AtomicI64,
    len_max: AtomicUsize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next_id: i64,
    all: VecDeque<Entry>,
}

struct Entry {
    id: i64,
    at_s: i64,
    duration_us: u64,
    arguments: Vec<Vec<u8>>,
    address: String,
    name: String,
}

impl Default for Slowlog {
    fn default() -> Slowlog {
        Slowlog {
            threshold_us: AtomicI64::new(10_000),
            len_max: AtomicUsize::new(128),
            entries: Mutex::default(),
        }
    }
}

impl Slowlog {
    pub(crate) fn set_threshold_us(&self, threshold_us: i64) {
        self.threshold_us.store(threshold_us, Ordering::Relaxed);
    }

    pub(crate) fn set_len_max(&self, len_max: usize) {
        let len_max = len_max.min(RESP_SLOWLOG_MAX);

        self.len_max.store(len_max, Ordering::Relaxed);
        self.entries.lock().all.truncate(len_max);
    }

    /// Whether a command of this duration is kept.
    pub(crate) fn is_slow(&self, duration_us: u64) -> bool {
        let threshold = self.threshold_us.load(Ordering::Relaxed);

        u64::try_from(threshold).is_ok_and(|threshold| duration_us >= threshold)
    }

    /// Keeps the commands of a run, if it took long. Its time is that of all of them.
    pub(crate) fn note_run(
        &self,
        drain: &Drain,
        run: Range<usize>,
        client: &Client,
        now_s: impl FnOnce() -> i64,
        elapsed: Duration,
    ) {
        let count = run.len().max(1) as u64;
        let duration_us = micros(elapsed) / count;
        if !self.is_slow(duration_us) {
            return;
        }

        let at_s = now_s();
        for command in run.map(|index| drain.get(index)) {
            let skips = command.spec().is_none_or(|spec| spec.flags.has(Flags::SKIP_SLOWLOG));
            if !skips {
                self.note(command.arguments, client, at_s, duration_us);
            }
        }
    }

    /// Keeps a command, without the token of a login.
    pub(crate) fn note(
        &self,
        arguments: Arguments<'_>,
        client: &Client,
        at_s: i64,
        duration_us: u64,
    ) {
        let len_max = self.len_max.load(Ordering::Relaxed);
        if len_max == 0 {
            return;
        }

        let address = client.address.to_string();
        let name = client.names.lock().name.clone();
        let arguments = shortened(arguments);

        let mut entries = self.entries.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.all.truncate(len_max - 1);
        entries.all.push_front(Entry { id, at_s, duration_us, arguments, address, name });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().all.len()
    }

    pub(crate) fn reset(&self) {
        self.entries.lock().all.clear();
    }

    /// Replies with the newest commands.
    pub(crate) fn reply(&self, len_max: usize, replies: &mut Replies) {
        let entries = self.entries.lock();
        let len = entries.all.len().min(len_max);

        replies.array(len);
        for entry in entries.all.iter().take(len) {
            replies.array(6);
            replies.integer(entry.id);
            replies.integer(entry.at_s);
            replies.integer(i64::try_from(entry.duration_us).unwrap_or(i64::MAX));

            replies.array(entry.arguments.len());
            for argument in &entry.arguments {
                replies.bulk(argument);
            }

            replies.bulk(entry.address.as_bytes());
            replies.bulk(entry.name.as_bytes());
        }
    }
}

/// The first arguments with their first bytes, and what is left out, in words.
fn shortened(arguments: Arguments<'_>) -> Vec<Vec<u8>> {
    let id = Command::of(arguments).spec().map(|spec| spec.id);
    let cut = arguments.len() > RESP_SLOWLOG_ARGUMENTS_MAX;
    let shown = if cut { RESP_SLOWLOG_ARGUMENTS_MAX - 1 } else { arguments.len() };
    let kept = |(at, argument)| {
        if is_secret(id, arguments, at) { REDACTED.to_vec() } else { first_bytes(argument) }
    };
    let mut all: Vec<Vec<u8>> = arguments.iter().enumerate().take(shown).map(kept).collect();

    if cut {
        all.push(format!("... ({} more arguments)", arguments.len() - shown).into_bytes());
    }

    all
}

/// Whether an argument is the name or the token of a login: those of `AUTH`, and the two that
/// follow the word `AUTH` in `HELLO`.
fn is_secret(id: Option<Id>, arguments: Arguments<'_>, at: usize) -> bool {
    match id {
        Some(Id::Auth) => at > 0,
        Some(Id::Hello) => (1..=2).any(|back| at > back && arguments.is(at - back, "auth")),
        _ => false,
    }
}

fn first_bytes(argument: &[u8]) -> Vec<u8> {
    let max = RESP_SLOWLOG_ARGUMENT_BYTES_MAX;
    if argument.len() <= max {
        return argument.to_vec();
    }

    let rest = format!("... ({} more bytes)", argument.len() - max);
    [&argument[..max], rest.as_bytes()].concat()
}

/// A duration in the unit of the log and of the statistics of commands.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_resp::Drain;

    #[test]
    fn long_commands_are_shortened() {
        let long = vec![b'x'; 200];
        let mut command: Vec<&[u8]> = vec![b"del", &long];
        command.resize(40, b"k");
        let drain = Drain::of(&[&command]);

        let kept = shortened(drain.get(0).arguments);
        assert_eq!(kept.len(), RESP_SLOWLOG_ARGUMENTS_MAX);
        assert!(kept[1].ends_with(b"... (72 more bytes)"));
        assert_eq!(kept[31], b"... (9 more arguments)");
    }

    #[test]
    fn tokens_are_not_kept() {
        for (command, expected) in [
            ("auth rg_a", "auth *"),
            ("AUTH me rg_a", "AUTH * *"),
            ("auth me rg_a more", "auth * * *"),
            ("hello 3 AUTH me rg_a SETNAME auth", "hello 3 AUTH * * SETNAME auth"),
            ("hello auth me rg_a", "hello auth * *"),
            ("hello 3 auth auth rg_a", "hello 3 auth * *"),
            ("get auth", "get auth"),
            ("set auth me", "set auth me"),
        ] {
            let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            let kept = shortened(Drain::of(&[&words]).get(0).arguments).join(&b" "[..]);
            let kept = String::from_utf8_lossy(&kept).replace("(redacted)", "*");
            assert_eq!(kept, expected);
        }
    }
}
