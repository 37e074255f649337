//! Texts of messages: templates in several languages, with values filled in.
//!
//! ```text
//!   Congratulations, {{ subject }}! You have {{ cost | decimal(2) }} dollars
//!   {% if data.city is defined %} in {{ data.city }}{% endif %}.
//! ```
//!
//! Templates are Jinja, reduced to what a message needs ([`check`]): values, a few filters,
//! comparisons, `if` and `for`. A value that an event does not have, or that is null, is an error
//! and not an empty string, unless the template says so with `default` or `is defined`. The work of
//! a template is bounded, and so is its result.

mod check;
mod filters;

use crate::limits::{LOCALES_MAX, MESSAGE_LEN_MAX, MESSAGE_TEMPLATE_LEN_MAX, TEMPLATES_MAX};
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Work of one rendering. A unit pays for one step, or for 64 bytes that a step makes.
const FUEL: u64 = 20_000;
/// Longest name of a template or locale.
const NAME_LEN_MAX: usize = 64;

/// The `templates` of a campaign: texts by locale, by name.
pub type Texts = BTreeMap<String, BTreeMap<String, String>>;

/// Templates that have been checked.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    /// The locales of each template.
    locales: BTreeMap<String, Vec<String>>,
    /// The names of the values that each template uses.
    values: BTreeMap<String, BTreeSet<String>>,
}

/// Why a message could not be rendered, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(pub(crate) String);

impl Templates {
    /// Checks templates. `roots` are the names of the values that they may use, such as `subject`
    /// and `data`. Otherwise returns what is wrong, as sentences.
    pub fn compile(texts: &Texts, roots: &[&str]) -> Result<Self, Vec<String>> {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_formatter(filters::format);
        filters::add_to(&mut environment);

        let mut templates = Self { environment, locales: BTreeMap::new(), values: BTreeMap::new() };
        let mut problems = Vec::new();
        if texts.len() > TEMPLATES_MAX {
            return Err(vec![format!("a campaign has at most {TEMPLATES_MAX} templates")]);
        }
        for (name, by_locale) in texts {
            if let Err(problem) = templates.add(name, by_locale, roots) {
                problems.push(format!("template `{}`{problem}", shortened(name)));
            }
        }
        if problems.is_empty() { Ok(templates) } else { Err(problems) }
    }

    fn add(
        &mut self,
        name: &str,
        by_locale: &BTreeMap<String, String>,
        roots: &[&str],
    ) -> Result<(), String> {
        if name.is_empty() || name.len() > NAME_LEN_MAX {
            return Err(format!(": a name has between 1 and {NAME_LEN_MAX} bytes"));
        }
        if by_locale.is_empty() || by_locale.len() > LOCALES_MAX {
            return Err(format!(": a template has texts in 1 to {LOCALES_MAX} locales"));
        }

        for (locale, text) in by_locale {
            let is_locale = !locale.is_empty()
                && locale.len() <= NAME_LEN_MAX
                && locale.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            if !is_locale {
                return Err(format!(": `{}` is no locale such as en or zh-TW", shortened(locale)));
            }
            if text.len() > MESSAGE_TEMPLATE_LEN_MAX {
                let most = MESSAGE_TEMPLATE_LEN_MAX;
                return Err(format!(" ({locale}) has {} bytes, and at most {most}", text.len()));
            }

            check::check(text, roots).map_err(|problem| format!(" ({locale}), {problem}"))?;
            self.environment
                .add_template_owned(full_name(name, locale), text.clone())
                .map_err(|error| format!(" ({locale}), {}", check::problem_of(&error)))?;
            let template = self.environment.get_template(&full_name(name, locale));
            let template = template.expect("it has been added");
            let values = self.values.entry(name.to_owned()).or_default();
            values.extend(template.undeclared_variables(true));
        }

        self.locales.insert(name.to_owned(), by_locale.keys().cloned().collect());
        Ok(())
    }

    /// Names of all values that the templates use, such as `data.city`.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        let values: BTreeSet<&String> = self.values.values().flatten().collect();
        values.into_iter().map(String::as_str)
    }

    /// Names of the values that one template uses.
    pub fn values_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.get(name).into_iter().flatten().map(String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.locales.contains_key(name)
    }

    /// The text of a message in the locale that is nearest to the wanted one.
    pub fn render(
        &self,
        name: &str,
        locale: Option<&str>,
        values: &impl Serialize,
    ) -> Result<String, RenderError> {
        let locales = self.locales.get(name);
        let locales =
            locales.ok_or_else(|| RenderError(format!("there is no template `{name}`")))?;
        let locale = nearest(locales, locale.unwrap_or_default());

        let failed =
            |problem: String| RenderError(format!("template `{name}` ({locale}), {problem}"));
        let template = self.environment.get_template(&full_name(name, locale));
        let template = template.map_err(|error| failed(check::problem_of(&error)))?;
        let text = template.render(Serde(values));
        let text = text.map_err(|error| failed(check::problem_of(&error)))?;

        if text.len() > MESSAGE_LEN_MAX {
            return Err(failed(format!("its text has {} bytes: too many", text.len())));
        }
        Ok(text)
    }
}

fn full_name(name: &str, locale: &str) -> String {
    format!("{locale}/{name}")
}

/// The beginning of a text that comes from outside.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_LEN_MAX)]
}

/// The locale itself, or without its last part, and so on: `zh-Hant-TW`, `zh-Hant`, `zh`. Then
/// `default`, `en`, and the first one in alphabetical order.
fn nearest<'a>(locales: &'a [String], wanted: &str) -> &'a str {
    let wanted = wanted.replace('_', "-");
    let find = |wanted: &str| {
        locales.iter().find(|locale| locale.replace('_', "-").eq_ignore_ascii_case(wanted))
    };

    let mut prefix = Some(wanted.as_str());
    while let Some(wanted) = prefix {
        if let Some(found) = find(wanted) {
            return found;
        }
        prefix = wanted.rsplit_once('-').map(|(shorter, _)| shorter);
    }
    find("default").or_else(|| find("en")).unwrap_or(&locales[0])
}

#[cfg(test)]
mod tests;
