//! Parts of the pages about drafts: what a draft changes, who else is editing the counter, and a
//! comparison of three versions.

use crate::html::parts::Column::{Silent, Text};
use crate::html::parts::{self, Mood};
use maud::{Markup, html};
use raingauge_core::counter::Counter;
use raingauge_counters::difference::{self, FieldChange};
use raingauge_counters::documents::{CounterKind, Document, Error};
use raingauge_ports::drafts::{Draft, State};

/// The state of a draft, as a badge.
pub fn state(state: State) -> Markup {
    html! { span.state data-state=(state_mood(state)) { (state_words(state)) } }
}

const fn state_words(state: State) -> &'static str {
    match state {
        State::Draft => "draft",
        State::Review => "in review",
        State::Applied => "applied",
        State::Rejected => "sent back",
        State::Withdrawn => "withdrawn",
    }
}

const fn state_mood(state: State) -> &'static str {
    match state {
        State::Review => "review",
        State::Applied => "good",
        State::Rejected => "bad",
        State::Draft | State::Withdrawn => "draft",
    }
}

/// What a draft proposes, in a few words.
pub fn title(draft: &Draft) -> String {
    if draft.is_new() {
        format!("New {} {}", draft.kind, draft.name())
    } else {
        format!("Change of {}", draft.name())
    }
}

/// The changed fields, with their values before and after.
pub fn changes(changed: &[FieldChange], before: &str, after: &str) -> Markup {
    if changed.is_empty() {
        return html! { p.quiet { "Nothing differs." } };
    }
    parts::named_table(
        "Fields that differ",
        "differences",
        &[Text("Field"), Text(before), Text(after)],
        &html! {
            @for change in changed {
                tr {
                    th scope="row" { (change.label) }
                    td { del { (change.before) } }
                    td { ins { (change.after) } }
                }
            }
        },
    )
}

/// A whole configuration in words.
pub fn configuration(counter: &Counter) -> Markup {
    html! {
        dl.facts {
            @for said in difference::say(counter) { dt { (said.label) } dd { (said.words) } }
        }
    }
}

/// Notice that other people have drafts of the same counter.
pub fn others(drafts: &[&Draft]) -> Markup {
    html! {
        @for draft in drafts {
            (parts::notice(Mood::Wait, &html! {
                (draft.changed_by) " is also changing this counter: "
                a href={ "/drafts/" (draft.id) } { "draft " (draft.id) }
                ". Of two changes of the same version, the one applied second shows the other."
            }))
        }
    }
}

/// Notice that another person has saved the draft since it was loaded, with the differences between
/// their text and the one typed here.
pub fn conflict(theirs: &Draft, changed: &[FieldChange]) -> Markup {
    parts::notice(
        Mood::Bad,
        &html! {
            p {
                (theirs.changed_by)
                " saved this draft while you edited it. Your changes are not saved yet."
            }
            (changes(changed, "theirs", "yours"))
            p {
                "Saving again replaces theirs with yours. "
                a href={ "/drafts/" (theirs.id) "/edit" } { "Take theirs, and drop mine" }
            }
        },
    )
}

/// Three versions of a counter: the one the draft is based on, the current one, and the one the
/// draft proposes.
pub fn three_ways(
    draft: &Draft,
    mine: &Counter,
    base: &Counter,
    theirs: &Document,
    actions: &Markup,
) -> Result<Markup, Error> {
    let counter = CounterKind::parse(&theirs.configuration)?;
    let changed = difference::differing(base, &counter);
    let wanted = difference::differing(base, mine);
    let rows =
        difference::say(base).into_iter().zip(difference::say(&counter)).zip(difference::say(mine));
    let rows =
        rows.zip(changed.into_iter().zip(wanted)).filter(|(_, (theirs, mine))| *theirs || *mine);

    let version = format!("version {}", draft.base_version);
    let columns =
        [Text("Field"), Text(&version), Text("now"), Text("this draft"), Silent("Changed twice")];
    let value = |words: &str, is_new: bool| {
        html! { td { @if is_new { ins { (words) } } @else { (words) } } }
    };

    Ok(html! {
        section.card.conflict aria-labelledby="conflict-head" {
            h2 #conflict-head { "The counter was changed while you edited it" }
            p {
                (theirs.changed_by) " created version " (theirs.version)
                "; this draft is based on version " (draft.base_version) "."
                @if !theirs.reason.is_empty() { " The reason was: " q { (theirs.reason) } }
            }
            (parts::table("conflict-head", &columns, &html! {
                @for (((base, theirs), mine), (changed, wanted)) in rows {
                    @let is_both = changed && wanted && theirs.words != mine.words;
                    tr {
                        th scope="row" { (base.label) }
                        td { (base.words) }
                        (value(&theirs.words, changed))
                        (value(&mine.words, wanted))
                        td { @if is_both { span.state data-state="bad" { "both" } } }
                    }
                }
            }))
            (actions)
        }
    })
}
