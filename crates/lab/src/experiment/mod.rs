//! The reference's experiment on the real engines: a result cache is taken away configuration by configuration.

pub mod record;
