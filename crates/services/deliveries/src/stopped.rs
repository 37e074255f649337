//! What becomes of deliveries when their campaigns are paused, resumed and archived.

use crate::documents::StoppedCampaigns;
use crate::shared::Shared;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{CampaignId, DeliveryQuery, Error, Selection, Status};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// Releases the deliveries of campaigns that are resumed, and cancels those of campaigns that are
/// archived, until it is stopped.
pub async fn run(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    tokio::select! {
        () = follow(&shared) => {}
        _ = stop.wait_for(|is_stopping| *is_stopping) => {}
    }
}

async fn follow(shared: &Shared) {
    let mut changes = shared.stopped.clone();
    let mut stopped = changes.borrow_and_update().clone();
    // Campaigns may have been resumed while nothing ran.
    let mut resumed = repeated(|| held(shared, &stopped)).await;
    let mut archived = BTreeSet::new();

    loop {
        for campaign in &resumed {
            repeated(|| release(shared, *campaign)).await;
        }
        for campaign in &archived {
            repeated(|| cancel(shared, *campaign)).await;
        }

        if changes.changed().await.is_err() {
            // Nothing is paused or resumed any more.
            return std::future::pending().await;
        }
        let before = std::mem::replace(&mut stopped, changes.borrow_and_update().clone());
        resumed = &before.paused - &stopped.paused;
        archived = &stopped.archived - &before.archived;
    }
}

/// Campaigns that are not paused and have deliveries that are held.
async fn held(shared: &Shared, stopped: &StoppedCampaigns) -> Result<BTreeSet<CampaignId>, Error> {
    let mut query = DeliveryQuery {
        status: Status::Held,
        destination: None,
        campaign: None,
        after: None,
        len_max: LEDGER_PAGE_LEN_MAX,
    };
    let mut found = BTreeSet::new();

    loop {
        let page = shared.outbox.list(query.clone()).await?;
        found.extend(page.records.iter().map(|record| record.delivery.campaign));
        query.after = page.next;
        if query.after.is_none() {
            return Ok(&found - &stopped.paused);
        }
    }
}

/// Releases a campaign, with results that are still on their way to the ledger.
async fn release(shared: &Shared, campaign: CampaignId) -> Result<(), Error> {
    shared.results.flush().await;
    while shared.outbox.release(campaign, shared.clock.now_ms()).await? > 0 {}
    Ok(())
}

/// Cancels what nobody is sending now. What is due later is refused when its turn comes.
async fn cancel(shared: &Shared, campaign: CampaignId) -> Result<(), Error> {
    shared.results.flush().await;
    let selection = Selection::All { destination: None, campaign: Some(campaign) };
    while shared.outbox.cancel(selection.clone(), shared.clock.now_ms()).await? > 0 {}
    Ok(())
}

/// Repeats work of the ledger until it succeeds.
async fn repeated<T, F>(mut work: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match work().await {
            Ok(done) => return done,
            Err(error) => {
                tracing::error!(%error, "deliveries of changed campaigns cannot be changed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
