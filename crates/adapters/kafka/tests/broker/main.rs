//! The log on a real broker: the one that RAINGAUGE_TEST_KAFKA names, `host:port`. Without it these
//! tests say so and pass.

mod changes;
mod contract;
mod cursors;
mod dead_letters;
mod entries;
mod foreign;
mod group;
mod leases;
mod logins;
mod outage;
mod support;
mod topics;
mod whole;
mod windows;
