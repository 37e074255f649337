//! Prices the events of the log again, and compares with what the ledger has.
//!
//! Each award of an event has an entry, or waits in a queue, or is among the dead letters. An entry
//! says by which version it was priced, for which tier: that version must make the same points of
//! the same event. An award that is nowhere was lost by a queue, and can be sent again: its key
//! keeps it from being awarded twice. One that had no price in its time is sent with the price that
//! the programme in force makes by now, as the queue `retry` would have done.

use crate::Sources;
use crate::letters::{Letters, Whereabouts, failed};
use crate::limits::APPRAISAL_DIFFERENCES_MAX;
use crate::request::AuditRequest;
use crate::versions::Versions;
use raingauge_core::event::Event;
use raingauge_core::time::format_rfc3339;
use raingauge_points::programme::{EVENT_SOURCE, OWN_EVENTS};
use raingauge_points::{
    Basis, Body, Command, Entry, Explain, Key, Kind, Priced, Programme, Unpriced,
};
use raingauge_ports::points::{Letter, QueueName, send_all};
use raingauge_ports::record;
use raingauge_replay::source::{Span, walk};
use raingauge_replay::{Error, Progress};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Events of the last minute may still be on their way to the ledger.
const SETTLING_MS: i64 = 60_000;

/// The result of an audit.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// RFC 3339.
    pub audited_at: String,
    /// Events that a rule matches.
    pub events: u64,
    /// Awards that they make.
    pub awards: u64,
    /// Those with an entry that is as it should be.
    pub equal: u64,
    /// Those that the ledger refused for good.
    pub refused: u64,
    /// Those without an entry and without a letter that have no price yet, or never will.
    pub unpriced: u64,
    pub waiting: u64,
    pub dead: u64,
    /// Those without an entry and without a letter that have a price.
    pub missing: u64,
    /// Of the missing ones, those that were sent to be awarded.
    pub resent: u64,
    /// Entries that are not as they should be.
    pub different: u64,
    pub differences: Vec<Difference>,
    /// Whether a queue holds more letters than were looked at, because they are too many or hidden.
    /// Missing awards may be in it then, and none is sent again.
    pub is_partial: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    pub programme: String,
    pub member: String,
    pub key: String,
    /// `book:sequence` of the entry; `None` for an award without one.
    pub entry: Option<String>,
    pub detail: String,
}

impl Difference {
    fn of_entry(entry: &Entry, key: &str, detail: String) -> Self {
        Self {
            programme: entry.programme.to_string(),
            member: entry.member.as_deref().unwrap_or_default().to_owned(),
            key: key.to_owned(),
            entry: Some(format!("{}:{}", entry.book, entry.sequence)),
            detail,
        }
    }
}

pub struct Auditor {
    sources: Sources,
    handle: Handle,
    request: AuditRequest,
    letters: Letters,
    versions: Versions,
    found: Audit,
    lost: Vec<Letter>,
    until_ms: i64,
}

impl Auditor {
    /// Blocks the thread.
    pub fn new(
        sources: &Sources,
        handle: Handle,
        request: AuditRequest,
        now_ms: i64,
    ) -> Result<Self, Error> {
        // Before entries: an award that moves from a queue to the ledger is seen in one of them.
        let letters = Letters::read(&*sources.control, &handle)?;
        let documents = Arc::clone(&sources.documents);
        let versions = Versions::at(documents, handle.clone(), begin_ms(sources, &request)?)?;
        let found = Audit {
            audited_at: format_rfc3339(now_ms.div_euclid(1_000)),
            is_partial: letters.is_partial,
            ..Audit::default()
        };
        Ok(Self {
            sources: sources.clone(),
            handle,
            request,
            letters,
            versions,
            found,
            lost: Vec::new(),
            until_ms: now_ms - SETTLING_MS,
        })
    }

