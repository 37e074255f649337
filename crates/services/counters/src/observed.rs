//! What arrives: the types of the newest events in the log, and their fields.

use raingauge_core::bucket::{HOUR_S, QUARTER_S};
use raingauge_core::event::Event;
use raingauge_core::field::{self, Scalar};
use raingauge_ports::log::EventLog;
use raingauge_ports::record::Entry;
use raingauge_ports::scans::Stop;
use raingauge_writer::history::walk;
use raingauge_writer::worker::Error;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Newest entries of the log that are read, over all partitions.
pub const EVENTS_MAX: u64 = 20_000;
/// Most event types, sources of a type and fields of a type that are distinguished.
pub const TYPES_MAX: usize = 200;
pub const SOURCES_MAX: usize = 50;
pub const FIELDS_MAX: usize = 200;
/// Most distinct values that are counted, of a field and of all fields together.
pub const VALUES_MAX: usize = 500;
const VALUES_TOGETHER_MAX: usize = 100_000;
/// Most values of a field that are shown, the most frequent first, and the longest one in bytes.
const EXAMPLES: usize = 12;
const EXAMPLE_LEN_MAX: usize = 120;
/// Most whole events of a type that are kept, the newest ones, and the largest one in bytes of
/// data.
const SAMPLES: usize = 20;
const SAMPLE_LEN_MAX: usize = 8 * 1_024;
/// Most names in a path.
const DEPTH_MAX: usize = 8;

/// What the newest events look like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Events read, of all types.
    pub events: u64,
    /// The types, the most frequent first.
    pub types: Vec<EventType>,
    /// Events of types beyond [`TYPES_MAX`].
    pub events_left_out: u64,
}

/// The events of one CloudEvents type.
#[derive(Clone, Debug, PartialEq)]
pub struct EventType {
    pub name: String,
    pub events: u64,
    /// When the first and the last of them happened, in seconds since 1970.
    pub oldest_s: i64,
    pub newest_s: i64,
    /// When the last one came in, in seconds since 1970.
    pub appended_s: i64,
    pub lateness: Lateness,
    /// With the number of events of each, the most frequent first.
    pub sources: Vec<(String, u64)>,
    /// In the order of their paths; those of the event itself first.
    pub fields: Vec<Field>,
    /// Fields beyond [`FIELDS_MAX`] were seen.
    pub has_more_fields: bool,
    /// Some of the events, the newest ones, oldest first.
    pub samples: Vec<Sample>,
}

/// How long after they happened events arrived, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    pub median_s: i64,
    /// The 99th percentile.
    pub p99_s: i64,
    pub max_s: i64,
    /// Events that arrived more than a quarter hour after they happened, and more than an hour.
    pub over_quarter: u64,
    pub over_hour: u64,
}

raingauge_core::names! {
    /// What the values of a field are.
    pub enum Kind {
        Text = "text",
        Number = "number",
        Bool = "true or false",
        /// The kind differs between events.
        Mixed = "mixed",
    }
}

impl Kind {
    const fn of(scalar: &Scalar<'_>) -> Self {
        match scalar {
            Scalar::Text(_) => Self::Text,
            Scalar::Number(_) => Self::Number,
            Scalar::Bool(_) => Self::Bool,
        }
    }
}

/// One observed field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name in conditions and values: `data.address.city`, `source`, `subject`.
    pub path: String,
    pub kind: Kind,
    /// Events with this field.
    pub events: u64,
    /// Some of its values, the most frequent first.
    pub examples: Vec<Example>,
    /// Number of distinct values; a lower bound when `has_more_values`.
    pub values: usize,
    pub has_more_values: bool,
}

impl Field {
    /// Returns the name in a template, without the braces.
    pub fn in_template(&self) -> &str {
        match self.path.strip_prefix("data.") {
            // `{source}` and `{subject}` are attributes of the event itself.
            Some("source" | "subject") | None => &self.path,
            Some(name) => name,
        }
    }
}

/// An observed value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The event's spelling, without the quotes of a text.
    pub text: String,
    pub kind: Kind,
    pub events: u64,
}

