//! One attempt to deliver: the request, and what follows from the response.

use crate::destination::{Destination, Target};
use crate::pacing::Signal;
use jiff::fmt::rfc2822;
use raingauge_campaigns::retry::{self, Verdict};
use raingauge_campaigns::sign::{Secret, signature};
use raingauge_ports::campaigns::Settlement;
use raingauge_ports::campaigns::sender::{Method, Request, Response, SendError};
use raingauge_ports::clock::Clock;

/// Most bytes of a response that are read. Its status is what counts; the body is read so that the
/// connection can be used again.
const RESPONSE_LEN_MAX: usize = 64 * 1024;

/// Signs a body and addresses it to a destination. `id` is the same for each attempt.
pub fn request(
    destination: &Destination,
    secrets: &[Secret],
    id: String,
    body: Vec<u8>,
    now_s: i64,
) -> Request {
    let url = match &destination.target {
        Target::Http(url) => url.clone(),
        Target::Log | Target::Points(_) => panic!("it is in this process"),
    };
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("webhook-timestamp", now_s.to_string()),
    ];
    if !secrets.is_empty() {
        headers.push(("webhook-signature", signature(secrets, &id, now_s, &body)));
    }

    headers.push(("idempotency-key", id.clone()));
    headers.push(("webhook-id", id));

    Request {
        method: Method::Post,
        url,
        headers,
        body,
        timeout: destination.timeout,
        response_len_max: RESPONSE_LEN_MAX,
        allow_private: destination.allow_private,
    }
}

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub verdict: Verdict,
    pub signal: Signal,
    /// The pause that the destination asked for, in milliseconds of the machine.
    pub asked_ms: Option<i64>,
    /// For people: a status, or an error.
    pub note: String,
}

impl Report {
    pub fn of(result: &Result<Response, SendError>, clock: &dyn Clock) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                let signal = match error {
                    SendError::Late(_) => Signal::Late,
                    _ => Signal::Failed,
                };
                let note = error.to_string();
                return Self { verdict: Verdict::Retry, signal, asked_ms: None, note };
            }
        };

        let verdict = Verdict::of_status(response.status);

        let asked_ms = match verdict {
            Verdict::SlowDown => retry_after_ms(response, clock.machine_ms()),
            _ => None,
        };

        let signal = match verdict {
            Verdict::SlowDown => Signal::TooMuch { is_failure: response.status >= 500, asked_ms },
            Verdict::Retry if response.status >= 500 => Signal::Failed,
            _ => Signal::Fine,
        };

        Self { verdict, signal, asked_ms, note: status_note(response.status) }
    }

    /// What becomes of the delivery, after `tries` attempts with this one.
    pub fn settlement(&self, id: &str, tries: u32, clock: &dyn Clock) -> Settlement {
        match self.verdict {
            Verdict::Delivered => Settlement::Delivered,
            Verdict::Refused => Settlement::Refused,
            Verdict::Gone | Verdict::Retry | Verdict::SlowDown => {
                // The destination goes by the clock of the machine.
                let asked_ms = self.asked_ms.map(|ms| ms.saturating_mul(clock.pace()));
                match retry::pause_ms(id, tries, asked_ms) {
                    Some(pause_ms) => Settlement::Retry { next_ms: clock.now_ms() + pause_ms },
                    None => Settlement::Dead,
                }
            }
        }
    }
}

/// Reads `Retry-After`: seconds, or a time.
fn retry_after_ms(response: &Response, now_ms: i64) -> Option<i64> {
    let text = response.header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(i64::from(seconds) * 1_000);
    }
    let at = rfc2822::parse(text).ok()?;
    Some((at.timestamp().as_millisecond() - now_ms).max(0))
}

