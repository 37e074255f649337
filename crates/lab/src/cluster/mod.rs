//! A cluster to work on: the engines, and the processes of raingauge over them.

pub mod roles;
pub mod servers;
