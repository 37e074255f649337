//! Values of the ledger as bytes: a version, then the fields in order. Numbers are little-endian;
//! texts and bytes follow their length as u32.

use super::ActionId;

/// Writes the fields of a value.
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn new(version: u8) -> Self {
        Self(vec![version])
    }

    pub fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn i64(self, value: i64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    pub fn id(self, id: ActionId) -> Self {
        self.raw(&id.0)
    }

    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Lengths are checked when a commit is, and far below 4 GiB.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.u32(bytes.len() as u32).raw(bytes)
    }

    /// 0, or 1 and the fields of the value.
    pub fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => write(self.u8(1), value),
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Reads the fields of a value. Each method answers `None` if the bytes end too early.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// `None` if the value has another version.
    pub fn new(bytes: &'a [u8], version: u8) -> Option<Self> {
        let (found, rest) = bytes.split_first()?;
        (*found == version).then_some(Self(rest))
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.raw::<1>().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.raw().map(u32::from_le_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.raw().map(i64::from_le_bytes)
    }

    pub fn id(&mut self) -> Option<ActionId> {
        self.raw().map(ActionId)
    }

    pub fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.bool()? { read(self).map(Some) } else { Some(None) }
    }

    /// The value, unless bytes are left.
    pub fn finish<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }

    fn raw<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::campaigns::{
        ActionId, Budget, BudgetKey, Cost, Decision, Delivery, DeliveryRecord, Status, Timer,
    };
    use proptest::prelude::*;

    const ID: ActionId = ActionId([7; 16]);

    fn cost() -> Cost {
        let budget = BudgetKey { campaign: 7, name: "b".to_owned(), period: -1 };
        Cost { budget, amount: 500, is_refunded: true }
    }

    fn decision() -> Decision {
        Decision {
            action: ID,
            is_granted: true,
            campaign: 7,
            version: 2,
            step: "s".to_owned(),
            name: "n".to_owned(),
            subject: "u".to_owned(),
            source: "m".to_owned(),
            event: "o".to_owned(),
            event_ms: 1,
            decided_ms: 2,
            outcome: "granted".to_owned(),
            variant: Some("v".to_owned()),
            cost: Some(cost()),
            evidence: "{}".to_owned(),
        }
    }

    fn delivery() -> DeliveryRecord {
        let delivery = Delivery {
            action: ID,
            campaign: 7,
            subject: "u".to_owned(),
            destination: "d".to_owned(),
            due_ms: 3,
            cost: None,
            body: Vec::new(),
        };
        DeliveryRecord { delivery, status: Status::Dead, tries: 9, at_ms: 4, note: "x".to_owned() }
    }

    fn timer() -> Timer {
        Timer { due_ms: 5, action: ID, campaign: 7, subject: "u".to_owned(), body: vec![1, 2] }
    }

    const BUDGET: Budget = Budget { max: 3, reserved: 2, spent: 1 };

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Every later version must be able to read existing values.
    #[test]
    fn values_are_laid_out_as_they_were_in_version_1() {
        let values =
            [decision().to_bytes(), delivery().to_bytes(), timer().to_bytes(), BUDGET.to_bytes()];
        assert_eq!(values.each_ref().map(|bytes| hex(bytes)), FIXTURES);

        let [decided, delivered, timed, budget] = values;
        assert_eq!(Decision::from_bytes(&decided), Some(decision()));
        assert_eq!(DeliveryRecord::from_bytes(&delivered), Some(delivery()));
        assert_eq!(Timer::from_bytes(5, ID, &timed), Some(timer()));
        assert_eq!(Budget::from_bytes(&budget), Some(BUDGET));
    }

    #[test]
    fn what_is_cut_short_too_long_or_newer_is_refused() {
        let is_read = |bytes: &[u8]| {
            [
                Decision::from_bytes(bytes).is_some(),
                DeliveryRecord::from_bytes(bytes).is_some(),
                Timer::from_bytes(0, ID, bytes).is_some(),
                Budget::from_bytes(bytes).is_some(),
            ]
        };
        let values =
            [decision().to_bytes(), delivery().to_bytes(), timer().to_bytes(), BUDGET.to_bytes()];
        for (kind, bytes) in values.into_iter().enumerate() {
            assert!(is_read(&bytes)[kind]);
            assert!((0..bytes.len()).all(|len| !is_read(&bytes[..len])[kind]));
            assert!(!is_read(&[&bytes[..], &[0]].concat())[kind]);
            assert!(!is_read(&[&[2], &bytes[1..]].concat())[kind]);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            mut bytes in proptest::collection::vec(any::<u8>(), 1..90),
        ) {
            bytes[0] = 1;
            let _ = (Decision::from_bytes(&bytes), DeliveryRecord::from_bytes(&bytes));
            let _ = (Timer::from_bytes(0, ID, &bytes), Budget::from_bytes(&bytes));
        }
    }

    const FIXTURES: [&str; 4] = [
        "01070707070707070707070707070707070107000000020000000100000073010000006e010000007501\
         0000006d010000006f01000000000000000200000000000000070000006772616e746564010100000076\
         01070000000100000062fffffffffffffffff40100000000000001020000007b7d",
        "010707070707070707070707070707070707000000010000007501000000640300000000000000000509\
         00000004000000000000000100000078",
        "01070000000100000075020000000102",
        "01030000000000000002000000000000000100000000000000",
    ];
}
