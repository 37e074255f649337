//! A line of a script.

use crate::command::{Award, Basis, Body, Command};
use crate::day::Day;
use crate::number::Number;
use crate::pricing::Unpriced;
use crate::programme::Programme;
use raingauge_core::event::Event;
use raingauge_core::time::parse_rfc3339_ms;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

pub(super) struct Line {
    pub(super) now_ms: i64,
    pub(super) member: String,
    /// None where the line only looks.
    pub(super) commands: Vec<Command>,
    pub(super) expected: Vec<String>,
}

/// Milliseconds of `2026-01-10` (its noon), `2026-01-10T10:00` or `2026-01-10T10:00:05`, in UTC.
fn time_ms(text: &str) -> Result<i64, String> {
    let full = match text.len() {
        10 => format!("{text}T12:00:00Z"),
        16 => format!("{text}:00Z"),
        _ => format!("{text}Z"),
    };
    parse_rfc3339_ms(full.as_bytes()).ok_or_else(|| format!("`{text}` is no time"))
}

impl Line {
    pub(super) fn parse(text: &str, number: usize, programme: &Programme) -> Result<Self, String> {
        let (left, right) = text.split_once('→').ok_or("there is no arrow")?;
        let mut words = left.split_whitespace();
        let now_ms = time_ms(words.next().ok_or("there is no time")?)?;
        let member = words.next().ok_or("there is no member")?.to_owned();
        let verb = words.next().ok_or("there is no command")?;

        let mut arguments =
            Arguments { plain: Vec::new(), named: HashMap::new(), flags: Vec::new(), programme };
        for word in words {
            match word.split_once('=') {
                Some((name, value)) => {
                    arguments.named.insert(name, value);
                }
                None if word == "extends" => arguments.flags.push(word),
                None => arguments.plain.push(word),
            }
        }

        let commands = match verb {
            "wait" => Vec::new(),
            "event" => events(&arguments, &member, number, now_ms)?,
            _ => vec![arguments.command(verb, &member, number)?],
        };
        let expected = right.split(',').map(|part| part.trim().to_owned()).collect();
        Ok(Self { now_ms, member, commands, expected })
    }
}

/// The commands that the programme makes of an event.
fn events(
    arguments: &Arguments<'_>,
    member: &str,
    number: usize,
    now_ms: i64,
) -> Result<Vec<Command>, String> {
    let kind = arguments.word(0)?;
    let data = arguments.word(1)?.replace("{", &format!("{{\"member\":\"{member}\","));
    let id = arguments.named.get("id").map_or_else(|| format!("e{number}"), |id| (*id).to_owned());
    let event = Event {
        id: id.into(),
        source: "script".into(),
        kind: kind.into(),
        subject: None,
        time_ms: arguments.time("at")?.unwrap_or(now_ms),
        data: &data,
        refused_keys: Default::default(),
    };
    let priced = arguments.programme.price_event(&event).into_iter();
    let commands = priced.map(|found| {
        found.map_err(|unpriced| match unpriced {
            Unpriced::Missing { detail, .. } => detail,
            Unpriced::Refused { refusal, .. } => refusal.detail,
        })
    });
    commands.collect()
}

struct Arguments<'a> {
    plain: Vec<&'a str>,
    named: HashMap<&'a str, &'a str>,
    flags: Vec<&'a str>,
    programme: &'a Programme,
}

