//! The views of a running rollout and of one that has ended.

use super::{badge, why};
use crate::Portal;
use crate::caller::Caller;
use crate::html::parts::Column::{self, Number, Silent, Text};
use crate::html::parts::{self, ButtonForm, Mood};
use crate::html::words;
use crate::pages::system::cache::history;
use crate::pages::system::overview::Overview;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use raingauge_core::access::Role;
use raingauge_people::Principal;
use raingauge_policy::rollout::{
    End, Kind, Limit, MODULO, Phase, Rollout, Stage, Verdict, WatchedStage, Window,
};
use raingauge_ports::rollouts::Run;

const LIMITS: [Column<'_>; 4] =
    [Text("Limit"), Number("Observed"), Number("At most"), Silent("Verdict")];
const STAGES: [Column<'_>; 9] = [
    Text("Stage"),
    Text("State"),
    Text("Started"),
    Text("Observed for"),
    Number("Counts/s"),
    Number("p99"),
    Number("Failed"),
    Number("Store per count"),
    Number("Breakers"),
];

/// The card of a running rollout.
pub fn running(caller: &Caller, overview: &Overview, run: &Run) -> Markup {
    let rollout = &run.rollout;
    let address = format!("/system/cache/rollouts/{}", run.id);
    html! {
        section.card.rollout aria-labelledby="rollout-title" {
            div.card-head {
                h2 #rollout-title { "Rollout " (run.id) ": " (rollout.plan.to.name()) }
                @if caller.person.may(Role::Admin) { (buttons(&caller.person, &address, rollout)) }
            }
            p.quiet {
                "By " (run.started_by) ", since " (parts::moment(run.started_at, &overview.zone))
                ": " (run.reason)
            }
            (lost(&caller.portal, overview, run))
            (present(rollout))
            div.pairs {
                (limits(rollout))
                (in_force(overview, rollout))
            }
            div {
                h3 #rollout-stages { "Stages" }
                (stages("rollout-stages", rollout, &overview.zone))
            }
        }
    }
}

fn buttons(person: &Principal, address: &str, rollout: &Rollout) -> Markup {
    let is_watching = matches!(rollout.phase, Phase::Watching { .. });
    html! {
        div.actions {
            form method="post" action={ (address) "/go-on" } {
                (parts::csrf(person))
                button.button disabled[!is_watching] { "Continue now" }
            }
            (ButtonForm::new(&format!("{address}/stop"), "Stop and roll back").class("danger")
                .markup(person))
        }
    }
}

/// Notice that the portal conducting the rollout is gone, or was interrupted.
fn lost(portal: &Portal, overview: &Overview, run: &Run) -> Markup {
    let is_there = overview.present_instances().any(|seen| seen.instance.id == run.conductor);
    if is_there || run.conductor == portal.operations.watch.id() {
        return html! {
            @if run.rollout.interruptions > 0 {
                p.quiet {
                    "The portal that conducted it was interrupted "
                    (times(run.rollout.interruptions)) "; the open window started again."
                }
            }
        };
    }

    let seconds = raingauge_operations::rollouts::STILL_MAX.as_secs();
    parts::notice(
        Mood::Wait,
        &html! {
            "The portal that conducted this rollout is gone: the rollout is not observed at the \
             moment, and the policy below stays in force. Another portal takes over within "
            (seconds) " seconds and starts the open window again. You can roll back now."
        },
    )
}

fn times(number: u32) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// The current step, and how long it still takes.
fn present(rollout: &Rollout) -> Markup {
    let stage = rollout.stage().unwrap_or(Stage { kind: Kind::Before, share: 0, seconds: 0.0 });
    let what = doing(&stage);
    let number = rollout.watched.len() + 1;
    let all = rollout.plan.stages().len();

    html! {
        h3 { "Stage " (number) " of " (all) ": " (what) }
        @match &rollout.phase {
            Phase::Setting => { p.quiet { "Its policy is being set." } }
            Phase::Following { lagging, .. } => {
                p.quiet {
                    "Its policy is set, and every process follows it within seconds."
                    @if !lagging.is_empty() { " Still missing: " (lagging.join(", ")) "." }
                }
                progress aria-label="Waiting until all follow" {}
            }
            Phase::Watching { .. } => (time(rollout, &stage)),
            Phase::Returning { why, .. } => { p.problem { "Rolling back, because " (why) "." } }
            Phase::Ended { .. } => {}
        }
    }
}

fn doing(stage: &Stage) -> String {
    match stage.kind {
        Kind::Before => "the service as it is, for comparison".to_owned(),
        Kind::Canary => format!("a canary, {}", share(stage.share)),
        Kind::Step => share(stage.share),
    }
}

fn share(share: u32) -> String {
    if share == MODULO {
        "all counters".to_owned()
    } else {
        format!("{share} of {MODULO} counters")
    }
}

fn time(rollout: &Rollout, stage: &Stage) -> Markup {
    let window = rollout.window().unwrap_or_default();
    let left = stage.seconds - window.seconds;
    let limits = &rollout.plan.limits;

    html! {
        label.field {
            span.quiet {
                @if left > 0.0 {
                    (words::duration(window.seconds.round())) " of "
                    (words::duration(stage.seconds)) " are over, "
                    (words::duration(left.ceil())) " remain."
                } @else {
                    "The time is over."
                }
                @if !limits.suffice(&window) {
                    " Waiting for " (limits.batches_min) " batches; there were "
                    (words::number(window.batches as i128)) " so far."
                }
            }
            progress max=(stage.seconds) value=(window.seconds.min(stage.seconds)) {}
        }
    }
}

/// Each limit, with the value measured against it in the open window.
fn limits(rollout: &Rollout) -> Markup {
    let window = rollout.window();
    let verdicts = window.as_ref().map_or_else(Vec::new, |window| rollout.verdicts(window));
    let is_settled = window.as_ref().is_some_and(|window| rollout.is_settled(window));

    html! {
        div {
            h3 #rollout-limits { "Limits" }
            @if verdicts.is_empty() {
                p.quiet {
                    @if rollout.baseline().is_none() { "There is nothing to compare with yet." }
                    @else { "The window opens once all processes follow." }
                }
            } @else {
                (parts::table("rollout-limits", &LIMITS, &html! {
                    @for verdict in &verdicts { (limit(verdict, is_settled)) }
                }))
            }
        }
    }
}

fn limit(verdict: &Verdict, is_settled: bool) -> Markup {
    let is_early = !is_settled && verdict.limit != Limit::Breakers;
    let number = |value| verdict.limit.number(value);
    let (mood, word) = if is_early {
        ("wait", "too early")
    } else if verdict.holds() {
        ("good", "holds")
    } else {
        ("bad", "broken")
    };
    html! {
        tr {
            th scope="row" { (limit_words(verdict.limit)) }
            td.number { (number(verdict.seen)) }
            td.number { (number(verdict.at_most)) }
            td { (badge_of(mood, word)) }
        }
    }
}

fn badge_of(mood: &str, word: &str) -> Markup {
    html! { span.state data-state=(mood) { (word) } }
}

const fn limit_words(limit: Limit) -> &'static str {
    match limit {
        Limit::Latency => "p99 latency of batches",
        Limit::Errors => "Counts that fail",
        Limit::Store => "Store requests per count",
        Limit::Breakers => "Circuit breakers opened",
    }
}

