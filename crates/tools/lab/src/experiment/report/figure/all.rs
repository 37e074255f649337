//! The list of figures and their content.

use super::over_run::{OverRun, Series, Style};
use super::palette::Paint;
use super::spikes::Spikes;
use super::{Content, Figure};
use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::bins::{Bin, DAY_MS, HOUR_MS, MINUTE_MS};
use crate::experiment::report::fold::Measure;
use crate::experiment::report::numbers::{Numbers, PhaseNumbers};
use crate::experiment::report::usage::{breakers, cpu_of, memory_of, own_hits, own_misses};
use raingauge_figure::Unit;

/// The product name of an engine.
pub fn proper(part: &str) -> String {
    let mut letters = part.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Formats the length of a bin.
pub fn length_words(length_ms: i64) -> String {
    let (amount, unit) = match length_ms {
        _ if length_ms % DAY_MS == 0 => (length_ms / DAY_MS, "day"),
        _ if length_ms % HOUR_MS == 0 => (length_ms / HOUR_MS, "hour"),
        _ => (length_ms / MINUTE_MS, "minute"),
    };
    if amount == 1 { format!("one {unit}") } else { format!("{amount} {unit}s") }
}

type Values = Vec<Option<f64>>;

/// In the order of the reference.
pub fn all(analysis: &Analysis, numbers: &Numbers) -> Vec<Figure> {
    let maker = Maker { analysis, numbers };
    let store = maker.store();
    let cores = analysis.record.machine.cores;
    let store_part = analysis.store().unwrap_or_default();
    let memory =
        |from_ms, to_ms| analysis.usages.greatest(from_ms, to_ms, memory_of(analysis.store()?));
    let openings = analysis.usages.counter(breakers);

    vec![
        maker.over_run(
            (2, "cache-hits"),
            "Sources of answers",
            "Share of the answered counts",
            maker.sources(),
        ),
        maker.over_run(
            (5, "store-and-cache"),
            &format!("Counts answered by {store} and by {}", maker.cache()),
            "Per second of the machine's clock, hits in the reader's memory as those of the cache",
            maker.store_and_cache(),
        ),
        spikes((6, "load-spikes"), Measure::StoreLoad, &format!("Load of {store}")),
        spikes((7, "latency-spikes"), Measure::Latency, "Mean latency"),
        maker.over_run(
            (8, "mean-latency"),
            "Mean latency of a batch",
            "From its due time until its answer arrived",
            maker.line("ms", analysis.bins.values(|bin| bin.tally.mean_ms()), |of| of.mean_ms),
        ),
        maker.over_run(
            (9, "p99-latency"),
            "99th percentile of the latency of a batch",
            "Exact, of at least 100 batches",
            maker.line("ms", analysis.bins.values(|bin| bin.p99_ms), |of| of.p99_ms),
        ),
        maker.over_run(
            (10, "own-cache-hits"),
            &format!("Reads that {store} answered from its own cache"),
            "Hits per second of the machine's clock",
            maker.line("hits/s", analysis.rates(own_hits), |of| of.own_hits_per_s),
        ),
        maker.over_run(
            (11, "own-cache-misses"),
            &format!("Reads that {store} did not find in its own cache"),
            "Misses per second of the machine's clock",
            maker.line("misses/s", analysis.rates(own_misses), |of| of.own_misses_per_s),
        ),
        maker.over_run(
            (12, "store-cpu"),
            &format!("Processor time of {store}"),
            &format!("Cores used, of the {cores} cores of the machine"),
            maker.line("cores", analysis.rates(cpu_of(store_part)), |of| of.store_cores),
        ),
        maker.over_run(
            (13, "store-memory"),
            &format!("Memory of {store}"),
            "Resident memory, the largest sample",
            OverRun {
                unit: Unit::Bytes,
                ..maker.line("resident", analysis.sampled(memory), |of| of.store_memory_bytes_peak)
            },
        ),
        maker.figure(
            (14, "parts-cpu"),
            "Processor time of every part",
            "Cores used by each, all on the same scale",
            Content::Parts,
        ),
        maker.over_run(
            (15, "breakers"),
            "Circuit breaker openings",
            "Openings",
            bars("openings", analysis.sampled(|from_ms, to_ms| openings.events(from_ms, to_ms))),
        ),
        maker.over_run(
            (16, "failed"),
            "Failed counts",
            "Per second of the machine's clock",
            bars("counts/s", analysis.bins.values(|bin| maker.per_s(bin, bin.tally.failed))),
        ),
    ]
}

struct Maker<'a> {
    analysis: &'a Analysis<'a>,
    numbers: &'a Numbers,
}

