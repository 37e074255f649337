use proptest::prelude::*;

use super::*;
use crate::head;

#[derive(Debug, Clone)]
enum Edit {
    Append(Vec<u8>),
    SetRange(usize, Vec<u8>),
    Shared,
    Set,
    Integer(i64),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Edit::Append),
        (0usize..100, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(offset, bytes)| Edit::SetRange(offset, bytes)),
        Just(Edit::Shared),
        Just(Edit::Set),
        any::<i64>().prop_map(Edit::Integer),
    ]
}

proptest! {
    #[test]
    fn edits_do_what_they_do_to_a_vector(
        start: Vec<u8>,
        edits in prop::collection::vec(edit(), 0..12),
    ) {
        let mut text = Text::new(&start);
        let mut model = start;
        for edit in edits {
            match edit {
                Edit::Append(bytes) => {
                    text.append(&bytes);
                    model.extend(bytes);
                }
                Edit::SetRange(offset, bytes) => {
                    text.set_range(offset, &bytes);
                    model.resize(model.len().max(offset + bytes.len()), 0);
                    model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                }
                Edit::Shared => text = Text::shared(model.clone().into()),
                Edit::Set => text = head::text_of(&model),
                Edit::Integer(number) => {
                    text = Text::integer(number);
                    model = number.to_string().into_bytes();
                }
            }
            prop_assert_eq!(&*text.bytes(), model.as_slice());
            prop_assert_eq!(text.len(), model.len());
            let number = std::str::from_utf8(&model).ok().and_then(|text| text.parse::<i64>().ok());
            let number = number.filter(|number| number.to_string().as_bytes() == model);
            if text.as_shared().is_none() {
                prop_assert_eq!(text.as_integer(), number);
            }
        }
    }
}

#[test]
fn encodings_are_those_that_clients_know() {
    let mut text = Text::new(b"12");
    assert_eq!(text.encoding(), "int");
    text.append(b"3");
    assert_eq!((text.encoding(), text.as_integer()), ("raw", Some(123)));
    assert_eq!(Text::new(&[b'x'; 44]).encoding(), "embstr");
    assert_eq!(Text::new(&[b'x'; 45]).encoding(), "raw");
}

#[test]
fn a_string_fits_into_forty_bytes() {
    assert!(size_of::<Text>() <= 40);
    assert!(size_of::<crate::Value>() <= 40);
}