/// One event, kept to try a template on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub id: String,
    pub source: String,
    pub subject: Option<String>,
    pub time_ms: i64,
    /// JSON text.
    pub data: String,
}

impl Observation {
    pub fn of_type(&self, name: &str) -> Option<&EventType> {
        self.types.iter().find(|found| found.name == name)
    }
}

impl EventType {
    pub fn field(&self, path: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.path == path)
    }
}

impl Sample {
    fn of(event: &Event<'_>) -> Self {
        Self {
            id: event.id.to_string(),
            source: event.source.to_string(),
            subject: event.subject.as_deref().map(str::to_owned),
            time_ms: event.time_ms,
            data: event.data.to_owned(),
        }
    }

    /// Returns the sample as an event of this type.
    pub fn event<'a>(&'a self, kind: &'a str) -> Event<'a> {
        Event {
            id: self.id.as_str().into(),
            source: self.source.as_str().into(),
            kind: kind.into(),
            subject: self.subject.as_deref().map(Into::into),
            time_ms: self.time_ms,
            data: &self.data,
            refused_keys: Default::default(),
        }
    }
}

/// Observes the newest events, the same number from each partition, [`EVENTS_MAX`] in total by
/// default. Blocks the thread.
pub fn observed(logs: &[Arc<dyn EventLog>], events_max: u64) -> Result<Observation, Error> {
    let mut seen = Tally { values_left: VALUES_TOGETHER_MAX, ..Tally::default() };
    let each_max = events_max / (logs.len() as u64).max(1);
    for log in logs {
        let end = log.end();
        walk(&**log, end.saturating_sub(each_max), end, &Stop::default(), |step, _| {
            if let Entry::Event(event) = step.entry {
                seen.take(&event, step.appended_s);
            }
        })?;
    }
    Ok(seen.finish())
}

#[derive(Default)]
struct Tally {
    events: u64,
    events_left_out: u64,
    types: HashMap<Box<str>, TypeTally>,
    /// How many more values of fields can be remembered.
    values_left: usize,
}

#[derive(Default)]
struct TypeTally {
    events: u64,
    oldest_s: i64,
    newest_s: i64,
    appended_s: i64,
    lateness_s: Vec<i64>,
    sources: HashMap<Box<str>, u64>,
    fields: BTreeMap<Box<str>, SeenField>,
    has_more_fields: bool,
    samples: VecDeque<Sample>,
}

struct SeenField {
    kind: Kind,
    events: u64,
    /// The number of the last event with the field, so that a repeated name counts once.
    last: u64,
    values: HashMap<Box<str>, (Kind, u64)>,
    has_more_values: bool,
}

impl Tally {
    fn take(&mut self, event: &Event<'_>, appended_s: i64) {
        self.events += 1;
        if !self.types.contains_key(&*event.kind) {
            if self.types.len() >= TYPES_MAX {
                self.events_left_out += 1;
                return;
            }
            self.types.insert(event.kind.as_ref().into(), TypeTally::default());
        }
        if let Some(seen) = self.types.get_mut(&*event.kind) {
            seen.take(event, appended_s, &mut self.values_left);
        }
    }

    fn finish(self) -> Observation {
        let mut types: Vec<EventType> =
            self.types.into_iter().map(|(name, seen)| seen.finish(name.into())).collect();
        types.sort_by(|left, right| {
            right.events.cmp(&left.events).then_with(|| left.name.cmp(&right.name))
        });
        Observation { events: self.events, types, events_left_out: self.events_left_out }
    }
}

impl TypeTally {
    fn take(&mut self, event: &Event<'_>, appended_s: i64, values_left: &mut usize) {
        let time_s = event.time_s();
        (self.oldest_s, self.newest_s) = match self.events {
            0 => (time_s, time_s),
            _ => (self.oldest_s.min(time_s), self.newest_s.max(time_s)),
        };
        self.events += 1;
        self.appended_s = self.appended_s.max(appended_s);
        self.lateness_s.push((appended_s - time_s).max(0));

        let source = event.source.as_ref();
        if let Some(events) = self.sources.get_mut(source) {
            *events += 1;
        } else if self.sources.len() < SOURCES_MAX {
            self.sources.insert(source.into(), 1);
        }

        self.take_field("source", &Scalar::Text(source.into()), values_left);

        if let Some(subject) = &event.subject {
            self.take_field("subject", &Scalar::Text(subject.as_ref().into()), values_left);
        }
        field::visit(event.data, DEPTH_MAX, |path, scalar| {
            self.take_field(path, &scalar, values_left)
        });

        if event.data.len() <= SAMPLE_LEN_MAX {
            if self.samples.len() == SAMPLES {
                self.samples.pop_front();
            }
            self.samples.push_back(Sample::of(event));
        }
    }