    /// Blocks the thread.
    pub fn run(mut self, progress: &Progress) -> Result<Audit, Error> {
        let from_ms = self.request.from_ms();
        let spans = self.sources.logs.iter().map(|log| Span::since(log, from_ms)).collect();
        walk(spans, progress, |step| {
            if step.appended_ms > self.until_ms {
                return Ok(false);
            }
            match &step.entry {
                record::Entry::Event(event) => self.take(event)?,
                record::Entry::Control(payload) => self.versions.obey(payload)?,
                record::Entry::Void => {}
            }
            Ok(true)
        })?;

        self.resend()?;
        // What is missing may still be in a queue that was not looked at as a whole.
        let missing = if self.found.is_partial { 0 } else { self.found.missing };
        let differences = self.found.different + missing;
        count_differences(differences);
        Ok(self.found)
    }

    fn take(&mut self, event: &Event<'_>) -> Result<(), Error> {
        if event.kind.starts_with(OWN_EVENTS) {
            return Ok(());
        }
        let is_asked =
            |name: &str| self.request.programme.as_deref().is_none_or(|asked| asked == name);
        let wanting = self
            .versions
            .in_force()
            .iter()
            .filter(|programme| is_asked(programme.name()) && programme.wants(&event.kind));
        let wanting: Vec<Arc<Programme>> = wanting.cloned().collect();

        let before = self.found.awards;
        for programme in wanting {
            for priced in programme.price_event(event) {
                self.found.awards += 1;
                self.compare(event, &programme, priced)?;
            }
        }
        self.found.events += u64::from(self.found.awards > before);
        Ok(())
    }

    /// Compares what the programme of the time made of an event with what became of it. An award
    /// that had no price then may have an entry by now, from a retry.
    fn compare(
        &mut self,
        event: &Event<'_>,
        programme: &Arc<Programme>,
        priced: Result<Command, Unpriced>,
    ) -> Result<(), Error> {
        let key = match &priced {
            Ok(command) => Arc::clone(&command.key),
            Err(Unpriced::Missing { key, .. } | Unpriced::Refused { key, .. }) => Arc::clone(key),
        };
        let priced = priced.ok();
        let read = self.sources.reader.by_key(Key::of(programme.name(), EVENT_SOURCE, &key));
        let entry = self.handle.block_on(read).map_err(|error| Error::Failed(error.to_string()))?;
        let Some(entry) = entry else {
            self.look_for_letter(event, programme, &key, priced);
            return Ok(());
        };

        if entry.kind == Kind::Refused {
            self.found.refused += 1;
            return Ok(());
        }
        match self.fault_of(event, programme, &key, priced, &entry)? {
            None => self.found.equal += 1,
            Some(detail) => {
                self.found.different += 1;
                self.list(Difference::of_entry(&entry, &key, detail));
            }
        }
        Ok(())
    }

    /// Counts an award without an entry by where its letter is. Without one, it is missing if it
    /// had a price, or has one by now.
    fn look_for_letter(
        &mut self,
        event: &Event<'_>,
        programme: &Programme,
        key: &Arc<str>,
        priced: Option<Command>,
    ) {
        match self.letters.find(programme.name(), key) {
            Whereabouts::Waiting => self.found.waiting += 1,
            Whereabouts::Dead => self.found.dead += 1,
            Whereabouts::Unknown => {
                match priced.or_else(|| self.price_now(event, programme.name(), key)) {
                    Some(command) => self.note_missing(&command),
                    None => self.found.unpriced += 1,
                }
            }
        }
    }

    /// What the programme in force makes of an event by now.
    fn price_now(&self, event: &Event<'_>, programme: &str, key: &str) -> Option<Command> {
        let in_force = (self.sources.in_force)();
        command_with_key(in_force.get(programme)?, event, key)
    }

    fn note_missing(&mut self, command: &Command) {
        self.found.missing += 1;
        self.list(Difference {
            programme: command.programme.to_string(),
            member: command.member.to_string(),
            key: command.key.to_string(),
            entry: None,
            detail: "the event has no entry and no letter".to_owned(),
        });
        let why = "an audit found no entry and no letter of the award";
        self.lost.push(Letter::of_command(command).because(why));
    }

    fn list(&mut self, difference: Difference) {
        if self.found.differences.len() < APPRAISAL_DIFFERENCES_MAX {
            self.found.differences.push(difference);
        }
    }