/// The policy in force, which stays if nobody intervenes.
fn in_force(overview: &Overview, rollout: &Rollout) -> Markup {
    let policy = overview.policy();
    html! {
        div {
            h3 { "In force" }
            p { (history::policy(&policy.policy)) }
            p.quiet {
                "Version " (policy.version) ". Rolling back sets: "
                (history::policy(&rollout.before))
            }
            p.quiet { "To set a policy by hand, stop the rollout first." }
        }
    }
}

/// All stages: finished ones with their measurements, and those to come.
pub fn stages(title_id: &str, rollout: &Rollout, zone: &TimeZone) -> Markup {
    let open = rollout.window();
    let next = rollout.stage().map(|_| rollout.watched.len());
    let later = if rollout.end().is_some() { "not reached" } else { "waits" };
    parts::table(
        title_id,
        &STAGES,
        &html! {
            @for (place, stage) in rollout.plan.stages().iter().enumerate() {
                @match rollout.watched.get(place) {
                    Some(watched) => (over(watched, zone)),
                    None if next == Some(place) => (current(rollout, stage, open.as_ref(), zone)),
                    None => tr.quiet {
                        th scope="row" { (stage.words()) }
                        td { span.state { (later) } }
                        td {}
                        td { (words::duration(stage.seconds)) }
                        @for _ in 4..STAGES.len() { td {} }
                    },
                }
            }
        },
    )
}

fn over(watched: &WatchedStage, zone: &TimeZone) -> Markup {
    let holds = watched.verdicts.iter().all(Verdict::holds);
    let (mood, word) = match watched.stage.kind {
        _ if !holds => ("bad", "broken"),
        Kind::Before => ("good", "observed"),
        Kind::Canary | Kind::Step => ("good", "held"),
    };
    html! {
        tr {
            th scope="row" { (watched.stage.words()) }
            td {
                (badge_of(mood, word))
                @if let Some(by) = &watched.cut_by { " " span.quiet { "cut short by " (by) } }
            }
            td { (parts::moment(watched.from_ms.div_euclid(1_000), zone)) }
            td { (words::duration(watched.window.seconds.round())) }
            (numbers(&watched.window, &watched.verdicts))
        }
    }
}

