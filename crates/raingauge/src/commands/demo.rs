//! `raingauge demo`

mod campaigns;
mod live;
mod material;
mod points;
mod questions;

use super::import::Local;
use super::session::OwnServer;
use super::table::grouped;
use super::{counters, counters::Drafts};
use super::{note, print, print_json};
use crate::serve;
use anyhow::{Context, bail};
use clap::Args;
use live::Replay;
use raingauge_console::Client;
use raingauge_import::{Bar, Mapping, Rows, run_once};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Count real public events, show some answers, and serve the page
///
/// Taxi pickups, presses of coffee buttons, a shop's invoices, taxi trips and earthquakes are built
/// in. They are imported into a fresh data folder, which is removed at the end unless --data-dir
/// names one to keep. After that, the taxi pickups are replayed into the present, so that charts
/// and rates move, and campaigns decide on them. A small receiver prints what campaigns send. A
/// programme of points awards two lunches.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: raingauge demo\nExample: raingauge demo --once --listen 127.0.0.1:0"
)]
pub struct Demo {
    /// Address and port of the page and of the HTTP door
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Address and port of the door for Redis clients; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    resp_listen: String,
    /// An empty folder to keep the data in
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Show the answers and end
    #[arg(long)]
    once: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub fn run(self) -> anyhow::Result<()> {
        let folder = Folder::new(self.data_dir.as_deref())?;
        let own = self.start(folder.path())?;

        // Catches interrupts from here on; one that arrives during the import takes effect after
        // it.
        let mut signals = own.runtime.block_on(async { serve::Signals::listen() })?;
        let shown = load(&own, folder.path()).and_then(|client| {
            points::load(&client)?;
            let receiver = campaigns::load(&own, &client)?;
            let replay = if self.once { None } else { Some(Replay::start(client.clone())?) };
            self.show(&own, &client)?;
            Ok((replay, receiver))
        });

        let ended = shown.map(|(replay, receiver)| {
            if let Some(replay) = replay {
                if !self.json {
                    receiver.show();
                }
                own.runtime.block_on(signals.received());
                replay.stop();
            }
        });

        own.stop()?;
        ended
    }

    fn start(&self, folder: &Path) -> anyhow::Result<OwnServer> {
        let mut options = serve::options(Some(folder), Some(&self.listen));
        options.push(("resp.listen", "--resp-listen", self.resp_listen.clone()));
        let mut settings = serve::settings(None, options)?;
        let resp = settings.resp.listen;
        let is_local = resp.is_none_or(|resp| resp.ip().is_loopback());
        if settings.server.listen.ip().is_loopback() && is_local {
            settings.auth.tokens.clear();
            settings.auth.required = false;
            // The person who tries the demo sits at this machine, and opens the pages at once.
            settings.people.sign_in = false;
        } else {
            bail!(
                "the demo listens on this machine alone: give --listen and --resp-listen 127.0.0.1:PORT"
            );
        }

        OwnServer::start(settings).map_err(|error| {
            if is_taken(&error) {
                anyhow::anyhow!(
                    "{} is taken: choose another with --listen, such as --listen 127.0.0.1:0",
                    self.listen
                )
            } else {
                error
            }
        })
    }

    fn show(&self, own: &OwnServer, client: &Client) -> anyhow::Result<()> {
        let answers = questions::ask(client)?;
        if self.json {
            print_json(&json!({ "answers": answers, "portal": own.url() }))?;
        } else {
            print(&format!("\n{}\n\n{}", questions::table(&answers), material::SOURCES))?;
            if !self.once {
                print(&format!(
                    "\nthe portal is at {0}; pickups come in live: {0}/counters/190\n\
                     campaigns decide on them: {0}/campaigns; what they send is printed here\n\
                     Bob's 180 points: {0}/points/rewards/members/bob",
                    own.url()
                ))?;
                if let Some(address) = own.resp_address() {
                    print(&format!(
                        "counts and objects for Redis clients: redis-cli -p {} RAIN.COUNT \
                         live:pickups -1d now",
                        address.port()
                    ))?;
                }
                note("an interrupt (Ctrl-C) ends it");
            }
        }

        Ok(())
    }
}

/// A folder for the data, which is removed at the end unless the user asked to keep it.
enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn new(kept: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = kept else {
            let made = tempfile::Builder::new().prefix("raingauge-demo-").tempdir();
            return Ok(Self::Temporary(made.context("a temporary folder cannot be made")?));
        };
        // Data that is counted there already would be counted again once the ids are forgotten.
        if std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!(
                "{0} is not empty: name a new folder, or serve it with `raingauge serve --data-dir {0}`",
                path.display()
            );
        }
        Ok(Self::Kept(path.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

/// Creates the counters, imports the files and loads the worked example.
fn load(own: &OwnServer, folder: &Path) -> anyhow::Result<Client> {
    let client = own.client(None)?;
    let mut created = 0;
    for yaml in material::COUNTERS {
        created += counters::apply(&client, Drafts::parse(yaml)?, false, "the demo")?.len();
    }
    note(&format!("{created} counters; importing {} files", material::FILES.len()));
    import_all(own, folder)?;
    client.post("/v1/buckets", &material::worked_example())?;
    Ok(client)
}

fn import_all(own: &OwnServer, folder: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let local = Local::new(own);
    let mut bar =
        Bar::new(material::FILES.iter().map(|file| file.content.len() as u64).sum(), (0, 0));
    let mut rows_read = 0;

    for file in material::FILES {
        let mapping = Mapping::parse(file.mapping)?;
        let rows = Rows::read(Box::new(file.content), Path::new(file.name), &mapping)?;
        rows_read += run_once(&local, rows, folder.join("rejected.csv"), &mut bar)?.rows;
    }

    bar.finish();
    local.wait()?;
    note(&format!(
        "{} rows imported and counted in {:.1} s",
        grouped(rows_read as i64),
        began.elapsed().as_secs_f64()
    ));

    Ok(())
}

fn is_taken(error: &anyhow::Error) -> bool {
    let taken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AddrInUse;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(taken)
}
