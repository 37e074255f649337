//! What people see of events themselves: payloads, values of fields, keys that a draft would make
//! of them.

use raingauge_core::template::Template;
use raingauge_counters::observed::{EventType, Observation};
use raingauge_settings::{Reader, settings};
use serde_json::Value as Json;

/// What stands in the place of a masked value.
const MASK: &str = "•••";

settings! {
    /// Whose values are shown. Masked fields have the names that conditions give them
    /// (`data.email`), and hide everything below them.
    pub struct Samples in "portal" checked by Samples::check {
        /// Whether editors and administrators see payloads of events, examples of fields and keys
        /// of previews; others never do.
        are_shown as "show_samples": bool = switch(true);
        /// Fields whose values no page and no preview shows, such as data.email, subject, with
        /// commas.
        masked as "masked_fields": Vec<String> = text("");
    }
}

impl Samples {
    /// Templates name fields of the data without their root; conditions name them with it.
    fn check(&mut self, _: &mut Reader) {
        for name in &mut self.masked {
            let is_own = ["id", "source", "subject", "data"].contains(&name.as_str());
            if !is_own && !name.starts_with("data.") {
                name.insert_str(0, "data.");
            }
        }
    }

    /// Takes out what nobody may see.
    pub fn redact(&self, observed: &mut Observation) {
        for kind in &mut observed.types {
            if self.are_shown {
                self.mask(kind);
            } else {
                kind.samples.clear();
                kind.fields.iter_mut().for_each(|field| field.examples.clear());
            }
        }
    }

    /// Whether the keys of a template may be shown before it counts.
    pub fn may_show_keys_of(&self, template: &str) -> bool {
        let fields = Template::parse(template)
            .map(|template| template.fields().map(ToString::to_string).collect());
        let fields: Vec<String> = fields.unwrap_or_default();
        self.are_shown && !fields.iter().any(|field| self.is_masked(field))
    }

    fn is_masked(&self, path: &str) -> bool {
        self.masked.iter().any(|masked| {
            path.strip_prefix(masked.as_str())
                .is_some_and(|below| below.is_empty() || below.starts_with('.'))
        })
    }

    fn mask(&self, kind: &mut EventType) {
        if self.masked.is_empty() {
            return;
        }

        if self.is_masked("source") {
            kind.sources = vec![(MASK.to_owned(), kind.events)];
        }
        let masked = kind.fields.iter_mut().filter(|field| self.is_masked(&field.path));
        masked.for_each(|field| field.examples.clear());

        for sample in &mut kind.samples {
            sample.data = self.masked_json(&sample.data);

            for (name, text) in [("id", &mut sample.id), ("source", &mut sample.source)] {
                if self.is_masked(name) {
                    MASK.clone_into(text);
                }
            }

            sample.subject = sample
                .subject
                .take()
                .map(|text| if self.is_masked("subject") { MASK.into() } else { text });
        }
    }

    /// Data that cannot be read is masked as a whole.
    fn masked_json(&self, data: &str) -> String {
        let Ok(mut json) = serde_json::from_str::<Json>(data) else {
            return format!("\"{MASK}\"");
        };
        self.mask_below(&mut json, "data");
        json.to_string()
    }

    /// A list has the path of its elements.
    fn mask_below(&self, json: &mut Json, path: &str) {
        match json {
            _ if self.is_masked(path) => *json = MASK.into(),
            Json::Object(members) => {
                for (name, member) in members {
                    self.mask_below(member, &format!("{path}.{name}"));
                }
            }
            Json::Array(elements) => {
                elements.iter_mut().for_each(|element| self.mask_below(element, path))
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_fields_are_masked_wherever_they_stand() {
        let masked = ["data.email", "data.user"].map(str::to_owned).to_vec();
        let samples = Samples { masked, ..Samples::default() };
        let data = r#"{"email":["a@b","c@d"],"user":{"name":"zoe"},"list":[{"email":"x"}],"emails":1,"city":"oslo"}"#;
        let expected =
            r#"{"city":"oslo","email":"•••","emails":1,"list":[{"email":"x"}],"user":"•••"}"#;

        assert_eq!(samples.masked_json(data), expected);
        assert_eq!(samples.masked_json("no json"), "\"•••\"");

        for (template, may_show) in
            [("t:{city}", true), ("t:{email}", false), ("t:{city}:{user.name}", false)]
        {
            assert_eq!(samples.may_show_keys_of(template), may_show, "{template}");
        }

        assert!(!Samples { are_shown: false, ..Samples::default() }.may_show_keys_of("t:{city}"));
    }
}
