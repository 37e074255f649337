use proptest::prelude::*;

use super::*;

fn object() -> impl Strategy<Value = Object> {
    let blob = || prop::collection::vec(any::<u8>(), 0..20);
    let value = prop_oneof![
        blob().prop_map(|bytes| Value::Text(Text::new(&bytes))),
        prop::collection::vec(any::<u8>(), 100..200).prop_map(|bytes| Value::Text(text_of(&bytes))),
        any::<i64>().prop_map(|number| Value::Text(Text::integer(number))),
        prop::collection::vec((blob(), blob()), 1..8).prop_map(|entries| {
            let mut hash = Hash::new();
            for (field, value) in entries {
                hash.set(&field, &value);
            }
            Value::Hash(Box::new(hash))
        }),
        prop::collection::vec(blob(), 1..8).prop_map(|members| {
            Value::Set(Box::new(members.iter().map(Vec::as_slice).collect()))
        }),
    ];
    (value, any::<Option<i64>>())
        .prop_map(|(value, expires_ms)| Object { expires_ms, ..Object::new(value) })
}

fn packed(value: &Value) -> Vec<u8> {
    let mut packed = Vec::new();
    match value {
        Value::Text(text) => packed.extend_from_slice(&text.bytes()),
        other => other.collection().expect("the others are collections").pack(&mut packed),
    }
    packed
}

proptest! {
    #[test]
    fn heads_read_back(object in object()) {
        let head = encode(&object);
        let decoded = decode(&head).expect("what was written is read").expect("it is whole");
        prop_assert_eq!(decoded.value.kind(), object.value.kind());
        prop_assert_eq!(decoded.expires_ms, object.expires_ms);
        prop_assert_eq!(packed(&decoded.value), packed(&object.value));
    }

    #[test]
    fn wide_heads_read_back(object in object(), id: u64) {
        prop_assume!(object.value.kind() != Kind::Text);
        let object = Object { wide: Some(id), ..object };
        let head = encode(&object);
        let parsed = Head::parse(&head).expect("what was written is read");
        let count = object.value.len() as u64;
        prop_assert_eq!(parsed.body, Body::Wide { id, count, meta: &[] });
        prop_assert_eq!(parsed.expires_ms, object.expires_ms);
        prop_assert!(decode(&head).expect("it is a head").is_none());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = decode(&bytes.into());
    }

    #[test]
    fn a_cut_head_is_refused_or_shorter(object in object(), at: prop::sample::Index) {
        let head = encode(&object);
        let cut = head.slice(..at.index(head.len()));
        if let Ok(Some(decoded)) = decode(&cut) {
            prop_assert!(packed(&decoded.value).len() < packed(&object.value).len());
        }
    }
}

#[test]
fn a_large_string_shares_the_bytes_of_its_head() {
    let head = encode_text(&vec![7; crate::text::SHARED_LEN_MIN], Some(5));
    let object = decode(&head).expect("it is a head").expect("it is a string");
    let Value::Text(text) = &object.value else {
        panic!("a string was written");
    };
    let shared = text.as_shared().expect("it is shared");
    assert_eq!(shared.as_ptr(), head[10..].as_ptr());
    assert_eq!(object.expires_ms, Some(5));
}

#[test]
fn unknown_kinds_shapes_and_flags_are_refused() {
    for head in [&[0, 0][..], &[6, 0], &[0x21, 0], &[0x11, 0], &[1, 2], &[1], &[1, 1, 0]] {
        assert!(Head::parse(head).is_err(), "{head:?}");
    }
}
