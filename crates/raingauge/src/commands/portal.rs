//! `raingauge portal`

use super::{print, print_json};
use crate::{portal, serve, services};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use raingauge_core::access::Role;
use raingauge_people::Origin;
use raingauge_people::invitations::{COMMAND_LINE, INVITATION_S, Invitee, Link};
use raingauge_people::{AccountError, accounts::Accounts};
use raingauge_ports::clock::SystemClock;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// The people of the portal
#[derive(Debug, Args)]
pub struct Portal {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Invite(Invite),
}

/// Make a one-time link with which a person chooses a password and signs in
///
/// For a person who exists already it sets a new password and the given role: the way back in for
/// an administrator who lost the password. It works beside a running server.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge portal invite zoe --role admin --data-dir raingauge-data"
)]
struct Invite {
    /// By which the person signs in
    #[arg(value_name = "NAME")]
    name: String,
    /// What the person may do: viewer, editor or admin
    #[arg(long, value_name = "ROLE", value_parser = role, default_value = "viewer")]
    role: Role,
    /// E-mail address by which they may also come in at the provider of [openid], without the link;
    /// nothing is sent to it
    #[arg(long, value_name = "ADDRESS", default_value = "")]
    email: String,
    /// Configuration file (TOML), the one of the server
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder, the one of the server
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Portal {
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            What::Invite(invite) => invite.run(),
        }
    }
}

impl Invite {
    fn run(self) -> anyhow::Result<()> {
        let settings =
            serve::load_settings(self.config.as_deref(), self.data_dir.as_deref(), None)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let invitee =
            Invitee { name: self.name.clone(), email: self.email.clone(), role: self.role };
        let path = runtime.block_on(async {
            let people = services::open_people(&settings).await?;
            let accounts = Accounts::new(people, Arc::new(SystemClock), portal::options(&settings));
            match accounts.invite(invitee, COMMAND_LINE).await {
                Ok(Link { path, action }) => {
                    let origin = Origin::default();
                    let written = accounts.audit.record(COMMAND_LINE, &origin, action).await;
                    written
                        .map(|()| path)
                        .context("nobody was invited, since it could not be written down")
                }
                Err(AccountError::Field(_, problem)) => bail!("{problem}"),
                Err(AccountError::Store(error)) => Err(error).context("nobody was invited"),
                Err(refusal) => bail!("nobody was invited: {refusal:?}"),
            }
        })?;

        let link = format!("{}{path}", portal::base(&settings, settings.server.listen));
        if self.json {
            let name = &self.name;
            let role = self.role.name();
            return Ok(print_json(
                &json!({ "name": name, "role": role, "link": link, "validS": INVITATION_S }),
            )?);
        }

        print(&link)?;
        super::note(&format!(
            "{} opens this link within {} hours and chooses a password; it is good once",
            self.name,
            INVITATION_S / 3_600
        ));
        Ok(())
    }
}

fn role(text: &str) -> Result<Role, String> {
    Role::from_name(text)
        .ok_or_else(|| format!("the roles are {}", Role::ALL.map(Role::name).join(", ")))
}
