//! `RAIN.EVENT` and `RAIN.ADD`.
//!
//! Each command is a batch of its own, so that each knows what became of its events. Neighbours are
//! given to the log together, in their order, and it makes them durable together.

use super::{json, refuse_problem};
use futures_util::future::join_all;
use raingauge_app::{App, Deadline, Problem, times};
use raingauge_core::code::{Code, Refusal};
use raingauge_core::event::Attributes;
use raingauge_core::moment::Moment;
use raingauge_core::time::{format_rfc3339, parse_rfc3339_ms};
use raingauge_resp::{Arguments, Command, Failure, Id, Replies};
use raingauge_writer::ingest::{self, Completion, Intake, Receipt};
use std::borrow::Cow;
use tokio::time::timeout_at;

/// The source of an event that names none.
const SOURCE: &str = "resp";

/// The events of a command, before they are appended.
struct Taken {
    intake: Intake,
    waits: bool,
}

/// Why the events of a command were not taken.
enum Fault {
    Malformed(Failure),
    Refused(Problem),
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<ingest::Error> for Fault {
    fn from(error: ingest::Error) -> Self {
        Self::Refused(error.into())
    }
}

/// Answers neighbouring commands: what was accepted, what was known before, what was rejected.
pub async fn answer(app: &App, commands: &[Command<'_>], out: &mut Replies) {
    let deadline = Deadline::after(app.limits.request_timeout);
    let mut scratch = String::new();
    let taken: Vec<Result<Taken, Fault>> =
        commands.iter().map(|command| take(app, *command, &mut scratch)).collect();

    // The log gets the batches in this order, since each is handed over when it is first polled.
    let finishing = taken.into_iter().map(|taken| async {
        match taken {
            Ok(taken) => finish(app, taken, deadline).await,
            Err(fault) => Err(fault),
        }
    });
    for finished in join_all(finishing).await {
        match finished {
            Ok(receipt) => {
                out.array(3);
                for number in [receipt.accepted, receipt.duplicates, receipt.rejected.len()] {
                    out.integer(number as i64);
                }
            }
            Err(Fault::Malformed(failure)) => out.fail(&failure),
            Err(Fault::Refused(problem)) => refuse_problem(&problem, out),
        }
    }
}

fn take(app: &App, command: Command<'_>, scratch: &mut String) -> Result<Taken, Fault> {
    let is_add = command.spec().is_some_and(|spec| spec.id == Id::RainAdd);
    let intake = app.ingest.begin()?;
    if is_add {
        return take_one(app, command.arguments, intake, scratch);
    }
    take_json(command.arguments, intake)
}

/// `RAIN.EVENT [WAIT APPLIED] json …`
fn take_json(arguments: Arguments<'_>, mut intake: Intake) -> Result<Taken, Fault> {
    let waits = arguments.is(1, "WAIT");
    if waits && !arguments.is(2, "APPLIED") {
        return Err(Problem::new(Code::WaitUnknown, "WAIT may be APPLIED").into());
    }

    let events = arguments.from(if waits { 3 } else { 1 });
    if events.is_empty() {
        return Err(Fault::Malformed(Failure::Arity("rain.event")));
    }
    for json in events.iter() {
        intake.push_json(json)?;
    }
    Ok(Taken { intake, waits })
}

/// `RAIN.ADD type id [SOURCE s] [AT t] field value …`
fn take_one(
    app: &App,
    arguments: Arguments<'_>,
    mut intake: Intake,
    data: &mut String,
) -> Result<Taken, Fault> {
    let mut next = 3;
    let mut source: &[u8] = SOURCE.as_bytes();
    let mut at = None;
    loop {
        let value = arguments.get(next + 1);
        match value {
            Some(value) if arguments.is(next, "SOURCE") => source = value,
            Some(value) if arguments.is(next, "AT") => at = Some(value),
            _ => break,
        }
        next += 2;
    }

    let fields = arguments.from(next);
    if !fields.len().is_multiple_of(2) {
        return Err(Fault::Malformed(Failure::Arity("rain.add")));
    }

    let event = json::write_object(fields, data).and_then(|()| {
        let attributes = Attributes {
            specversion: Some("1.0".into()),
            id: Some(attribute("id", arguments.at(2))?),
            source: Some(attribute("SOURCE", source)?),
            kind: Some(attribute("type", arguments.at(1))?),
            subject: None,
            time: Some(time_of(app, at)?),
        };
        attributes.into_event(data)
    });
    intake.push(event)?;
    Ok(Taken { intake, waits: false })
}

fn attribute<'a>(name: &str, value: &'a [u8]) -> Result<Cow<'a, str>, Refusal> {
    match std::str::from_utf8(value) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(Refusal::new(Code::EventMalformed, format!("{name} is not UTF-8"))),
    }
}

/// The time of an event in RFC 3339: as it was given, or now.
fn time_of<'a>(app: &App, at: Option<&'a [u8]>) -> Result<Cow<'a, str>, Refusal> {
    let Some(at) = at else {
        let now_ms = app.clock.now_ms();
        let seconds = format_rfc3339(now_ms.div_euclid(1_000));
        let whole = seconds.trim_end_matches('Z');
        return Ok(format!("{whole}.{:03}Z", now_ms.rem_euclid(1_000)).into());
    };

    let text = std::str::from_utf8(at).unwrap_or_default();
    if parse_rfc3339_ms(at).is_some() {
        return Ok(text.into());
    }
    let at_s = times::at_s(Moment::parse(text), "AT", app.clock.now_s())?;
    Ok(format_rfc3339(at_s).into())
}

/// Makes the events of a command durable, and waits until they are counted where it asks for that.
async fn finish(app: &App, taken: Taken, deadline: Deadline) -> Result<Receipt, Fault> {
    let Taken { intake, waits } = taken;
    if !waits {
        let finishing = app.ingest.finish(intake, false);
        return match timeout_at(deadline.at, finishing).await {
            Ok(receipt) => Ok(receipt?),
            Err(_) => Err(too_slow().into()),
        };
    }

    let finishing = app.ingest.finish_by(intake, deadline.for_counting());
    let Completion { receipt, lag } = match timeout_at(deadline.at, finishing).await {
        Ok(completion) => completion?,
        Err(_) => return Err(too_slow().into()),
    };
    if lag.is_some() {
        let detail = "the events are durable and will be counted; that takes longer than a \
                      request may: to send them again does not help";
        return Err(Problem::new(Code::NotAppliedYet, detail).into());
    }
    Ok(receipt)
}

/// Whether the events are in the log is not known.
fn too_slow() -> Problem {
    let detail = "the event log takes longer than a request may: send the same events again, \
                  which counts none of them twice";
    Problem::new(Code::Timeout, detail)
}
