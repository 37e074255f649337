//! Kinds of entries in the words of members.

use maud::{Markup, html};
use raingauge_points::Kind;

/// What happened, in a word or two.
pub const fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Earn => "earned",
        Kind::Bonus => "bonus",
        Kind::Activate => "can be spent now",
        Kind::Burn => "spent",
        Kind::Hold => "set aside",
        Kind::Capture => "spent from what was set aside",
        Kind::Release => "no longer set aside",
        Kind::TransferOut => "given away",
        Kind::TransferIn => "received",
        Kind::ExchangeOut => "moved to a partner",
        Kind::ExchangeIn => "came from a partner",
        Kind::Reverse => "taken back",
        Kind::Adjust => "adjusted",
        Kind::Expire => "expired",
        Kind::Reinstate => "brought back",
        Kind::Programme => "new version of the programme",
        Kind::Tier => "new tier",
        Kind::Refused => "refused",
        Kind::Extend => "new dates",
        Kind::Remind => "reminded",
        Kind::Close => "closed",
    }
}

/// A kind as a badge, with its name in the API as a tooltip.
pub fn badge(kind: Kind) -> Markup {
    html! { span.state data-state=(mood(kind)) title=(kind.name()) { (words(kind)) } }
}

const fn mood(kind: Kind) -> &'static str {
    match kind {
        Kind::Earn | Kind::Bonus | Kind::TransferIn | Kind::ExchangeIn | Kind::Reinstate => "good",
        Kind::Refused => "bad",
        Kind::Expire | Kind::Reverse => "wait",
        _ => "draft",
    }
}
