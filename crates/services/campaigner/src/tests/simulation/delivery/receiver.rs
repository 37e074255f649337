//! A receiver that does each action once, however often it is asked: it knows them by their
//! `webhook-id`, as Standard Webhooks advises. Its answers get lost, before and after it has acted.

use crate::tests::simulation::faults::Failures;
use crate::tests::simulation::play::Defect;
use crate::tests::simulation::world::Random;
use parking_lot::Mutex;
use raingauge_memory as memory;
use raingauge_ports::BoxFuture;
use raingauge_ports::campaigns::sender::{Request, Response, SendError, Sender};
use raingauge_ports::campaigns::{ActionId, Outbox};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub struct Receiver {
    random: Mutex<Random>,
    failures: Failures,
    outbox: Arc<memory::Ledger>,
    /// What it has done, by id.
    accepted: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Requests for what it had done before.
    repeated: Mutex<usize>,
    defect: Option<Defect>,
}

impl Receiver {
    pub fn new(seed: u64, outbox: Arc<memory::Ledger>, defect: Option<Defect>) -> Self {
        Self {
            random: Mutex::new(Random(seed | 1)),
            failures: Failures::new(seed.rotate_left(29), 35),
            outbox,
            accepted: Mutex::default(),
            repeated: Mutex::default(),
            defect,
        }
    }

    pub fn heal(&self) {
        self.failures.heal();
    }

    pub fn accepted(&self) -> BTreeMap<String, Vec<u8>> {
        self.accepted.lock().clone()
    }

    /// How often it was asked for what it had done before.
    pub fn repeated(&self) -> usize {
        *self.repeated.lock()
    }

    /// Whether it wants nothing to do with an action. It is always the same answer, and only for
    /// what costs nothing: what is given back is given back when a delivery ends, and the campaigns
    /// of a naive walk do not wait for deliveries.
    pub fn refuses(&self, action: ActionId) -> bool {
        let record = super::outbox::now(self.outbox.get(action)).unwrap();
        action.0[0].is_multiple_of(8) && record.is_some_and(|found| found.delivery.cost.is_none())
    }

    /// The id by which a request is known.
    fn id_of(&self, request: &Request) -> String {
        let id = request.header("webhook-id").unwrap();
        assert_eq!(request.header("idempotency-key"), Some(id));
        if self.defect == Some(Defect::RenamesDeliveries) {
            let accepted = self.accepted.lock();
            let before = accepted.keys().filter(|known| known.starts_with(id)).count();
            return id.to_owned() + &"-again".repeat(before);
        }
        id.to_owned()
    }

    fn accept(&self, id: String, body: &[u8]) {
        let mut accepted = self.accepted.lock();
        if let Some(first) = accepted.get(&id) {
            assert_eq!(first, body, "{id} has other bytes when it comes again");
            *self.repeated.lock() += 1;
        }
        accepted.insert(id, body.to_owned());
    }

    fn travel(&self) -> impl Future<Output = ()> + use<> {
        let time = Duration::from_millis(self.random.lock().below(4));
        tokio::time::sleep(time)
    }

    /// What goes wrong: whether it acts all the same, and what the sender sees of it.
    fn trouble(&self) -> Option<(bool, Result<Response, SendError>)> {
        if !self.failures.strike() {
            return None;
        }
        let broken = SendError::Broken { host: "h".to_owned(), why: "reset".to_owned() };
        let late = SendError::Late(Duration::from_secs(15));
        Some(match self.random.lock().below(8) {
            0..3 => (true, Err(late)),
            3 => (true, Err(broken)),
            4 => (true, Ok(Response::of_status(500))),
            5 => (false, Err(late)),
            6 => (false, Ok(Response::of_status(503))),
            _ => (false, Ok(Response::of_status(429))),
        })
    }
}

impl Sender for Receiver {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, SendError>> {
        Box::pin(async move {
            self.travel().await;
            let action = request.header("webhook-id").unwrap().parse().unwrap();
            let (acts, answer) = self.trouble().unwrap_or((true, Ok(Response::of_status(204))));
            if acts && self.refuses(action) {
                self.travel().await;
                return Ok(Response::of_status(422));
            }

            if acts {
                self.accept(self.id_of(request), &request.body);
            }
            self.travel().await;
            answer
        })
    }
}
