//! The tokens made in the portal: kept in memory, following the database.

use crate::Principal;
use crate::secrets::is_equal;
use arc_swap::ArcSwap;
use raingauge_ports::clock::{Clock, every};
use raingauge_ports::people::{ApiToken, Error, Hash, Tokens};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// How often the database is polled for changes. A revoked token is refused after twice that.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// How often the use of tokens is recorded.
const NOTE_INTERVAL: Duration = Duration::from_secs(60);

/// Revisions count from 0.
const NEVER_READ: i64 = -1;
/// How long tokens remain valid without the database; a token revoked there would open doors as
/// long.
const STALE_AFTER_MS: i64 = 15 * 60 * 1_000;

/// Every token that was made in the portal and is in use.
pub struct MadeTokens {
    tokens: Arc<dyn Tokens>,
    clock: Arc<dyn Clock>,
    known: ArcSwap<Vec<KnownToken>>,
    /// The revision of the tokens in memory; [`NEVER_READ`] before the first reading.
    revision: AtomicI64,
    /// When the database was last reached, by a clock that never goes back.
    followed_ms: AtomicI64,
    is_away: AtomicBool,
}

struct KnownToken {
    id: i64,
    hash: Hash,
    principal: Principal,
    expires_at: i64,
    /// The second of the newest request that is not recorded yet; 0 when there is none.
    used_at: AtomicI64,
}

impl MadeTokens {
    pub fn new(tokens: Arc<dyn Tokens>, clock: Arc<dyn Clock>) -> Self {
        let followed_ms = AtomicI64::new(clock.elapsed_ms());
        Self {
            tokens,
            clock,
            known: ArcSwap::default(),
            revision: AtomicI64::new(NEVER_READ),
            followed_ms,
            is_away: AtomicBool::default(),
        }
    }

    /// Whether the database has been unreachable for too long to trust the known tokens.
    pub fn is_stale(&self) -> bool {
        self.clock.elapsed_ms() - self.followed_ms.load(Ordering::Relaxed) > STALE_AFTER_MS
    }

    /// The principal of the token with this hash. Every hash is compared.
    pub fn find(&self, hash: &Hash) -> Option<Principal> {
        if self.is_stale() {
            return None;
        }
        let known = self.known.load();
        let now_s = self.clock.now_s();
        let mut found = None;

        for token in known.iter() {
            if is_equal(&token.hash, hash) {
                found = Some(token);
            }
        }

        let token = found.filter(|token| now_s < token.expires_at)?;
        token.used_at.store(now_s, Ordering::Relaxed);
        Some(token.principal.clone())
    }

    /// Follows the database, for as long as it is polled. While the database is unreachable, tokens
    /// stay as they are for 15 minutes.
    pub async fn follow(&self) {
        let following = every(FOLLOW_INTERVAL, || self.follow_once());
        let noting = every(NOTE_INTERVAL, || self.note_used());
        tokio::join!(following, noting);
    }

    async fn follow_once(&self) {
        let followed = self.refresh().await;
        let was_away = self.is_away.swap(followed.is_err(), Ordering::Relaxed);
        if let Err(error) = followed
            && !was_away
        {
            tracing::warn!(%error, "the tokens of the portal could not be followed; they stay as they are for 15 minutes");
        }
    }

    /// Reads the tokens where their revision is not the one in memory.
    pub async fn refresh(&self) -> Result<(), Error> {
        let revision = self.tokens.revision().await?;
        self.followed_ms.store(self.clock.elapsed_ms(), Ordering::Relaxed);
        if self.revision.load(Ordering::Relaxed) == revision {
            return Ok(());
        }
        // The use of the previous tokens is recorded before they go.
        self.note_used().await;
        let now_s = self.clock.now_s();
        let in_use = self.tokens.tokens().await?.into_iter().filter(|token| token.is_in_use(now_s));
        self.known.store(Arc::new(in_use.map(known_of).collect()));
        self.revision.store(revision, Ordering::Relaxed);
        Ok(())
    }

    /// Records when tokens were used. It is informational, and lost while the database is
    /// unreachable.
    pub async fn note_used(&self) {
        let known = self.known.load_full();
        let taken = known.iter().map(|token| (token.id, token.used_at.swap(0, Ordering::Relaxed)));
        let used: Vec<(i64, i64)> = taken.filter(|(_, used_at)| *used_at > 0).collect();
        if !used.is_empty()
            && let Err(error) = self.tokens.note_tokens_used(used).await
        {
            tracing::debug!(%error, "the use of tokens could not be recorded");
        }
    }
}

fn known_of(token: ApiToken) -> KnownToken {
    KnownToken {
        id: token.id,
        hash: token.hash,
        principal: Principal {
            made_by: Some(token.created_by.into()),
            ..Principal::of_token(token.name.into(), token.scopes)
        },
        expires_at: token.expires_at.unwrap_or(i64::MAX),
        used_at: AtomicI64::new(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_memory as memory;
    use raingauge_ports::clock::ManualClock;
    use raingauge_ports::contract::people::{NOW_S, hash, token};

    #[tokio::test]
    async fn tokens_are_followed_expire_and_are_noted() {
        let people = Arc::new(memory::People::default());
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let made = MadeTokens::new(Arc::clone(&people) as _, Arc::clone(&clock) as _);
        made.refresh().await.unwrap();
        assert_eq!(made.find(&hash(1)), None);
        people.add_token(token(1, "shop")).await.unwrap();
        people
            .add_token(ApiToken { expires_at: Some(NOW_S + 10), ..token(2, "soon") })
            .await
            .unwrap();
        assert_eq!(made.find(&hash(1)), None);
        made.refresh().await.unwrap();
        assert_eq!(&*made.find(&hash(1)).unwrap().name, "shop");
        assert_eq!(&*made.find(&hash(2)).unwrap().name, "soon");

        // It expires without a message from the database.
        clock.set_s(NOW_S + 10);
        assert_eq!(made.find(&hash(2)), None);
        made.find(&hash(1)).unwrap();
        people.revoke_token(2, NOW_S).await.unwrap();
        made.refresh().await.unwrap();
        assert_eq!(people.tokens().await.unwrap()[1].used_at, Some(NOW_S + 10));
        people.revoke_token(1, NOW_S).await.unwrap();
        made.refresh().await.unwrap();
        assert_eq!(made.find(&hash(1)), None);
    }

    #[tokio::test]
    async fn tokens_do_not_outlast_their_database_for_long() {
        let people = Arc::new(memory::People::default());
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        people.add_token(token(1, "shop")).await.unwrap();
        let made = MadeTokens::new(Arc::clone(&people) as _, Arc::clone(&clock) as _);
        made.refresh().await.unwrap();
        clock.set_s(NOW_S + STALE_AFTER_MS / 1_000);
        assert!(made.find(&hash(1)).is_some() && !made.is_stale());
        clock.set_s(NOW_S + STALE_AFTER_MS / 1_000 + 1);
        assert!(made.find(&hash(1)).is_none() && made.is_stale());
        made.refresh().await.unwrap();
        assert!(made.find(&hash(1)).is_some());
    }
}
