//! Why there is no answer.

use raingauge_core::limits::KEY_LEN_MAX;
use raingauge_core::plan;
use raingauge_core::retention::Expired;
use raingauge_core::tile::Overflow;
use raingauge_ports::buckets;
use raingauge_ports::published::Published;
use serde::Serialize;

/// Why there is no count: a stable code, and a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub code: &'static str,
    pub detail: String,
}

/// Why a key has no counter.
pub(crate) fn key_unknown(key: &str) -> Failure {
    if key.len() > KEY_LEN_MAX {
        return Failure {
            code: "key_too_long",
            detail: format!("a key has at most {KEY_LEN_MAX} bytes; this one has {}", key.len()),
        };
    }
    Failure {
        code: "key_unknown",
        detail: format!("no counter has a template that renders `{key}`"),
    }
}

/// Why nothing can be answered now, whatever is asked.
pub(crate) fn unavailable(published: &Published) -> Option<Failure> {
    let failure = |detail| Failure { code: "unavailable", detail };
    if let Some(reason) = published.failure() {
        return Some(failure(format!("counting has stopped: {reason}")));
    }
    published.is_outdated().then(|| {
        failure(
            "this reader cannot read from the bucket store which counts answer: ask another one, or later".to_owned(),
        )
    })
}

impl From<plan::Error> for Failure {
    fn from(error: plan::Error) -> Self {
        Self { code: error.code(), detail: error.to_string() }
    }
}

impl From<Expired> for Failure {
    fn from(expired: Expired) -> Self {
        Self { code: "range_expired", detail: expired.to_string() }
    }
}

impl From<Overflow> for Failure {
    fn from(overflow: Overflow) -> Self {
        Self { code: "overflow", detail: overflow.to_string() }
    }
}

impl From<buckets::Error> for Failure {
    fn from(error: buckets::Error) -> Self {
        match error {
            buckets::Error::Overflow(overflow) => overflow.into(),
            error => Self { code: "unavailable", detail: error.to_string() },
        }
    }
}
