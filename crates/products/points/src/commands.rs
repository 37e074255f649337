//! What callers ask for, as commands of the ledger.

use crate::Points;
use crate::members::wallet_id;
use crate::requests::{AwardRequest, TransactionRequest, time_of};
use crate::source::Source;
use crate::transaction_kind::{Family, TransactionKind};
use raingauge_core::code::{Code, Refusal};
use raingauge_people::Principal;
use raingauge_points::{Award, Basis, Body, Command, Day, Number, Programme, Programmes};
use serde_json::Value;
use std::sync::Arc;

/// Turns requests of one caller into commands, with the programmes that are in force.
pub struct Conversion {
    programmes: Arc<Programmes>,
    source: Source,
    /// The largest adjustment that one person alone may make, in whole points.
    adjust_review: Option<u64>,
}

/// Points that are given or taken by hand.
#[derive(Clone, Debug)]
pub struct Adjustment {
    pub programme: Arc<str>,
    pub member: Arc<str>,
    pub key: Arc<str>,
    pub points: Number,
    pub expires_on: Option<Day>,
    pub reason: Arc<str>,
}

impl Points {
    /// Converts requests of a caller.
    pub(crate) fn conversion(&self, source: Source) -> Conversion {
        Conversion {
            programmes: Arc::clone(self.teller.snapshot().programmes()),
            source,
            adjust_review: self.adjust_review,
        }
    }

    /// Refuses a partner in a programme that does not name it.
    pub(crate) fn check_named(&self, who: &Principal, programme: &str) -> Result<(), Refusal> {
        match self.source(who) {
            Source::Operator => Ok(()),
            partner => self.conversion(partner).programme(programme).map(drop),
        }
    }
}

impl Conversion {
    /// The programme of a request, of which the caller is an operator or a partner.
    pub fn programme(&self, name: &str) -> Result<&Programme, Refusal> {
        let Some(programme) = self.programmes.get(name) else {
            let detail = format!("there is no programme {name}");
            return Err(Refusal::new(Code::ProgrammeUnknown, detail));
        };
        match &self.source {
            Source::Partner(partner) if programme.partner(partner).is_none() => {
                let detail = format!("{partner} is no partner of {name}");
                Err(Refusal::new(Code::SourceForeign, detail))
            }
            _ => Ok(programme),
        }
    }

    /// The source of the commands.
    pub fn source_name(&self) -> Arc<str> {
        self.source.name()
    }

    pub fn award(&self, request: AwardRequest) -> Result<Command, Refusal> {
        let programme = self.programme(&request.programme)?;
        if request.facts.as_ref().is_some_and(|facts| !facts.is_object()) {
            let detail = "facts are an object: the fields of data";
            return Err(Refusal::new(Code::RequestMalformed, detail));
        }
        let by_amount = request.amount.is_some() || request.rule.is_some();
        let basis = match request.points {
            Some(_) if by_amount || request.facts.is_some() || !request.factors.0.is_empty() => {
                let detail = "an award has either points or an amount with what it follows from";
                return Err(Refusal::new(Code::RequestMalformed, detail));
            }
            Some(points) => Basis::Points(programme.points_of(&points)?),
            None if request.amount.is_none() && request.facts.is_none() => {
                let detail = "an award needs `points`, or `amount` or `facts`, which a rule prices";
                return Err(Refusal::new(Code::RequestMalformed, detail));
            }
            None => Basis::Amount {
                amount: request.amount,
                rule: request.rule,
                event_type: request.event_type,
                facts: request.facts,
                factors: request.factors.0,
            },
        };

        Ok(Command {
            programme: request.programme,
            member: request.member,
            key: request.key,
            source: self.source.name(),
            occurred_ms: request.occurred_at.map(|time| time.0),
            accepted_ms: None,
            reference: request.reference,
            reason: request.reason,
            body: Body::Award(Award {
                basis,
                budget: request.budget,
                pending_days: request.pending_days,
                expires_on: request.expires_on,
                extends: request.extends,
            }),
        })
    }

