//! The configuration: one TOML file, overridden by the environment and by options of the command
//! line, checked as a whole. Every problem is reported at once, with the key, where it was set and
//! what to do.
//!
//! Each component declares its own settings; they are composed here, and compared with each other.

mod cluster;
mod contradictions;
mod doors;
mod process;
#[cfg(test)]
mod tests;

pub use cluster::Cluster;
#[cfg(not(feature = "cluster"))]
pub use contradictions::NO_CLUSTER;
pub use process::{Cache, LogFormat, Observe, ResultCache, Storage};
pub use raingauge_settings::{Origin, Problem};

use crate::products::{Openings, PRODUCTS, Product};
use crate::services::engine_settings as engines;
use raingauge_app::Samples;
use raingauge_counters::drafts;
use raingauge_http::connections;
use raingauge_operations::{maintenance, self_audit};
use raingauge_people::{settings as people, tokens};
use raingauge_ports::clock;
use raingauge_settings::{Group, Reader, compose};
use raingauge_writer::settings::{Dedupe, Events, Lag};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

compose! {
    /// A configuration that has passed every check, in the order of the documentation.
    pub struct Settings {
        server: connections::Settings,
        storage: Storage,
        tiles: engines::TileOptions,
        log: engines::LogOptions,
        lag: Lag,
        dedupe: Dedupe,
        events: Events,
        clock: clock::Settings,
        maintenance: maintenance::Options,
        auth: tokens::Auth,
        observe: Observe,
        people: people::Settings,
        drafts: drafts::Options,
        samples: Samples,
        self_audit: self_audit::Options,
        openid: people::OpenId,
        cluster: Cluster,
        #[cfg(feature = "cluster")]
        cql: engines::CqlSettings,
        #[cfg(feature = "cluster")]
        kafka: engines::KafkaSettings,
        #[cfg(feature = "cluster")]
        mysql: engines::MySqlSettings,
        #[cfg(feature = "cluster")]
        compaction: engines::CompactionOptions,
        reader: raingauge_reader::Options,
        cache: Cache,
        #[cfg(feature = "cluster")]
        redis: engines::RedisSettings,
        resp: raingauge_resp_door::Settings,
        objects: raingauge_objects::Settings,
    } with {
        products: Openings = Openings::default(),
    }
}

/// A command line option that sets a key: the key's path, the option's name, the value.
pub type CommandOption = (&'static str, &'static str, String);

impl Settings {
    /// Reads a file, the environment, and options of the command line, which win over both:
    /// `("server.listen", "--listen", "[::1]:0")`.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        options: impl IntoIterator<Item = CommandOption>,
    ) -> Result<Self, Vec<Problem>> {
        Self::load_with(PRODUCTS, file, env, options)
    }

    /// The same, with the settings of these products.
    pub fn load_with(
        products: &[Product],
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        options: impl IntoIterator<Item = CommandOption>,
    ) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader::new(Self::groups_with(products).collect());
        if let Some(path) = file {
            read_file(&mut reader, path);
        }

        for (name, value) in env {
            reader.read_variable(name, value);
        }

        for (path, option, value) in options {
            reader.read_option(path, option, value);
        }

        let mut settings = Self::read(&mut reader);
        settings.products = Openings::read(products, &mut reader);
        settings.contradictions(&mut reader);
        let problems = reader.into_problems();
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// Returns the settings of all components and of these products.
    pub fn groups_with(products: &[Product]) -> impl Iterator<Item = Group> {
        let of_products = products.iter().flat_map(|product| product.groups);
        Self::GROUPS.iter().chain(of_products).copied()
    }

    /// Returns what the operator should know of this configuration, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        doors::warnings(self)
    }
}

fn read_file(reader: &mut Reader, path: &Path) {
    let mut text = String::new();
    let opened = File::open(path)
        .map_err(|error| format!("the configuration cannot be opened: {error}"))
        .and_then(|file| {
            let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
            read.map_err(|error| format!("the configuration cannot be read: {error}"))
        });

    let message = match opened {
        Ok(len) if len as u64 <= FILE_BYTES_MAX => return reader.read_toml(path, &text),
        Ok(_) => "the configuration is too large".to_owned(),
        Err(message) => message,
    };
    let origin = Origin::File { path: path.to_owned(), line: 0 };
    reader.problem("", origin, message, "Name a readable TOML file of at most 1 MiB");
}

/// Returns the variables of this process, for [`Settings::load`]. Bytes that are not UTF-8 become
/// U+FFFD, which no key accepts: such a variable is refused, not ignored.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}
