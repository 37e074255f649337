//! The report: a folder with everything about one run.
//!
//! ```text
//!   record.json    the run itself; everything else can be recreated from it
//!   numbers.json   the numbers of each phase, the findings, the bins
//!   numbers.csv    the bins
//!   figure-*.svg   figures, light or dark as the viewer prefers
//!   figure-*.png   the same, light
//!   index.html     the report
//! ```

pub mod analysis;
pub mod bins;
pub mod compaction_effect;
mod csv;
pub mod figure;
pub mod findings;
pub mod fold;
pub mod numbers;
mod page;
pub mod phase;
pub mod rules;
pub mod usage;
pub mod window;
pub mod words;
pub mod zone;

use super::record::Record;
use analysis::Analysis;
use anyhow::Context;
use figure::{Layout, png, svg};
use findings::{Finding, findings};
use numbers::Numbers;
use rules::Verdict;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

const RECORD: &str = "record.json";
const PAGE: &str = "index.html";

/// A summary of the files written.
#[derive(Debug)]
pub struct Summary {
    pub findings: Vec<Finding>,
    /// Names of the files in the folder.
    pub files: Vec<String>,
}

impl Summary {
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

#[derive(Serialize)]
struct NumbersFile<'a> {
    #[serde(flatten)]
    numbers: &'a Numbers,
    findings: &'a [Finding],
}

/// Writes the report of a run into a folder, which is created if it is missing.
pub fn write(record: &Record, folder: &Path) -> anyhow::Result<Summary> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let analysis = Analysis::new(record);
    let numbers = Numbers::new(&analysis);
    let findings = findings(&analysis, &numbers);
    let figures = figure::all(&analysis, &numbers);

    let mut files = Files { folder, written: Vec::new() };
    files.json(RECORD, record)?;
    files.json("numbers.json", &NumbersFile { numbers: &numbers, findings: &findings })?;
    files.bytes("numbers.csv", csv::text(&numbers).as_bytes())?;

    for figure in &figures {
        let canvas = figure.draw(&analysis, Layout::File);
        files.bytes(&format!("{}.svg", figure.stem()), svg::document(&canvas).as_bytes())?;
        files.bytes(&format!("{}.png", figure.stem()), &png::image(&canvas)?)?;
    }

    files.bytes(PAGE, page::html(&analysis, &numbers, &findings, &figures).as_bytes())?;
    Ok(Summary { findings, files: files.written })
}

/// Reads the record of a run from its report folder, so that the report can be recreated.
pub fn read(folder: &Path) -> anyhow::Result<Record> {
    let path = folder.join(RECORD);
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file))
        .with_context(|| format!("{} is not a valid record", path.display()))
}

struct Files<'a> {
    folder: &'a Path,
    written: Vec<String>,
}

impl Files<'_> {
    fn json(&mut self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let mut writer = BufWriter::new(self.create(name)?);
        serde_json::to_writer(&mut writer, value)
            .with_context(|| format!("cannot write {name}"))?;
        writer.flush().with_context(|| format!("cannot write {name}"))
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        self.create(name)?.write_all(bytes).with_context(|| format!("cannot write {name}"))
    }

    fn create(&mut self, name: &str) -> anyhow::Result<File> {
        let path = self.folder.join(name);
        self.written.push(name.to_owned());
        File::create(&path).with_context(|| format!("cannot create {}", path.display()))
    }
}

#[cfg(test)]
pub(crate) mod tests;
