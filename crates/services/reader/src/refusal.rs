//! Why there is no count.

use raingauge_core::code::{Code, Refusal};
use raingauge_core::limits::KEY_LEN_MAX;
use raingauge_ports::published::Published;
use std::time::Duration;

/// Why a key has no counter.
pub fn key_unknown(key: &str) -> Refusal {
    if key.len() > KEY_LEN_MAX {
        let detail = format!("a key has at most {KEY_LEN_MAX} bytes; this one has {}", key.len());
        return Refusal::new(Code::KeyTooLong, detail);
    }
    Refusal::new(Code::KeyUnknown, format!("no counter has a template that renders `{key}`"))
}

/// Why nothing can be answered now, whatever the request.
pub fn unavailable(published: &Published) -> Option<Refusal> {
    if let Some(reason) = published.failure() {
        return Some(Refusal::new(Code::Unavailable, format!("counting has stopped: {reason}")));
    }
    published.is_outdated().then(|| {
        let detail = "this reader cannot read from the bucket store which counts answer: \
                      ask another one, or later";
        Refusal::new(Code::Unavailable, detail)
    })
}

pub fn too_slow(deadline: Duration) -> Refusal {
    let milliseconds = deadline.as_millis();
    let detail =
        format!("storage took longer than {milliseconds} ms: ask again, or for less at once");
    Refusal::new(Code::DeadlineExceeded, detail)
}

/// A read that ended without an answer, which none does unless its task was dropped.
pub fn lost() -> Refusal {
    Refusal::new(Code::Unavailable, "the read ended without an answer: ask again")
}
