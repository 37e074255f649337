//! Failures of disks, files and clocks, one case at a time.

use super::*;
use crate::files::simulated::{Disk, Fault as DiskFault};
use std::collections::BTreeMap;

/// A segment with one event, and its run, as version 1 wrote them.
const SEGMENT_1: &str = "5241494e4c4f47310000000000000000524742316e4acb1d2e00000001000000000000000000000040420f00000000002a000000006aea0f2692010000cfad17702110924a9e45534e8c36a660010001000100ffff020000003773747b7d";
const RUN_1: &str = "5241494e4944533101000000000000000000000000000000010000000000000040420f000000000053ea51ebcfad17702110924a9e45534e8c36a660";

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn picture(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn trusting(now_s: i64) -> Arc<LogClock> {
    Arc::new(LogClock::trusting(Arc::new(ManualClock::at_s(now_s))))
}

fn on(disk: &Disk) -> SegmentLog {
    Inspection::of(Arc::new(disk.clone()), Options::default())
        .unwrap()
        .open(0, trusting(1_000))
        .unwrap()
}

#[tokio::test]
async fn a_log_of_version_1_still_opens_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let small = Options { segment_bytes: 1, ..Options::default() };
    std::fs::write(folder.path().join("00000000000000000000.log"), bytes_of(SEGMENT_1)).unwrap();
    let log = open_with(folder.path(), small.clone(), 2_000).unwrap();
    assert_eq!(texts(&log, 0), ["7"]);
    assert_eq!(append(&log, &["7", "8"]).await.duplicates, 1);
    drop(log);

    std::fs::write(folder.path().join("ids-00000000000000000000.run"), bytes_of(RUN_1)).unwrap();
    let log = open_with(folder.path(), small, 2_000).unwrap();
    assert_eq!(append(&log, &["7", "8", "9"]).await.duplicates, 2);
    assert_eq!(texts(&log, 0), ["7", "8", "9"]);
}

/// A wrong bit, a log that is shorter than the store, a log that is shorter than its mark.
#[tokio::test]
async fn a_start_that_is_refused_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    {
        let log = open(folder.path()).unwrap();
        append(&log, &["a", "b"]).await;
        append(&log, &["c"]).await;
    }

    let path = segment_files(folder.path()).remove(0);
    let sound = std::fs::read(&path).unwrap();
    let mut damaged = sound.clone();
    damaged[sound.len() - 3] ^= 1;
    std::fs::write(folder.path().join("ids-00000000000000000000.unfinished"), "half").unwrap();

    let torn = [&sound[..], b"RGB1 torn"].concat();
    for (bytes, applied_to) in [(&damaged, 0), (&sound[..sound.len() - 1].to_vec(), 0), (&torn, 4)]
    {
        std::fs::write(&path, bytes).unwrap();
        let before = picture(folder.path());
        let inspected = SegmentLog::inspect(folder.path(), Options::default());
        let refused = inspected.and_then(|inspection| inspection.open(applied_to, trusting(1_000)));
        let reason = refused.map(|_| ()).unwrap_err().to_string();

        assert!(reason.contains("raingauge repair"), "{reason}");
        assert_eq!(picture(folder.path()), before);
    }

    std::fs::write(&path, sound).unwrap();
    assert_eq!(texts(&open(folder.path()).unwrap(), 0), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_second_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path()).unwrap();
    let reason = open(folder.path()).map(|_| ()).unwrap_err().to_string();
    assert!(reason.contains("another process"), "{reason}");
    drop(log);
    assert!(open(folder.path()).is_ok());
}

/// Bytes of an event that form a block in version 1 do not form one behind a torn tail of version
/// 2.
#[tokio::test]
async fn an_event_cannot_pass_for_a_block() {
    let folder = tempfile::tempdir().unwrap();
    {
        let log = open(folder.path()).unwrap();
        append(&log, &["first"]).await;

        // The forged block claims the offset behind itself, the newest time and a checksum without
        // a salt, in ASCII.
        let forged = (0..u32::MAX).map(forged_block).find(|block| block[4..8].is_ascii()).unwrap();
        append(&log, &[std::str::from_utf8(&forged).unwrap()]).await;
    }

    let path = segment_files(folder.path()).remove(0);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();

    // As after a power cut, when the mark is old.
    std::fs::remove_file(folder.path().join("acknowledged")).unwrap();
    assert_eq!(texts(&open(folder.path()).unwrap(), 0), ["first"]);
}

