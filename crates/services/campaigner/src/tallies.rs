//! Which tallies are kept, and which are to be filled from the log.

use crate::control::{Control, Owner, Walk};
use crate::documents::{Documents, begins_in_log, counted_since_ms};
use crate::handle::Warming;
use hashbrown::HashMap;
use raingauge_campaigns::campaign::{Campaign, CampaignId};
use raingauge_campaigns::engine::tally_owner;
use raingauge_ports::log::{EventLog, Offset};
use std::collections::{BTreeMap, BTreeSet};

/// Events may be appended this much before the time that they carry, by clocks that differ.
const CLOCKS_MS: i64 = 86_400_000;

/// How many campaigns keep each tally.
#[derive(Clone, Debug, Default)]
pub struct Tallies(HashMap<u128, usize>);

/// The place in the log at which documents take effect.
#[derive(Clone, Copy)]
pub struct Effect<'e> {
    pub log: &'e dyn EventLog,
    pub offset: Offset,
    pub log_ms: i64,
}

/// The owners of the tallies that a campaign keeps.
pub fn owners_of(campaign: &Campaign) -> impl Iterator<Item = u128> {
    let counts = campaign.counts.values().filter(|_| campaign.state.counts());
    let owners: BTreeSet<u128> = counts.filter_map(|count| tally_owner(campaign, count)).collect();
    owners.into_iter()
}

impl Tallies {
    pub fn of(documents: &Documents) -> Self {
        let mut tallies = Self::default();
        for owner in documents.campaigns().flat_map(owners_of) {
            *tallies.0.entry(owner).or_insert(0) += 1;
        }
        tallies
    }

    /// Goes from one version of a campaign to the next. Tallies that begin are put into a walk
    /// where their history matters, and those that end will never be continued.
    pub fn change(
        &mut self,
        control: &mut Control,
        (before, after): (Option<&Campaign>, Option<&Campaign>),
        effect: Effect<'_>,
    ) {
        let old: Vec<u128> = before.into_iter().flat_map(owners_of).collect();
        let new: Vec<u128> = after.into_iter().flat_map(owners_of).collect();
        let begun: Vec<u128> =
            new.iter().copied().filter(|owner| !self.0.contains_key(owner)).collect();
        for owner in new {
            *self.0.entry(owner).or_insert(0) += 1;
        }
        for owner in old {
            if let Some(keepers) = self.0.get_mut(&owner) {
                *keepers -= 1;
                if *keepers == 0 {
                    self.0.remove(&owner);
                    give_up(control, owner);
                }
            }
        }

        if let Some(campaign) = after {
            fill(control, campaign, &begun, effect);
        }
    }
}

/// What was counted is not continued: the tally begins again, if it ever comes back.
fn give_up(control: &mut Control, owner: u128) {
    control.obsolete.insert(Owner(control.stored_owner(owner)));
    *control.generations.entry(Owner(owner)).or_insert(0) += 1;
    for walk in &mut control.walks {
        walk.tallies.remove(&Owner(owner));
    }
    control.walks.retain(|walk| !walk.tallies.is_empty());
}

/// Puts tallies whose history matters into the walk that begins next.
fn fill(control: &mut Control, campaign: &Campaign, begun: &[u128], effect: Effect<'_>) {
    let Effect { log, offset, log_ms } = effect;
    let mut since_ms = i64::MAX;
    let mut tallies = BTreeMap::new();
    for count in campaign.counts.values().filter(|count| begins_in_log(campaign, count, log_ms)) {
        if let Some(owner) = tally_owner(campaign, count).filter(|owner| begun.contains(owner)) {
            since_ms = since_ms.min(counted_since_ms(campaign, count, log_ms));
            tallies.insert(Owner(owner), offset);
        }
    }

    let start = log.start();
    let next = log.begin_since(since_ms.saturating_sub(CLOCKS_MS)).max(start);
    if tallies.is_empty() || next >= offset {
        return;
    }
    let is_missing = next == start && log.start_ms() > since_ms;
    let covered_from_ms = if is_missing { log.start_ms() } else { 0 };
    match control.walks.last_mut() {
        Some(walk) if !walk.has_begun => {
            walk.next = walk.next.min(next);
            walk.covered_from_ms = walk.covered_from_ms.max(covered_from_ms);
            walk.tallies.extend(tallies);
        }
        _ => control.walks.push(Walk { next, has_begun: false, covered_from_ms, tallies }),
    }
}

/// The campaigns whose tallies are still filled.
pub fn warming(control: &Control, documents: &Documents) -> BTreeMap<CampaignId, Warming> {
    if control.walks.is_empty() {
        return BTreeMap::new();
    }
    let of_campaign = |campaign: &Campaign| {
        let own: Vec<u128> = owners_of(campaign).collect();
        let includes =
            |walk: &&Walk| own.iter().any(|owner| walk.tallies.contains_key(&Owner(*owner)));
        // A later walk begins where its tallies want it, once the earlier ones have ended.
        let walk = control.walks.iter().rfind(includes)?;
        let warming =
            Warming { next: walk.next, until: walk.until(), covered_from_ms: walk.covered_from_ms };
        Some((campaign.id, warming))
    };
    documents.campaigns().filter_map(of_campaign).collect()
}
