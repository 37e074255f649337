//! The cookie of a session.

use axum::http::{HeaderMap, HeaderValue, header};

/// Over TLS its name begins so, and browsers keep it to this host, to `/` and to TLS.
const SECURE_NAME: &str = "__Host-raingauge_session";
const NAME: &str = "raingauge_session";

/// The secret of the session in the headers of a request.
pub fn session_in(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    value_in(headers, if is_https { SECURE_NAME } else { NAME })
}

/// The value of the first cookie of this name.
pub fn value_in<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find_map(|(found, value)| (found == name).then_some(value))
}

/// Gives the browser a session. Without an age it ends with the browser at the latest; the server ends it sooner.
pub fn give(secret: &str, is_https: bool) -> HeaderValue {
    line(secret, "", is_https)
}

/// Takes the session away from the browser.
pub fn take(is_https: bool) -> HeaderValue {
    line("", "; Max-Age=0", is_https)
}

fn line(secret: &str, age: &str, is_https: bool) -> HeaderValue {
    let (name, secure) = if is_https { (SECURE_NAME, "; Secure") } else { (NAME, "") };
    let line = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
    let mut value = HeaderValue::try_from(line).expect("the secret is made of digits");
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
            headers.append(header::COOKIE, format!("a=b;{}", line.split(';').next().unwrap()).parse().unwrap());
            assert_eq!(session_in(&headers, is_https), Some("0123abcd"));
            assert_eq!(session_in(&headers, !is_https), None);
        }
        assert_eq!(session_in(&HeaderMap::new(), false), None);
        assert!(take(true).to_str().unwrap().contains("Max-Age=0"));
    }
}
