//! Judges and instruments of the Redis door: the same commands on raingauge and on a real Redis.
//!
//! ```text
//!   oracle      random commands, equal replies
//!   histories   concurrent clients and kills: is there an order that explains every reply?
//!   load        one thread, many connections, every reply checked
//!   pipeline, nvme, cluster, churn, cost: the experiments, with findings and figures
//! ```

pub mod histories;
pub mod oracle;
pub mod server;