    fn take_field(&mut self, path: &str, scalar: &Scalar<'_>, values_left: &mut usize) {
        let kind = Kind::of(scalar);
        if !self.fields.contains_key(path) {
            if self.fields.len() >= FIELDS_MAX {
                self.has_more_fields = true;
                return;
            }
            self.fields.insert(path.into(), SeenField::new(kind));
        }

        let Some(field) = self.fields.get_mut(path) else {
            return;
        };
        if field.last != self.events {
            field.last = self.events;
            field.events += 1;
        }

        if field.kind != kind {
            field.kind = Kind::Mixed;
        }
        field.take_value(scalar.as_text(), kind, values_left);
    }

    fn finish(mut self, name: String) -> EventType {
        self.lateness_s.sort_unstable();
        let at = |share: f64| {
            self.lateness_s[((self.lateness_s.len() - 1) as f64 * share).round() as usize]
        };
        let over = |limit_s: i64| {
            (self.lateness_s.len() - self.lateness_s.partition_point(|late_s| *late_s <= limit_s))
                as u64
        };
        let lateness = if self.lateness_s.is_empty() {
            Lateness::default()
        } else {
            Lateness {
                median_s: at(0.5),
                p99_s: at(0.99),
                max_s: at(1.0),
                over_quarter: over(QUARTER_S),
                over_hour: over(HOUR_S),
            }
        };

        let mut sources: Vec<(String, u64)> =
            self.sources.into_iter().map(|(source, events)| (source.into(), events)).collect();
        sources.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));

        let mut fields: Vec<Field> =
            self.fields.into_iter().map(|(path, field)| field.finish(path.into())).collect();
        fields.sort_by(|left, right| {
            rank(&left.path).cmp(&rank(&right.path)).then_with(|| left.path.cmp(&right.path))
        });
        EventType {
            name,
            events: self.events,
            oldest_s: self.oldest_s,
            newest_s: self.newest_s,
            appended_s: self.appended_s,
            lateness,
            sources,
            fields,
            has_more_fields: self.has_more_fields,
            samples: self.samples.into(),
        }
    }
}

/// Attributes of the event come before fields of its data.
fn rank(path: &str) -> u8 {
    u8::from(path.starts_with("data."))
}

impl SeenField {
    fn new(kind: Kind) -> Self {
        Self { kind, events: 0, last: 0, values: HashMap::new(), has_more_values: false }
    }

    fn take_value(&mut self, text: &str, kind: Kind, values_left: &mut usize) {
        if let Some((known, events)) = self.values.get_mut(text) {
            *events += 1;
            if *known != kind {
                *known = Kind::Mixed;
            }
        } else if self.values.len() < VALUES_MAX
            && *values_left > 0
            && text.len() <= EXAMPLE_LEN_MAX
        {
            *values_left -= 1;
            self.values.insert(text.into(), (kind, 1));
        } else {
            self.has_more_values = true;
        }
    }

    fn finish(self, path: String) -> Field {
        let values = self.values.len();
        let mut examples: Vec<Example> = self
            .values
            .into_iter()
            .map(|(text, (kind, events))| Example { text: text.into(), kind, events })
            .collect();

        examples.sort_by(|left, right| {
            right.events.cmp(&left.events).then_with(|| left.text.cmp(&right.text))
        });
        examples.truncate(EXAMPLES);
        Field {
            path,
            kind: self.kind,
            events: self.events,
            examples,
            values,
            has_more_values: self.has_more_values,
        }
    }
}
