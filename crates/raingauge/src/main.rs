//! raingauge: counts events exactly, and answers how many of X between t1 and t2.

mod cli;
mod commands;
mod descriptors;
mod first_link;
mod observe;
mod pages;
mod portal;
mod products;
#[cfg(test)]
mod route_pages;
mod serve;
mod services;
mod settings;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// With its feature `override` it also serves C code: librdkafka and SQLite allocate all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Prints the error in one sentence. A closed standard output means that the reader wants no more,
/// so that is not reported.
fn fail(error: &anyhow::Error) -> ExitCode {
    let is_closed_pipe = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    if error.downcast_ref().is_some_and(is_closed_pipe) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::FAILURE
}
