//! Finding what the history still lacks.

use super::Sources;
use super::files::Day;
use raingauge_ports::campaigns::limits::LEDGER_PAGE_LEN_MAX;
use raingauge_ports::campaigns::{
    ActionId, DecisionQuery, DeliveryPlace, DeliveryQuery, DeliveryRecord, Error, Outbox, Status,
};

/// The last id that there can be.
const LAST: ActionId = ActionId([0xff; 16]);

/// The days that a search looks at, without the last.
pub struct Walk<'a> {
    pub sources: &'a Sources,
    pub from: Day,
    pub to: Day,
}

impl Walk<'_> {
    /// The first day that has a decision or a delivery that ended.
    pub async fn first(&self) -> Result<Option<Day>, Error> {
        let decided = self.first_decided().await?;
        let ended = self.first_ended().await?;
        Ok([decided, ended].into_iter().flatten().min())
    }

    /// Goes back from day to day, since decisions are read newest first.
    async fn first_decided(&self) -> Result<Option<Day>, Error> {
        let mut first = None;
        let mut query = DecisionQuery {
            from_ms: self.from.start_ms(),
            to_ms: Some(self.to.start_ms()),
            len_max: 1,
            ..DecisionQuery::default()
        };
        loop {
            let page = self.sources.ledger.decisions(query.clone()).await?;
            if let Some(decision) = page.decisions.first() {
                let day = Day::of(decision.decided_ms);
                first = Some(day);
                query = DecisionQuery { to_ms: Some(day.start_ms()), after: None, ..query };
            } else if page.next.is_some() {
                query.after = page.next;
            } else {
                return Ok(first);
            }
        }
    }

    async fn first_ended(&self) -> Result<Option<Day>, Error> {
        // Those of a destination are in order of time, so the first one says all.
        let deliveries = Deliveries::between(self.from, self.to);
        let mut deliveries = Deliveries { is_first_enough: true, ..deliveries };
        let mut first = None;
        while let Some(records) = deliveries.next(&*self.sources.outbox).await? {
            first = records.iter().map(|record| Day::of(record.at_ms)).chain(first).min();
        }
        Ok(first)
    }
}

/// Reads deliveries that ended within some days, status by status and destination by destination.
pub struct Deliveries {
    from_ms: i64,
    to_ms: i64,
    /// What is left; the first one is being read.
    statuses: &'static [Status],
    after: Option<DeliveryPlace>,
    /// Whether the first of each destination is asked for alone.
    is_first_enough: bool,
}

impl Deliveries {
    pub fn of(day: Day) -> Self {
        Self::between(day, day.next())
    }

    fn between(from: Day, to: Day) -> Self {
        let [from_ms, to_ms] = [from.start_ms(), to.start_ms()];
        Self { from_ms, to_ms, statuses: &Status::ENDED, after: None, is_first_enough: false }
    }

    /// The next deliveries, which may be none; `None` at the end.
    pub async fn next(
        &mut self,
        outbox: &dyn Outbox,
    ) -> Result<Option<Vec<DeliveryRecord>>, Error> {
        let Some((status, rest)) = self.statuses.split_first() else {
            return Ok(None);
        };
        let query = DeliveryQuery {
            status: *status,
            destination: None,
            campaign: None,
            after: self.after.take(),
            len_max: LEDGER_PAGE_LEN_MAX,
        };

        let page = outbox.list(query).await?;
        let mut records = Vec::new();
        self.after = page.next;
        for record in page.records {
            if record.at_ms >= self.to_ms {
                self.after = Some(place(&record, i64::MAX));
                break;
            }
            if record.at_ms < self.from_ms {
                self.after = Some(place(&record, self.from_ms.saturating_sub(1)));
                break;
            }
            if self.is_first_enough {
                self.after = Some(place(&record, i64::MAX));
                records.push(record);
                break;
            }
            records.push(record);
        }

        if self.after.is_none() {
            self.statuses = rest;
        }
        Ok(Some(records))
    }
}

/// Behind the deliveries of the same destination up to a time.
fn place(record: &DeliveryRecord, at_ms: i64) -> DeliveryPlace {
    DeliveryPlace { destination: record.delivery.destination.clone(), at_ms, action: LAST }
}
