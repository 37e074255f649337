//! The reference's experiment on the real engines: a result cache is taken away configuration by configuration.

pub mod analysis;
pub mod bins;
pub mod figure;
pub mod fold;
pub mod numbers;
pub mod phase;
pub mod record;
pub mod usage;
pub mod words;
pub mod zone;

#[cfg(test)]
mod sample_run;
