//! The door for clients of Redis.
