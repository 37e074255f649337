//! Clients that are hostile or clumsy, and configurations that would let them in.

mod bodies;
mod doors;
mod scans;
