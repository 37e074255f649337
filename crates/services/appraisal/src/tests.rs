mod forecasts;
mod queues_killed;

use super::*;
use metrics_exporter_prometheus::PrometheusBuilder;
use raingauge_consumers::control::{DocumentVersion, document_entry};
use raingauge_core::event::Event;
use raingauge_memory as memory;
use raingauge_points::{Answer, Desk, Footprint, Programme, ProgrammeDocument, Turn};
use raingauge_ports::campaigns::StoredDocument;
use raingauge_ports::clock::ManualClock;
use raingauge_ports::log::{Batch, EventSink};
use raingauge_ports::points::{Books, Letter, QueueControl, QueueName, Shelf};
use raingauge_replay::jobs::Status;
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};

const NOW_S: i64 = 1_768_010_400;

fn document(food: i64) -> Json {
    json!({
        "programme": "grab-sg", "unit": "GRP", "timezone": "Asia/Singapore",
        "expiry": {"kind": "activity", "months": 6},
        "tables": {"vertical": {"by": ["data.vertical"], "rows": {"food": food, "ride": 1}}},
        "rules": [
            {"id": 1, "name": "spent", "eventType": "order.completed",
             "member": "data.member", "amount": "data.amount", "factors": ["vertical"],
             "reference": "data.order"},
            {"id": 2, "name": "refund", "eventType": "order.refunded",
             "member": "data.member", "amount": "data.amount", "reverses": "data.order"}
        ]
    })
}

fn programme(food: i64, version: u32) -> Arc<Programme> {
    let document = ProgrammeDocument::parse(&document(food)).unwrap();
    Arc::new(Programme::compile(&document, version).unwrap())
}

fn order(id: &str, member: &str, vertical: &str, amount: i64) -> Json {
    event(
        id,
        "order.completed",
        json!({
            "member": member, "vertical": vertical, "amount": amount, "order": id,
        }),
    )
}

fn refund(id: &str, member: &str, order: &str, amount: i64) -> Json {
    event(id, "order.refunded", json!({"member": member, "order": order, "amount": amount}))
}

fn event(id: &str, kind: &str, data: Json) -> Json {
    json!({"specversion": "1.0", "id": id, "source": "shop", "type": kind,
           "time": "2026-01-10T02:00:00Z", "data": data})
}

/// Everything that an appraisal reads, in memory.
struct Stage {
    appraisal: Appraisal,
    log: Arc<memory::Log>,
    books: Arc<memory::Books>,
    queues: Arc<memory::Queues>,
    documents: Arc<memory::Documents>,
    clock: Arc<ManualClock>,
}

impl Stage {
    fn new() -> Self {
        Self::of(programme(2, 1))
    }

    /// With this programme in force.
    fn of(programme: Arc<Programme>) -> Self {
        Self::with(programme, memory::Queues::new)
    }

    /// With this programme in force, and these queues.
    fn with(
        programme: Arc<Programme>,
        queues: impl FnOnce(Arc<dyn Clock>) -> memory::Queues,
    ) -> Self {
        let clock = Arc::new(ManualClock::at_s(NOW_S));
        let log = Arc::new(memory::Log::default());
        let books = Arc::new(memory::Books::new(1));
        let queues = Arc::new(queues(clock.clone()));
        let documents = Arc::new(memory::Documents::default());
        let sources = Sources {
            logs: vec![log.clone()],
            reader: books.clone(),
            documents: documents.clone(),
            queues: queues.clone(),
            control: queues.clone(),
            in_force: Arc::new(move || {
                let mut programmes = Programmes::new();
                programmes.insert(Arc::clone(&programme));
                Arc::new(programmes)
            }),
        };
        let appraisal = Appraisal::new(sources, Scans::default(), clock.clone());
        Self { appraisal, log, books, queues, documents, clock }
    }

    /// Puts the programme in force at this place of the log.
    async fn publish(&self, food: i64) {
        self.publish_document(document(food)).await;
    }

    async fn publish_document(&self, configuration: Json) {
        let stored = StoredDocument {
            kind: "programme".to_owned(),
            id: "grab-sg".to_owned(),
            version: 0,
            configuration,
            is_deleted: false,
            changed_by: "test".to_owned(),
            reason: String::new(),
            changed_ms: NOW_S * 1_000,
        };
        let base = self.documents.versions("programme", "grab-sg").await.unwrap().len() as u32;
        self.documents.put(stored, base).await.unwrap();
        let version = DocumentVersion {
            kind: "programme".to_owned(),
            id: "grab-sg".to_owned(),
            version: base + 1,
        };
        self.log.append_control(0, document_entry("points", &version)).await.unwrap();
    }

