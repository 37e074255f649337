//! Random commands on the door and on a real Redis: equal replies, with checkpoints and kills in
//! between.
//!
//! `RAINGAUGE_ORACLE_SECONDS` makes the comparison longer, `RAINGAUGE_ORACLE_SEED` replays one.

use super::{address_of, home};
use crate::server::{Home, Server};
use raingauge_lab::redis::oracle::{self, Disturbance, Options};
use raingauge_lab::redis::server::Redis;
use raingauge_resp_client::{Address, Connection};
use std::time::Duration;

const USUAL_S: u64 = 6;
const USUAL_SEED: u64 = 20_260_101;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
}

pub fn resp_address(server: &Server) -> Address {
    let address = address_of(server).expect("the address is in the log");
    address.parse().expect("an address")
}

/// A server that can be killed and started again.
struct Opened {
    home: Home,
    server: Option<Server>,
}

impl Opened {
    fn disturb(&mut self, disturbance: Disturbance) -> anyhow::Result<Address> {
        match disturbance {
            Disturbance::Reopen => {
                if let Some(server) = self.server.take() {
                    server.kill();
                }
                self.server = Some(self.home.start());
            }
            Disturbance::Checkpoint => {
                let mut connection = Connection::open(&self.address())?;
                connection.done(&[b"BGREWRITEAOF"])?;
            }
        }
        Ok(self.address())
    }

    fn address(&self) -> Address {
        resp_address(self.server.as_ref().expect("a server"))
    }
}

fn options(redis: &Redis, against: Address, seed: u64) -> Options {
    let seconds = from_environment("RAINGAUGE_ORACLE_SECONDS").unwrap_or(USUAL_S);
    let seed = from_environment("RAINGAUGE_ORACLE_SEED").unwrap_or(seed);
    let duration = Duration::from_secs(seconds);
    Options {
        redis: redis.address(),
        against,
        seed,
        duration,
        cases_max: u64::MAX,
        // Within a pipeline, DBSIZE may still differ by the keys that change beside it.
        without: vec!["DBSIZE".to_owned()],
    }
}

#[test]
fn replies_are_those_of_redis() {
    let Some(redis) = Redis::start(&[]).expect("a Redis") else {
        return;
    };
    let home = home();
    let server = home.start();
    let options = options(&redis, resp_address(&server), USUAL_SEED);
    let agreed = oracle::run(&options, None).unwrap_or_else(|error| panic!("{error}"));
    assert!(agreed.cases > 0 && agreed.replies > 100, "{agreed:?}");
    println!("{agreed:?}");
}

#[test]
fn replies_are_those_of_redis_after_checkpoints_and_kills() {
    let Some(redis) = Redis::start(&[]).expect("a Redis") else {
        return;
    };
    // Little memory, so that objects are read from the disk again.
    let mut home = home();
    home.set("objects.memory_bytes", "33554432");
    let server = home.start();
    let mut opened = Opened { home, server: Some(server) };
    let options = options(&redis, opened.address(), USUAL_SEED + 1_000_000);

    let mut disturb = |disturbance| opened.disturb(disturbance);
    let agreed =
        oracle::run(&options, Some(&mut disturb)).unwrap_or_else(|error| panic!("{error}"));
    assert!(agreed.cases > 0 && agreed.replies > 100, "{agreed:?}");
    println!("{agreed:?}");
}
