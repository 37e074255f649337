//! Reads the body of `POST /v1/buckets` bucket by bucket. Of a malformed bucket only the reason is
//! kept, and reading ends when there are too many.

use crate::control::Bucket;
use raingauge_core::bucket::Granularity;
use raingauge_core::limits::BUCKETS_PER_REQUEST_MAX;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// The body is not an array, or not JSON.
    Malformed(String),
    /// More than [`BUCKETS_PER_REQUEST_MAX`], malformed ones included.
    TooMany,
}

/// Reads a list of buckets, with the reason in place of a malformed one.
pub fn read(json: &[u8]) -> Result<Vec<Result<Bucket, &'static str>>, Error> {
    let mut members = Members { read: Vec::new(), are_too_many: false };
    let mut parser = serde_json::Deserializer::from_slice(json);
    let read = members.deserialize(&mut parser).and_then(|()| parser.end());
    match read {
        Ok(()) => Ok(members.read),
        Err(_) if members.are_too_many => Err(Error::TooMany),
        Err(error) => Err(Error::Malformed(error.to_string())),
    }
}

struct Members {
    read: Vec<Result<Bucket, &'static str>>,
    are_too_many: bool,
}

impl<'de> DeserializeSeed<'de> for &mut Members {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Members {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array of buckets")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_element::<Member>()? {
            if self.read.len() == BUCKETS_PER_REQUEST_MAX {
                self.are_too_many = true;
                return Err(A::Error::custom("too many buckets"));
            }
            self.read.push(member.0);
        }
        Ok(())
    }
}

/// Anything in the place of a bucket.
struct Member(Result<Bucket, &'static str>);

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor)
    }
}

struct AnyVisitor;

/// The member is no object.
const NO_OBJECT: Member = Member(Err("a bucket must be an object"));

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Member;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a bucket")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Member, A::Error> {
        let mut key = Scalar::Other;
        let mut granularity = Scalar::Other;
        let mut time = Scalar::Other;
        let mut count = Scalar::Other;

        while let Some(name) = fields.next_key::<Scalar<'de>>()? {
            let place = match name.text() {
                Some("key") => &mut key,
                Some("granularity") => &mut granularity,
                Some("time") => &mut time,
                Some("count") => &mut count,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *place = fields.next_value()?;
        }

        Ok(Member(bucket_of(&key, &granularity, &time, &count)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Member, A::Error> {
        while members.next_element::<IgnoredAny>()?.is_some() {}
        Ok(NO_OBJECT)
    }

    fn visit_unit<E>(self) -> Result<Member, E> {
        Ok(NO_OBJECT)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Member, E> {
        Ok(NO_OBJECT)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Member, E> {
        Ok(NO_OBJECT)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Member, E> {
        Ok(NO_OBJECT)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Member, E> {
        Ok(NO_OBJECT)
    }

    fn visit_str<E>(self, _: &str) -> Result<Member, E> {
        Ok(NO_OBJECT)
    }
}

fn bucket_of(
    key: &Scalar<'_>,
    granularity: &Scalar<'_>,
    time: &Scalar<'_>,
    count: &Scalar<'_>,
) -> Result<Bucket, &'static str> {
    let time = match time {
        Scalar::Whole(seconds) => Some(*seconds),
        Scalar::Text(text) => raingauge_core::time::parse_time_s(text),
        Scalar::Other => None,
    };

    let count = if let Scalar::Whole(count) = count { Some(*count) } else { None };
    Ok(Bucket {
        key: key.text().ok_or("key must be a text")?.to_owned(),
        granularity: granularity
            .text()
            .and_then(Granularity::from_name)
            .ok_or("granularity must be quarter, hour or day")?,
        time: time.ok_or("time must be epoch seconds or RFC 3339")?,
        count: count.ok_or("count must be a whole number of 64 bits")?,
    })
}

/// A value of a bucket; other values are dropped.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Whole(i64),
    Other,
}

impl Scalar<'_> {
    fn text(&self) -> Option<&str> {
        if let Scalar::Text(text) = self { Some(text) } else { None }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_i64<E>(self, whole: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Whole(whole))
    }

    fn visit_u64<E>(self, whole: u64) -> Result<Scalar<'de>, E> {
        Ok(i64::try_from(whole).map_or(Scalar::Other, Scalar::Whole))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Scalar<'de>, A::Error> {
        while members.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Scalar<'de>, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_KEY: &str = "key must be a text";

    fn bucket(key: &str, granularity: Granularity, time: i64, count: i64) -> Bucket {
        Bucket { key: key.to_owned(), granularity, time, count }
    }

    #[test]
    fn both_forms_of_time_are_read_and_other_fields_passed_over() {
        let json = r#"[
            {"key": "k", "granularity": "hour", "time": 3600, "count": -2, "note": {"count": [9]}},
            {"count": 2, "time": "1970-01-02T00:00:00Z", "granularity": "day", "key": "a\u00e9"} ]"#;
        let expected =
            [bucket("k", Granularity::Hour, 3_600, -2), bucket("aé", Granularity::Day, 86_400, 2)];
        assert_eq!(read(json.as_bytes()), Ok(expected.map(Ok).into()));
        assert_eq!(read(b"[]"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_bucket_has_a_reason_in_its_place() {
        let good = r#"{"key":"k","granularity":"day","time":0,"count":0}"#;
        for (bad, reason) in [
            ("{}", NO_KEY),
            (r#"{"key":[{"a":[1]}],"granularity":"day","time":0,"count":0}"#, NO_KEY),
            (
                r#"{"key":"k","granularity":"week","time":0,"count":0}"#,
                "granularity must be quarter, hour or day",
            ),
            (
                r#"{"key":"k","granularity":"day","time":"soon","count":0}"#,
                "time must be epoch seconds or RFC 3339",
            ),
            (
                r#"{"key":"k","granularity":"day","time":0,"count":0.5}"#,
                "count must be a whole number of 64 bits",
            ),
            (
                r#"{"key":"k","granularity":"day","time":0,"count":9223372036854775808}"#,
                "count must be a whole number of 64 bits",
            ),
            ("1", "a bucket must be an object"),
            ("-1", "a bucket must be an object"),
            ("0.5", "a bucket must be an object"),
            ("null", "a bucket must be an object"),
            ("true", "a bucket must be an object"),
            ("\"a\\n\"", "a bucket must be an object"),
            ("[[[]]]", "a bucket must be an object"),
        ] {
            let members = read(format!("[{good},{bad},{good}]").as_bytes()).unwrap();
            assert!(members[0].is_ok() && members[2].is_ok());
            assert_eq!(members[1], Err(reason), "{bad}");
        }
    }

    #[test]
    fn what_is_no_list_is_malformed() {
        for wrong in ["", "{}", "7", "[", "[1", "[1,]", "[] []", "nonsense", "[\"\\ud800\"]"] {
            assert!(matches!(read(wrong.as_bytes()), Err(Error::Malformed(_))), "{wrong}");
        }
    }

    /// Malformed buckets count, and reading ends at the first one beyond the limit: anything may
    /// follow.
    #[test]
    fn there_is_a_limit_to_the_members_of_a_list() {
        let many = format!("[0{}", ",0".repeat(BUCKETS_PER_REQUEST_MAX - 1));
        assert_eq!(
            read(format!("{many}]").as_bytes()).map(|members| members.len()),
            Ok(BUCKETS_PER_REQUEST_MAX)
        );
        assert_eq!(read(format!("{many},{{\"\":0}}, nonsense").as_bytes()), Err(Error::TooMany));
    }
}