    async fn append(&self, events: &[Json]) {
        let mut batch = Batch::default();
        for event in events {
            let text = event.to_string();
            batch.push(&Event::from_json(text.as_bytes()).unwrap());
        }
        self.log.append(batch).await.unwrap();
    }

    /// Awards events as the teller does.
    fn award(&self, programme: &Arc<Programme>, events: &[Json]) {
        let mut programmes = Programmes::new();
        programmes.insert(Arc::clone(programme));
        let texts: Vec<String> = events.iter().map(Json::to_string).collect();
        let events = texts.iter().map(|text| Event::from_json(text.as_bytes()).unwrap());
        let commands: Vec<_> =
            events.flat_map(|event| programme.price_event(&event)).map(Result::unwrap).collect();
        let footprint = Footprint::of(&commands, &programmes, NOW_S * 1_000);
        let decide = &mut |_: &[_], loaded| -> Turn {
            let mut desk = Desk::new(&programmes, loaded, NOW_S * 1_000);
            for command in &commands {
                let answer = desk.execute(command);
                assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
            }
            desk.finish()
        };
        self.books.turn(&[0], &footprint, decide).unwrap();
    }

    /// The result of a job that ends.
    async fn result(&self, job: Result<Job, Error>) -> Json {
        let id = job.unwrap().id;
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let job = self.appraisal.jobs().get(&id).unwrap();
            if !job.status.is_open() {
                assert_eq!(job.status, Status::Finished, "{:?}", job.error);
                return serde_json::from_str(job.result.unwrap().get()).unwrap();
            }
            assert!(Instant::now() < deadline, "the job does not end");
            tokio::task::yield_now().await;
        }
    }

    async fn forecast(&self, request: Json) -> Json {
        let request = ForecastRequest::parse(request.to_string().as_bytes()).unwrap();
        self.result(self.appraisal.forecast("ann", request, None)).await
    }

    async fn audit(&self, request: Json) -> Json {
        let request = AuditRequest::parse(request.to_string().as_bytes()).unwrap();
        self.result(self.appraisal.audit("ann", request)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_compared_with_what_is_in_force() {
    let stage = Stage::new();
    stage
        .append(&[
            order("o-1", "bob", "food", 100),
            order("o-2", "eve", "ride", 50),
            order("o-3", "bob", "ride", 10),
            refund("r-1", "bob", "o-1", 40),
            order("o-1", "bob", "food", 100),
            order("o-9", "bob", "boat", 100),
        ])
        .await;

    let found = stage.forecast(json!({"programme": document(3), "by": "data.vertical"})).await;
    // 60 of the 100 are left: 180 instead of 120.
    assert_eq!(found["draft"]["points"], json!(240));
    assert_eq!(found["inForce"]["points"], json!(180));
    assert_eq!(found["change"], json!(60));
    assert_eq!(found["liabilityChange"], json!(60));
    assert_eq!(
        found["draft"]["liability"]["outstanding"],
        json!([
            {"month": "2026-07", "points": 240}
        ])
    );
    assert_eq!(found["draft"]["unpriced"], json!(1));
    assert_eq!(
        found["gainMost"],
        json!([
            {"member": "bob", "inForce": 130, "draft": 190, "change": 60}
        ])
    );
    assert_eq!(found["loseMost"], json!([]));
    let rules: Vec<_> = found["draft"]["byRule"].as_array().unwrap().iter().collect();
    assert_eq!(rules[0]["name"], json!("refund"));
    assert_eq!(rules[1]["points"], json!(360));
    assert_eq!(found["draft"]["scaled"]["points"], json!(240));

    // A programme that loses is the other way round; a range leaves events out.
    let found =
        stage.forecast(json!({"programme": document(1), "to": "2026-01-10T02:00:01Z"})).await;
    assert_eq!(found["loseMost"][0]["change"], json!(-60));
    let found =
        stage.forecast(json!({"programme": "grab-sg", "from": "2026-02-01T00:00:00Z"})).await;
    assert_eq!((&found["events"], &found["draft"]["points"]), (&json!(0), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn points_that_expired_since_are_no_liability() {
    let stage = Stage::new();
    stage.append(&[order("o-1", "bob", "food", 100)]).await;
    let found = stage.forecast(json!({"programme": "grab-sg", "to": "2027-01-01T00:00:00Z"})).await;
    assert_eq!(found["draft"]["liability"]["total"], json!(0));
    assert_eq!(found["draft"]["liability"]["expired"], json!(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_what_is_wrong_and_what_is_lost() {
    let stage = Stage::new();
    stage.publish(2).await;
    let early = [order("o-1", "bob", "food", 100), order("o-2", "eve", "ride", 50)];
    stage.append(&early).await;
    stage.publish(3).await;
    let late = [order("o-3", "bob", "food", 10), order("o-4", "eve", "food", 10)];
    stage.append(&late).await;
    stage.append(&[order("o-5", "eve", "food", 5), refund("r-1", "eve", "o-4", 10)]).await;
    stage.clock.set_s(NOW_S + 3_600);

    stage.award(&programme(2, 1), &early);
    // This one was priced by other tables than those of the version that it names.
    stage.award(&programme(7, 2), &late[..1]);
    stage.award(&programme(3, 2), &late[1..]);
    stage.award(&programme(3, 2), &[refund("r-1", "eve", "o-4", 10)]);

    let found = stage.audit(json!({"resend": true})).await;
    assert_eq!((&found["events"], &found["awards"]), (&json!(6), &json!(6)));
    assert_eq!((&found["equal"], &found["different"]), (&json!(4), &json!(1)));
    assert_eq!((&found["missing"], &found["resent"]), (&json!(1), &json!(1)));
    assert_eq!(found["differences"].as_array().unwrap().len(), 2);
    assert_eq!(stage.appraisal.last_audit().unwrap().missing, 1);

    // What was sent is on its way, and is not missing a second time.
    let found = stage.audit(json!({})).await;
    assert_eq!((&found["missing"], &found["waiting"]), (&json!(0), &json!(1)));
    let sent = stage.queues.peek(QueueName::Award, Shelf::Waiting, 10);
    let sent = sent.await.unwrap();
    let command: raingauge_points::Command = serde_json::from_str(&sent[0].letter.body).unwrap();
    assert_eq!(&*command.member, "eve");
}

#[test]
fn the_first_difference_is_an_increase() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, Stage::new);
    let page = recorder.handle().render();
    assert!(page.contains("raingauge_points_audit_differences_total 0\n"), "{page}");
}

/// A letter that is tried again later is in no look at such a queue, and its award is not
/// lost.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_knows_that_letters_are_hidden() {
    let stage = Stage::with(programme(2, 1), memory::Queues::hiding);
    stage.publish(2).await;
    let order = order("o-1", "bob", "food", 10);
    stage.append(std::slice::from_ref(&order)).await;
    stage.clock.set_s(NOW_S + 3_600);
    let found = stage.audit(json!({})).await;
    assert_eq!((&found["missing"], &found["isPartial"]), (&json!(1), &json!(false)));

    let text = order.to_string();
    let event = Event::from_json(text.as_bytes()).unwrap();
    let command = programme(2, 1).price_event(&event).remove(0).unwrap();
    let letters = vec![Letter::of_command(&command)];
    stage.queues.send(QueueName::Retry, letters, Duration::from_secs(600)).await.unwrap();
    let found = stage.audit(json!({"resend": true})).await;
    assert_eq!((&found["resent"], &found["isPartial"]), (&json!(0), &json!(true)));
}

/// A price that was missing in its time comes from a later version: what the queue `retry` has
/// awarded is compared with that version, and what it has lost is sent with its price by now.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_awards_that_had_no_price_in_their_time() {
    let with_boats = |boat: i64| {
        let mut document = document(2);
        document["tables"]["vertical"]["rows"]["boat"] = json!(boat);
        document
    };
    let compiled = |boat: i64| {
        let document = ProgrammeDocument::parse(&with_boats(boat)).unwrap();
        Arc::new(Programme::compile(&document, 2).unwrap())
    };
    let stage = Stage::of(compiled(4));
    stage.publish(2).await;
    let trips = ["o-1", "o-2", "o-3"].map(|id| order(id, "bob", "boat", 10));
    stage.append(&trips).await;
    stage.append(&[order("o-4", "bob", "train", 10)]).await;
    stage.publish_document(with_boats(4)).await;
    stage.clock.set_s(NOW_S + 3_600);

    stage.award(&compiled(4), &trips[..1]);
    stage.award(&compiled(5), &trips[1..2]);
    let found = stage.audit(json!({"resend": true})).await;
    let counts = ["awards", "equal", "different", "missing", "resent", "unpriced"];
    assert_eq!(counts.map(|name| found[name].as_u64().unwrap()), [4, 1, 1, 1, 1, 1]);

    let sent = stage.queues.peek(QueueName::Award, Shelf::Waiting, 10);
    let sent = sent.await.unwrap();
    let command: raingauge_points::Command = serde_json::from_str(&sent[0].letter.body).unwrap();
    assert!(command.key.ends_with("o-3"), "{}", command.key);
    let found = stage.audit(json!({})).await;
    assert_eq!((&found["missing"], &found["waiting"]), (&json!(0), &json!(1)));
}