    /// What is wrong with the entry of an event, which the programme of the time priced so.
    fn fault_of(
        &mut self,
        event: &Event<'_>,
        programme: &Arc<Programme>,
        key: &str,
        priced: Option<Command>,
        entry: &Entry,
    ) -> Result<Option<String>, Error> {
        let Some(recorded) = entry.explain.as_deref().filter(|_| entry.kind == Kind::Earn) else {
            // What a reversal takes back follows from the entry that it reverses.
            let command = priced.or_else(|| self.price_now(event, programme.name(), key));
            return Ok(command.and_then(|command| fault_of_member(&command, entry)));
        };

        let version = recorded.version;
        let (programme, again) = if version == programme.version {
            (Arc::clone(programme), priced)
        } else {
            // An award that was tried again has the version of that time.
            let Some(other) = self.versions.version(programme.name(), version)? else {
                return Ok(Some(format!("version {version} of the programme is lost")));
            };
            let again = command_with_key(&other, event, key);
            (other, again)
        };
        Ok(match again {
            Some(again) => fault_of_member(&again, entry)
                .or_else(|| fault_of_price(&programme, &again, recorded)),
            None => Some(format!("version {version} awards nothing for it")),
        })
    }

    /// Sends what is missing.
    fn resend(&mut self) -> Result<(), Error> {
        if !self.request.resend || self.found.is_partial {
            return Ok(());
        }
        let letters = std::mem::take(&mut self.lost);
        self.found.resent = letters.len() as u64;
        let sent = send_all(&*self.sources.queues, QueueName::Award, letters, Duration::ZERO);
        self.handle.block_on(sent).map_err(failed)
    }
}

/// Counts what audits found. The counter exists from the start, because an alert sees no increase
/// in one that begins with what it counts.
pub fn count_differences(number: u64) {
    metrics::counter!("raingauge_points_audit_differences_total").increment(number);
}

/// When the first entry that is read was appended: a log that was trimmed has no record of what was
/// in force before.
fn begin_ms(sources: &Sources, request: &AuditRequest) -> Result<i64, Error> {
    let mut begin_ms = request.from_ms();
    for log in &sources.logs {
        if log.start() > 0
            && let Some(first) = log.read(log.start(), 1)?.first()
        {
            begin_ms = begin_ms.max(first.appended_ms);
        }
    }
    Ok(begin_ms)
}

/// The award of an event that has this key, if the programme has a price for it.
fn command_with_key(programme: &Programme, event: &Event<'_>, key: &str) -> Option<Command> {
    let mut priced = programme.price_event(event).into_iter().flatten();
    priced.find(|command| *command.key == *key)
}

fn fault_of_member(command: &Command, entry: &Entry) -> Option<String> {
    (entry.member.as_ref() != Some(&command.member))
        .then(|| format!("the member is {:?}", entry.member.as_deref()))
}

/// What is wrong with a recorded price. The tier is the one for which the factors are those that
/// were recorded: the member had it at the moment of the award, which no event tells.
fn fault_of_price(programme: &Programme, command: &Command, recorded: &Explain) -> Option<String> {
    let Body::Award(award) = &command.body else { return None };
    let Basis::Priced(priced) = &award.basis else { return None };
    let expected =
        for_tiers(programme, priced).find(|expected| expected.factors == recorded.factors);
    let Some(expected) = expected else {
        return Some("no tier of the programme leads to the recorded factors".to_owned());
    };

    if expected.points != recorded.points {
        return Some(format!(
            "{} points were awarded, and {} are right",
            programme.text_of(recorded.points),
            programme.text_of(expected.points)
        ));
    }
    (expected.amount != recorded.amount || expected.exact != recorded.exact)
        .then(|| "the recorded amount is not that of the event".to_owned())
}

/// The price for a member without a tier, and for one of each tier.
fn for_tiers<'a>(
    programme: &'a Programme,
    priced: &'a Priced,
) -> impl Iterator<Item = Explain> + 'a {
    let tiers = programme.tiers().map(|tier| Some(&**tier));
    std::iter::once(None).chain(tiers).filter_map(|tier| programme.product(priced, tier).ok())
}
