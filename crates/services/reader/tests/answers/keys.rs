use crate::support::{Service, TODAY_S};
use raingauge_core::bucket::DAY_S;
use raingauge_reader::{Key, LargestKeys};
use serde_json::json;

#[tokio::test]
async fn the_largest_keys_come_first_over_all_parts() {
    let service = Service::forever(vec![(0, 1), (TODAY_S, 2)]);
    for (key, day, value) in
        [("c:a", -1, 5), ("c:a", 0, 5), ("c:b", 0, 8), ("c:c", -1, 10), ("c:d", -3, 99)]
    {
        service.add(key, TODAY_S + day * DAY_S, value);
    }

    let key = |key: &str, count| Key { key: key.to_owned(), count };
    let largest = async |from_s, to_s, len| {
        service.reader.largest_keys(1, from_s, to_s, len).await.unwrap().keys
    };
    assert_eq!(largest(TODAY_S - 1, TODAY_S + 1, 2).await, [key("c:a", 10), key("c:c", 10)]);
    assert_eq!(largest(TODAY_S, TODAY_S + DAY_S, 9).await, [key("c:b", 8), key("c:a", 5)]);
    assert_eq!(largest(TODAY_S, TODAY_S, 9).await, []);
    assert_eq!(
        service.reader.largest_keys(2, 0, 1, 9).await.unwrap_err().code.as_str(),
        "counter_unknown"
    );
    assert_eq!(
        service.reader.largest_keys(1, 1, 0, 9).await.unwrap_err().code.as_str(),
        "range_backwards"
    );
    service.published.fail("the disk is full");

    assert_eq!(
        service.reader.largest_keys(1, 0, 1, 9).await.unwrap_err().code.as_str(),
        "unavailable"
    );
}

#[test]
fn keys_that_may_not_be_the_largest_are_marked_incomplete() {
    let all =
        LargestKeys { keys: vec![Key { key: "c:a".to_owned(), count: 5 }], is_complete: true };
    assert_eq!(json!(all), json!({"keys": [{"key": "c:a", "count": 5}]}));
    let some = LargestKeys { is_complete: false, ..all };
    assert_eq!(json!(some), json!({"keys": [{"key": "c:a", "count": 5}], "complete": false}));
}