    /// A transaction or a correction, if the route takes its kind.
    pub fn transaction(
        &self,
        request: TransactionRequest,
        family: Family,
    ) -> Result<Command, Refusal> {
        if request.kind.family() != family {
            return Err(Refusal::new(Code::RequestMalformed, family.refusal_of(request.kind)));
        }

        request.check_members()?;
        if family == Family::Corrections {
            check_reason(request.reason.as_deref())?;
        }
        let body = self.body(&request)?;
        Ok(Command {
            programme: request.programme,
            member: request.member,
            key: request.key,
            source: self.source.name(),
            occurred_ms: request.occurred_at.map(|time| time.0),
            accepted_ms: None,
            reference: request.reference,
            reason: request.reason,
            body,
        })
    }

    fn body(&self, request: &TransactionRequest) -> Result<Body, Refusal> {
        let programme = self.programme(&request.programme)?;
        let points = request.points.map(|points| programme.points_of(&points)).transpose()?;
        let needed = || points.ok_or_else(|| missing("points", request.kind));
        let hold = || request.hold.clone().ok_or_else(|| missing("hold", request.kind));

        Ok(match request.kind {
            TransactionKind::Burn => Body::Burn { points: needed()? },
            TransactionKind::Hold => Body::Hold {
                points,
                until_ms: request.until.as_ref().map(until_ms).transpose()?,
                reward: request.reward.clone(),
            },
            TransactionKind::Capture => Body::Capture { hold: hold()?, points },
            TransactionKind::Release => Body::Release { hold: hold()? },
            TransactionKind::Transfer => Body::Transfer {
                to: request.to.clone().ok_or_else(|| missing("to", request.kind))?,
                points: needed()?,
            },
            TransactionKind::ExchangeOut => {
                Body::ExchangeOut { partner: self.partner_of(request)?, points: needed()? }
            }
            TransactionKind::ExchangeIn => Body::ExchangeIn {
                partner: self.partner_of(request)?,
                points,
                amount: request.amount,
            },
            TransactionKind::Reverse => Body::Reverse {
                key: request.award.clone(),
                source: self.source_of_award(request)?,
                amount: request.amount,
                points,
            },
            TransactionKind::Adjust => {
                self.check_review(programme, needed()?)?;
                Body::Adjust { points: needed()?, expires_on: request.expires_on }
            }
            TransactionKind::Tier => Body::Tier {
                tier: request.tier.clone().ok_or_else(|| missing("tier", request.kind))?,
                until: request.until.as_ref().map(day_of).transpose()?,
            },
            TransactionKind::Close => Body::Close,
        })
    }

    /// The partner of an exchange, who is the caller if that is one.
    fn partner_of(&self, request: &TransactionRequest) -> Result<Arc<str>, Refusal> {
        let named = request.partner.as_ref().or(request.to.as_ref());
        match (named, &self.source) {
            (Some(partner), source) => {
                source.check_partner(partner)?;
                Ok(Arc::clone(partner))
            }
            (None, Source::Partner(name)) => Ok(Arc::clone(name)),
            (None, Source::Operator) => Err(missing("partner", request.kind)),
        }
    }

    /// Whose key names the award of a reversal, where that is not the caller's own.
    fn source_of_award(&self, request: &TransactionRequest) -> Result<Option<Arc<str>>, Refusal> {
        let Some(source) = &request.source else { return Ok(None) };
        if request.award.is_none() {
            let detail = "source says whose key award is: name the award";
            return Err(Refusal::new(Code::RequestMalformed, detail));
        }
        self.source.check_partner(source)?;
        Ok((**source != *self.source.name()).then(|| Arc::clone(source)))
    }

    /// An adjustment, which a second person has approved where that is needed.
    pub fn approved(&self, adjustment: Adjustment) -> Result<Command, Refusal> {
        let Adjustment { programme, member, key, points, expires_on, reason } = adjustment;
        check_reason(Some(&reason))?;
        wallet_id(&programme, &member)?;
        let points = self.programme(&programme)?.points_of(&points)?;
        if points == 0 {
            return Err(Refusal::new(Code::PointsInvalid, "an adjustment of no points is none"));
        }
        Ok(Command {
            programme,
            member,
            key,
            source: self.source.name(),
            occurred_ms: None,
            accepted_ms: None,
            reference: None,
            reason: Some(reason),
            body: Body::Adjust { points, expires_on },
        })
    }

