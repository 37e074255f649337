//! From a key to the counter that it belongs to, segment by segment.
//!
//! ```text
//!   taxi ─┬─ zone ──── {field}   ▸ taxi:zone:{zone}
//!         └─ vendor ── {field}   ▸ taxi:vendor:{vendor}
//! ```

use crate::template::Template;
use hashbrown::HashMap;

/// Templates as a tree of their segments. A look-up costs a few steps however many templates there
/// are.
#[derive(Clone, Debug, Default)]
pub struct Router {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    literals: HashMap<Box<str>, Node>,
    /// Where a segment holds a field, whatever literal text stands around it.
    field: Option<Box<Node>>,
    /// What ends here. Several templates may, when they differ in the text around their fields.
    ends: Vec<usize>,
}

impl Router {
    /// Adds a template under the number that finding it answers.
    pub fn insert(&mut self, template: &Template, number: usize) {
        let mut node = &mut self.root;
        for literal in template.literals() {
            node = match literal {
                Some(text) => node.literals.entry(text.into()).or_default(),
                None => node.field.get_or_insert_default(),
            };
        }
        node.ends.push(number);
    }

    /// The first number whose template matches `key`, as `matches` says; the tree only narrows down
    /// which to ask.
    pub fn find(&self, key: &str, matches: impl Fn(usize) -> bool) -> Option<usize> {
        self.root.find(Some(key), &matches)
    }
}

impl Node {
    fn find(&self, rest: Option<&str>, matches: &impl Fn(usize) -> bool) -> Option<usize> {
        let Some(rest) = rest else {
            return self.ends.iter().copied().find(|number| matches(*number));
        };
        let (segment, rest) = match memchr::memchr(b':', rest.as_bytes()) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let by_literal = self.literals.get(segment).and_then(|node| node.find(rest, matches));
        by_literal.or_else(|| self.field.as_ref()?.find(rest, matches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The tree finds what asking every template would find.
        #[test]
        fn finding_agrees_with_asking_all(
            templates in proptest::collection::vec("([ab]|\\{x\\}|a\\{x\\}|\\{x\\}b)(:([ab]|\\{y\\}|a\\{y\\})){0,3}", 1..8),
            key in "[ab]{0,3}(:[ab]{0,3}){0,3}",
        ) {
            let templates: Vec<Template> =
                templates.iter().map(|text| Template::parse(text).unwrap()).collect();
            let mut router = Router::default();
            templates
                .iter()
                .enumerate()
                .for_each(|(number, template)| router.insert(template, number));
            let found = router.find(&key, |number| templates[number].matches(&key));
            prop_assert_eq!(
                found.is_some(),
                templates.iter().any(|template| template.matches(&key))
            );
            prop_assert!(found.is_none_or(|number| templates[number].matches(&key)));
        }
    }
}
