//! Bytes that stay what they are: a journal of version 1, and what follows from it.

use super::*;
use raingauge_points::Kind;

/// A segment: an award of 180 points to bob with the reference `o-1`, paid by a budget, and 30
/// points that he burns.
const SEGMENT: &str = "5241494e424f4f4b00000000000000000000000000000000e98b1dac2b94a0170686b66552424b31\
    a2429e991601000002000000000000000000000000e433a59b0100004d0000000000000000000000\
    00000000000000000000000000000000000000000000000000000000a65e74ca82bda251ee3f585f\
    8667fa1fbe3df2e7f8640967ac2211a8f26d95f86d0000000102c741000180909fd3f46600047368\
    6f7003626f6201e8020001f2c2020180a31e02040863616d706169676ee7020001e802c6412ec9a8\
    02b7d0351aff3fdf30cbdd076f726465722d310071cb918f68d648d5036f2d310001f2c20200debf\
    02010863616d706169676ee80259000000010443000280909fd3f466000473686f7003626f6202ac\
    020001f2c2020180a31e0200013b050764656661756c743c876d540be05d8fc056a61b01fe48d33e\
    066275726e2d31007e824b88b97b7ac401f2c20201f2c202e802";

/// The records, by key.
const RECORDS: [(&str, &str); 11] = [
    ("0173686f7000626f62", "010002020180a31e00000001debf0201f2c2020101ac020000000000"),
    ("02876d540be05d8fc056a61b01fe48d33e", "02000000000000000101000059000000328669d2"),
    ("02c6412ec9a802b7d0351aff3fdf30cbdd", "0100000000000000900000006d000000be0221ae"),
    ("030007918073686f7000626f62", ""),
    (
        "0473686f7000626f62006f2d31",
        "03010001f388ec2f2d2dfc30000863616d706169676ee8020000000000000101000180909fd3f4660000",
    ),
    ("0573686f70006275726e65643a64656661756c74", "1e000000000000000000000000000000"),
    ("0573686f70006973737565643a63616d706169676e", "4cffffffffffffffffffffffffffffff"),
    ("0573686f70006f75747374616e64696e673a323032362d3037", "96000000000000000000000000000000"),
    ("0673686f700063616d706169676e", "b400000000000000"),
    ("0773686f7000626f62000000000000000001", "0100000000000000900000006d000000be0221ae"),
    ("0773686f7000626f62000000000000000002", "02000000000000000101000059000000328669d2"),
];
const HEAD: &str = "01020000000000000000e433a59b010000a65e74ca82bda251ee3f585f8667fa1fbe3df2e7f86409\
    67ac2211a8f26d95f8";

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_journal_of_version_1_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join(JOURNAL_FOLDER);
    std::fs::create_dir(&journal).unwrap();
    std::fs::write(journal.join("00000000000000000000.book"), bytes_of(SEGMENT)).unwrap();

    let books = open(folder.path()).unwrap();
    let head = books.head(0).unwrap();
    assert_eq!((head.sequence, head.recorded_ms, head.position), (2, contract::NOW_MS, 77));
    let entries = books.read(0, 1, usize::MAX).unwrap();
    let row = |entry: &Arc<Entry>| (entry.kind, entry.points(), entry.balance_after);
    let rows: Vec<_> = entries.iter().map(row).collect();
    assert_eq!(rows, [(Kind::Bonus, 180, 180), (Kind::Burn, -30, 150)]);
    assert_eq!(entries[0].reference.as_deref(), Some("o-1"));

    // The records are those that version 1 would have made, but for that of the reference: it is of
    // a newer version, which says what each award is one of, and since when it could be spent.
    books.inner.records.write_all().unwrap();
    let records = books.inner.records.written();
    let mut found = Vec::new();
    let visited = records.scan(keys::all(), false, &mut |key, value| {
        found.push((hex(key), hex(value)));
        Ok(ControlFlow::Continue(()))
    });
    visited.unwrap();
    assert_eq!(found, RECORDS.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(hex(&records.get(&keys::HEAD).unwrap().unwrap()), HEAD);
}

/// A record of version 2, which does not say since when points could be spent.
#[test]
fn a_reference_of_version_2_is_what_follows_from_the_journal() {
    const RECORD: &str = "02010001f388ec2f2d2dfc30000863616d706169676ee8020000000000000101000000";
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join(JOURNAL_FOLDER);
    std::fs::create_dir(&journal).unwrap();
    std::fs::write(journal.join("00000000000000000000.book"), bytes_of(SEGMENT)).unwrap();
    drop(open(folder.path()).unwrap());

    let (key, newest) = RECORDS[4];
    let write = |record: &str| {
        let store = open_records(&folder.path().join(STATE_FOLDER), &options()).unwrap();
        let record = bytes_of(record);
        store.written().write_tables(&mut |take| take(&bytes_of(key), Some(&record))).unwrap();
    };
    write(RECORD);
    assert!(verified(folder.path()).is_ok());
    // Other points are a difference in each version.
    for record in [RECORD, newest] {
        write(&record.replacen("2d2d", "2d2e", 1));
        let difference = verified(folder.path()).unwrap_err();
        assert_eq!(difference.record, keys::description(&bytes_of(key)));
    }
}
