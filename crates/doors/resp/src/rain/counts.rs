//! `RAIN.COUNT`, `RAIN.COUNTS`, `RAIN.SERIES` and `RAIN.TOP`.
//!
//! Keys and times are read in place: a range borrows the bytes of the drain, and nothing is
//! allocated for it.

use super::{refuse, refuse_problem};
use raingauge_app::{App, Problem, counts as shared, largest, times};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::limits::COUNTS_PER_REQUEST_MAX;
use raingauge_core::moment::Moment;
use raingauge_reader::{Range, Step, midnight_s};
use raingauge_resp::{Arguments, Command, Failure, Id, Replies, number};

/// Answers neighbouring counts, in batches of the reader.
pub async fn answer(app: &App, commands: &[Command<'_>], out: &mut Replies) {
    let mut batch = Batch::new(app.clock.now_s());
    for command in commands {
        let len = ranges_of(*command);
        if !batch.has_room(*len.as_ref().unwrap_or(&0)) {
            batch.answer(app, out).await;
        }
        batch.push(*command, len);
    }
    batch.answer(app, out).await;
}

/// How many ranges a command asks for, or why it is malformed.
fn ranges_of(command: Command<'_>) -> Result<usize, Failure> {
    let arguments = command.arguments;
    let is_one = command.spec().is_some_and(|spec| spec.id == Id::RainCount);
    if is_one {
        let is_fresh = || arguments.len() == 5 && arguments.is(4, "FRESH");
        return if arguments.len() == 4 || is_fresh() { Ok(1) } else { Err(Failure::Syntax) };
    }

    let len = arguments.integer(1)?;
    let len = usize::try_from(len).ok().filter(|len| *len > 0).ok_or(Failure::NotPositive)?;
    let is_whole = len.checked_mul(3).and_then(|len| len.checked_add(2)) == Some(arguments.len());
    if is_whole { Ok(len) } else { Err(Failure::Syntax) }
}

/// Ranges of neighbouring commands, and the replies that they will be.
struct Batch<'a> {
    ranges: Vec<Range<'a>>,
    replies: Vec<Reply>,
    times: Times<'a>,
}

/// What a reply will be.
enum Reply {
    /// The answer to the next range.
    Range,
    /// An array of this many replies follows.
    Array(usize),
    Refused(Refusal),
    Malformed(Failure),
}

