//! Campaigns through the real doors: what is decided, sent, explained and refused.

mod documents;
mod example;
mod pages;
mod receiver;