fn forged_block(variant: u32) -> Vec<u8> {
    let mut block = b"RGB1....".to_vec();
    block.extend_from_slice(&8_u32.to_le_bytes());
    block.extend_from_slice(&1_u32.to_le_bytes());
    block.extend_from_slice(&2_u64.to_le_bytes());
    block.extend_from_slice(&(0x7f_i64 << 40).to_le_bytes());
    block.extend_from_slice(format!("{:08}", variant % 100_000_000).as_bytes());
    let crc = crc32c::crc32c(&block[8..]);
    block[4..8].copy_from_slice(&crc.to_le_bytes());
    block
}

#[tokio::test]
async fn a_full_disk_heals_when_there_is_room_again() {
    let disk = Disk::new(7);
    let log = on(&disk);
    append(&log, &["a"]).await;
    disk.fail_after(0, DiskFault::Full);
    assert_eq!(append(&log, &["b"]).await.accepted, 1, "zeros ahead of it made room");

    let long: Vec<String> = (0..40).map(|number| format!("{number:09000}")).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    for _ in 0..3 {
        let refused = log.append(batch(&long)).await;
        assert!(matches!(refused, Err(Error::NotTaken(_))), "{refused:?}");
    }
    disk.relieve();
    let appended = append(&log, &long).await;
    assert_eq!((appended.accepted, appended.duplicates), (40, 0), "what was refused is not known");
    assert_eq!(texts(&log, 0), [&["a", "b"], &long[..]].concat());
}

/// Small blocks lie in a file that is longer than the log. Only the last segment has zeros behind
/// its blocks, and none once the log is closed.
#[tokio::test]
async fn small_blocks_are_written_over_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let lens = || {
        let paths = segment_files(folder.path());
        paths.iter().map(|path| std::fs::read(path).unwrap().len()).collect::<Vec<_>>()
    };
    let options = Options { segment_bytes: 400_000, ..Options::default() };
    let log = open_with(folder.path(), options.clone(), 1_000).unwrap();
    let mut expected = Vec::new();
    let mut seen = Vec::new();
    while lens().len() < 3 {
        expected.push(format!("{:09000}", expected.len()));
        append(&log, &[expected.last().unwrap()]).await;
        seen.extend(lens().last().copied());
    }
    seen.dedup();
    let room = 256 * 1_024;
    assert!(seen[0] > room && seen.len() < 2 * 4, "the last file grows in large steps: {seen:?}");

    let files = lens();
    assert!((400_000..410_000).contains(&files[1]), "{files:?}");
    assert!(files[2] > room, "{files:?}");
    drop(log);
    assert!(lens()[2] < 10_000, "one block is in the last one: {:?}", lens());
    assert_eq!(texts(&open_with(folder.path(), options, 1_000).unwrap(), 0), expected);
}

#[tokio::test]
async fn a_segment_that_cannot_be_begun_does_not_close_the_log() {
    let disk = Disk::new(7);
    let options = Options { segment_bytes: 1, ..Options::default() };
    let log =
        Inspection::of(Arc::new(disk.clone()), options).unwrap().open(0, trusting(1_000)).unwrap();
    append(&log, &["a"]).await;
    disk.fail_after(0, DiskFault::NoHandles);
    assert!(matches!(log.append(batch(&["b"])).await, Err(Error::NotTaken(_))));
    disk.relieve();
    assert_eq!(append(&log, &["b"]).await.accepted, 1);
}

/// A failed sync, or a defect, closes the log and notifies the process. A restart finds everything.
#[tokio::test]
async fn a_log_that_fails_is_closed_and_says_so() {
    for fault in [DiskFault::SyncFails, DiskFault::Panics] {
        let disk = Disk::new(7);
        let log = on(&disk);
        append(&log, &["a"]).await;
        disk.fail_after(0, fault);
        assert!(matches!(log.append(batch(&["b"])).await, Err(Error::Closed(_))));

        while log.check().is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(log.check(), Err(Error::Closed(_))));
        assert!(matches!(log.append(batch(&["c"])).await, Err(Error::Closed(_))));
        drop(log);

        disk.cut_power();
        let log = on(&disk);
        append(&log, &["b"]).await;
        assert_eq!(texts(&log, 0), ["a", "b"]);
    }
}

