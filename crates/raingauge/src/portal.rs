//! The portal over the services of this process, and what watches them.

use crate::services::{self, Services};
use crate::settings::Settings;
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;
use raingauge_operations::rollouts;
use raingauge_operations::self_audit;
use raingauge_operations::watch::{self, About};
use raingauge_operations::{Conductor, Measures, SelfAudit, Watch};
use raingauge_people::Options;
use raingauge_portal::{Parts, Portal};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What is kept of the metrics, of the other processes, of the checks, and of rollouts.
#[derive(Clone)]
pub struct Watching {
    pub measures: Arc<Measures>,
    pub watch: Arc<Watch>,
    pub audit: Arc<SelfAudit>,
    pub rollouts: Arc<Conductor>,
}

impl Watching {
    pub fn new(
        settings: &Settings,
        services: &Services,
        address: SocketAddr,
        metrics: PrometheusHandle,
    ) -> Self {
        let clock = || Arc::clone(&services.clock);
        let disk = services.disk.clone();
        let render = move || {
            disk.as_deref().inspect(|folder| look_at_disk(folder));
            metrics.render()
        };
        let measures = Arc::new(Measures::new(render, clock()));
        let about = About {
            name: settings.cluster.instance.clone(),
            roles: services.roles.iter().map(|role| role.name().to_owned()).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: address.to_string(),
            started_s: services.clock.now_s(),
        };
        let watch = Watch::new(watch::Means {
            about,
            measures: Arc::clone(&measures),
            instances: Arc::clone(&services.instances),
            reader: Arc::clone(&services.reader),
            policies: Arc::clone(&services.policies),
            published: Arc::clone(&services.published),
            clock: clock(),
        });
        let watch = Arc::new(watch);
        let rollouts = Conductor::new(rollouts::Means {
            rollouts: Arc::clone(&services.rollouts),
            counters: Arc::clone(&services.counters),
            policies: Arc::clone(&services.policies),
            measures: Arc::clone(&measures),
            watch: Arc::clone(&watch),
            clock: clock(),
            still_max: services.rollout_still_max,
        });
        let audit = SelfAudit::new(self_audit::Means {
            recounter: Arc::clone(&services.recounter),
            reader: Arc::clone(&services.reader),
            checks: Arc::clone(&services.checks),
            lease: Arc::clone(&services.check_lease),
            logs: services.logs.clone(),
            published: Arc::clone(&services.published),
            clock: clock(),
            options: settings.portal.checks,
        });
        Self { measures, watch, audit: Arc::new(audit), rollouts: Arc::new(rollouts) }
    }
}

/// Notes how much room the disk of a folder has. One that cannot be asked is left out.
fn look_at_disk(folder: &Path) {
    if let Ok(disk) = rustix::fs::statvfs(folder) {
        gauge!("raingauge_disk_bytes").set((disk.f_blocks * disk.f_frsize) as f64);
        gauge!("raingauge_disk_free_bytes").set((disk.f_bavail * disk.f_frsize) as f64);
    }
}

/// The pages, over what the services have.
pub fn open(
    settings: &Settings,
    services: &Services,
    watching: &Watching,
) -> anyhow::Result<Portal> {
    let openid = services::openid(settings, Arc::clone(&services.clock))?;
    Ok(Portal::new(Parts {
        counters: Arc::clone(&services.counters),
        reader: Arc::clone(&services.reader),
        policies: Arc::clone(&services.policies),
        recounter: Arc::clone(&services.recounter),
        states: Arc::clone(&services.states),
        scans: services.scans.clone(),
        logs: services.logs.clone(),
        published: Arc::clone(&services.published),
        clock: Arc::clone(&services.clock),
        maintenance: services.maintenance.clone(),
        drafts: Arc::clone(&services.drafts),
        approval: settings.portal.approval,
        measures: Arc::clone(&watching.measures),
        watch: Arc::clone(&watching.watch),
        audit: Arc::clone(&watching.audit),
        rollouts: Arc::clone(&watching.rollouts),
        people: Arc::clone(&services.people),
        people_options: options(settings),
        openid,
        samples: settings.portal.samples.clone(),
    }))
}

/// What the settings say of people.
pub fn options(settings: &Settings) -> Options {
    let portal = &settings.portal;
    Options {
        sign_in: portal.sign_in,
        passwords: portal.passwords,
        public_url: portal.public_url.clone(),
        has_tls: settings.server.tls.is_some(),
        session_idle_s: portal.session_idle.as_secs() as i64,
        session_max_s: portal.session_max.as_secs() as i64,
        audit_keep_s: portal.audit_keep.as_secs() as i64,
        address_header: portal.address_header.clone(),
        proxies: portal.proxies.clone(),
        asks_for_tokens: settings.auth.is_asked(),
    }
}

/// How a browser reaches the portal: as the settings say, or under the address on which the server listens.
pub fn base(settings: &Settings, mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    settings.portal.public_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"))
}

/// How often what has expired is removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);

/// Removes sessions, links and audit entries that have expired, for as long as it is polled.
pub async fn keep_tidy(portal: Portal) {
    let mut interval = tokio::time::interval(SWEEP_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = portal.accounts.sweep().await {
            tracing::warn!(%error, "expired sessions could not be removed; they open nothing");
        }
    }
}
