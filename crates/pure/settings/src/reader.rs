//! Reads the given settings, and collects every problem with them.

use crate::{Item, Origin, Problem, Setting, Value};
use std::collections::HashMap;

/// The settings that a component declares together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub settings: &'static [Setting],
    /// Reads them all for the problems that they have.
    pub check: fn(&mut Reader),
}

/// The given settings. A setting with a problem is read as its default, so that the others are
/// checked too; the default is never used, because a configuration with a problem is refused.
#[derive(Debug, Default)]
pub struct Reader {
    groups: Vec<Group>,
    /// Every given value, by the path of its setting.
    pub(crate) items: HashMap<String, Item>,
    pub(crate) problems: Vec<Problem>,
    /// Whether the file is not TOML, so that some of its values are unknown.
    pub(crate) is_torn: bool,
}

impl Reader {
    /// Knows these settings; any other is a problem.
    pub fn new(groups: Vec<Group>) -> Self {
        Self { groups, ..Self::default() }
    }

    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.groups.clone().into_iter().flat_map(|group| group.settings)
    }

    /// Reads one setting.
    pub fn value<T: Value>(&mut self, setting: &'static Setting) -> T {
        T::read(self, setting)
    }

    /// Returns where a setting was set.
    pub fn origin(&self, path: &str) -> Origin {
        self.items.get(path).map_or(Origin::Default, |item| item.origin.clone())
    }

    /// Whether that setting has, or may have, a problem of its own: then it is not compared with
    /// others.
    pub fn is_wrong(&self, path: &str) -> bool {
        let is_of = |key: &str| {
            key.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        self.is_torn || self.problems.iter().any(|problem| is_of(&problem.key))
    }

    /// Whether none of these settings has a problem.
    pub fn are_right(&self, paths: &[&str]) -> bool {
        !paths.iter().any(|path| self.is_wrong(path))
    }

    /// Records a problem with a setting, where it was set.
    pub fn refuse(&mut self, path: &str, message: impl Into<String>, advice: impl Into<String>) {
        self.problem(path, self.origin(path), message, advice);
    }

    pub fn problem(
        &mut self,
        key: impl Into<String>,
        origin: Origin,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let problem =
            Problem { key: key.into(), origin, message: message.into(), advice: advice.into() };
        self.problems.push(problem);
    }

    /// Refuses one of two settings without the other.
    pub fn together(&mut self, (path, is_given): (&str, bool), (other, is_other): (&str, bool)) {
        if is_given != is_other {
            self.refuse(path, format!("{path} and {other} go together"), "Give both, or none");
        }
    }

    /// Returns the problems: those of the file from top to bottom, then those of variables, options
    /// and defaults.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| match &problem.origin {
            Origin::File { line, .. } => (0, *line),
            Origin::Variable(_) => (1, 0),
            Origin::Option(_) => (2, 0),
            Origin::Default => (3, 0),
        });
        self.problems
    }
}
