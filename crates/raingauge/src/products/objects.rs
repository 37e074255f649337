//! The objects of Redis clients, and the door through which they come.
//!
//! ```text
//!   Redis client ──▶ door ──▶ Objects ──▶ engine in the data folder
//!                     └─────▶ counts and events of this process
//! ```

use super::{Additions, Foundation, Opening, Product, Service};
use crate::services::{ObjectEngines, ObjectPlace};
use raingauge_app::App;
use raingauge_objects::{self as objects, Objects};
use raingauge_objects_doors::{Board, Services};
use raingauge_resp_door::{self as resp, Door, Observed, Rain};
use raingauge_settings::{Group, Reader};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Its settings stand among those of the doors, since an address is bound before anything is
/// opened.
pub const PRODUCT: Product = Product { groups: &[], configure };

fn configure(reader: &mut Reader) -> Opening {
    let resp = read(reader, &resp::Settings::GROUP, resp::Settings::read);
    let objects = read(reader, &objects::Settings::GROUP, objects::Settings::read);
    Opening::new((resp, objects), open)
}

/// The settings of a group, or the defaults where they have a problem, which was reported before.
fn read<S: Default>(reader: &mut Reader, group: &Group, read: fn(&mut Reader) -> S) -> S {
    let paths: Vec<String> = group.settings.iter().map(|setting| setting.path()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    if reader.are_right(&paths) { read(reader) } else { S::default() }
}

async fn open(
    (resp, settings): (resp::Settings, objects::Settings),
    foundation: Foundation,
) -> anyhow::Result<Additions> {
    if resp.listen.is_none() {
        return Ok(Additions { pages: Board::closed().pages(), ..Additions::default() });
    }

    let place = ObjectPlace {
        data_dir: foundation.data_dir.clone(),
        sync: settings.sync_mode(),
        memory_bytes: settings.memory_bytes,
        checkpoint_interval: settings.checkpoint_interval,
        reserve_bytes: foundation.reserve_bytes,
        open_files_max: foundation.open_files_max / 2,
    };
    let engines = ObjectEngines::open(place).await?;
    let objects = Objects::open(
        engines.store,
        Arc::clone(&engines.control),
        foundation.object_clock(),
        objects::Options::from(&settings),
    );

    let observed = Arc::new(Observed::new());
    let board = Board::open(Services {
        objects: Arc::clone(&objects),
        control: engines.control,
        observed: Arc::clone(&observed),
        settings: resp,
        memory_bytes: settings.memory_bytes,
        clock: Arc::clone(&foundation.wall_clock),
    });

    let running = Arc::new(Running { objects: Arc::clone(&objects), runtime: Handle::current() });
    Ok(Additions {
        services: vec![running],
        pages: board.pages(),
        tasks: vec![Box::pin(board.clone().follow())],
        objects: Some(OpenObjects { objects, observed }),
        ..Additions::default()
    })
}

/// What the door for Redis clients works on.
pub struct OpenObjects {
    objects: Arc<Objects>,
    observed: Arc<Observed>,
}

impl OpenObjects {
    /// Opens the door. The task ends when `stopping` has turned true and the last connection has
    /// ended.
    pub fn open(
        self,
        app: &Arc<App>,
        settings: resp::Settings,
        listener: TcpListener,
        stopping: &watch::Receiver<bool>,
    ) -> anyhow::Result<JoinHandle<()>> {
        let address = listener.local_addr()?;
        let swept = Arc::clone(&self.objects);
        let until = stopping.clone();
        tokio::spawn(async move { swept.sweep_until(until).await });

        let deps = resp::Deps {
            rain: Some(Arc::new(Rain::new(Arc::clone(app), Arc::clone(&self.observed)))),
            objects: self.objects,
            tokens: Arc::clone(&app.people.tokens),
            observed: self.observed,
            clock: Arc::clone(&app.clock),
            settings,
            address,
        };
        Ok(Door::serve(listener, deps, stopping.clone()))
    }
}

/// What ends with the process.
struct Running {
    objects: Arc<Objects>,
    runtime: Handle,
}

impl Service for Running {
    fn trouble(&self) -> Option<String> {
        None
    }

    fn failure(&self) -> Option<String> {
        self.objects.trouble()
    }

    fn stop(&self) {
        if let Err(error) = self.runtime.block_on(self.objects.close()) {
            tracing::error!(%error, "the last changes of objects may not be on the disk");
        }
    }
}
