use super::*;
use raingauge_ports::campaigns::limits::{LEDGER_PAGE_LEN_MAX, LEDGER_SCAN_MAX};
use raingauge_ports::campaigns::{
    DecisionQuery, DeliveryQuery, Horizons, Ledger, LedgerReader, LedgerRetention, Outbox,
    Selection, Settled, Settlement, Status,
};
use raingauge_ports::contract::campaigns as contract;
use std::cell::Cell;

mod faults;

const NOW_MS: i64 = 1_727_136_000_000;

fn options(cache_bytes: usize) -> Options {
    Options { cache_bytes, block_cache_bytes: 1 << 20, ..Options::default() }
}

fn open(folder: &Path) -> CampaignLedger {
    CampaignLedger::open(folder, &options(1 << 20)).unwrap()
}

/// An id that no other number has.
fn action(number: u32) -> ActionId {
    ActionId((u128::from(number) << 64).to_be_bytes())
}

#[tokio::test]
async fn the_contract_is_kept() {
    for cache_bytes in [0, 1 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let number = Cell::new(0);
        let fresh = || {
            number.set(number.get() + 1);
            let folder = folder.path().join(number.get().to_string());
            CampaignLedger::open(&folder, &options(cache_bytes)).unwrap()
        };
        contract::suite(fresh).await;
    }
}

/// What is committed is there, and what was being sent is pending again.
#[tokio::test]
async fn a_ledger_that_was_closed_goes_on_from_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let committed = contract::commit_to(&ledger, |commit| {
        commit.control = Some(b"control".to_vec());
        commit.states = vec![(contract::state_key("u-7"), Some(b"3".to_vec()))];
        commit.decisions = vec![contract::decision(1, 0)];
        commit.timers = vec![contract::timer(2, 0)];
        commit.deliveries = vec![contract::delivery(1, 0)];
    });
    assert_eq!(ledger.take("messages", NOW_MS, 9).await.unwrap().len(), 1);
    let second = CampaignLedger::open(folder.path(), &options(0));
    assert!(matches!(second, Err(Error::Locked)));
    drop(ledger);

    let ledger = open(folder.path());
    let checkpoint = ledger.take_over().unwrap();
    assert_eq!(checkpoint.epoch, committed.epoch + 1);
    assert_eq!((checkpoint.position, checkpoint.log_ms), (committed.position, committed.log_ms));
    assert_eq!(checkpoint.control, b"control");
    assert_eq!(ledger.load(&[contract::state_key("u-7")]), Ok(vec![Some(b"3".to_vec())]));
    assert_eq!(ledger.known(&[contract::action(1)]), Ok(vec![true]));
    assert_eq!(ledger.due(NOW_MS, 9), Ok(vec![contract::timer(2, 0)]));
    let again = ledger.take("messages", NOW_MS, 9).await.unwrap();
    assert_eq!(again, [contract::delivery(1, 0)]);
}

#[test]
fn formats_that_are_newer_or_damaged_are_refused() {
    let refused = |key: &[u8], value: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let ledger = open(folder.path());
        contract::commit_to(&ledger, |commit| commit.timers = vec![contract::timer(2, 0)]);
        let store = &ledger.inner.store;
        store.keyspace.insert(key, value).unwrap();
        store.database.persist(fjall::PersistMode::SyncAll).unwrap();
        drop(ledger);
        let opened = CampaignLedger::open(folder.path(), &options(1 << 20));
        let due = opened.and_then(|ledger| ledger.due(NOW_MS, 9));
        matches!(due, Err(Error::Corrupt(why)) if why.contains("newer") || why.contains("program"))
    };

    assert!(refused(b"\0format", &2_u32.to_le_bytes()));
    assert!(refused(keys::CHECKPOINT, &[2; 25]));
    assert!(refused(keys::CHECKPOINT, &[1; 24]));
    let timer = keys::timer(NOW_MS, contract::action(2));
    assert!(refused(&timer, &[2, 0, 0, 0]));
    assert!(!refused(&timer, &contract::timer(2, 0).to_bytes()));
}

/// A table with a flipped byte leads to errors, not to other values.
#[tokio::test]
async fn damage_to_a_table_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    contract::commit_to(&ledger, |commit| {
        commit.decisions = (1..100).map(|number| contract::decision(number, 0)).collect();
    });
    ledger.inner.store.keyspace.rotate_memtable_and_wait().unwrap();
    drop(ledger);

    let tables = std::fs::read_dir(folder.path().join("keyspaces")).unwrap();
    let tables = tables.map(|entry| entry.unwrap().path().join("tables"));
    let mut damaged = 0;
    for entry in tables.filter(|folder| folder.is_dir()).flat_map(|it| it.read_dir().unwrap()) {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[1_000..1_100].fill(7);
        std::fs::write(&path, bytes).unwrap();
        damaged += 1;
    }
    assert!(damaged > 0);

    let Ok(ledger) = CampaignLedger::open(folder.path(), &options(1 << 20)) else {
        return;
    };
    let query = DecisionQuery { len_max: 1_000, ..DecisionQuery::default() };
    let read = ledger.decisions(query).await;
    assert!(matches!(read, Err(Error::Corrupt(_) | Error::Io(_))), "{read:?}");
}

