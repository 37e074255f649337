//! People: signing in, accounts, invitations, tokens, the audit log.

mod account;
mod audit;
mod entrance;
mod invitations;
mod openid;
mod provider;
mod sessions;
mod tokens;
