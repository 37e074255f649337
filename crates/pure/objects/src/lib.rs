//! The values of the object store, as pure data structures: no clock, no input, no output, no
//! threads.
//!
//! ```text
//!   Object ── expiry, stamp, id of the wide form
//!     └─ Value ─┬─ Text                          bytes, an integer, or a slice of what arrived
//!               └─ Hash, Set, List, Sorted       collections: packed in one record, or wide
//! ```
//!
//! A small collection is one record on disk, its *packed* form. A larger one is *wide*: a head and
//! a record for each entry, so that a change writes only the entries that it touched. In memory
//! both look the same; the trait [`Collection`] is what the keyspace and the store know of them.
//! The codec of heads is [`head`].

pub mod bitfield;
pub mod bits;
pub mod collection;
pub mod cursor;
pub mod doctor;
pub mod hash;
pub mod head;
pub mod lcs;
pub mod limits;
pub mod list;
pub mod number;
pub mod score;
pub mod set;
pub mod sizes;
pub mod sketch;
pub mod sorted;
pub mod text;
pub mod touched;
pub mod value;
pub mod varint;

pub use collection::{Change, Collection, Damaged};
pub use hash::Hash;
pub use head::{Body, Head};
pub use list::List;
pub use set::Set;
pub use sorted::Sorted;
pub use text::Text;
pub use value::{Kind, Object, Value};

/// A name or value of an entry. Up to 16 bytes lie in place, longer ones on the heap.
pub type Blob = smallvec::SmallVec<[u8; 16]>;

/// Bytes that a [`Blob`] has on the heap. Its capacity would not do: that of a clone is another,
/// and what was added for the original must be what is subtracted for the clone.
pub fn heap_bytes(blob: &Blob) -> usize {
    if blob.len() > blob.inline_size() { blob.len() } else { 0 }
}

/// Entries for which a table keeps its room, however few are left.
const CAPACITY_KEPT: usize = 64;

/// The capacity that a table of entries gets once removals have left most of it empty, since its
/// weight follows from its entries. Half of it is free then, so that each entry is moved a constant
/// number of times, on average.
fn shrunk(len: usize, capacity: usize) -> Option<usize> {
    (capacity > CAPACITY_KEPT && len < capacity / 4).then_some(2 * len)
}