#[tokio::test]
async fn a_segment_that_is_gone_does_not_keep_others_from_being_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { segment_bytes: 1, dedupe_ids_max: 2, retention_bytes: 200, ..Options::default() };
    let log = open_with(folder.path(), options, 1_000).unwrap();
    for id in ["a", "b", "c", "d", "e", "f"] {
        append(&log, &[id]).await;
    }
    std::fs::remove_file(&segment_files(folder.path())[0]).unwrap();
    log.trim(Needs::of_counting(Offset::MAX)).unwrap();
    assert!(log.start() > 1, "it begins at {}", log.start());
    assert_eq!(segment_files(folder.path()).len() as u64, log.end() - log.start());
}

/// Damage to entries that are counted and forgotten is skipped; the same damage is refused while
/// the dedupe window needs them.
#[tokio::test]
async fn damage_that_concerns_nobody_does_not_refuse_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 1, ..Options::default() };
    {
        let clock = Arc::new(ManualClock::at_s(1_000));
        let log =
            SegmentLog::open(folder.path(), options.clone(), Arc::clone(&clock) as Arc<dyn Clock>)
                .unwrap();

        for day in 0..3 {
            clock.set_s(1_000 + day * DAY_S);
            append(&log, &[&format!("day-{day}")]).await;
        }
    }

    let oldest = segment_files(folder.path()).remove(0);
    let mut bytes = std::fs::read(&oldest).unwrap();
    bytes[60] ^= 1;
    std::fs::write(&oldest, bytes).unwrap();

    let start = |applied_to, days| {
        let inspection = SegmentLog::inspect(folder.path(), options.clone()).unwrap();
        inspection.open(applied_to, trusting(1_000 + days * DAY_S))
    };
    assert!(start(0, 3).is_err(), "it was not counted");

    let log = start(3, 3).unwrap();
    assert_eq!(append(&log, &["day-2", "new"]).await.duplicates, 1);
    assert!(log.read(0, 1).is_err(), "it is still damaged");
}

#[test]
fn a_group_ends_before_its_block_is_too_long() {
    let mut waiting = appender::Waiting::default();
    for len in [60, 60, 10] {
        waiting.push(Request::Control(vec![0; len]));
    }
    assert_eq!([100, 100, 100].map(|bytes_max| waiting.take_group(bytes_max).len()), [1, 1, 1]);
    waiting.push(Request::Control(vec![0; 60]));
    waiting.push(Request::Control(vec![0; 60]));
    assert_eq!(waiting.take_group(1_000).len(), 2);
}

/// The log lost its end and is shorter than what was counted: it continues behind that.
#[tokio::test]
async fn a_lost_end_can_be_accepted() {
    let folder = tempfile::tempdir().unwrap();
    {
        let log = open(folder.path()).unwrap();
        append(&log, &["a"]).await;
        append(&log, &["b", "c"]).await;
    }

    let path = segment_files(folder.path()).remove(0);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();

    let examine = || Repair::examine(folder.path(), 3, 1_000_000).unwrap();
    assert_eq!(examine().faults(), [Fault::Lost { from: 1, to: 3 }]);

    let before = picture(folder.path());
    assert!(examine().apply(Allowed::default()).unwrap());
    assert_eq!(picture(folder.path()), before, "nothing was allowed");

    assert!(!examine().apply(Allowed { loss: true, restamp: false }).unwrap());
    assert_eq!(examine().faults(), []);

    let log = SegmentLog::inspect(folder.path(), Options::default())
        .unwrap()
        .open(3, trusting(1_000))
        .unwrap();
    assert_eq!((log.end(), texts(&log, 0)), (3, vec!["a".to_owned()]));
    assert_eq!(append(&log, &["a", "d"]).await.duplicates, 1);

    assert_eq!(
        (texts(&log, 0), texts(&log, 2)),
        (vec!["a".to_owned(), "d".to_owned()], vec!["d".to_owned()])
    );
}