/// The times of the last range, which those of the next one often are.
struct Times<'a> {
    now_s: i64,
    from: (&'a [u8], i64),
    to: (&'a [u8], i64),
}

impl<'a> Times<'a> {
    fn read(&mut self, from: &'a [u8], to: &'a [u8]) -> Result<(i64, i64), Refusal> {
        if self.from.0 != from || from.is_empty() {
            self.from = (from, time_s(from, "from", self.now_s)?);
        }
        if self.to.0 != to || to.is_empty() {
            self.to = (to, time_s(to, "to", self.now_s)?);
        }
        Ok((self.from.1, self.to.1))
    }
}

impl<'a> Batch<'a> {
    fn new(now_s: i64) -> Self {
        let times = Times { now_s, from: (&[], 0), to: (&[], 0) };
        Self { ranges: Vec::new(), replies: Vec::new(), times }
    }

    fn has_room(&self, ranges: usize) -> bool {
        self.ranges.is_empty() || self.ranges.len() + ranges <= COUNTS_PER_REQUEST_MAX
    }

    /// Adds the ranges of a command, of which there are this many.
    fn push(&mut self, command: Command<'a>, len: Result<usize, Failure>) {
        let arguments = command.arguments;
        let len = match len {
            Ok(len) => len,
            Err(failure) => return self.replies.push(Reply::Malformed(failure)),
        };
        if command.spec().is_some_and(|spec| spec.id == Id::RainCount) {
            return self.push_range(arguments.from(1), arguments.len() == 5);
        }

        if let Err(problem) = shared::check_len(len) {
            return self.replies.push(Reply::Refused(problem.refusal));
        }
        self.replies.push(Reply::Array(len));
        for index in 0..len {
            self.push_range(arguments.from(2 + 3 * index), false);
        }
    }

    /// Adds the range that these arguments begin with: key, from, to.
    fn push_range(&mut self, arguments: Arguments<'a>, fresh: bool) {
        let read = key_of(arguments.at(0))
            .and_then(|key| Ok((key, self.times.read(arguments.at(1), arguments.at(2))?)));
        self.replies.push(match read {
            Ok((key, (from_s, to_s))) => {
                self.ranges.push(Range { key, from_s, to_s, fresh });
                Reply::Range
            }
            Err(refusal) => Reply::Refused(refusal),
        });
    }

    /// Asks the reader, appends every reply, and leaves the batch empty.
    async fn answer(&mut self, app: &App, out: &mut Replies) {
        let mut answers = app.reader.counts(&self.ranges).await.into_iter();
        for reply in self.replies.drain(..) {
            match reply {
                Reply::Range => match answers.next() {
                    Some(Ok(answer)) => out.integer(answer.count),
                    Some(Err(refusal)) => refuse(&refusal, out),
                    None => refuse(&Refusal::new(Code::Unavailable, "there was no answer"), out),
                },
                Reply::Array(len) => out.array(len),
                Reply::Refused(refusal) => refuse(&refusal, out),
                Reply::Malformed(failure) => out.fail(&failure),
            }
        }
        self.ranges.clear();
    }
}

/// `RAIN.SERIES key from to step [zone]`: pairs of a time and a count.
pub async fn series(app: &App, arguments: Arguments<'_>, out: &mut Replies) {
    if arguments.len() > 6 {
        return out.fail(&Failure::Syntax);
    }
    let points = match series_of(app, arguments).await {
        Ok(points) => points,
        Err(problem) => return refuse_problem(&problem, out),
    };

    out.array(points.len());
    for point in points {
        out.array(2);
        out.integer(point.time);
        out.integer(point.count);
    }
}

async fn series_of(
    app: &App,
    arguments: Arguments<'_>,
) -> Result<Vec<raingauge_reader::Point>, Problem> {
    let step = text(arguments.at(4)).and_then(|name| Step::from_name(&name.to_ascii_lowercase()));
    let step = step.ok_or_else(shared::granularity_unknown)?;
    let zone = arguments.get(5).map_or(Some("UTC"), text).unwrap_or("?");

    // The days of a series are those of its zone.
    let now_s = app.clock.now_s();
    let time_of = |argument: &[u8], name: &str| {
        let moment = text(argument).and_then(Moment::parse);
        let moment = times::with_midnight(moment, |days_ago| midnight_s(days_ago, now_s, zone));
        times::at_s(moment, name, now_s)
    };

    let range = Range {
        key: key_of(arguments.at(1))?,
        from_s: time_of(arguments.at(2), "from")?,
        to_s: time_of(arguments.at(3), "to")?,
        fresh: false,
    };
    Ok(app.reader.series(&range, step, zone).await?.points)
}

/// `RAIN.TOP counter from to n`: pairs of a key and its count, largest first.
pub async fn top(app: &App, caller: &str, arguments: Arguments<'_>, out: &mut Replies) {
    let keys = match top_of(app, caller, arguments).await {
        Ok(keys) => keys,
        Err(problem) => return refuse_problem(&problem, out),
    };

    out.array(keys.len());
    for (key, count) in keys {
        out.array(2);
        out.bulk(key.as_bytes());
        out.integer(count);
    }
}

async fn top_of(
    app: &App,
    caller: &str,
    arguments: Arguments<'_>,
) -> Result<Vec<(String, i64)>, Problem> {
    let whole = |index: usize| arguments.get(index).and_then(number::parse_i64);
    let counter = whole(1).and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
        Problem::new(Code::CounterUnknown, "the counter must be the number of one")
    })?;
    let limit = whole(4).and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.filter(|limit| (1..=largest::KEYS_MAX).contains(limit)).ok_or_else(|| {
        let detail = format!("n must lie between 1 and {}", largest::KEYS_MAX);
        Problem::new(Code::LimitOutOfRange, detail)
    })?;

    let now_s = app.clock.now_s();
    let from_s = time_s(arguments.at(2), "from", now_s)?;
    let to_s = time_s(arguments.at(3), "to", now_s)?;
    let found = largest::keys(app, caller, counter, from_s, to_s).await?;

    Ok(found.keys.iter().take(limit).map(|key| (key.key.clone(), key.count)).collect())
}

fn text(argument: &[u8]) -> Option<&str> {
    std::str::from_utf8(argument).ok()
}

fn key_of(argument: &[u8]) -> Result<&str, Refusal> {
    text(argument).ok_or_else(|| Refusal::new(Code::KeyUnknown, "keys are UTF-8, this one is not"))
}

fn time_s(argument: &[u8], name: &str, now_s: i64) -> Result<i64, Refusal> {
    times::at_s(text(argument).and_then(Moment::parse), name, now_s)
}