fn current(rollout: &Rollout, stage: &Stage, open: Option<&Window>, zone: &TimeZone) -> Markup {
    let verdicts = open.map_or_else(Vec::new, |window| rollout.verdicts(window));
    html! {
        tr aria-current="step" {
            th scope="row" { (stage.words()) }
            td { (badge_of("wait", if open.is_some() { "running" } else { "starting" })) }
            td {
                @if let Phase::Watching { since_ms, .. } = rollout.phase {
                    (parts::moment(since_ms.div_euclid(1_000), zone))
                }
            }
            td {
                @if let Some(window) = open { (words::duration(window.seconds.round())) " of " }
                (words::duration(stage.seconds))
            }
            @match open {
                Some(window) => (numbers(window, &verdicts)),
                None => { @for _ in 4..STAGES.len() { td {} } },
            }
        }
    }
}

fn numbers(window: &Window, verdicts: &[Verdict]) -> Markup {
    let is_broken =
        |limit: Limit| verdicts.iter().any(|verdict| verdict.limit == limit && !verdict.holds());
    let seen = [
        (Limit::Latency, window.p99_ms),
        (Limit::Errors, window.failed_share),
        (Limit::Store, window.store_per_count()),
        (Limit::Breakers, window.breakers_opened),
    ];

    html! {
        td.number { (words::number(window.counts_per_s.round() as i128)) }
        @for (limit, value) in seen {
            @let number = limit.number(value);
            td.number { @if is_broken(limit) { b.problem { (number) } } @else { (number) } }
        }
    }
}

/// How a rollout ended, in a sentence, optionally with a link to its report.
pub fn ending(run: &Run, has_link: bool) -> Markup {
    let Some(end) = run.rollout.end() else {
        return parts::notice(
            Mood::Wait,
            &html! { "This rollout is running. " a href="/system/cache" { "Follow it" } },
        );
    };

    let (mood, sentence) = sentence(&run.rollout, end);
    parts::notice(
        mood,
        &html! {
            "Rollout " (run.id) " " (sentence)
            @if has_link { " " a href={ "/system/cache/rollouts/" (run.id) } { "Report " (run.id) } }
        },
    )
}

fn sentence(rollout: &Rollout, end: End) -> (Mood, String) {
    let to = rollout.plan.to.name();
    let why = why(rollout);
    let answered = share(rollout.plan.shares.last().copied().unwrap_or_default());

    // A person may skip ahead to the next stage although a limit is broken so far.
    let held = rollout.watched.iter().flat_map(|watched| &watched.verdicts).all(Verdict::holds);
    let back = "The previous policy is in force again.";

    match end {
        End::Finished if held => {
            (Mood::Good, format!("has finished: {to} answers {answered}, and every limit held."))
        }
        End::Finished => (Mood::Wait, format!("has finished: {to} answers {answered}.")),
        End::Broken => (Mood::Bad, format!("of {to} was rolled back automatically: {why}. {back}")),
        End::Stopped => (Mood::Wait, format!("of {to} has ended: {why}. {back}")),
        End::Inconclusive | End::Failed => {
            (Mood::Bad, format!("of {to} was abandoned: {why}. {back}"))
        }
        End::Overruled => (Mood::Wait, format!("of {to} has ended: {why}, which stays.")),
    }
}

/// Who began the rollout, its plan, and the limits it must keep.
pub fn facts(run: &Run, zone: &TimeZone) -> Markup {
    let plan = &run.rollout.plan;
    let shares: Vec<String> = plan.shares.iter().map(ToString::to_string).collect();
    let limits = &plan.limits;

    let hold = words::duration(plan.hold_s);
    let canary = (plan.canary_s > 0.0).then(|| words::duration(plan.canary_s));

    html! {
        dl.facts {
            dt { "Started" } dd { (parts::zoned(run.started_at, zone)) " by " (run.started_by) }
            dt { "Reason" } dd { (run.reason) }
            @if let (Some(ended_at), Some(end)) = (run.ended_at, run.rollout.end()) {
                dt { "Ended" } dd { (parts::zoned(ended_at, zone)) " " (badge(end)) }
            }
            dt { "Strategy" } dd { (plan.to.name()) }
            dt { "Steps" }
            dd {
                (shares.join(", ")) " % of the counters, " (hold) " each"
                @if let Some(canary) = canary { ", with canaries of " (canary) }
            }
            dt { "Previous policy" } dd { (history::policy(&run.rollout.before)) }
            dt { "p99 latency" }
            dd {
                "at most " (limits.p99_times) " times the earlier one; always fine below "
                (limits.p99_free_ms) " ms"
            }
            dt { "Failed counts" }
            dd { "at most " (Limit::Errors.number(limits.failed_share)) " more than before" }
            dt { "Store load" }
            dd { "at most " (limits.store_times) " times the earlier requests for each count" }
            dt { "Circuit breakers" } dd { "at most " (limits.breakers) " may open" }
            dt { "Batches" } dd { "at least " (limits.batches_min) " for each stage" }
        }
    }
}
