//! What gauges say, also of a process that no longer does the work.

use super::stage::{Stage, programme};
use crate::deps::Deps;
use crate::error::Error;
use crate::letters::{Bound, SweepRange};
use crate::sweeper::Sweeper;
use crate::tail::{Reader, Tail};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use raingauge_points::Entry;
use raingauge_ports::campaigns::sender::Response;
use raingauge_ports::maintenance::{Error as LeaseError, Lease};
use raingauge_ports::points::{QueueName, Queues};
use raingauge_ports::{BoxFuture, points::Books};
use std::sync::Arc;
use std::time::Duration;

/// The lease of another process.
struct Foreign;

impl Lease for Foreign {
    fn hold(&self) -> BoxFuture<'_, Result<bool, LeaseError>> {
        Box::pin(async { Ok(false) })
    }

    fn release(&self) -> BoxFuture<'_, Result<(), LeaseError>> {
        Box::pin(async { Ok(()) })
    }
}

/// A receiver that takes nothing of one book.
struct Choosy {
    refused: u16,
}

impl Reader for Choosy {
    fn name(&self) -> &'static str {
        "choosy"
    }

    async fn deliver(&self, entries: Vec<Arc<Entry>>) -> Result<(), Error> {
        let is_refused = entries.iter().any(|entry| entry.book == self.refused);
        if is_refused { Err(Error::Closed("it takes nothing".to_owned())) } else { Ok(()) }
    }
}

fn assert_shown(page: &PrometheusHandle, line: &str) {
    let page = page.render();
    assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
}

fn without_right(stage: &Stage) -> Deps {
    Deps { lease: Arc::new(Foreign), ..stage.deps() }
}

#[test]
fn ranges_are_reported_by_the_process_that_begins_sweeps() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        let (stage, process) = Stage::with_programme();
        let through = Bound { hour: 1, programme: "grab-sg".into(), member: "bob".into() };
        let range = SweepRange { sweep: 1, book: 0, until_hour: 1, after: None, through };
        let sent = stage.queues.send(QueueName::Expiry, vec![range.letter()], Duration::ZERO);
        stage.runtime.block_on(sent).unwrap();
        assert!(stage.runtime.block_on(process.sweeper.may_begin()));
        stage.runtime.block_on(process.sweeper.sweep()).unwrap();
        assert_shown(&page, "raingauge_points_sweep_ranges 1");

        // The right moves to another process, which does the rest.
        let shared = Arc::clone(&process.shared);
        let sweeper = Sweeper::new(without_right(&stage), stage.options.clone(), shared);
        assert!(!stage.runtime.block_on(sweeper.may_begin()));
        assert_shown(&page, "raingauge_points_sweep_ranges 0");
    });
}

#[test]
fn the_lag_grows_while_a_receiver_fails_and_is_that_of_the_process_that_delivers() {
    const BOOKS: u16 = 2;
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        let stage = Stage::new(BOOKS, |_| Ok(Response::of_status(200)));
        let mut process = stage.open();
        stage.save(programme());
        for member in ["ann", "bob", "cid", "dan", "eve", "fay"] {
            stage.order(&format!("o-{member}"), member, "food", 15);
        }
        stage.settle_down(&mut process);
        let [first, last] = [0, BOOKS - 1].map(|book| stage.books.head(book).unwrap().sequence);
        assert!(first > 0 && last > 0, "each book has entries");

        for (refused, lag) in [(BOOKS - 1, last), (0, first)] {
            let shared = Arc::clone(&process.shared);
            let tail = Tail::new(&stage.deps(), shared, Choosy { refused });
            for book in 0..BOOKS {
                stage.books.set_place("choosy", book, 0).unwrap();
            }
            stage.runtime.block_on(tail.step()).unwrap_err();
            let line = format!("raingauge_points_delivery_lag{{consumer=\"choosy\"}} {lag}");
            assert_shown(&page, &line);
        }

        let shared = Arc::clone(&process.shared);
        let tail = Tail::new(&without_right(&stage), shared, Choosy { refused: BOOKS });
        assert!(!stage.runtime.block_on(tail.may_go_on()));
        assert_shown(&page, "raingauge_points_delivery_lag{consumer=\"choosy\"} 0");
    });
}
