//! Parts of the pages about drafts: what a draft changes, who else is editing the counter, and a
//! comparison of three versions.

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
    html! {
        div.scroll tabindex="0" {
            table.differences {
                thead { tr { th scope="col" { "Field" } th scope="col" { (before) } th scope="col" { (after) } } }
                tbody {
                    @for change in changed {
                        tr {
                            th scope="row" { (change.label) }
                            td { del { (change.before) } }
                            td { ins { (change.after) } }
                        }
                    }
                }
            }
        }
    }
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
                (draft.changed_by) " has a change of this counter under way: "
                a href={ "/drafts/" (draft.id) } { "draft " (draft.id) }
                ". Of two changes of the same version, the second one shows the first."
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
            p { (theirs.changed_by) " saved this draft while you edited it. Nothing of yours was saved yet." }
            (changes(changed, "theirs", "yours"))
            p {
                "Saving again puts yours in the place of theirs. "
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

    Ok(html! {
        section.card.conflict aria-labelledby="conflict-head" {
            h2 #conflict-head { "The counter was changed while you edited it" }
            p {
                (theirs.changed_by) " made version " (theirs.version) " of it; this draft began with version " (draft.base_version) "."
                @if !theirs.reason.is_empty() { " The reason was: " q { (theirs.reason) } }
            }
            div.scroll tabindex="0" {
                table.differences {
                    thead { tr { th scope="col" { "Field" } th scope="col" { "version " (draft.base_version) } th scope="col" { "by now" } th scope="col" { "this draft" } th scope="col" { "" } } }
                    tbody {
                        @for (((base, theirs), mine), (changed, wanted)) in rows {
                            tr {
                                th scope="row" { (base.label) }
                                td { (base.words) }
                                td { @if changed { ins { (theirs.words) } } @else { (theirs.words) } }
                                td { @if wanted { ins { (mine.words) } } @else { (mine.words) } }
                                td { @if changed && wanted && theirs.words != mine.words { span.state data-state="bad" { "both" } } }
                            }
                        }
                    }
                }
            }
            (actions)
        }
    })
}
