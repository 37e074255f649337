//! Which counters the list shows, and in which order. The address holds all of it.

use super::Row;
use crate::fields::Fields;
use form_urlencoded::Serializer;
use raingauge_core::counter::{Counter, State};
use std::cmp::Ordering;

/// The states to choose from: their names in the address, and their labels.
pub const STATES: [(&str, &str); 6] = [
    ("", "all but archived"),
    ("active", "active"),
    ("paused", "paused"),
    ("draft", "draft"),
    ("archived", "archived"),
    ("all", "all"),
];

raingauge_core::names! {
    /// A column, by its name in the address.
    pub enum Column {
        Name = "name",
        State = "state",
        EventType = "type",
        Owner = "owner",
        Activity = "activity",
        Changed = "changed",
    }
}

impl Column {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Name => "Name and template",
            Self::State => "State",
            Self::EventType => "Event type",
            Self::Owner => "Owner",
            Self::Activity => "Last 24 hours",
            Self::Changed => "Changed",
        }
    }

    /// Whether the first click sorts the largest first.
    const fn is_number(self) -> bool {
        matches!(self, Self::Activity | Self::Changed)
    }

    fn compare(self, one: &Row<'_>, other: &Row<'_>) -> Ordering {
        let (left, right) = (&one.found.counter, &other.found.counter);
        match self {
            Self::Name => left.name.to_lowercase().cmp(&right.name.to_lowercase()),
            Self::State => state_order(left.state).cmp(&state_order(right.state)),
            Self::EventType => left.event_type.cmp(&right.event_type),
            Self::Owner => left.owner.to_lowercase().cmp(&right.owner.to_lowercase()),
            Self::Activity => one.events().cmp(&other.events()),
            Self::Changed => one.found.changed_at.cmp(&other.found.changed_at),
        }
    }
}

const fn state_order(state: State) -> u8 {
    match state {
        State::Active => 0,
        State::Draft => 1,
        State::Paused => 2,
        State::Archived => 3,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub column: Column,
    pub descending: bool,
}

impl Sort {
    fn from_name(text: &str) -> Option<Self> {
        let (name, descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
        let column = Column::from_name(name)?;
        Some(Self { column, descending })
    }

    pub fn name(self) -> String {
        format!("{}{}", if self.descending { "-" } else { "" }, self.column.name())
    }

    /// The sort order after a click on a column.
    pub fn next(self, column: Column) -> Self {
        let descending = if self.column == column { !self.descending } else { column.is_number() };
        Self { column, descending }
    }

    /// Sorts the rows. Counters that are equal in the column are sorted by id.
    pub fn apply(self, rows: &mut [Row<'_>]) {
        rows.sort_by(|one, other| {
            let order = self.column.compare(one, other);
            let order = if self.descending { order.reverse() } else { order };
            order.then(one.found.counter.id.cmp(&other.found.counter.id))
        });
    }
}

/// The filters, the order and the page, as read from the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub search: String,
    pub state: String,
    pub event_type: String,
    pub owner: String,
    pub sort: Sort,
    pub page: usize,
}

impl Listing {
    pub fn of(fields: &Fields) -> Self {
        let state = fields.text("state");
        Self {
            search: fields.text("q").to_owned(),
            state: if STATES.iter().any(|(name, _)| *name == state) { state } else { "" }
                .to_owned(),
            event_type: fields.text("type").to_owned(),
            owner: fields.text("owner").to_owned(),
            sort: Sort::from_name(fields.text("sort"))
                .unwrap_or(Sort { column: Column::State, descending: false }),
            page: fields.text("page").parse().unwrap_or(1),
        }
    }

    /// Whether a counter passes the filters: every word of the search occurs somewhere in it.
    pub fn shows(&self, counter: &Counter) -> bool {
        let has_state = match self.state.as_str() {
            "" => counter.state != State::Archived,
            "all" => true,
            state => state == counter.state.name(),
        };
        let has_type = self.event_type.is_empty() || self.event_type == counter.event_type;
        let has_owner = self.owner.is_empty() || self.owner == counter.owner;
        has_state && has_type && has_owner && self.finds(counter)
    }

    fn finds(&self, counter: &Counter) -> bool {
        if self.search.is_empty() {
            return true;
        }
        let id = counter.id.to_string();
        let text = [
            &counter.name,
            &counter.template,
            &counter.description,
            &counter.event_type,
            &counter.owner,
            &id,
        ]
        .map(|text| text.to_lowercase());
        let search = self.search.to_lowercase();
        search.split_whitespace().all(|word| text.iter().any(|text| text.contains(word)))
    }

    /// The same list in another order, or another page of it.
    pub fn query(&self, sort: Sort, page: usize) -> String {
        let mut query = Serializer::new(String::new());
        let sort = sort.name();
        let page = page.to_string();
        let pairs = [
            ("q", self.search.as_str()),
            ("state", &self.state),
            ("type", &self.event_type),
            ("owner", &self.owner),
            ("sort", &sort),
            ("page", if page == "1" { "" } else { &page }),
        ];

        query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_itself() {
        let listing = Listing::of(&Fields::parse(
            b"q=rain+city&state=paused&owner=a%26b&sort=-activity&page=3",
        ));
        let again =
            Listing::of(&Fields::parse(listing.query(listing.sort, listing.page).as_bytes()));
        assert_eq!(again, listing);
        assert_eq!(listing.sort.next(Column::Activity).name(), "activity");
        assert_eq!(listing.sort.next(Column::Name).name(), "name");
        assert_eq!(listing.sort.next(Column::Changed).name(), "-changed");
    }

    #[test]
    fn odd_addresses_show_the_list() {
        let listing = Listing::of(&Fields::parse(b"state=%00&sort=-&page=-1"));
        assert_eq!(
            (listing.state.as_str(), listing.sort.name().as_str(), listing.page),
            ("", "state", 1)
        );
    }
}