    /// Refuses an adjustment that a second person has to approve.
    fn check_review(&self, programme: &Programme, points: i64) -> Result<(), Refusal> {
        if !needs_second(points, programme, self.adjust_review) {
            return Ok(());
        }
        let detail = "this adjustment needs a second person: propose it as a draft of the kind \
                      adjustment";
        Err(Refusal::new(Code::ApprovalNeeded, detail))
    }
}

/// Whether a second person has to approve that many points: the programme says from where on, or
/// the settings, in whole points.
pub fn needs_second(points: i64, programme: &Programme, whole_max: Option<u64>) -> bool {
    let amount = u128::from(points.unsigned_abs());
    let unit = 10_u128.pow(programme.decimals().into());
    let of_settings = whole_max.is_some_and(|whole_max| amount > u128::from(whole_max) * unit);
    let of_programme = programme.adjust_review();
    of_settings || of_programme.is_some_and(|from| amount >= u128::from(from.unsigned_abs()))
}

fn check_reason(reason: Option<&str>) -> Result<(), Refusal> {
    match reason.map(str::trim) {
        None | Some("") => {
            Err(Refusal::new(Code::ReasonMissing, "a correction says why: give a reason"))
        }
        Some(_) => Ok(()),
    }
}

fn missing(member: &str, kind: TransactionKind) -> Refusal {
    Refusal::new(Code::RequestMalformed, format!("the kind {kind} needs `{member}`"))
}

pub(crate) fn until_ms(written: &Value) -> Result<i64, Refusal> {
    time_of(written)
        .ok_or_else(|| Refusal::new(Code::TimeInvalid, "until is RFC 3339 or epoch seconds"))
}

