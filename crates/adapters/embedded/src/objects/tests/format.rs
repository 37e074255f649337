//! Records of version 1, byte by byte.

use super::super::groups;
use super::super::keys::{self, Anchor, DueKey, Head};
use super::*;
use raingauge_ports::objects::Effect;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn groups_have_the_form_of_version_1() {
    let key = Key::new(1, "k");
    let sub = Bytes::from_static(b"f");
    let effects = vec![
        Effect::PutHead {
            key: key.clone(),
            head: Bytes::from_static(b"head"),
            expires_ms: Some(2),
            wide: Some(3),
            old: Old::Unknown,
        },
        Effect::DropHead { key, old: Old::Present },
        Effect::PutEntry { database: 0, id: 3, sub: sub.clone(), value: Bytes::from_static(b"v") },
        Effect::DropEntry { database: 0, id: 3, sub },
        Effect::Kill { database: 0, id: 3 },
        Effect::Flush { database: 16 },
        Effect::Swap { a: 1, b: 2 },
    ];
    let group = Group { effects };
    let mut bytes = Vec::new();
    groups::push(&group, &mut bytes);

    let parts = [
        "53000000",
        "01",
        "01010e0100040000000200000000000000",
        "03000000000000006b68656164",
        "02010101006b",
        "03000300000000000000010001000000",
        "6676",
        "04000300000000000000010066",
        "05000300000000000000",
        "0610",
        "070102",
    ];
    assert_eq!(hex(&bytes), parts.concat());
    assert_eq!(groups::split(&mut Bytes::from(bytes)), Some(group));
}

#[test]
fn records_have_the_form_of_version_1() {
    let head = Head { bytes: Bytes::from_static(b"head"), expires_ms: Some(2), wide: Some(3) };
    let mut record = Vec::new();
    head.write(&mut record);
    assert_eq!(hex(&record), "030000000000000002000000000000000368656164");
    assert_eq!(hex(&keys::head(b"k")), "016b");
    assert_eq!(hex(&keys::entry(3, b"f")), "000000000000000366");
    assert_eq!(hex(&keys::dead(2, 3)), "03000000020000000000000003");

    let due = DueKey { due_ms: 1_024, generation: 2, name: Bytes::from_static(b"k") };
    assert_eq!(hex(&due.encode()), "028000000000000400000000026b");

    let mut anchor = Anchor { stamp: 5, next_id: 6, ..Anchor::first() };
    anchor.databases[0] = (17, 9);
    let encoded = hex(&anchor.encode());
    let head = "0000000000000005000000000000000600000011";
    assert!(encoded.starts_with(&format!("{head}000000110000000000000009")), "{encoded}");
    assert_eq!(encoded.len(), 2 * (20 + 17 * 12 + 17 * 8));
    let earlier = Anchor { expiring: None, ..anchor };
    assert_eq!(earlier.encode().len(), 20 + 17 * 12);
}

/// A log of version 1, as a process has left it.
#[tokio::test]
async fn a_log_of_version_1_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectFiles::open(folder.path(), &options()).expect("opened");
    let effects = vec![put("k", "v", Old::Absent)];
    let stamp = store.submit(Group { effects }).expect("taken");
    store.durable(stamp, Durability::Synced).await.expect("durable");
    drop(store);

    let path = folder.path().join(LOG_FOLDER).join("00000000000000000000.objects");
    let bytes = std::fs::read(path).expect("a segment");
    assert_eq!(&bytes[..8], b"RAINOBJS");
    assert_eq!(&bytes[36..40], b"ROB1");
    // One group behind stamp 0, written when nothing was synced.
    assert_eq!(hex(&bytes[48..60]), "010000000000000000000000");
    assert_eq!(hex(&bytes[68..]), "00000000000000000c000000010100000100010000006b76");
}
