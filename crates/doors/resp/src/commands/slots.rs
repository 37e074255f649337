//! The keys of a slot. They are found by a walk over all keys: no index is kept for the rare
//! question.

use bytes::Bytes;
use raingauge_resp::{Arguments, Failure, Replies, slot};

use crate::desk::{Desk, SlotKeys};

/// The database of a cluster.
const DATABASE: u8 = 0;
const IN_TRANSACTION: Failure =
    Failure::text("ERR the keys of a slot are not looked for inside a transaction");

/// Walks over all keys, if the command asks for those of a slot.
pub(super) async fn prepare(desk: &mut Desk, arguments: Arguments<'_>) {
    let Ok((asked, names_max)) = parse(arguments) else {
        return;
    };
    if desk.server.slots().is_err() {
        return;
    }

    let bytes_max = desk.server.settings.output_bytes_max;
    let mut keys = SlotKeys::default();
    let mut bytes = 0;
    let visit = |name: &Bytes| {
        if slot::of(name) == asked {
            keys.count += 1;
            if keys.names.len() < names_max && bytes <= bytes_max {
                bytes += name.len() + size_of::<Bytes>();
                keys.names.push(name.clone());
            }
        }
    };
    let visited = desk.server.objects.visit_names(DATABASE, visit).await;
    let is_too_much = bytes > bytes_max;
    let found = if is_too_much { Err(too_many_names(bytes_max)) } else { Ok(keys) };
    desk.slot_keys = Some(visited.and(found));
}

fn too_many_names(bytes_max: usize) -> Failure {
    Failure::owned(format!(
        "ERR the names take more than {bytes_max} bytes, which resp.output_bytes_max limits: ask \
         for fewer"
    ))
}

/// `CLUSTER COUNTKEYSINSLOT slot`.
pub(super) fn count(
    desk: &mut Desk,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let keys = found(desk, arguments)?;

    replies.integer(keys.count);
    Ok(())
}

/// `CLUSTER GETKEYSINSLOT slot count`.
pub(super) fn keys(
    desk: &mut Desk,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let keys = found(desk, arguments)?;

    replies.array(keys.names.len());
    keys.names.iter().for_each(|name| replies.bulk(name));
    Ok(())
}

/// What [`prepare`] found.
fn found(desk: &mut Desk, arguments: Arguments<'_>) -> Result<SlotKeys, Failure> {
    parse(arguments)?;

    desk.slot_keys.take().unwrap_or(Err(IN_TRANSACTION))
}

/// The slot that a command asks for, and of how many keys it wants the names.
fn parse(arguments: Arguments<'_>) -> Result<(u16, usize), Failure> {
    let slot = arguments.integer(2).ok().and_then(|slot| u16::try_from(slot).ok());
    let slot = slot.filter(|slot| *slot < slot::COUNT).ok_or(Failure::text("ERR Invalid slot"))?;
    if arguments.len() == 3 {
        return Ok((slot, 0));
    }

    let names_max = usize::try_from(arguments.integer(3)?);
    Ok((slot, names_max.map_err(|_| Failure::text("ERR Invalid number of keys"))?))
}
