//! What the store costs on a real cluster: `scripts/bench-cluster` runs it and says how to read the
//! output.
//!
//! ```text
//!   writing   tiles and tables, as a worker writes │ one upsert for each event │ counter columns
//!   reading   tiles │ the plain plan: slices of the three tables, by length of the window
//!   history   events of three years, with and without the count tables; runs alone, when named
//!   sharing   the same events in 1, 2 and 4 log partitions
//! ```

#[path = "cluster/history.rs"]
mod history;
#[path = "cluster/load.rs"]
mod load;
#[path = "cluster/peers.rs"]
mod peers;
#[path = "cluster/reads.rs"]
mod reads;
#[path = "cluster/writes.rs"]
mod writes;

use load::Place;

fn main() {
    let Some(place) = Place::new() else {
        println!("RAINGAUGE_TEST_CQL names no cluster: see scripts/bench-cluster");
        return;
    };
    if std::env::args().any(|argument| argument == "history") {
        return history::run(&place);
    }
    writes::run(&place);
    reads::run(&place);
    history::run(&place);
}
