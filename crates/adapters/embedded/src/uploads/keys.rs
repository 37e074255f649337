//! Keys and values of uploaded tables. Numbers in keys are big-endian, those in values
//! little-endian.
//!
//! ```text
//! 0x00 "newest"              → the number of the newest version of any table u64
//! 0x01 name                  → 1 u8, version u64, rows u64, loaded_ms i64: what answers
//! 0x02 version u64           → the name of its table: it is being loaded, or removed
//! 0x03 version u64 │ key     → 1 u8, the columns in JSON: a row
//! ```

use raingauge_ports::campaigns::{TableRow, TableVersion};

pub const NEWEST: &[u8] = b"\0newest";
pub const TABLE: u8 = 1;
pub const OBSOLETE: u8 = 2;
const ROW: u8 = 3;
/// The version of the values.
const VALUE: u8 = 1;

pub fn table(name: &str) -> Vec<u8> {
    [&[TABLE], name.as_bytes()].concat()
}

pub fn obsolete(version: u64) -> Vec<u8> {
    [&[OBSOLETE], &version.to_be_bytes()[..]].concat()
}

pub fn obsolete_of(key: &[u8]) -> Option<u64> {
    let version = key.strip_prefix(&[OBSOLETE])?.try_into().ok()?;
    Some(u64::from_be_bytes(version))
}

/// The prefix of the rows of a version.
pub fn rows(version: u64) -> Vec<u8> {
    [&[ROW], &version.to_be_bytes()[..]].concat()
}

pub fn row(version: u64, key: &str) -> Vec<u8> {
    [&rows(version)[..], key.as_bytes()].concat()
}

pub fn version_bytes(version: &TableVersion) -> Vec<u8> {
    let TableVersion { version, rows, loaded_ms, .. } = version;
    [&[VALUE][..], &version.to_le_bytes(), &rows.to_le_bytes(), &loaded_ms.to_le_bytes()].concat()
}

pub fn version_of(key: &[u8], value: &[u8]) -> Option<TableVersion> {
    let name = String::from_utf8(key.strip_prefix(&[TABLE])?.to_vec()).ok()?;
    let ([version, rows, loaded_ms], []) = value.strip_prefix(&[VALUE])?.as_chunks::<8>() else {
        return None;
    };
    Some(TableVersion {
        name,
        version: u64::from_le_bytes(*version),
        rows: u64::from_le_bytes(*rows),
        loaded_ms: i64::from_le_bytes(*loaded_ms),
    })
}

pub fn row_bytes(row: &TableRow) -> Vec<u8> {
    let mut bytes = vec![VALUE];
    serde_json::to_writer(&mut bytes, row).expect("columns have a form in JSON");
    bytes
}

/// Whether a row has no columns, as those of segments.
pub fn is_empty_row(bytes: &[u8]) -> bool {
    bytes == [&[VALUE][..], b"{}"].concat()
}

pub fn row_of(bytes: &[u8]) -> Option<TableRow> {
    serde_json::from_slice(bytes.strip_prefix(&[VALUE])?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Every later version must be able to read existing folders.
    #[test]
    fn keys_and_values_are_laid_out_as_they_were_in_version_1() {
        let version = TableVersion { name: "us".to_owned(), version: 5, rows: 2, loaded_ms: 258 };
        let tier = json!({ "tier": "gold" }).as_object().unwrap().clone();
        for (bytes, expected) in [
            (table("us"), "017573"),
            (obsolete(5), "020000000000000005"),
            (row(5, "u"), "03000000000000000575"),
            (version_bytes(&version), "01050000000000000002000000000000000201000000000000"),
            (row_bytes(&tier), "017b2274696572223a22676f6c64227d"),
        ] {
            assert_eq!(hex(&bytes), expected);
        }

        assert_eq!(version_of(&table("us"), &version_bytes(&version)), Some(version));
        assert_eq!(obsolete_of(&obsolete(5)), Some(5));
        assert_eq!(row_of(&row_bytes(&tier)), Some(tier));
    }

    #[test]
    fn what_is_cut_short_or_newer_is_refused() {
        let version = TableVersion { name: String::new(), version: 5, rows: 2, loaded_ms: 0 };
        let bytes = version_bytes(&version);
        assert!((0..bytes.len()).all(|len| version_of(&table(""), &bytes[..len]).is_none()));
        assert_eq!(version_of(&table(""), &[&[2], &bytes[1..]].concat()), None);
        assert_eq!(row_of(b"\x02{}"), None);
        assert_eq!(row_of(b"\x01{\"tier\":"), None);
        assert_eq!(row_of(b""), None);
        assert_eq!(obsolete_of(&[OBSOLETE, 1]), None);
    }
}
