//! Who may do what: the roles of people and the scopes of tokens, with their names.

use std::fmt;

crate::names! {
    /// What a person may do in the portal; each role may do what those before it may.
    #[derive(PartialOrd, Ord)]
    pub enum Role {
        /// Sees counters, counts, campaigns, points and the system.
        Viewer = "viewer",
        /// Defines counters, campaigns and programmes of points.
        Editor = "editor",
        /// Manages people, tokens and the system, and operates campaigns and points.
        Admin = "admin",
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

crate::names! {
    /// What an API token may be good for.
    pub enum Scope {
        /// Send events.
        EventsWrite = "events:write",
        /// Ask for counts, series and keys, read counters, and what [`Scope::MetricsRead`] allows.
        CountsRead = "counts:read",
        /// Create, change and archive counters.
        CountersWrite = "counters:write",
        /// Set buckets to counts that were computed elsewhere, whatever was counted.
        BucketsWrite = "buckets:write",
        /// Read metrics, and nothing of what is counted.
        MetricsRead = "metrics:read",
        /// Read campaigns, their decisions and what they sent.
        CampaignsRead = "campaigns:read",
        /// Define campaigns and load tables, test them and backtest them.
        CampaignsWrite = "campaigns:write",
        /// Start and stop campaigns, redrive and cancel actions, and define where they are sent.
        CampaignsOperate = "campaigns:operate",
        /// Read programmes, members, statements, entries and liabilities.
        PointsRead = "points:read",
        /// Award points, as a source or a partner does.
        PointsAward = "points:award",
        /// Burn, hold, transfer and exchange points, and redeem rewards.
        PointsSpend = "points:spend",
        /// Reverse and adjust what was awarded, set tiers, close wallets.
        PointsCorrect = "points:correct",
        /// Define programmes and rewards.
        PointsWrite = "points:write",
        /// Operate queues, sweeps, seals and audits of points.
        PointsAdmin = "points:admin",
        /// Read the objects of Redis clients, subscribe to channels, and see how the door is used.
        ObjectsRead = "objects:read",
        /// Change and delete the objects of Redis clients, and publish.
        ObjectsWrite = "objects:write",
        /// Everything, now and later.
        Admin = "admin",
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u32);

impl Scopes {
    pub fn insert(&mut self, scope: Scope) {
        self.0 |= 1 << scope as u8;
    }

    /// Whether these scopes are enough for that one; `admin` is enough for all, and `counts:read`
    /// for metrics.
    pub const fn allow(self, scope: Scope) -> bool {
        let enough = match scope {
            Scope::MetricsRead => 1 << Scope::MetricsRead as u8 | 1 << Scope::CountsRead as u8,
            scope => 1 << scope as u8,
        };
        self.0 & (enough | 1 << Scope::Admin as u8) != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that were put in, by themselves.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & 1 << *scope as u8 != 0)
    }

    /// Reads names with commas between them, as [`fmt::Display`] writes them.
    pub fn from_names(names: &str) -> Option<Self> {
        names.split(',').filter(|name| !name.is_empty()).map(Scope::from_name).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut set = Self::default();
        scopes.into_iter().for_each(|scope| set.insert(scope));
        set
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, scope) in self.iter().enumerate() {
            if place > 0 {
                out.write_str(",")?;
            }
            out.write_str(scope.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_those_before_it_may() {
        assert!(Role::Viewer < Role::Editor && Role::Editor < Role::Admin);
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
        }
        assert_eq!(Role::from_name("Admin"), None);
    }

    #[test]
    fn scopes_come_back_from_their_names() {
        for bits in 0_u32..1 << Scope::ALL.len() {
            let scopes: Scopes =
                Scope::ALL.into_iter().filter(|scope| bits & 1 << *scope as u8 != 0).collect();
            assert_eq!(Scopes::from_names(&scopes.to_string()), Some(scopes));
        }
        assert_eq!(Scopes::from_names("counts:read,sing"), None);
    }

    #[test]
    fn admin_is_enough_for_every_scope() {
        let admin: Scopes = [Scope::Admin].into_iter().collect();
        let reader: Scopes = [Scope::CountsRead].into_iter().collect();
        assert!(Scope::ALL.into_iter().all(|scope| admin.allow(scope)));
        assert!(
            reader.allow(Scope::CountsRead)
                && !reader.allow(Scope::EventsWrite)
                && !reader.allow(Scope::Admin)
        );
        assert!(reader.allow(Scope::MetricsRead) && !reader.allow(Scope::BucketsWrite));

        let scraper: Scopes = [Scope::MetricsRead].into_iter().collect();
        assert!(scraper.allow(Scope::MetricsRead) && !scraper.allow(Scope::CountsRead));

        let producer: Scopes = [Scope::EventsWrite, Scope::CountersWrite].into_iter().collect();
        assert!(!producer.allow(Scope::BucketsWrite));

        let author: Scopes = [Scope::CampaignsWrite].into_iter().collect();
        assert!(!author.allow(Scope::CampaignsRead) && !author.allow(Scope::CampaignsOperate));
        let partner: Scopes = [Scope::PointsAward].into_iter().collect();
        assert!(!partner.allow(Scope::PointsSpend) && !partner.allow(Scope::PointsCorrect));
        let session: Scopes = [Scope::ObjectsWrite].into_iter().collect();
        assert!(!session.allow(Scope::ObjectsRead) && !session.allow(Scope::CountsRead));
        assert!(Scopes::default().is_empty() && !reader.is_empty());
    }
}
