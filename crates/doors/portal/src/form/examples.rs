//! The keys that a template would give for recent events.

use raingauge_core::field::{Field, extract};
use raingauge_core::template::Template;
use raingauge_counters::observed::EventType;

/// Number of keys shown.
const KEYS_MAX: usize = 5;

/// The result of a template on recent events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examples {
    /// Distinct keys, those of the newest events first.
    pub keys: Vec<String>,
    /// Fields of the template that some of the events lack, as the template names them.
    pub missing: Vec<String>,
    /// Number of events that were tried.
    pub tried: usize,
}

/// Applies a template to the newest events of a type. Returns `None` for an invalid template, whose
/// problems are reported elsewhere.
pub fn examples(template: &str, events: &EventType) -> Option<Examples> {
    let template = Template::parse(template).ok()?;
    let fields: Vec<Field> = template.fields().cloned().collect();
    let mut examples = Examples { tried: events.samples.len(), ..Examples::default() };

    for sample in events.samples.iter().rev() {
        let event = sample.event(&events.name);
        let mut found = Vec::new();
        let mut key = String::new();
        extract(&event, &fields, &mut found);

        for (field, _) in fields.iter().zip(&found).filter(|(_, value)| value.is_none()) {
            let name = field.to_string();
            let name = name.strip_prefix("data.").unwrap_or(&name).to_owned();
            if !examples.missing.contains(&name) {
                examples.missing.push(name);
            }
        }

        let rendered = template.render(found.iter().map(Option::as_ref), &mut key);
        if rendered && examples.keys.len() < KEYS_MAX && !examples.keys.contains(&key) {
            examples.keys.push(key);
        }
    }

    Some(examples)
}
