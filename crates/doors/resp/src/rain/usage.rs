//! `RAIN.HOT`, `RAIN.SIZES` and `RAIN.DOCTOR`: how clients use the door.

use crate::observed::Observed;
use raingauge_resp::{Arguments, Failure, Replies};

/// Keys that `RAIN.HOT` lists without a number.
const KEYS_DEFAULT: usize = 10;

/// `RAIN.HOT [n | RESET]`: for each key its name, the commands that named it lately, by how many
/// that may be too high, and its database.
pub fn hot(observed: &Observed, arguments: Arguments<'_>, out: &mut Replies) {
    if is_reset(arguments) {
        observed.reset_hot();
        return out.ok();
    }
    let len = match arguments.len() {
        1 => Ok(KEYS_DEFAULT),
        2 => {
            arguments.integer(1).and_then(|n| usize::try_from(n).map_err(|_| Failure::NotPositive))
        }
        _ => Err(Failure::Syntax),
    };
    let len = match len {
        Ok(len) => len,
        Err(failure) => return out.fail(&failure),
    };

    let keys = observed.hot(len);
    out.array(keys.len());
    for key in keys {
        out.array(4);
        out.bulk(&key.name);
        out.integer(whole(key.commands));
        out.integer(whole(key.error));
        out.integer(i64::from(key.database));
    }
}

/// `RAIN.SIZES [RESET]`: how large values are.
pub fn sizes(observed: &Observed, arguments: Arguments<'_>, out: &mut Replies) {
    if is_reset(arguments) {
        observed.reset_sizes();
        return out.ok();
    }
    if arguments.len() > 1 {
        return out.fail(&Failure::Syntax);
    }

    let sizes = observed.sizes();
    out.map(6);
    for (name, number) in [
        ("values", sizes.values()),
        ("bytes", sizes.bytes()),
        ("p50_bytes", sizes.quantile(0.5)),
        ("p99_bytes", sizes.quantile(0.99)),
    ] {
        out.bulk(name.as_bytes());
        out.integer(whole(number));
    }

    out.bulk(b"largest_percent_of_values_is_percent_of_bytes");
    out.double((sizes.share_of_largest(0.01) * 1_000.0).round() / 10.0);
    out.bulk(b"classes");
    let classes: Vec<_> = sizes.classes().collect();
    out.array(classes.len());
    for class in classes {
        out.array(3);
        out.integer(whole(class.bytes_max));
        out.integer(whole(class.values));
        out.integer(whole(class.bytes));
    }
}

/// `RAIN.DOCTOR [RESET]`: who sends commands one by one, and what a pipeline would save.
pub fn doctor(observed: &Observed, arguments: Arguments<'_>, out: &mut Replies) {
    if is_reset(arguments) {
        observed.reset_doctor();
        return out.ok();
    }
    if arguments.len() > 1 {
        return out.fail(&Failure::Syntax);
    }

    let cases = observed.cases();
    out.array(cases.len());
    for case in cases {
        out.map(8);
        out.bulk(b"says");
        out.bulk(case.sentence().as_bytes());
        out.bulk(b"client");
        out.bulk(case.client.as_bytes());
        out.bulk(b"command");
        out.bulk(case.command.as_bytes());

        for (name, number) in [
            ("bursts", case.bursts),
            ("commands", case.commands),
            ("elapsed_us", case.elapsed_us),
            ("server_us", case.server_us),
            ("gain_us", case.gain_us),
        ] {
            out.bulk(name.as_bytes());
            out.integer(whole(number));
        }
    }
}

fn is_reset(arguments: Arguments<'_>) -> bool {
    arguments.len() == 2 && arguments.is(1, "RESET")
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
