//! Campaigns through the real doors: what is decided, sent, explained and refused.

mod crash;
mod destinations;
mod documents;
pub mod example;
mod pages;
mod receiver;
mod secrets;
mod subjects;
