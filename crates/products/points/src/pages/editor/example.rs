//! The text that a new programme begins with.

/// A programme that can be saved as it is. It is the one of the tutorial in docs/points.md.
pub const PROGRAMME: &str = "\
programme: lunch
unit: points
timezone: Asia/Singapore
# Points stay while the member buys something within six months.
expiry: {kind: activity, months: 6}
tiers:
  window: halfYear
  keepMonths: 6
  levels:
    - {name: member, from: 0}
    - {name: silver, from: 550}
    - {name: gold, from: 1500}
    - {name: platinum, from: 3000}
# Each table is a factor. The most specific row counts.
tables:
  vertical: {by: [data.country, data.vertical], rows: {SG.food: 2, \"SG.*\": 1}}
  eppf: {by: [data.currency], rows: {SGD: 1}}
  payment: {by: [data.country, data.payment], default: 1, rows: {SG.grabpay: 2}}
  tier: {by: [tier], rows: {member: 1, silver: 1.5, gold: 2.25, platinum: 3}}
# What an event earns: its amount times its factors, rounded once.
rules:
  - id: 1
    name: food
    eventType: order.completed
    member: data.consumer_id
    amount: data.amount
    reference: data.order_id
    factors: [vertical, eppf, payment, tier]
    extends: true
  - id: 2
    name: refund
    eventType: order.refunded
    member: data.consumer_id
    amount: data.refunded_amount
    reverses: data.order_id
# What must come out. A version that comes to something else cannot be saved.
examples:
  - rule: 1
    tier: platinum
    data: {country: SG, vertical: food, currency: SGD, payment: grabpay, amount: 15}
    points: 180
";

#[cfg(test)]
mod tests {
    use super::PROGRAMME;
    use raingauge_points::ProgrammeDocument;
    use raingauge_portal::document::parse;

    #[test]
    fn the_first_programme_can_be_saved() {
        let document = parse(PROGRAMME).unwrap();
        assert_eq!(ProgrammeDocument::parse(&document).err(), None);
    }
}