impl Arguments<'_> {
    fn word(&self, place: usize) -> Result<&str, String> {
        self.plain.get(place).copied().ok_or_else(|| format!("argument {place} is missing"))
    }

    fn points_in(&self, text: &str) -> Result<i64, String> {
        let number = Number::parse(text).ok_or_else(|| format!("`{text}` is no number"))?;
        self.programme.points_of(&number).map_err(|refusal| refusal.detail)
    }

    fn points(&self, place: usize) -> Result<i64, String> {
        self.points_in(self.word(place)?)
    }

    fn named_points(&self, name: &str) -> Result<Option<i64>, String> {
        self.named.get(name).map(|text| self.points_in(text)).transpose()
    }

    fn text(&self, name: &str) -> Option<Arc<str>> {
        self.named.get(name).map(|text| Arc::from(*text))
    }

    fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let parse = |text: &&str| text.parse().map_err(|_| format!("`{name}={text}` is malformed"));
        self.named.get(name).map(parse).transpose()
    }

    fn number(&self, name: &str) -> Result<Option<Number>, String> {
        let parse = |text: &&str| Number::parse(text).ok_or(format!("`{text}` is no number"));
        self.named.get(name).map(parse).transpose()
    }

    fn day(&self, name: &str) -> Result<Option<Day>, String> {
        self.parsed(name)
    }

    fn time(&self, name: &str) -> Result<Option<i64>, String> {
        self.named.get(name).map(|text| time_ms(text)).transpose()
    }

    fn command(&self, verb: &str, member: &str, number: usize) -> Result<Command, String> {
        Ok(Command {
            programme: self.programme.name().clone(),
            member: member.into(),
            key: self.text("key").unwrap_or_else(|| format!("line-{number}").into()),
            source: self.text("source").unwrap_or_default(),
            occurred_ms: self.time("at")?,
            accepted_ms: None,
            reference: self.text("ref"),
            reason: self.text("reason"),
            body: self.body(verb)?,
        })
    }

    fn body(&self, verb: &str) -> Result<Body, String> {
        Ok(match verb {
            "award" => Body::Award(self.award(Basis::Points(self.points(0)?))?),
            "earn" => Body::Award(self.award(self.amount()?)?),
            "burn" => Body::Burn { points: self.points(0)? },
            "hold" => Body::Hold {
                points: self.plain.first().map(|text| self.points_in(text)).transpose()?,
                until_ms: self.time("until")?,
                reward: self.text("reward"),
            },
            "capture" => {
                let points = self.plain.get(1).map(|text| self.points_in(text)).transpose()?;
                Body::Capture { hold: self.word(0)?.into(), points }
            }
            "release" => Body::Release { hold: self.word(0)?.into() },
            "transfer" => Body::Transfer { to: self.word(0)?.into(), points: self.points(1)? },
            "give" => Body::ExchangeOut { partner: self.word(0)?.into(), points: self.points(1)? },
            "get" => Body::ExchangeIn {
                partner: self.word(0)?.into(),
                points: self.named_points("points")?,
                amount: self.number("amount")?,
            },
            "reverse" => Body::Reverse {
                key: self.text("award"),
                source: self.text("of"),
                amount: self.number("amount")?,
                points: self.named_points("points")?,
            },
            "adjust" => Body::Adjust { points: self.points(0)?, expires_on: self.day("expires")? },
            "tier" => Body::Tier { tier: self.word(0)?.into(), until: self.day("until")? },
            "close" => Body::Close,
            _ => return Err(format!("`{verb}` is no command")),
        })
    }

    fn award(&self, basis: Basis) -> Result<Award, String> {
        Ok(Award {
            basis,
            budget: self.text("budget"),
            pending_days: self.parsed("pending")?,
            expires_on: self.day("expires")?,
            extends: self.flags.contains(&"extends").then_some(true),
        })
    }

    fn amount(&self) -> Result<Basis, String> {
        let amount = self
            .plain
            .first()
            .map(|text| Number::parse(text).ok_or_else(|| format!("`{text}` is no number")));
        let factors = self.named.get("factors").map_or(Vec::new(), |text| {
            let pair = |pair: &str| {
                let (name, value) = pair.split_once(':')?;
                Some((Arc::from(name), Number::parse(value)?))
            };
            text.split(';').filter_map(pair).collect()
        });
        let facts = self.named.get("facts").map(|text| serde_json::from_str(text)).transpose();
        Ok(Basis::Amount {
            amount: amount.transpose()?,
            rule: self.parsed("rule")?,
            event_type: self.text("type"),
            facts: facts.map_err(|error| error.to_string())?,
            factors,
        })
    }
}
