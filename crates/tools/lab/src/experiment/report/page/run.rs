//! How the run was made, how to reproduce it, and its limitations.

use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::figure::length_words;
use crate::experiment::report::numbers::Numbers;
use crate::experiment::report::usage::machine_s;
use crate::experiment::report::words::number;
use maud::{Markup, html};

/// The entry of the traffic's description that contains the command line.
const COMMAND: &str = "command";

pub fn about(analysis: &Analysis, numbers: &Numbers) -> Markup {
    html! {
        section #run {
            h2 { "The run" }
            (environment(analysis))
            h3 { "Steps" }
            (steps(analysis))
            h3 { "Traffic" }
            (pairs(analysis.record.traffic.iter().filter(|(name, _)| *name != COMMAND)))
            h3 { "Reproduce it" }
            (reproduction(analysis))
        }
        section #limits { h2 { "What compressed time can and cannot show" } (limits(analysis)) }
        section #method { h2 { "How the numbers are computed" } (method(numbers)) }
    }
}

fn pairs<'a>(rows: impl Iterator<Item = (&'a String, &'a String)>) -> Markup {
    html! { dl { @for (name, words) in rows { div { dt { (name) } dd { (words) } } } } }
}

fn environment(analysis: &Analysis) -> Markup {
    let record = analysis.record;
    let machine = &record.machine;
    let when = |at_ms| analysis.zone.words(at_ms, "%a %-d %b %Y %H:%M");
    let minutes = machine_s(record.to_ms - record.from_ms, record.factor) / 60.0;
    let engines: Vec<String> =
        record.engines.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let rows = [
        ("started", record.started.clone()),
        ("machine", format!("{}, {} cores", machine.processor, machine.cores)),
        ("kernel", format!("Linux {}, load before {}", machine.kernel, machine.load_before)),
        ("engines", if engines.is_empty() { "none named".to_owned() } else { engines.join(", ") }),
        (
            "service time",
            format!("{} to {} ({})", when(record.from_ms), when(record.to_ms), record.timezone),
        ),
        (
            "machine time",
            format!(
                "{minutes:.1} minutes: the service's clock ran {} times as fast",
                number(record.factor)
            ),
        ),
        ("seed", record.seed.to_string()),
        ("plan of ranges", record.plan.clone()),
        ("strategies", format!("{} before, {} after", record.strategies[0], record.strategies[1])),
        (
            "recorded",
            format!(
                "{} batches, {} samples",
                number(record.answers.len() as f64),
                number(record.samples.len() as f64)
            ),
        ),
    ];

    html! { dl { @for (name, words) in &rows { div { dt { (name) } dd { (words) } } } } }
}

/// The list of changes, with their times.
fn steps(analysis: &Analysis) -> Markup {
    let when = |at_ms| analysis.zone.words(at_ms, "%a %-d %b %H:%M");
    html! {
        @if analysis.record.steps.is_empty() { p { "Nothing was changed." } }
        dl.steps {
            @for step in &analysis.record.steps {
                div { dt { (when(step.at_ms)) } dd { (step.label) } }
            }
        }
    }
}

pub fn checked(analysis: &Analysis) -> String {
    let checked = analysis.record.checked;
    if checked.compared == 0 {
        return "No answer was compared with the truth.".to_owned();
    }
    format!(
        "{} answers were compared with the truth: {} were wrong, {} lacked events that had already been sent, by at most {} s \
         of the service's time.",
        number(checked.compared as f64),
        number(checked.wrong as f64),
        number(checked.late as f64),
        number(checked.late_max_ms as f64 / 1_000.0)
    )
}

fn reproduction(analysis: &Analysis) -> Markup {
    html! {
        @match analysis.record.traffic.get(COMMAND) {
            Some(command) => pre { code { (command) } },
            None => p { "The record does not contain the command line." },
        }
        p.quiet { "The seed determines keys, ranges and times; the measurements differ from run to run." }
    }
}

fn limits(analysis: &Analysis) -> Markup {
    let factor = analysis.record.factor;
    if factor <= 1.0 {
        return html! { p { "The service's clock ran as fast as the machine's: nothing was compressed." } };
    }

    let length_ms = analysis.record.to_ms - analysis.record.from_ms;
    let second_ms = number(1_000.0 / factor);
    let quarter_s = number(900.0 / factor);
    html! {
        p {
            "The service's clock ran " (number(factor)) " times as fast as the machine's. One second of the service was "
            (second_ms) " ms of the machine, and a quarter hour was " (quarter_s) " s. Everything that depends on the clock alone is as in \
            real time: which ranges share a cached result, when results become useless, when clients send more, how \
            phases and compactions follow each other."
        }
        ul {
            li { "Rates and latencies are those of the machine. A latency of 5 ms took " (number(0.005 * factor)) " s of the \
                  service's time, so a queue that would drain within a spike lasts longer than the spike here." }
            li { "Between two turns of a quarter hour there are " (number(factor)) " times fewer requests than at the same rate \
                  in real time. A result is requested less often during its lifetime, unless the traffic has fewer keys." }
            li { "The store flushes, compacts and ages its own cache by the machine's clock. Its files grow as in "
                  (number(machine_s(length_ms, factor) / 60.0)) " minutes of such load, not as in "
                  (length_words(length_ms)) "." }
            li { "All parts share one machine with the load generator. A cluster of many machines has networks between its parts and \
                  spare processor capacity; ratios are more transferable than absolute values." }
            li { "Phases are on different days of the week, as in the reference, so a difference of 10 % between two of them \
                  may be due to the day." }
        }
    }
}

fn method(numbers: &Numbers) -> Markup {
    html! {
        ul {
            li { "A phase lasts from its step until the next canary or step. The time of a canary belongs to no phase." }
            li { "Percentiles are exact, by nearest rank. A bin with fewer than 100 batches has no 99th percentile." }
            li { "A bin of figures over the whole run is " (length_words(numbers.bin_width_ms)) " long. A bin without data is a gap, not 0." }
            li { "Rates of the store and of processors are differences of samples; between two samples a counter is assumed to \
                  grow linearly, and a gap of more than four usual distances has no values." }
            li { "Only quarter hours completely within a phase are superimposed. Full hours are those of local time." }
            li { "A hit is a count answered by the result cache or the reader's memory." }
        }
    }
}
