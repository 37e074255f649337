use super::*;

pub fn model() -> Model {
    Model {
        seed: 1,
        timezone: "Asia/Singapore".to_owned(),
        counters: 20,
        keys: 200,
        zipf: 1.0,
        history_days: 8,
        history: 2_000,
        batch: [6, 14],
        ends_now: 0.97,
        windows: vec![Window { hours: 1, share: 40 }, Window { hours: 24, share: 60 }],
        batches_per_s: 100.0,
        even: false,
        hours: (0..24).map(|hour| if hour == 18 { 2.0 } else { 1.0 }).collect(),
        weekdays: vec![1.0, 1.0, 1.0, 1.0, 1.5, 1.0, 1.0],
        burst: 2.0,
        burst_minutes: 3.0,
        events_per_s: 50.0,
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    model().check().unwrap();
    type Change = fn(&mut Model);

    let wrong: [(Change, &str); 6] = [
        (|model| model.counters = 1_000, "counters must lie"),
        (|model| model.keys = 3, "keys must be at least"),
        (|model| model.hours.truncate(23), "hours must have 24"),
        (|model| model.windows[0].share = 41, "shares of windows"),
        (|model| model.history_days = 1, "history_days"),
        (|model| model.timezone = "Nowhere/Town".to_owned(), "no time zone"),
    ];

    for (change, said) in wrong {
        let mut model = model();
        change(&mut model);
        let error = model.check().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }

    assert!(toml::from_str::<Model>("speed = 3").is_err());
}
