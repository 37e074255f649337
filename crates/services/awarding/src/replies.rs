//! The answers of a turn, on their way to those who wait for them.

use crate::error::Error;
use crate::intake::Answers;
use crate::lane::{Decided, Lane, Origin, Slot};
use raingauge_points::Answer;
use tokio::sync::oneshot;

/// Answers by where they belong.
#[derive(Debug, Default)]
pub struct Replies {
    requests: Vec<(oneshot::Sender<Answers>, Answers)>,
    awards: Answers,
    settling: Option<(oneshot::Sender<SettleCount>, SettleCount)>,
}

/// How many entries it took to settle wallets.
type SettleCount = Result<usize, Error>;

impl Replies {
    /// Expects the answers of a request.
    pub fn add(&mut self, reply: oneshot::Sender<Answers>, commands: usize) -> Origin {
        self.requests.push((reply, nothing(commands)));
        Origin::Request(self.requests.len() - 1)
    }

    /// Expects the answers of awards of the log.
    pub fn expect_awards(&mut self, awards: usize) -> Origin {
        self.awards = nothing(awards);
        Origin::Log
    }

    pub fn add_settling(&mut self, reply: oneshot::Sender<SettleCount>) {
        self.settling = Some((reply, Ok(0)));
    }

    /// Takes what a turn decided.
    pub fn put(&mut self, decided: Decided) {
        for (slot, answers) in decided.answers {
            self.place(slot, answers.into_iter().map(Ok));
        }
        if let Some((_, Ok(entries))) = &mut self.settling {
            *entries += decided.settled;
        }
    }

    /// Takes an error for all that a lane would have decided.
    pub fn fail(&mut self, lane: &Lane, error: &Error) {
        for (slot, answers) in lane.failed(error) {
            self.place(slot, answers.into_iter());
        }
        if let Some((_, settled)) = &mut self.settling
            && !lane.settling().is_empty()
        {
            *settled = Err(error.clone());
        }
    }

    fn place(&mut self, slot: Slot, answers: impl Iterator<Item = Result<Answer, Error>>) {
        let places = match slot.origin {
            Origin::Request(request) => &mut self.requests[request].1,
            Origin::Log => &mut self.awards,
        };
        for (place, answer) in places[slot.first..].iter_mut().zip(answers) {
            *place = answer;
        }
    }

    /// Answers those who wait, and returns the answers of the awards. A caller that has gone asks
    /// again with the same keys, and gets the same answers.
    pub fn send(self) -> Answers {
        for (reply, answers) in self.requests {
            let _ = reply.send(answers);
        }
        if let Some((reply, settled)) = self.settling {
            let _ = reply.send(settled);
        }
        self.awards
    }
}

fn nothing(len: usize) -> Answers {
    let unanswered = || Err(Error::Closed("the turn did not answer".to_owned()));
    (0..len).map(|_| unanswered()).collect()
}
