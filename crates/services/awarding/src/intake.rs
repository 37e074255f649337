//! Commands on their way to the teller, within a bound.

use crate::error::Error;
use parking_lot::{Condvar, Mutex};
use raingauge_points::{Answer, Command, WalletId};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a caller is asked to wait when there is no room.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What becomes of the commands of a request, in their order.
pub type Answers = Vec<Result<Answer, Error>>;

/// Commands of one caller, which are decided in one turn.
#[derive(Debug)]
pub struct Request {
    pub commands: Vec<Command>,
    pub manner: Manner,
    /// A caller that has gone does not take the answers.
    pub reply: oneshot::Sender<Answers>,
}

/// How the commands of a request belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Each by itself.
    Each,
    /// All of them, or none.
    Together,
    /// Each by itself, and nothing is written.
    Trial,
}

/// Wallets of a sweep that are to be settled.
#[derive(Debug)]
pub struct Settling {
    pub wallets: Vec<WalletId>,
    pub reply: oneshot::Sender<Result<usize, Error>>,
}

/// The bounded queue of requests.
#[derive(Debug)]
pub struct Intake {
    waiting: Mutex<Waiting>,
    grown: Condvar,
    commands_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Request>,
    /// The sweeper waits for each, so there are few.
    settling: VecDeque<Settling>,
    /// Commands of all requests.
    commands: usize,
    /// Something else than a request is to be looked at.
    is_woken: bool,
    /// Why nothing is taken any more.
    closed: Option<String>,
}

impl Intake {
    pub fn new(commands_max: usize) -> Self {
        Self { waiting: Mutex::default(), grown: Condvar::new(), commands_max }
    }

    /// Takes a request in, and returns where its answers come.
    pub fn push(
        &self,
        commands: Vec<Command>,
        manner: Manner,
    ) -> Result<oneshot::Receiver<Answers>, Error> {
        let mut waiting = self.waiting.lock();
        if let Some(why) = &waiting.closed {
            return Err(Error::Closed(why.clone()));
        }
        let is_full = waiting.commands + commands.len() > self.commands_max;
        if is_full && !waiting.requests.is_empty() {
            return Err(Error::Busy { retry_after: RETRY_AFTER });
        }

        let (reply, answers) = oneshot::channel();
        waiting.commands += commands.len();
        waiting.requests.push_back(Request { commands, manner, reply });
        self.grown.notify_all();
        Ok(answers)
    }

    /// Takes wallets in that are to be settled when there is time, and returns where the number of
    /// their entries comes.
    pub fn settle(
        &self,
        wallets: Vec<WalletId>,
    ) -> Result<oneshot::Receiver<Result<usize, Error>>, Error> {
        let mut waiting = self.waiting.lock();
        if let Some(why) = &waiting.closed {
            return Err(Error::Closed(why.clone()));
        }
        let (reply, answer) = oneshot::channel();
        waiting.settling.push_back(Settling { wallets, reply });
        self.grown.notify_all();
        Ok(answer)
    }

    pub fn take_settling(&self) -> Option<Settling> {
        self.waiting.lock().settling.pop_front()
    }

    /// Takes requests out in their order: at least one, and no more than `commands_max` commands.
    pub fn take(&self, commands_max: usize) -> Vec<Request> {
        let mut waiting = self.waiting.lock();
        waiting.is_woken = false;
        let mut taken = Vec::new();
        let mut commands = 0;

        while let Some(next) = waiting.requests.front() {
            if !taken.is_empty() && commands + next.commands.len() > commands_max {
                break;
            }
            commands += next.commands.len();
            taken.extend(waiting.requests.pop_front());
        }
        waiting.commands -= commands;
        taken
    }

    /// Waits until there is a request, or something else to look at. Blocks the thread.
    pub fn wait(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut waiting = self.waiting.lock();
        while waiting.requests.is_empty()
            && waiting.settling.is_empty()
            && !waiting.is_woken
            && !self.grown.wait_until(&mut waiting, deadline).timed_out()
        {}
    }

    /// Ends a wait.
    pub fn wake(&self) {
        self.waiting.lock().is_woken = true;
        self.grown.notify_all();
    }

    /// Refuses everything from now on, also what waits.
    pub fn close(&self, why: &str) {
        let refused = {
            let mut waiting = self.waiting.lock();
            waiting.closed.get_or_insert_with(|| why.to_owned());
            waiting.commands = 0;
            // Those who wait for wallets notice that nobody answers.
            waiting.settling.clear();
            std::mem::take(&mut waiting.requests)
        };
        for request in refused {
            request.refuse(&Error::Closed(why.to_owned()));
        }
        self.wake();
    }

    /// Commands that wait.
    pub fn len(&self) -> usize {
        self.waiting.lock().commands
    }
}

impl Request {
    /// Answers all commands with an error.
    pub fn refuse(self, error: &Error) {
        let answers = self.commands.iter().map(|_| Err(error.clone())).collect();
        self.answer(answers);
    }

    pub fn answer(self, answers: Answers) {
        // A caller that has gone asks again with the same keys, and gets the same answers.
        let _ = self.reply.send(answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raingauge_points::Body;

    fn commands(number: usize) -> Vec<Command> {
        let command = Command {
            programme: "grab-sg".into(),
            member: "bob".into(),
            key: "k".into(),
            source: "".into(),
            occurred_ms: None,
            accepted_ms: None,
            reference: None,
            reason: None,
            body: Body::Close,
        };
        vec![command; number]
    }

    #[test]
    fn a_full_queue_is_busy_and_a_large_request_is_taken_when_it_is_alone() {
        let intake = Intake::new(10);
        let _first = intake.push(commands(20), Manner::Each).unwrap();
        let busy = intake.push(commands(1), Manner::Each);
        assert!(matches!(busy, Err(Error::Busy { .. })));
        assert_eq!(intake.take(5).len(), 1, "at least one");
        assert_eq!(intake.len(), 0);

        let _answers: Vec<_> =
            (0..3).map(|_| intake.push(commands(3), Manner::Each).unwrap()).collect();
        assert_eq!((intake.take(6).len(), intake.len()), (2, 3));
    }

    #[test]
    fn a_closed_queue_answers_what_waits_and_takes_nothing() {
        let intake = Intake::new(10);
        let mut answers = intake.push(commands(2), Manner::Each).unwrap();
        intake.close("it stops");
        let answered = answers.try_recv().unwrap();
        assert!(answered.iter().all(|answer| matches!(answer, Err(Error::Closed(_)))));
        assert_eq!(answered.len(), 2);
        assert!(matches!(intake.push(commands(1), Manner::Each), Err(Error::Closed(_))));
        assert!(matches!(intake.settle(Vec::new()), Err(Error::Closed(_))));
    }
}
