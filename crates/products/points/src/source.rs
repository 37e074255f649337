//! Who sends commands: the source by which their keys are scoped.
//!
//! A token whose name is that of a partner of some programme, or begins with `partner:`, is that
//! partner's; what follows a `/` in the name is its own, so that a partner has a second token
//! while one replaces the other. Programmes remember the names of partners that they had, so that
//! a token does not become the operator's when its partner leaves. Every other caller is the
//! operator, whose source is empty: keys stay the same when a token is replaced.

use crate::Points;
use raingauge_core::code::{Code, Refusal};
use raingauge_people::{Credential, Principal};
use raingauge_points::Programmes;
use std::sync::Arc;

/// How the name of a token begins that is a partner's whatever the programmes say.
const PARTNER_PREFIX: &str = "partner:";

/// Who sends commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Operator,
    /// A partner, by its name in the documents of programmes.
    Partner(Arc<str>),
}

impl Source {
    /// The source in commands and entries.
    pub fn name(&self) -> Arc<str> {
        match self {
            Self::Operator => "".into(),
            Self::Partner(name) => Arc::clone(name),
        }
    }

    /// Refuses partners, who see and change nothing but what they sent.
    pub fn check_operator(&self) -> Result<(), Refusal> {
        match self {
            Self::Operator => Ok(()),
            Self::Partner(name) => Err(foreign(name, "this is for operators")),
        }
    }

    /// Refuses a partner that names another one.
    pub fn check_partner(&self, partner: &str) -> Result<(), Refusal> {
        match self {
            Self::Partner(name) if **name != *partner => {
                Err(foreign(name, &format!("not for {partner}")))
            }
            _ => Ok(()),
        }
    }
}

fn foreign(name: &str, why: &str) -> Refusal {
    Refusal::new(Code::SourceForeign, format!("this token is that of the partner {name}: {why}"))
}

/// Whose token a name is, if `is_partner` knows the partners that programmes have and had.
fn source_of(token: &str, is_partner: impl Fn(&str) -> bool) -> Source {
    let owner = token.split('/').next().unwrap_or_default();
    match owner.strip_prefix(PARTNER_PREFIX) {
        Some(name) => Source::Partner(name.into()),
        None if is_partner(owner) => Source::Partner(owner.into()),
        None => Source::Operator,
    }
}

/// Whether a programme has or had a partner of this name.
fn is_partner(programmes: &Programmes, name: &str) -> bool {
    programmes.iter().any(|programme| programme.has_or_had_partner(name))
}

impl Points {
    /// Who sends a request.
    pub(crate) fn source(&self, who: &Principal) -> Source {
        match who.credential {
            Credential::Token(_) => self.source_of_token(&who.name),
            _ => Source::Operator,
        }
    }

    /// Whose token a name is.
    pub(crate) fn source_of_token(&self, name: &str) -> Source {
        let snapshot = self.teller.snapshot();
        source_of(name, |name| is_partner(snapshot.programmes(), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_points::{Programme, ProgrammeDocument};
    use serde_json::json;

    #[test]
    fn a_token_is_a_partners_by_its_name() {
        let source = |name: &str| source_of(name, |name| name == "skyair");
        let partner = |name: &str| Source::Partner(name.into());
        assert_eq!(source("skyair"), partner("skyair"));
        assert_eq!(source("skyair/2026-11"), partner("skyair"));
        assert_eq!(source("partner:gone/2"), partner("gone"));
        assert_eq!(source("orders"), Source::Operator);
        assert_eq!(source("orders/skyair"), Source::Operator);
        assert_eq!(&*source("orders").name(), "");
    }

    #[test]
    fn a_partner_that_left_is_no_operator() {
        let document = ProgrammeDocument::parse(&json!({
            "programme": "p", "partners": [{"name": "hotel"}], "formerPartners": ["skyair"],
        }));
        let programme = Programme::compile(&document.unwrap(), 2).unwrap();
        let mut programmes = Programmes::new();
        programmes.insert(Arc::new(programme));
        let source = |name: &str| source_of(name, |name| is_partner(&programmes, name));
        for name in ["skyair", "hotel/2"] {
            assert!(source(name).check_operator().is_err(), "{name}");
        }
        assert_eq!(source("orders"), Source::Operator);
    }

    #[test]
    fn a_partner_speaks_for_itself_alone() {
        let partner = Source::Partner("skyair".into());
        assert_eq!(partner.check_operator().unwrap_err().code, Code::SourceForeign);
        assert!(partner.check_partner("skyair").is_ok());
        assert_eq!(partner.check_partner("other").unwrap_err().code, Code::SourceForeign);
        assert!(Source::Operator.check_partner("other").is_ok());
    }
}