fn day_of(written: &Value) -> Result<Day, Refusal> {
    let day = written.as_str().and_then(|text| text.parse().ok());
    day.ok_or_else(|| Refusal::new(Code::TimeInvalid, "until is a date such as 2026-12-31"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::item_of;
    use raingauge_points::ProgrammeDocument;
    use serde_json::json;

    fn conversion(source: Source, adjust_review: Option<u64>) -> Conversion {
        let document = json!({
            "programme": "grab-sg", "unit": "GRP", "decimals": 2, "timezone": "Asia/Singapore",
            "expiry": {"kind": "never"}, "partners": [{"name": "skyair"}],
        });
        let document = ProgrammeDocument::parse(&document).expect("a programme");
        let mut programmes = Programmes::new();
        programmes.insert(Arc::new(Programme::compile(&document, 1).expect("it compiles")));
        Conversion { programmes: Arc::new(programmes), source, adjust_review }
    }

    fn request(members: &Value) -> TransactionRequest {
        let mut all = json!({"programme": "grab-sg", "member": "bob", "key": "k", "reason": "r"});
        for (name, value) in members.as_object().expect("members") {
            all[name] = value.clone();
        }
        item_of(all).expect("a request")
    }

    fn refused(conversion: &Conversion, members: &Value, family: Family) -> Code {
        conversion.transaction(request(members), family).expect_err("refused").code
    }

    #[test]
    fn numbers_and_facts_that_are_none_are_refused() {
        let conversion = conversion(Source::Operator, None);
        let item = json!({"programme": "grab-sg", "member": "bob", "key": "k", "points": i64::MIN});
        let refused = conversion.award(item_of(item).unwrap()).unwrap_err();
        assert_eq!(refused.code, Code::PointsInvalid);

        for facts in [json!([]), json!("SG"), json!(5)] {
            let item = json!({"programme": "grab-sg", "member": "bob", "key": "k", "amount": 1,
                              "facts": facts});
            let refused = conversion.award(item_of(item).unwrap()).unwrap_err();
            assert_eq!(refused.code, Code::RequestMalformed, "{facts}");
        }
    }

    #[test]
    fn points_have_the_decimals_of_their_programme() {
        let conversion = conversion(Source::Operator, None);
        let burn = json!({"kind": "burn", "points": 1.5});
        let command = conversion.transaction(request(&burn), Family::Transactions).unwrap();
        assert!(matches!(command.body, Body::Burn { points: 150 }));
        let precise = json!({"kind": "burn", "points": "1.505"});
        assert_eq!(refused(&conversion, &precise, Family::Transactions), Code::PointsInvalid);
    }

    #[test]
    fn an_operator_takes_back_what_a_partner_gave() {
        let conversion = conversion(Source::Operator, None);
        let item = json!({"kind": "reverse", "award": "a-1", "source": "skyair"});
        let command = conversion.transaction(request(&item), Family::Corrections).unwrap();
        assert!(matches!(
            command.body,
            Body::Reverse { key: Some(key), source: Some(source), .. }
                if *key == *"a-1" && *source == *"skyair"
        ));
        let unnamed = json!({"kind": "reverse", "reference": "o-1", "source": "skyair"});
        assert_eq!(refused(&conversion, &unnamed, Family::Corrections), Code::RequestMalformed);
    }

    #[test]
    fn each_route_takes_its_own_kinds() {
        let conversion = conversion(Source::Operator, None);
        let adjust = json!({"kind": "adjust", "points": 5});
        assert_eq!(refused(&conversion, &adjust, Family::Transactions), Code::RequestMalformed);
        let silent = json!({"kind": "adjust", "points": 5, "reason": " "});
        assert_eq!(refused(&conversion, &silent, Family::Corrections), Code::ReasonMissing);
        let elsewhere = json!({"kind": "close", "programme": "grab-id"});
        assert_eq!(refused(&conversion, &elsewhere, Family::Corrections), Code::ProgrammeUnknown);
    }

    #[test]
    fn a_kind_has_the_members_that_mean_something_for_it() {
        let conversion = conversion(Source::Operator, None);
        let all = json!({"kind": "capture", "hold": "h-1", "points": 5});
        conversion.transaction(request(&all), Family::Transactions).unwrap();
        for (kind, member) in [
            ("capture", json!({"hold": "h-1", "amount": 5})),
            ("burn", json!({"points": 5, "reward": "coffee"})),
            ("exchangeOut", json!({"partner": "skyair", "points": 5, "amount": 5})),
            ("release", json!({"hold": "h-1", "points": 5})),
        ] {
            let mut item = member;
            item["kind"] = json!(kind);
            let code = refused(&conversion, &item, Family::Transactions);
            assert_eq!(code, Code::RequestMalformed, "{item}");
        }
    }

    #[test]
    fn large_adjustments_need_two_people() {
        let conversion = conversion(Source::Operator, Some(100));
        let adjust = |points: i64| json!({"kind": "adjust", "points": points});
        for points in [100, -100] {
            conversion.transaction(request(&adjust(points)), Family::Corrections).unwrap();
        }
        for points in [101, -101] {
            let code = refused(&conversion, &adjust(points), Family::Corrections);
            assert_eq!(code, Code::ApprovalNeeded);
        }
    }

    #[test]
    fn what_cannot_be_adjusted_is_not_proposed() {
        let conversion = conversion(Source::Operator, None);
        let proposed = |member: &str, points: i64| {
            conversion.approved(Adjustment {
                programme: "grab-sg".into(),
                member: member.into(),
                key: "k".into(),
                points: Number::whole(points),
                expires_on: None,
                reason: "r".into(),
            })
        };
        proposed("bob", -5).unwrap();
        assert_eq!(proposed("bob", 0).unwrap_err().code, Code::PointsInvalid);
        assert_eq!(proposed("", 5).unwrap_err().code, Code::MemberInvalid);
    }

    #[test]
    fn a_partner_exchanges_with_itself() {
        let conversion = conversion(Source::Partner("skyair".into()), None);
        let own = json!({"kind": "exchangeOut", "points": 5});
        let command = conversion.transaction(request(&own), Family::Transactions).unwrap();
        assert!(
            matches!(&command.body, Body::ExchangeOut { partner, .. } if **partner == *"skyair")
        );
        assert_eq!(&*command.source, "skyair");
        let foreign = json!({"kind": "reverse", "award": "a-1", "source": "other"});
        assert_eq!(refused(&conversion, &foreign, Family::Corrections), Code::SourceForeign);
        let other = json!({"kind": "exchangeOut", "points": 5, "partner": "other"});
        assert_eq!(refused(&conversion, &other, Family::Transactions), Code::SourceForeign);
    }
}
