//! Commands about the server that have no container of their own, and those of slow commands,
//! memory, scripts and clusters that answer the same at all times.

use std::sync::atomic::Ordering;
use std::time::Duration;

use raingauge_objects::Session;
use raingauge_resp::{Arguments, Failure, Id, Replies};

use super::help;
use crate::desk::Desk;
use crate::server::REDIS_VERSION;

/// Slow commands that `SLOWLOG GET` returns without a number.
const SLOW_DEFAULT: usize = 10;

pub(super) fn run(
    desk: &mut Desk,
    id: Id,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    match id {
        Id::Time => time(desk, replies),
        Id::Lastsave => {
            let saved_ms = desk.server.totals.saved_ms.load(Ordering::Relaxed) as i64;
            replies.integer(saved_ms.max(desk.server.started_ms) / 1000);
        }
        Id::Save => replies.ok(),
        Id::Bgsave => replies.simple("Background saving started"),
        Id::Bgrewriteaof => replies.simple("Background append only file rewriting started"),
        Id::Role => role(replies),
        Id::Wait => wait(arguments, replies)?,
        Id::Waitaof => waitaof(desk, arguments, replies)?,
        Id::Lolwut => replies.verbatim(&format!("raingauge, as Redis ver. {REDIS_VERSION}\n")),

        Id::SlowlogGet => slow(desk, arguments, replies)?,
        Id::SlowlogLen => replies.integer(desk.server.slowlog.len() as i64),
        Id::SlowlogReset => {
            desk.server.slowlog.reset();
            replies.ok();
        }
        Id::SlowlogHelp => help::reply("slowlog", replies),

        Id::MemoryDoctor => replies.verbatim("RAIN.DOCTOR tells what clients could do better.\n"),
        Id::MemoryMallocStats => replies.verbatim("The allocator keeps no figures.\n"),
        Id::MemoryStats => memory_stats(desk, replies),
        Id::MemoryPurge => replies.ok(),
        Id::MemoryHelp => help::reply("memory", replies),

        // Nothing is there that could be flushed.
        Id::ScriptFlush | Id::FunctionFlush => replies.ok(),

        // A container without its subcommand was refused for its number of arguments.
        _ => return Err(Failure::Syntax),
    }

    Ok(())
}

fn time(desk: &Desk, replies: &mut Replies) {
    let now_ms = desk.now_ms();

    replies.array(2);
    replies.bulk_integer(now_ms / 1000);
    replies.bulk_integer(now_ms % 1000 * 1000);
}

fn role(replies: &mut Replies) {
    replies.array(3);
    replies.bulk(b"master");
    replies.integer(0);
    replies.array(0);
}

/// There are no replicas, and waiting for them would not bring any.
fn wait(arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    arguments.integer(1)?;
    timeout(arguments, 2)?;

    replies.integer(0);
    Ok(())
}

/// The timeout of an argument; none for 0, which waits as long as it takes.
fn timeout(arguments: Arguments<'_>, index: usize) -> Result<Option<Duration>, Failure> {
    let timeout_ms = arguments
        .integer(index)
        .map_err(|_| Failure::text("ERR timeout is not an integer or out of range"))?;
    let timeout_ms =
        u64::try_from(timeout_ms).map_err(|_| Failure::text("ERR timeout is negative"))?;

    Ok((timeout_ms > 0).then(|| Duration::from_millis(timeout_ms)))
}

/// Waits until the changes of this connection are synced, if `WAITAOF` asks for that.
pub(super) async fn prepare_waitaof(desk: &mut Desk, session: &Session, arguments: Arguments<'_>) {
    desk.waited = None;
    let is_asked = arguments.integer(1).is_ok_and(|count| count == 1);
    let Ok(timeout) = timeout(arguments, 3) else {
        return;
    };

    let synced = desk.server.objects.synced(session.last_stamp());
    let result = match timeout {
        _ if !is_asked => return,
        None => synced.await.is_ok(),
        Some(timeout) => {
            tokio::time::timeout(timeout, synced).await.is_ok_and(|synced| synced.is_ok())
        }
    };
    desk.waited = Some(result);
}

/// `WAITAOF local replicas timeout`: on how many disks the changes of this connection are.
fn waitaof(
    desk: &mut Desk,
    arguments: Arguments<'_>,
    replies: &mut Replies,
) -> Result<(), Failure> {
    let local = arguments.integer(1)?;
    let replicas = arguments.integer(2)?;
    timeout(arguments, 3)?;
    if !(0..=1).contains(&local) {
        return Err(Failure::text("ERR value is out of range, value must between 0 and 1"));
    }
    if replicas < 0 {
        return Err(Failure::NotPositive);
    }

    let synced = desk.waited.take().unwrap_or(false);
    replies.array(2);
    replies.integer(i64::from(synced));
    replies.integer(0);
    Ok(())
}

/// Saves what was acknowledged, where it would be saved anyway a little later.
pub(super) async fn prepare_save(desk: &mut Desk) {
    match desk.server.objects.checkpoint().await {
        Ok(()) => {
            let now_ms = desk.now_ms().unsigned_abs();
            desk.server.totals.saved_ms.store(now_ms, Ordering::Relaxed);
        }
        Err(error) => tracing::warn!(%error, "a checkpoint that a client asked for failed"),
    }
}

fn slow(desk: &Desk, arguments: Arguments<'_>, replies: &mut Replies) -> Result<(), Failure> {
    let len_max = match arguments.len() {
        2 => SLOW_DEFAULT,
        _ => match arguments.integer(2) {
            Ok(-1) => usize::MAX,
            len => len
                .ok()
                .and_then(|len| usize::try_from(len).ok())
                .ok_or(Failure::text("ERR count should be greater than or equal to -1"))?,
        },
    };

    desk.server.slowlog.reply(len_max, replies);
    Ok(())
}

fn memory_stats(desk: &Desk, replies: &mut Replies) {
    let stats = desk.server.objects.stats();
    let numbers = [
        ("keys.count", stats.resident),
        ("dataset.bytes", stats.resident_bytes),
        ("clients.normal", desk.server.clients.len() as u64),
    ];

    replies.map(numbers.len());
    for (name, number) in numbers {
        replies.bulk(name.as_bytes());
        replies.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }
}
