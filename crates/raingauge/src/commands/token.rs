//! `raingauge token`

use super::{print, print_json};
use anyhow::bail;
use clap::Args;
use raingauge_core::access::Scope;
use raingauge_people::tokens::new_token;
use serde_json::json;

/// Make a token, and the lines that let a server know it
///
/// The token is printed once and kept nowhere: the configuration holds its hash alone.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge token --name shop --scope events:write --scope counts:read"
)]
pub struct Token {
    /// By which name logs and versions call its holder
    #[arg(long, default_value = "application")]
    name: String,
    /// What the token is good for; may be given several times
    #[arg(long, value_name = "SCOPE", value_parser = scope,
          default_values = ["events:write", "counts:read", "counters:write"])]
    scope: Vec<Scope>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Token {
    pub fn run(self) -> anyhow::Result<()> {
        if self.name.is_empty() || self.name.len() > 128 || self.name.contains(char::is_control) {
            bail!("--name must have 1 to 128 bytes and be printable");
        }
        let (token, sha256) = new_token();
        let scopes: Vec<&str> = self.scope.iter().map(|scope| scope.name()).collect();

        if self.json {
            return Ok(print_json(
                &json!({ "token": token, "name": self.name, "sha256": sha256, "scopes": scopes }),
            )?);
        }

        print(&token)?;
        let entry = entry(&self.name, &sha256, &scopes);
        Ok(print(&format!(
            "\n# The token above is shown once: hand it to its holder. These lines go into the configuration:\n{entry}"
        ))?)
    }
}

/// Returns the token in the form of the configuration file. Each is a table of its own, so that one
/// file can hold several.
fn entry(name: &str, sha256: &str, scopes: &[&str]) -> String {
    let scopes = scopes.iter().map(|scope| toml::Value::from(*scope)).collect::<Vec<_>>();
    let name = toml::Value::from(name);
    let scopes = toml::Value::from(scopes);
    format!("[[auth.tokens]]\nname = {name}\nsha256 = \"{sha256}\"\nscopes = {scopes}")
}

fn scope(text: &str) -> Result<Scope, String> {
    let known = || Scope::ALL.map(Scope::name).join(", ");
    Scope::from_name(text).ok_or_else(|| format!("the scopes are {}", known()))
}