/// A status as people know it.
fn status_note(status: u16) -> String {
    let name = match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        425 => "Too Early",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return status.to_string(),
    };

    format!("{status} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::tests::destination;
    use raingauge_ports::clock::ManualClock;
    use std::time::Duration;

    const NOW_S: i64 = 1_614_265_330;

    fn response(status: u16, retry_after: &str) -> Result<Response, SendError> {
        let headers = vec![("retry-after".to_owned(), retry_after.to_owned())];
        Ok(Response { headers, ..Response::of_status(status) })
    }

    fn report(result: &Result<Response, SendError>) -> Report {
        Report::of(result, &ManualClock::at_s(NOW_S))
    }

    /// The vector of Standard Webhooks, as a request.
    #[test]
    fn a_request_is_signed() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned();
        let body = br#"{"test": 2432232314}"#.to_vec();
        let signed = |secrets: &[Secret]| {
            request(&destination("d"), secrets, id.clone(), body.clone(), NOW_S)
        };

        let request = signed(std::slice::from_ref(&secret));
        assert_eq!((request.method, request.url.as_str()), (Method::Post, "http://d.example/hook"));
        assert_eq!(request.body, body);

        let expected = [
            ("content-type", "application/json"),
            ("webhook-id", id.as_str()),
            ("idempotency-key", id.as_str()),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ];
        for (name, value) in expected {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
        assert_eq!(request.headers.len(), expected.len());

        let both = signed(&[secret.clone(), secret]);
        assert_eq!(
            both.header("webhook-signature").map(|text| text.matches("v1,").count()),
            Some(2)
        );
        assert_eq!(signed(&[]).header("webhook-signature"), None);
    }

    #[test]
    fn each_result_has_its_consequences() {
        let too_much = |is_failure| Signal::TooMuch { is_failure, asked_ms: Some(7_000) };
        let expected = [
            (204, Verdict::Delivered, Signal::Fine),
            (400, Verdict::Refused, Signal::Fine),
            (409, Verdict::Retry, Signal::Fine),
            (410, Verdict::Gone, Signal::Fine),
            (302, Verdict::Retry, Signal::Fine),
            (500, Verdict::Retry, Signal::Failed),
            (429, Verdict::SlowDown, too_much(false)),
            (503, Verdict::SlowDown, too_much(true)),
        ];
        for (status, verdict, signal) in expected {
            let report = report(&response(status, "7"));
            assert_eq!((report.verdict, report.signal), (verdict, signal), "{status}");
        }

        let late = report(&Err(SendError::Late(Duration::from_secs(15))));
        assert_eq!((late.verdict, late.signal), (Verdict::Retry, Signal::Late));
        assert_eq!(late.note, "no response within 15000 ms");
        let broken = SendError::Broken { host: "h".to_owned(), why: "reset".to_owned() };
        assert_eq!(report(&Err(broken)).signal, Signal::Failed);
        assert_eq!(report(&response(503, "")).note, "503 Service Unavailable");
        assert_eq!(report(&response(599, "")).note, "599");
    }

    #[test]
    fn a_pause_is_asked_for_in_seconds_or_with_a_time() {
        let asked = |text| report(&response(503, text)).asked_ms;
        assert_eq!(asked("120"), Some(120_000));
        assert_eq!(asked(" 0 "), Some(0));
        // The time is half a minute later.
        assert_eq!(asked("Thu, 25 Feb 2021 15:02:40 GMT"), Some(30_000));
        assert_eq!(asked("Thu, 25 Feb 2021 15:02:00 GMT"), Some(0), "the time has passed");
        for wrong in ["", "-1", "1.5", "soon", "99999999999999999999"] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
        assert_eq!(report(&response(500, "7")).asked_ms, None);
    }

    #[test]
    fn attempts_end_after_the_last_pause() {
        let clock = ManualClock::at_s(NOW_S);
        let failed = report(&response(500, ""));
        for tries in 1..=9 {
            let settlement = failed.settlement("act_1", tries, &clock);
            let pause_ms = retry::pause_ms("act_1", tries, None).expect("a pause");
            let next_ms = NOW_S * 1_000 + pause_ms;
            assert_eq!(settlement, Settlement::Retry { next_ms });
        }
        assert_eq!(failed.settlement("act_1", 10, &clock), Settlement::Dead);

        let asked = report(&response(429, "3600")).settlement("act_1", 1, &clock);
        assert_eq!(asked, Settlement::Retry { next_ms: (NOW_S + 3_600) * 1_000 });
    }
}
