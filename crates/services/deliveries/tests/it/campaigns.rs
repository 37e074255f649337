//! Campaigns that are paused, resumed and archived.

use crate::bench::{Bench, always, delivery, destination, until};
use raingauge_campaigns::schedule::Concurrency;
use raingauge_deliveries::{Destination, StoppedCampaigns};
use raingauge_ports::campaigns::{Delivery, Ledger as _, Status};
use raingauge_ports::contract::campaigns::{budget_change, budget_key, cost};
use std::sync::Arc;
use std::time::Duration;

fn of_campaign(campaign: u32, number: u32) -> Delivery {
    Delivery { campaign, ..delivery("a", number, 0) }
}

fn paused(campaigns: &[u32]) -> Arc<StoppedCampaigns> {
    let paused = campaigns.iter().copied().collect();
    Arc::new(StoppedCampaigns { paused, ..StoppedCampaigns::default() })
}

#[tokio::test(start_paused = true)]
async fn a_paused_campaign_is_held_and_a_resumed_one_released() {
    let bench = Bench::start(vec![destination("a")], always(200));
    bench.stopped.send_replace(paused(&[7, 8]));
    bench.commit(vec![of_campaign(7, 1), of_campaign(8, 2), of_campaign(9, 3)]);
    bench.until_status(3, Status::Delivered).await;
    bench.until_status(1, Status::Held).await;
    bench.until_status(2, Status::Held).await;
    assert_eq!(bench.receiver.len(), 1);

    bench.stopped.send_replace(paused(&[8]));
    bench.until_status(1, Status::Delivered).await;
    assert_eq!(bench.status(2).await, Status::Held);
    assert_eq!(bench.record(1).await.tries, 1);
}

/// The pause takes effect in the middle of many deliveries, and ends before its results are stored.
#[tokio::test(start_paused = true)]
async fn short_pauses_lose_nothing() {
    let one = Concurrency { min: 1, max: 1 };
    let bench =
        Bench::start(vec![Destination { concurrency: one, ..destination("a") }], always(200));
    bench.commit((0..300).map(|number| of_campaign(7, number)).collect());
    for step in 0..40 {
        bench.pass(Duration::from_millis(step % 7)).await;
        bench.stopped.send_replace(paused(&[7]));
        bench.pass(Duration::from_millis(step % 3)).await;
        bench.stopped.send_replace(paused(&[]));
    }
    until("all have arrived", async || bench.receiver.len() >= 300).await;
    bench.deliveries.stop().await;
    assert_eq!(bench.receiver.len(), 300, "each of them once");
}

#[tokio::test(start_paused = true)]
async fn what_was_resumed_while_nothing_ran_is_released() {
    let bench = Bench::start(vec![destination("a")], always(200));
    bench.stopped.send_replace(paused(&[7, 8]));
    bench.commit(vec![of_campaign(7, 1), of_campaign(8, 2)]);
    bench.until_status(2, Status::Held).await;
    bench.deliveries.stop().await;

    let stopped = paused(&[8]);
    let destinations = vec![destination("a")];
    let next = Bench::with(bench.ledger, destinations, always(200), |ledger, log| (ledger, log));
    next.stopped.send_replace(stopped);
    next.until_status(1, Status::Delivered).await;
}

#[tokio::test(start_paused = true)]
async fn an_archived_campaign_is_cancelled_and_refunded() {
    let bench = Bench::start(vec![destination("a")], always(500));
    let costly = |number| Delivery { cost: Some(cost(100)), ..of_campaign(7, number) };
    raingauge_ports::contract::campaigns::commit_to(&*bench.ledger, |commit| {
        commit.budgets = vec![budget_change(1_000, 200)];
        commit.deliveries = vec![costly(1), Delivery { due_ms: i64::MAX / 2, ..costly(2) }];
    });
    until("the first one has failed", async || bench.record(1).await.tries == 1).await;

    let archived = StoppedCampaigns { archived: [7].into(), ..StoppedCampaigns::default() };
    bench.stopped.send_replace(Arc::new(archived));
    bench.until_status(1, Status::Cancelled).await;
    bench.until_status(2, Status::Cancelled).await;
    assert_eq!(bench.ledger.budgets(&[budget_key()]).expect("budgets")[0].reserved, 0);

    // What reaches the outbox later is refused.
    bench.commit(vec![of_campaign(7, 3)]);
    bench.until_status(3, Status::Refused).await;
    assert_eq!(bench.record(3).await.note, "its campaign is archived");
    assert_eq!(bench.receiver.len(), 1);
}
