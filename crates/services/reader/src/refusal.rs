//! Why there is no count.

use raingauge_core::code::{Code, Refusal};
use raingauge_core::limits::KEY_LEN_MAX;
use raingauge_ports::published::Published;

/// Why a key has no counter.
pub(crate) fn key_unknown(key: &str) -> Refusal {
    if key.len() > KEY_LEN_MAX {
        let detail = format!("a key has at most {KEY_LEN_MAX} bytes; this one has {}", key.len());
        return Refusal::new(Code::KeyTooLong, detail);
    }
    Refusal::new(Code::KeyUnknown, format!("no counter has a template that renders `{key}`"))
}

/// Why nothing can be answered now, whatever the request.
pub(crate) fn unavailable(published: &Published) -> Option<Refusal> {
    if let Some(reason) = published.failure() {
        return Some(Refusal::new(Code::Unavailable, format!("counting has stopped: {reason}")));
    }
    published.is_outdated().then(|| {
        let detail = "this reader cannot read from the bucket store which counts answer: ask another one, or later";
        Refusal::new(Code::Unavailable, detail)
    })
}
