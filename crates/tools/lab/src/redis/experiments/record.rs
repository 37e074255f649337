//! The record of an experiment: everything that its tables and figures show.

use super::figure;
use crate::experiment::report::figure::{png, svg};
use crate::experiment::report::rules::Verdict;
use crate::report::Machine;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A run of an experiment.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// The base name of its files.
    pub name: &'static str,
    pub title: &'static str,
    /// What was measured, in a sentence or two.
    pub words: String,
    pub started: String,
    pub machine: Machine,
    /// Settings, by name.
    pub settings: BTreeMap<&'static str, String>,
    /// Names of the columns of each row.
    pub columns: Vec<&'static str>,
    pub rows: Vec<Row>,
    pub findings: Vec<Finding>,
    pub panels: Vec<Panel>,
}

/// A line of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub server: String,
    pub what: String,
    pub values: Vec<f64>,
}

/// What the reference found, what this run found, and whether they agree.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// A short statement that may be true or false.
    pub claim: String,
    /// The result of the reference.
    pub reference: &'static str,
    pub here: String,
    pub verdict: Verdict,
    /// The rule that gives the verdict.
    pub rule: &'static str,
}

/// A part of the figure: curves over one axis.
#[derive(Debug, Clone, Serialize)]
pub struct Panel {
    pub title: String,
    pub x: &'static str,
    pub is_logarithmic: bool,
    pub curves: Vec<Curve>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Record {
    /// An empty record of this machine and this moment.
    pub fn new(name: &'static str, title: &'static str, words: &str) -> Self {
        Self {
            name,
            title,
            words: words.to_owned(),
            started: jiff::Timestamp::now().to_string(),
            machine: Machine::here(),
            settings: BTreeMap::new(),
            columns: Vec::new(),
            rows: Vec::new(),
            findings: Vec::new(),
            panels: Vec::new(),
        }
    }

    pub fn set(&mut self, name: &'static str, value: impl ToString) {
        self.settings.insert(name, value.to_string());
    }

    pub fn row(&mut self, server: &str, what: impl Into<String>, values: Vec<f64>) {
        self.rows.push(Row { server: server.to_owned(), what: what.into(), values });
    }

    /// Tables of rows and findings.
    pub fn markdown(&self) -> String {
        // Writing to memory cannot fail.
        let mut text = format!("## {}\n\n{}\n\n| server | what |", self.title, self.words);
        for column in &self.columns {
            let _ = write!(text, " {column} |");
        }
        let _ = writeln!(text, "\n|---|---|{}", "--:|".repeat(self.columns.len()));

        for row in &self.rows {
            let _ = write!(text, "| {} | {} |", row.server, row.what);
            for value in &row.values {
                let _ = write!(text, " {} |", shown(*value));
            }
            text.push('\n');
        }

        if !self.findings.is_empty() {
            text.push_str("\n| claim | reference | here | verdict |\n|---|---|---|---|\n");
        }
        for finding in &self.findings {
            let Finding { claim, reference, here, verdict, .. } = finding;
            let _ = writeln!(text, "| {claim} | {reference} | {here} | {} |", verdict.name());
        }
        text
    }
}

/// A number with three significant digits, or grouped.
pub fn shown(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        1_000.0.. => crate::report::grouped(value),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Writes the record as JSON, its tables as Markdown and its figure as SVG and PNG into a folder.
pub fn write(record: &Record, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let path = |ending: &str| folder.join(format!("{}.{ending}", record.name));
    std::fs::write(path("json"), serde_json::to_vec_pretty(record)?)?;
    std::fs::write(path("md"), record.markdown())?;

    if !record.panels.is_empty() {
        let canvas = figure::draw(record);
        std::fs::write(path("svg"), svg::document(&canvas))?;
        std::fs::write(path("png"), png::image(&canvas)?)?;
    }
    Ok(())
}
