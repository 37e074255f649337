//! Health, as the gRPC health checking protocol has it: what `GET /readyz` says.

use super::proto::raingauge::v1::{counts_server, events_server};
use raingauge_app::App;
use std::sync::Arc;
use std::time::Duration;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

/// How often readiness is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The whole server, and each service of it.
const SERVICES: [&str; 3] = ["", counts_server::SERVICE_NAME, events_server::SERVICE_NAME];

/// The service, and a task that keeps it true until the server has said that it stops.
pub async fn service(app: &Arc<App>) -> HealthServer<impl Health> {
    let (reporter, service) = health_reporter();
    say(&reporter, ServingStatus::Serving).await;
    tokio::spawn(follow(Arc::clone(app), reporter));
    service
}

async fn follow(app: Arc<App>, mut reporter: HealthReporter) {
    let mut draining = app.node.draining.clone();
    let mut interval = tokio::time::interval(LOOK_INTERVAL);
    let mut said = ServingStatus::Serving;

    loop {
        let status = match app.unready() {
            None => ServingStatus::Serving,
            Some(_) => ServingStatus::NotServing,
        };
        if said != status {
            say(&reporter, status).await;
            said = status;
        }

        tokio::select! {
            _ = interval.tick() => {}
            _ = draining.wait_for(|draining| *draining) => break,
        }
    }

    say(&reporter, ServingStatus::NotServing).await;

    // Watchers have received the change; their open streams would delay the shutdown.
    for name in SERVICES {
        reporter.clear_service_status(name).await;
    }
}

async fn say(reporter: &HealthReporter, status: ServingStatus) {
    for name in SERVICES {
        reporter.set_service_status(name, status).await;
    }
}
