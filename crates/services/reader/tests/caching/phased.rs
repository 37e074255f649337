use crate::support::{DAYS, NOON_S, Service, model, range};
use raingauge_core::bucket::{DAY_S, Granularity, HOUR_S, QUARTER_S};
use raingauge_reader::Answer;
use serde_json::json;

const KEYS: usize = 400;
/// Simulated time: the first half hour warms up, and is not looked at.
const WARM_S: i64 = HOUR_S / 2;
const RUN_S: i64 = 2 * HOUR_S;

/// How a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    LastDay,
    SinceMidnight,
    LastDayFloored,
    SinceMidnightFloored,
    LastHundredMinutes,
    SinceLogin,
}

const HABITS: [Habit; 6] = [
    Habit::LastDay,
    Habit::SinceMidnight,
    Habit::LastDayFloored,
    Habit::SinceMidnightFloored,
    Habit::LastHundredMinutes,
    Habit::SinceLogin,
];

impl Habit {
    fn range(self, now_s: i64) -> (i64, i64) {
        let floored_s = Granularity::Quarter.floor(now_s);
        let midnight_s = NOON_S - DAY_S / 2;
        match self {
            Self::LastDay => (now_s - DAY_S, now_s),
            Self::SinceMidnight => (midnight_s, now_s),
            Self::LastDayFloored => (floored_s - DAY_S, floored_s),
            Self::SinceMidnightFloored => (midnight_s, floored_s),
            Self::LastHundredMinutes => (now_s - 6_000, now_s),
            Self::SinceLogin => (midnight_s + 1_000, now_s),
        }
    }

    /// What the answer covers must be what was asked for, or a quarter hour earlier while that is
    /// allowed.
    fn check(self, answer: Answer, now_s: i64) {
        let (from_s, to_s) = self.range(now_s);
        let quarter = Granularity::Quarter;
        let (early_from_s, early_to_s) =
            (quarter.floor(from_s) - answer.from_s, quarter.floor(to_s) - answer.to_s);
        let fits = match self {
            Self::SinceMidnight | Self::SinceMidnightFloored | Self::SinceLogin => {
                early_from_s == 0
            }
            // Ends that move together stay together.
            Self::LastDay if now_s % QUARTER_S != 0 => early_from_s == early_to_s,
            // In the second in which a quarter hour begins, a range looks as if it had been
            // floored.
            Self::LastDay | Self::LastDayFloored | Self::LastHundredMinutes => true,
        };

        assert!(fits && [0, QUARTER_S].contains(&early_from_s), "{self:?} at {now_s}: {answer:?}");
        let since_s = now_s - quarter.floor(now_s);

        // The phase of each key lies within five minutes.
        let may_be_early = since_s < 300;
        assert!(
            early_to_s == 0 || (early_to_s == QUARTER_S && may_be_early),
            "{self:?} at {now_s}: {answer:?}"
        );
        assert_eq!(answer.count, model(answer.from_s, answer.to_s), "{self:?} at {now_s}");
    }
}

/// Reads of storage in each minute behind the warm-up, and the share of counts that the cache
/// answered.
async fn simulate(strategy: &str) -> (Vec<usize>, f64) {
    const { assert!(DAYS * DAY_S > RUN_S + 2 * DAY_S) };
    let service = Service::new(json!({ "strategy": strategy }));
    let keys: Vec<String> = (0..KEYS).map(|number| format!("c1:{number}")).collect();
    keys.iter().for_each(|key| service.fill(key));

    let mut minutes = Vec::new();
    let mut asked = 0;
    let begin_s = NOON_S - RUN_S / 2;
    let mut before = 0;

    for second in 0..RUN_S {
        let now_s = begin_s + second;
        service.clock.set_s(now_s);

        // Each client asks in a rhythm of its own, of 7 to 58 s.
        let due =
            |number: &usize| (second + *number as i64 * 31) % (7 + (*number as i64 * 13) % 52) == 0;
        let due: Vec<usize> = (0..KEYS).filter(due).collect();
        let habit = |number: usize| HABITS[number % HABITS.len()];
        let ranges = due.iter().map(|number| {
            let (from_s, to_s) = habit(*number).range(now_s);
            range(&keys[*number], from_s, to_s)
        });
        let ranges: Vec<_> = ranges.collect();
        let answers = service.reader.counts(&ranges).await;

        service.settle().await;

        for (number, answer) in due.iter().zip(answers) {
            habit(*number).check(answer.expect("a count"), now_s);
        }

        if second == WARM_S {
            (before, asked) = (service.remote.reads(), 0);
            minutes.clear();
        }

        asked += ranges.len();

        if second % 60 == 59 {
            let last: usize = minutes.iter().sum();
            minutes.push(service.remote.reads() - before - last);
        }
    }

    let read: usize = minutes.iter().sum();
    (minutes, 1.0 - read as f64 / asked as f64)
}

/// The highest minute over the mean one.
fn peak(minutes: &[usize]) -> f64 {
    let mean = minutes.iter().sum::<usize>() as f64 / minutes.len() as f64;
    minutes.iter().copied().max().unwrap_or_default() as f64 / mean
}

#[tokio::test]
async fn phased_keeps_the_hits_and_has_no_spike() {
    let (result_minutes, result_hits) = simulate("result").await;
    let (phased_minutes, phased_hits) = simulate("phased").await;
    println!(
        "result: peak {:.2}, hits {result_hits:.3}, reads by minute {result_minutes:?}",
        peak(&result_minutes)
    );
    println!(
        "phased: peak {:.2}, hits {phased_hits:.3}, reads by minute {phased_minutes:?}",
        peak(&phased_minutes)
    );
    assert!(peak(&result_minutes) > 3.0, "the spike that is to go is there");
    assert!(peak(&phased_minutes) < 1.5, "no minute stands out");
    assert!(phased_hits >= result_hits - 0.01, "the hits stay");
}
