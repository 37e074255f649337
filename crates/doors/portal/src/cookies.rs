//! The cookies of a session, and of a sign-in through an OpenID provider.

use axum::http::{HeaderMap, HeaderValue, header};

/// Over TLS, names carry this prefix. Browsers then restrict the cookie to this host, to the path
/// `/` and to TLS.
const SECURE_NAME: &str = "__Host-raingauge_session";
const NAME: &str = "raingauge_session";
const SECURE_TRIP_NAME: &str = "__Host-raingauge_trip";
const TRIP_NAME: &str = "raingauge_trip";
const SECURE_DEVICE_NAME: &str = "__Host-raingauge_device";
const DEVICE_NAME: &str = "raingauge_device";

/// How long a browser is recognised after a person has signed in with it.
const DEVICE_S: i64 = 365 * 86_400;

/// Returns the session secret from the headers of a request.
pub fn session_in(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    value_in(headers, session_name(is_https))
}

/// Returns the state of a sign-in through a provider from the headers of a request.
pub fn trip_in(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    value_in(headers, trip_name(is_https))
}

/// Returns the device mark that the browser kept from an earlier sign-in.
pub fn device_in(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    value_in(headers, device_name(is_https))
}

/// Returns the value of the first cookie with this name.
pub fn value_in<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies =
        headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let pairs =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find_map(|(found, value)| (found == name).then_some(value))
}

/// Sets the session cookie. Without an age it ends with the browser at the latest; the server ends
/// it sooner.
pub fn give(secret: &str, is_https: bool) -> HeaderValue {
    line(session_name(is_https), secret, "", is_https)
}

/// Sets the device mark, by which the person's browser is recognised at the next sign-in. It grants
/// no access.
pub fn give_device(mark: &str, is_https: bool) -> HeaderValue {
    line(device_name(is_https), mark, &format!("; Max-Age={DEVICE_S}"), is_https)
}

/// Removes the session cookie.
pub fn take(is_https: bool) -> HeaderValue {
    line(session_name(is_https), "", "; Max-Age=0", is_https)
}

/// Sets the cookie that the browser needs on its return from the provider, valid for `age_s`
/// seconds.
pub fn give_trip(trip: &str, age_s: i64, is_https: bool) -> HeaderValue {
    line(trip_name(is_https), trip, &format!("; Max-Age={age_s}"), is_https)
}

/// Removes the cookie of the provider sign-in.
pub fn take_trip(is_https: bool) -> HeaderValue {
    line(trip_name(is_https), "", "; Max-Age=0", is_https)
}

const fn session_name(is_https: bool) -> &'static str {
    if is_https { SECURE_NAME } else { NAME }
}

const fn trip_name(is_https: bool) -> &'static str {
    if is_https { SECURE_TRIP_NAME } else { TRIP_NAME }
}

const fn device_name(is_https: bool) -> &'static str {
    if is_https { SECURE_DEVICE_NAME } else { DEVICE_NAME }
}

/// `SameSite=Lax`, so that the browser also sends the cookie when the provider redirects it back.
fn line(name: &str, text: &str, age: &str, is_https: bool) -> HeaderValue {
    let secure = if is_https { "; Secure" } else { "" };
    let line = format!("{name}={text}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
    let mut value =
        HeaderValue::try_from(line).expect("texts of cookies are made of digits, letters and %");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_comes_back() {
        for is_https in [false, true] {
            let line = give("0123abcd", is_https);
            let line = line.to_str().unwrap();
            assert!(line.contains("; Path=/; HttpOnly; SameSite=Lax"), "{line}");
            assert_eq!(line.starts_with("__Host-") && line.ends_with("; Secure"), is_https);

            let mut headers = HeaderMap::new();
            headers.append(header::COOKIE, "theme=dark; x".parse().unwrap());
            headers.append(
                header::COOKIE,
                format!("a=b;{}", line.split(';').next().unwrap()).parse().unwrap(),
            );
            assert_eq!(session_in(&headers, is_https), Some("0123abcd"));
            assert_eq!(session_in(&headers, !is_https), None);
        }

        assert_eq!(session_in(&HeaderMap::new(), false), None);
        assert!(take(true).to_str().unwrap().contains("Max-Age=0"));
    }
}
