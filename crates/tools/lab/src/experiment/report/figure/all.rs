//! The list of figures and their content.

use super::over_run::{OverRun, Series, Style};
use super::palette::Paint;
use super::scale::Unit;
use super::spikes::Spikes;
use super::{Content, Figure};
use crate::experiment::report::analysis::Analysis;
use crate::experiment::report::bins::{Bin, DAY_MS, HOUR_MS, MINUTE_MS};
use crate::experiment::report::fold::Measure;
use crate::experiment::report::numbers::{Numbers, PhaseNumbers};
use crate::experiment::report::usage::{breakers, cpu_of, memory_of, own_hits, own_misses};

/// In the order of the reference.
pub fn all(analysis: &Analysis, numbers: &Numbers) -> Vec<Figure> {
    let maker = Maker { analysis, numbers };
    vec![
        maker.cache_hits(),
        maker.store_and_cache(),
        maker.load_spikes(),
        maker.latency_spikes(),
        maker.mean_latency(),
        maker.p99_latency(),
        maker.own_hits(),
        maker.own_misses(),
        maker.store_cpu(),
        maker.store_memory(),
        maker.parts_cpu(),
        maker.breakers(),
        maker.failed(),
    ]
}

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

    fn bin_words(&self) -> String {
        length_words(self.analysis.bins.width_ms)
    }

    fn levels(&self, level: impl Fn(&PhaseNumbers) -> Option<f64>) -> Vec<Option<f64>> {
        self.numbers.phases.iter().map(level).collect()
    }

    fn series(&self, name: String, paint: Paint, value: impl Fn(&Bin) -> Option<f64>) -> Series {
        Series { name, paint, values: self.analysis.bins.values(value) }
    }

    fn per_s(&self, bin: &Bin, amount: u64) -> Option<f64> {
        Some(self.analysis.per_s(amount, self.analysis.bin_end_ms(bin.from_ms) - bin.from_ms))
    }

    /// A single series in the colour of the store.
    fn single(
        &self,
        values: Vec<Option<f64>>,
        unit: Unit,
        caption: &str,
        levels: Vec<Option<f64>>,
    ) -> Content {
        let series = vec![Series { name: self.store(), paint: Paint::Store, values }];
        Content::OverRun(OverRun {
            series,
            style: Style::Lines,
            unit,
            caption: caption.to_owned(),
            levels,
        })
    }

    fn cache_hits(&self) -> Figure {
        let has_memory = self.analysis.bins.bins.iter().any(|bin| bin.tally.memory > 0);
        let mut series =
            vec![self.series(self.store(), Paint::Store, |bin| bin.tally.share(bin.tally.store))];
        series
            .push(self.series(self.cache(), Paint::Cache, |bin| bin.tally.share(bin.tally.cache)));

        if has_memory {
            let memory = "the reader's memory".to_owned();
            series
                .push(self.series(memory, Paint::Memory, |bin| bin.tally.share(bin.tally.memory)));
        }

        Figure {
            number: 2,
            name: "cache-hits",
            title: "Sources of answers".to_owned(),
            words: format!("Share of the answered counts, in bins of {}.", self.bin_words()),
            content: Content::OverRun(OverRun {
                series,
                style: Style::Stacked,
                unit: Unit::Share,
                caption: String::new(),
                levels: Vec::new(),
            }),
        }
    }

    fn store_and_cache(&self) -> Figure {
        let hits = |bin: &Bin| self.per_s(bin, bin.tally.cache + bin.tally.memory);
        let series = vec![
            self.series(self.store(), Paint::Store, |bin| self.per_s(bin, bin.tally.store)),
            self.series(self.cache(), Paint::Cache, hits),
        ];
        Figure {
            number: 5,
            name: "store-and-cache",
            title: format!("Counts answered by {} and by {}", self.store(), self.cache()),
            words: format!(
                "Per second of the machine's clock, in bins of {}. Hits in the reader's memory are included in the cache.",
                self.bin_words()
            ),
            content: Content::OverRun(OverRun {
                series,
                style: Style::Lines,
                unit: Unit::Number,
                caption: "counts/s".to_owned(),
                levels: Vec::new(),
            }),
        }
    }

    fn load_spikes(&self) -> Figure {
        Figure {
            number: 6,
            name: "load-spikes",
            title: format!("Load of {} at the turn of a quarter hour", self.store()),
            words: "Above, two hours at the same time of the day in bins of one minute, counts per second of the machine's clock. \
                    Below, all quarter hours of each phase laid on each other in bins of 30 seconds."
                .to_owned(),
            content: Content::Spikes(Spikes {
                measure: Measure::StoreLoad,
                caption: "counts/s".to_owned(),
            }),
        }
    }

    fn latency_spikes(&self) -> Figure {
        Figure {
            number: 7,
            name: "latency-spikes",
            title: "Mean latency at the turn of a quarter hour".to_owned(),
            words: "Of a batch, from its due time. Above, two hours at the same time of the day in bins of one minute. \
                    Below, all quarter hours of each phase laid on each other in bins of 30 seconds."
                .to_owned(),
            content: Content::Spikes(Spikes {
                measure: Measure::Latency,
                caption: "ms".to_owned(),
            }),
        }
    }

    fn mean_latency(&self) -> Figure {
        let values = self.analysis.bins.values(|bin| bin.tally.mean_ms());
        Figure {
            number: 8,
            name: "mean-latency",
            title: "Mean latency of a batch".to_owned(),
            words: format!(
                "From its due time until its answer arrived, in bins of {}.",
                self.bin_words()
            ),
            content: self.single(values, Unit::Number, "ms", self.levels(|phase| phase.mean_ms)),
        }
    }

    fn p99_latency(&self) -> Figure {
        let values = self.analysis.bins.values(|bin| bin.p99_ms);
        Figure {
            number: 9,
            name: "p99-latency",
            title: "99th percentile of the latency of a batch".to_owned(),
            words: format!(
                "Exact, of all batches due in a bin of {}; none for fewer than 100.",
                self.bin_words()
            ),
            content: self.single(values, Unit::Number, "ms", self.levels(|phase| phase.p99_ms)),
        }
    }

    fn own_hits(&self) -> Figure {
        let values = self.analysis.rates(own_hits);
        Figure {
            number: 10,
            name: "own-cache-hits",
            title: format!("Reads that {} answered from its own cache", self.store()),
            words: format!(
                "Hits per second of the machine's clock, in bins of {}.",
                self.bin_words()
            ),
            content: self.single(
                values,
                Unit::Number,
                "hits/s",
                self.levels(|phase| phase.own_hits_per_s),
            ),
        }
    }

    fn own_misses(&self) -> Figure {
        let values = self.analysis.rates(own_misses);
        Figure {
            number: 11,
            name: "own-cache-misses",
            title: format!("Reads that {} did not find in its own cache", self.store()),
            words: format!(
                "Misses per second of the machine's clock, in bins of {}.",
                self.bin_words()
            ),
            content: self.single(
                values,
                Unit::Number,
                "misses/s",
                self.levels(|phase| phase.own_misses_per_s),
            ),
        }
    }

    fn store_cpu(&self) -> Figure {
        let store = self.analysis.store().unwrap_or_default();
        Figure {
            number: 12,
            name: "store-cpu",
            title: format!("Processor time of {}", self.store()),
            words: format!(
                "Cores used, of the {} cores of the machine, in bins of {}.",
                self.analysis.record.machine.cores,
                self.bin_words()
            ),
            content: self.single(
                self.analysis.rates(cpu_of(store)),
                Unit::Number,
                "cores",
                self.levels(|phase| phase.store_cores),
            ),
        }
    }

    fn store_memory(&self) -> Figure {
        let of_store = |from_ms, to_ms| {
            self.analysis.usages.greatest(from_ms, to_ms, memory_of(self.analysis.store()?))
        };
        Figure {
            number: 13,
            name: "store-memory",
            title: format!("Memory of {}", self.store()),
            words: format!("Resident memory, the largest sample in bins of {}.", self.bin_words()),
            content: self.single(
                self.analysis.sampled(of_store),
                Unit::Bytes,
                "resident",
                self.levels(|phase| phase.store_memory_bytes_peak),
            ),
        }
    }

    fn parts_cpu(&self) -> Figure {
        Figure {
            number: 14,
            name: "parts-cpu",
            title: "Processor time of every part".to_owned(),
            words: format!(
                "Cores used by each, all on the same scale, in bins of {}.",
                self.bin_words()
            ),
            content: Content::Parts,
        }
    }

    fn breakers(&self) -> Figure {
        let counter = self.analysis.usages.counter(breakers);
        let opened = |from_ms, to_ms| counter.events(from_ms, to_ms);
        let series = vec![Series {
            name: "openings".to_owned(),
            paint: Paint::Failed,
            values: self.analysis.sampled(opened),
        }];

        Figure {
            number: 15,
            name: "breakers",
            title: "Circuit breaker openings".to_owned(),
            words: format!("Openings in bins of {}.", self.bin_words()),
            content: Content::OverRun(OverRun {
                series,
                style: Style::Bars,
                unit: Unit::Number,
                caption: "openings".to_owned(),
                levels: Vec::new(),
            }),
        }
    }

    fn failed(&self) -> Figure {
        let failed = |bin: &Bin| self.per_s(bin, bin.tally.failed);
        Figure {
            number: 16,
            name: "failed",
            title: "Failed counts".to_owned(),
            words: format!("Per second of the machine's clock, in bins of {}.", self.bin_words()),
            content: Content::OverRun(OverRun {
                series: vec![self.series("failed".to_owned(), Paint::Failed, failed)],
                style: Style::Bars,
                unit: Unit::Number,
                caption: "counts/s".to_owned(),
                levels: Vec::new(),
            }),
        }
    }
}
