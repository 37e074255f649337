//! Judges and instruments of the Redis door: the same commands on raingauge and on a real Redis.
//!
//! ```text
//!   oracle       random commands, equal replies
//!   histories    concurrent clients and kills: is there an order that explains every reply?
//!   load         one thread, many connections, every reply checked: strings, counts
//!   experiments  pipelines, a cache larger than memory, large values, churn, cost
//! ```

pub mod counts;
#[cfg(feature = "experiments")]
pub mod experiments;
pub mod histories;
pub mod load;
pub mod oracle;
pub mod server;
#[cfg(feature = "experiments")]
pub mod strings;
