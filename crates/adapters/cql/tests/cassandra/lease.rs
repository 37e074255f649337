//! The lease of maintenance on a real cluster.

use crate::support::Place;
use raingauge_cql as cql;
use raingauge_ports::contract::maintenance as contract;
use raingauge_ports::maintenance::Lease;

#[test]
fn one_process_at_a_time_has_the_lease() {
    let Some(place) = Place::new() else { return };
    let lease = |holder: &str| cql::Lease::new(place.cql(), "maintenance", holder);
    let ann = lease("ann");
    let ben = lease("ben");
    let other = cql::Lease::new(place.cql(), "something else", "ann");
    place.block_on(async {
        contract::keeps_a_lease(&ann).await;
        contract::lets_one_process_hold_it(&ann, &ben).await;
        assert_eq!(ann.hold().await, Ok(true));
        assert_eq!(other.hold().await, Ok(true), "names are leased apart");
    });
}

/// A holder that was killed holds it no longer than the lease lasts, and every renewal begins that
/// time again.
#[test]
fn a_lease_runs_out_unless_it_is_renewed() {
    let Some(place) = Place::new() else { return };
    let [lease, ben] =
        ["ann", "ben"].map(|holder| cql::Lease::new(place.cql(), "maintenance", holder));
    let session = place.cql().session_for_tests();

    place.block_on(async {
        for _ in 0..2 {
            assert_eq!(lease.hold().await, Ok(true));
            let found =
                session.query_unpaged("SELECT TTL(holder) FROM lease_table WHERE name = 'maintenance'", ()).await;
            let rows = found.unwrap().into_rows_result().unwrap();
            let (ttl_s,) = rows.first_row::<(i32,)>().unwrap();

            assert!((1..=60).contains(&ttl_s), "{ttl_s}");
        }

        // A holder whose time is over sooner, and who is silent from now on.
        lease.release().await.expect("released");
        let short = "INSERT INTO lease_table (name, holder) VALUES ('maintenance', 'ann') IF NOT EXISTS USING TTL 1";
        session.query_unpaged(short, ()).await.expect("taken");

        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
        while ben.hold().await != Ok(true) {
            assert!(std::time::Instant::now() < deadline, "the lease does not run out");
        }
    });
}
