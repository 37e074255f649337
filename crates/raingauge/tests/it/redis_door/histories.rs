//! Concurrent clients while the server is killed again and again: an order of all operations
//! explains every reply, so nothing that was acknowledged is lost, and nobody saw what was.
//!
//! `RAINGAUGE_HISTORY_ROUNDS` makes more histories.

use super::oracle::resp_address;
use super::{address_of, home};
use crate::server::Server;
use parking_lot::Mutex;
use raingauge_lab::redis::histories::{self, Options};
use raingauge_resp_client::Address;
use std::sync::atomic::{AtomicBool, Ordering};

const USUAL_ROUNDS: u64 = 2;
const KILLS: usize = 4;

#[test]
fn an_order_explains_what_clients_saw_across_kills() {
    let rounds = std::env::var("RAINGAUGE_HISTORY_ROUNDS").ok();
    let rounds = rounds.map_or(USUAL_ROUNDS, |text| text.parse().expect("a number of rounds"));
    let home = home();
    let running: Mutex<Option<Server>> = Mutex::new(Some(home.start()));
    let address = Mutex::new(resp_address(running.lock().as_ref().expect("a server")));

    for round in 0..rounds {
        let options = Options {
            clients: 6,
            keys: 3,
            operations: 400,
            seed: round,
            prefix: format!("round{round}"),
        };
        // Kills come as fast as the server starts, as long as clients are at work.
        let kills = |stop: &AtomicBool| {
            for _ in 0..KILLS {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                if let Some(server) = running.lock().take() {
                    server.kill();
                }
                let server = home.start();
                let opened: Address = address_of(&server).expect("an address").parse()?;
                *address.lock() = opened;
                *running.lock() = Some(server);
            }
            Ok(())
        };

        let events = histories::record(&options, &|| address.lock().clone(), kills)
            .unwrap_or_else(|error| panic!("{error:#}"));
        if let Err(violation) = histories::check(&events) {
            panic!("seed {round}: no order explains key {}: {violation:#?}", violation.key);
        }
        assert!(events.iter().any(|event| event.returned_ns.is_some()));
    }
}
