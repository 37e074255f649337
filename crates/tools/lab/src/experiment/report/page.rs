//! The report as one self-contained page: no script, no font, nothing to load.

mod phases;
mod run;

use super::analysis::Analysis;
use super::figure::{Figure, Layout, length_words, palette, svg};
use super::findings::Finding;
use super::numbers::Numbers;
use super::rules::Verdict;
use super::usage::machine_s;
use super::words::percent;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");

pub fn html(
    analysis: &Analysis,
    numbers: &Numbers,
    findings: &[Finding],
    figures: &[Figure],
) -> String {
    let record = analysis.record;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (record.title) " – raingauge" }
                style { (PreEscaped(STYLE)) (PreEscaped(palette::style_sheet())) }
            }
            body {
                header {
                    p.eyebrow { "raingauge lab · cache-removal" }
                    h1 { (record.title) }
                    p.lead { (lead(analysis, figures)) }
                }
                main {
                    (verdicts(analysis, findings))
                    section #phases { h2 { "Phase by phase" } (phases::table(analysis, numbers)) }
                    @for figure in figures { (section(analysis, figure, findings)) }
                    (run::about(analysis, numbers))
                }
                footer {
                    p { "The reference: “Evaluating performance impact of removing Redis-cache from a Scylla-backed service”, Grab Engineering, 11 April 2025." }
                    p {
                        "Generated from " code { "record.json" } " beside this page; " code { "numbers.json" } " and "
                        code { "numbers.csv" } " contain the values of the figures, and every figure is available as SVG and as PNG."
                    }
                }
            }
        }
    };
    page.into_string()
}

/// A one-paragraph summary of the run.
fn lead(analysis: &Analysis, figures: &[Figure]) -> String {
    let record = analysis.record;
    let length_ms = record.to_ms - record.from_ms;
    let minutes = machine_s(length_ms, record.factor) / 60.0;
    let shares: Vec<String> = analysis
        .phases
        .iter()
        .filter(|phase| phase.share > 0.0)
        .map(|phase| percent(phase.share))
        .collect();

    let steps = match shares.as_slice() {
        [] => "No counter lost its cache.".to_owned(),
        [one] => format!("The result cache was removed from {one} of the counters."),
        [first @ .., last] => {
            format!(
                "The result cache was removed from {}, then {last} of the counters.",
                first.join(", ")
            )
        }
    };

    format!(
        "{} of traffic in {minutes:.1} minutes of machine time. {steps} {} figures, in the order and with the numbers of the \
         published experiment that this one repeats, show the effect.",
        capital(&length_words(length_ms)),
        figures.len()
    )
}

fn capital(text: &str) -> String {
    super::figure::proper(text)
}

fn verdicts(analysis: &Analysis, findings: &[Finding]) -> Markup {
    let kinds = [Verdict::Agrees, Verdict::Differs, Verdict::Undecided];
    html! {
        section #verdicts {
            h2 { "Does it agree with the reference?" }
            ul.tally {
                @for kind in kinds {
                    @let len = findings.iter().filter(|finding| finding.verdict == kind).count();
                    li class=(kind.class()) { b { (len) } " " (kind.words_for(len)) }
                }
            }
            p.checked.alarm[analysis.record.checked.wrong > 0] { (run::checked(analysis)) }
            div.scroll {
                table.claims {
                    thead { tr { th scope="col" { "Figure" } th scope="col" { "Claim of the reference" } th scope="col" { "This run" } } }
                    tbody {
                        @for finding in findings {
                            tr {
                                td.place { a href={ "#figure-" (finding.figure) } { (finding.figure) } }
                                td { (finding.claim) }
                                td { (chip(finding.verdict)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn chip(verdict: Verdict) -> Markup {
    html! { span class={ "chip " (verdict.class()) } { (verdict.name()) } }
}

fn section(analysis: &Analysis, figure: &Figure, findings: &[Finding]) -> Markup {
    let draw = |layout, class| PreEscaped(svg::inline(&figure.draw(analysis, layout), class));
    html! {
        section.plate id={ "figure-" (figure.number) } {
            h2 { span.place { (figure.number) } (figure.title) }
            p.words { (figure.words) }
            figure.picture {
                (draw(Layout::Page, "wide"))
                (draw(Layout::Phone, "narrow"))
            }
            @for finding in findings.iter().filter(|finding| finding.figure == figure.number) {
                (words(finding))
            }
        }
    }
}

fn words(finding: &Finding) -> Markup {
    html! {
        article.finding {
            h3 { (finding.claim) " " (chip(finding.verdict)) }
            div.sides {
                div { h4 { "Result of the reference" } p { (finding.reference) } }
                div { h4 { "Result of this run" } p { (finding.here) } }
            }
            p.rule { (finding.rule) }
        }
    }
}
