//! Query parameters of the routes of products.

use crate::problem::Problem;
use raingauge_core::code::Code;
use raingauge_core::moment::Moment;
use raingauge_core::time::{format_rfc3339, parse_rfc3339_ms};
use std::collections::HashMap;
use std::str::FromStr;

/// The parameters of a request, all of which the route knows.
pub struct Parameters(HashMap<String, String>);

impl Parameters {
    /// The parameters of a request to a route of a product, which has checked them.
    pub fn of(given: HashMap<String, String>) -> Self {
        Self(given)
    }

    /// Refuses a parameter that the route does not take.
    pub(crate) fn checked(given: HashMap<String, String>, known: &[&str]) -> Result<Self, Problem> {
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(given)),
            Some(name) => {
                let known = match known {
                    [] => "this takes none".to_owned(),
                    known => format!("the parameters are: {}", known.join(", ")),
                };
                let detail = format!("there is no parameter {name}; {known}");
                Err(Problem::new(Code::ParameterUnknown, detail))
            }
        }
    }

    /// The text of a parameter, if it is given.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// A number or another value that has one text; refused if the text is no such value.
    pub fn value<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        let value = text.parse().map_err(|_| {
            Problem::new(Code::RequestMalformed, format!("{name} cannot be {text:?}"))
        })?;
        Ok(Some(value))
    }

    /// A time, in milliseconds since 1970.
    pub fn time_ms(&self, name: &str, now_ms: i64) -> Result<Option<i64>, Problem> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        if let Some(at_ms) = parse_rfc3339_ms(text.as_bytes()) {
            return Ok(Some(at_ms));
        }
        if text == "now" {
            return Ok(Some(now_ms));
        }
        let at_s = Moment::parse(text).and_then(|moment| moment.at_s(now_ms.div_euclid(1_000)));
        let at_s = at_s.ok_or_else(|| {
            let detail = format!(
                "{name} must be epoch seconds, RFC 3339, now, today, yesterday, or an age such as \
                 -7d"
            );
            Problem::new(Code::TimeInvalid, detail)
        })?;
        Ok(Some(at_s.saturating_mul(1_000)))
    }

    /// The most that a page may have, from 1 to `max`.
    pub fn limit(&self, max: usize) -> Result<usize, Problem> {
        let limit = self.value("limit")?.unwrap_or(100.min(max));
        if (1..=max).contains(&limit) {
            return Ok(limit);
        }
        let detail = format!("limit must be a whole number from 1 to {max}");
        Err(Problem::new(Code::LimitOutOfRange, detail))
    }
}

/// A time in milliseconds since 1970, as answers of products have it.
pub fn time(at_ms: i64) -> String {
    format_rfc3339(seconds(at_ms))
}

/// Seconds since 1970, as answers give the times of versions.
pub const fn seconds(at_ms: i64) -> i64 {
    at_ms.div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(given: &[(&str, &str)]) -> Result<Parameters, Problem> {
        let given = given.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Parameters::checked(given.collect(), &["from", "limit", "campaign"])
    }

    #[test]
    fn parameters_are_known_and_have_values() {
        assert_eq!(parameters(&[("colour", "red")]).err().unwrap().code(), Code::ParameterUnknown);
        let given = parameters(&[("from", "-1h"), ("limit", "7"), ("campaign", "x")]).unwrap();
        assert_eq!(given.time_ms("from", 7_200_500).unwrap(), Some(3_600_000));
        assert_eq!(given.time_ms("to", 0).unwrap(), None);
        assert_eq!(given.limit(10).unwrap(), 7);
        assert_eq!(given.limit(5).unwrap_err().code(), Code::LimitOutOfRange);
        assert_eq!(given.value::<u32>("campaign").unwrap_err().code(), Code::RequestMalformed);
    }
}