/// Below the reserve nothing is written, and the ledger goes on when there is room again.
#[tokio::test]
async fn a_disk_that_is_almost_full_refuses_commits_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let reserve = Options { reserve_bytes: 1 << 30, ..options(1 << 20) };
    let ledger = CampaignLedger::open(folder.path(), &reserve).unwrap();
    let room = &ledger.inner.room;
    room.pretend(1 << 30);
    let checkpoint = ledger.take_over().unwrap();
    let mut commit = contract::commit(&checkpoint);
    commit.states = vec![(contract::state_key("u-7"), Some(vec![1]))];
    commit.deliveries = vec![contract::delivery(1, 0)];

    room.pretend((1 << 30) - 1);
    let full = Error::Full { free_bytes: (1 << 30) - 1, reserve_bytes: 1 << 30 };
    assert_eq!(ledger.commit(commit.clone()), Err(full.clone()));
    assert_eq!(ledger.load(&[contract::state_key("u-7")]), Ok(vec![None]));

    room.pretend(1 << 30);
    ledger.commit(commit).unwrap();
    assert_eq!(ledger.take("messages", NOW_MS, 9).await.unwrap().len(), 1);
    let settled = Settled {
        action: contract::action(1),
        at_ms: NOW_MS,
        settlement: Settlement::Delivered,
        note: String::new(),
    };

    // A result that was not stored can be stored later.
    room.pretend(0);
    assert!(matches!(ledger.settle(vec![settled.clone()]).await, Err(Error::Full { .. })));
    room.pretend(1 << 30);
    ledger.settle(vec![settled]).await.unwrap();
    let status = ledger.get(contract::action(1)).await.unwrap().unwrap().status;
    assert_eq!(status, Status::Delivered);
}

#[tokio::test]
async fn a_call_reads_and_changes_a_bounded_number_of_records() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let records = LEDGER_SCAN_MAX as u32 + 10;
    contract::commit_to(&ledger, |commit| {
        commit.decisions = (0..records)
            .map(|number| Decision {
                action: action(number),
                outcome: if number < 5 { "rare" } else { "granted" }.to_owned(),
                ..contract::decision(1, number.into())
            })
            .collect();
        commit.deliveries = (0..LEDGER_PAGE_LEN_MAX as u32 + 500)
            .map(|number| Delivery { action: action(number), ..contract::delivery(1, 0) })
            .collect();
    });

    let rare = DecisionQuery {
        outcome: Some("rare".to_owned()),
        len_max: usize::MAX,
        ..DecisionQuery::default()
    };
    let page = ledger.decisions(rare.clone()).await.unwrap();
    assert!(page.decisions.is_empty() && page.next.is_some());
    let page = ledger.decisions(DecisionQuery { after: page.next, ..rare }).await.unwrap();
    assert_eq!((page.decisions.len(), page.next), (5, None));
    let all = DecisionQuery { len_max: usize::MAX, ..DecisionQuery::default() };
    assert_eq!(ledger.decisions(all).await.unwrap().decisions.len(), LEDGER_PAGE_LEN_MAX);

    let pending = DeliveryQuery {
        status: Status::Pending,
        destination: None,
        campaign: None,
        after: None,
        len_max: usize::MAX,
    };
    assert_eq!(ledger.list(pending).await.unwrap().records.len(), LEDGER_PAGE_LEN_MAX);
    let all = Selection::All { destination: None, campaign: None };
    for expected in [LEDGER_PAGE_LEN_MAX, 500, 0] {
        assert_eq!(ledger.cancel(all.clone(), NOW_MS).await, Ok(expected));
    }
}

/// A process that starts again examines what earlier ones have forgotten, and goes on.
#[test]
fn forgetting_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    contract::commit_to(&ledger, |commit| {
        commit.decisions =
            (1..=10).map(|number| contract::decision(number, number.into())).collect();
    });
    let horizons = |decisions: i64, actions: i64| Horizons {
        decisions_before_ms: NOW_MS + decisions,
        actions_before_ms: NOW_MS + actions,
        deliveries_before_ms: 0,
    };
    assert_eq!(ledger.expire(horizons(6, 0), 99), Ok(5));
    drop(ledger);

    let ledger = open(folder.path());
    let calls: Vec<_> = (0..6).map(|_| ledger.expire(horizons(9, 3), 2).unwrap()).collect();
    assert_eq!(calls.iter().sum::<usize>(), 3 + 2, "{calls:?}");
    let known = ledger.known(&(1..=10).map(contract::action).collect::<Vec<_>>()).unwrap();
    assert_eq!(known.iter().filter(|is_known| **is_known).count(), 8);
    assert!(!known[0] && !known[1]);

    // One that is decided late is forgotten as well.
    contract::commit_to(&ledger, |commit| commit.decisions = vec![contract::decision(11, 1)]);
    assert_eq!(ledger.expire(horizons(9, 3), 99), Ok(2));
}
