//! The store on a real cluster, whose nodes `RAINGAUGE_TEST_CQL` names: `make test` starts one.

mod checkpoints;
mod chunks;
mod compaction;
mod exactly_once;
mod keys;
mod lasting;
mod lease;
mod refusals;
mod support;
mod tables;

use raingauge_ports::contract::buckets as contract;
use support::Place;

#[test]
fn the_store_keeps_the_contract() {
    let Some(place) = Place::new() else { return };
    let store = place.store(0);
    place.block_on(async {
        contract::answers_the_worked_example(&store).await;
        contract::adds_every_delta(&store).await;
        contract::refuses_to_wrap(&store).await;
        contract::keeps_what_is_to_be_kept(&store).await;
        contract::removes_a_retired_generation(&store).await;
        contract::erases_a_key(&store).await;
        contract::lists_its_keys(&store).await;
        contract::remembers_its_checkpoint(&store);
    });
}
