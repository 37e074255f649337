//! Ledger scripts.