/// Blocks in the middle of segments of both versions are damaged; their surroundings stay.
#[tokio::test]
async fn damage_in_the_middle_can_be_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("00000000000000000000.log");
    std::fs::write(&first, bytes_of(SEGMENT_1)).unwrap();
    {
        let log =
            open_with(folder.path(), Options { segment_bytes: 600, ..Options::default() }, 2_000)
                .unwrap();
        for id in 0..20 {
            append(&log, &[&format!("id-{id}")]).await;
        }
    }

    let files = segment_files(folder.path());
    assert!(files.len() > 3);

    for path in &files[1..3] {
        let mut bytes = std::fs::read(path).unwrap();
        let block =
            bytes.windows(4).enumerate().filter(|(_, bytes)| bytes == b"RGB1").nth(1).unwrap().0;
        bytes[block + 40] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }

    assert!(open_with(folder.path(), Options::default(), 2_000).is_err());
    let repair = Repair::examine(folder.path(), 0, 3_000_000).unwrap();
    let lost: u64 = repair
        .faults()
        .iter()
        .map(|fault| if let Fault::Lost { from, to } = fault { to - from } else { 0 })
        .sum();

    assert_eq!(lost, 2, "{:?}", repair.faults());
    assert!(!repair.apply(Allowed { loss: true, restamp: false }).unwrap());

    let log = open_with(folder.path(), Options::default(), 2_000).unwrap();
    assert_eq!((texts(&log, 0).len(), log.end()), (19, 21));

    for from in 0..21 {
        assert!(
            log.read(from, 1).unwrap()[0].end() > from,
            "reading from {from} goes on behind what is lost"
        );
    }
}

#[tokio::test]
async fn entries_from_the_future_can_be_redated() {
    let folder = tempfile::tempdir().unwrap();
    {
        append(&open_with(folder.path(), Options::default(), 1_000).unwrap(), &["now"]).await;
        append(&open_with(folder.path(), Options::default(), 500 * DAY_S).unwrap(), &["future"])
            .await;
    }

    let repair = || Repair::examine(folder.path(), 2, 2_000_000).unwrap();
    assert_eq!(
        repair().faults(),
        [Fault::Future { from: 1, to: 2, newest_ms: 500 * DAY_S * 1_000 }]
    );
    {
        let poisoned = open_with(folder.path(), Options::default(), 2_000).unwrap();
        assert!(matches!(poisoned.append(batch(&["refused"])).await, Err(Error::ClockUnsound(_))));
        assert!(
            poisoned.check().is_err_and(|refusal| refusal.to_string().contains("raingauge repair"))
        );
    }
    assert!(!repair().apply(Allowed { loss: false, restamp: true }).unwrap());

    let log = open_with(folder.path(), Options::default(), 2_000).unwrap();
    assert_eq!(append(&log, &["future", "later"]).await.duplicates, 1);
    assert!(contract::blocks(&log, 0).iter().all(|block| block.appended_ms <= 2_000_000));
}

/// The runs detect a replay of old events before it enters the queue. When a run is unreadable,
/// that refuses this request and no other.
#[tokio::test]
async fn replays_are_looked_up_outside_the_queue() {
    let disk = Disk::new(7);
    let options = Options { dedupe_set_ids: 10, ..Options::default() };
    let inspection = Inspection::of(Arc::new(disk.clone()), options).unwrap();
    let log = inspection.open(0, trusting(1_000)).unwrap();
    let ids: Vec<String> = (0..300).map(|number| format!("id-{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for chunk in ids.chunks(10) {
        append(&log, chunk).await;
    }
    assert!(log.runs.now().to() > 200, "this test goes over runs");

    for (replayed, count) in [(&ids[..20], 20), (&ids[..], 300)] {
        assert_eq!(append(&log, replayed).await.duplicates, count);
    }

    // The last set may still be on its way to the disk, and hit the first fault.
    let mut is_refused = false;
    for _ in 0..3 {
        disk.fail_after(0, DiskFault::CallFails);
        is_refused |= matches!(log.append(batch(&ids[..20])).await, Err(Error::NotTaken(_)));
    }

    assert!(is_refused, "a run could not be read");
    disk.relieve();
    assert_eq!(append(&log, &["id-0", "new"]).await.duplicates, 1);
}