impl Maker<'_> {
    fn store(&self) -> String {
        self.analysis.store().map_or("the store".to_owned(), proper)
    }

    fn cache(&self) -> String {
        self.analysis.cache().map_or("the cache".to_owned(), proper)
    }

    fn figure(
        &self,
        (number, name): (u8, &'static str),
        title: &str,
        what: &str,
        content: Content,
    ) -> Figure {
        let words = format!("{what}, in bins of {}.", length_words(self.analysis.bins.width_ms));
        Figure { number, name, title: title.to_owned(), words, content }
    }

    fn over_run(&self, name: (u8, &'static str), title: &str, what: &str, plot: OverRun) -> Figure {
        self.figure(name, title, what, Content::OverRun(plot))
    }

    fn per_s(&self, bin: &Bin, amount: u64) -> Option<f64> {
        Some(self.analysis.per_s(amount, self.analysis.bin_end_ms(bin.from_ms) - bin.from_ms))
    }

    /// A single line in the colour of the store, with a level for each phase.
    fn line(
        &self,
        caption: &str,
        values: Values,
        level: impl Fn(&PhaseNumbers) -> Option<f64>,
    ) -> OverRun {
        OverRun {
            series: vec![Series { name: self.store(), paint: Paint::Store, values }],
            levels: self.numbers.phases.iter().map(level).collect(),
            ..plain(Style::Lines, caption)
        }
    }

    fn series(&self, name: String, paint: Paint, value: impl Fn(&Bin) -> Option<f64>) -> Series {
        Series { name, paint, values: self.analysis.bins.values(value) }
    }

    fn sources(&self) -> OverRun {
        let has_memory = self.analysis.bins.bins.iter().any(|bin| bin.tally.memory > 0);
        let memory = self.series("the reader's memory".to_owned(), Paint::Memory, |bin| {
            bin.tally.share(bin.tally.memory)
        });

        let mut series = vec![
            self.series(self.store(), Paint::Store, |bin| bin.tally.share(bin.tally.store)),
            self.series(self.cache(), Paint::Cache, |bin| bin.tally.share(bin.tally.cache)),
        ];
        series.extend(has_memory.then_some(memory));
        OverRun { series, unit: Unit::Share, ..plain(Style::Stacked, "") }
    }

    fn store_and_cache(&self) -> OverRun {
        let hits = |bin: &Bin| self.per_s(bin, bin.tally.cache + bin.tally.memory);
        let series = vec![
            self.series(self.store(), Paint::Store, |bin| self.per_s(bin, bin.tally.store)),
            self.series(self.cache(), Paint::Cache, hits),
        ];
        OverRun { series, ..plain(Style::Lines, "counts/s") }
    }
}

fn plain(style: Style, caption: &str) -> OverRun {
    let caption = caption.to_owned();
    OverRun { series: Vec::new(), style, unit: Unit::Number, caption, levels: Vec::new() }
}

/// Bars of harm.
fn bars(caption: &str, values: Values) -> OverRun {
    let series = vec![Series { name: caption.to_owned(), paint: Paint::Failed, values }];
    OverRun { series, ..plain(Style::Bars, caption) }
}

fn spikes((number, name): (u8, &'static str), measure: Measure, what: &str) -> Figure {
    let title = format!("{what} at the turn of a quarter hour");
    let (above, caption) = match measure {
        Measure::StoreLoad => ("Counts per second of the machine's clock", "counts/s"),
        Measure::Latency => ("Latency of a batch from its due time", "ms"),
    };
    let words = format!(
        "{above}: two hours at the same time of the day in bins of one minute; below, all quarter \
         hours of each phase laid on each other in bins of 30 seconds."
    );
    let content = Content::Spikes(Spikes { measure, caption: caption.to_owned() });
    Figure { number, name, title, words, content }
}
