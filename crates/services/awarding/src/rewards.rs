//! Redemptions of rewards: points are held first, and captured when the reward is handed out.
//!
//! The stock of a reward is an account of its programme, so it cannot be sold twice.

use crate::error::Error;
use crate::intake::Manner;
use crate::shared::Shared;
use raingauge_points::{Answer, Body, Command};
use std::sync::Arc;

/// A member redeems a reward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redemption {
    pub programme: Arc<str>,
    pub member: Arc<str>,
    pub reward: Arc<str>,
    /// What makes it happen once. It is the name of the redemption from then on.
    pub key: Arc<str>,
    pub source: Arc<str>,
}

/// The end of a redemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fulfilment {
    pub programme: Arc<str>,
    pub member: Arc<str>,
    /// The key of the redemption.
    pub redemption: Arc<str>,
    pub key: Arc<str>,
    pub source: Arc<str>,
    pub reason: Option<Arc<str>>,
}

/// Redeems rewards.
#[derive(Clone)]
pub struct Rewards(Arc<Shared>);

impl Rewards {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Holds the points of a reward, and takes one of its stock.
    pub async fn redeem(&self, redemption: Redemption) -> Result<Answer, Error> {
        let Redemption { programme, member, reward, key, source } = redemption;
        let body = Body::Hold { points: None, until_ms: None, reward: Some(reward) };
        self.execute(Command {
            programme,
            member,
            key,
            source,
            occurred_ms: None,
            accepted_ms: None,
            reference: None,
            reason: None,
            body,
        })
        .await
    }

    /// Captures the points: the reward was handed out.
    pub async fn fulfil(&self, fulfilment: Fulfilment) -> Result<Answer, Error> {
        let hold = Arc::clone(&fulfilment.redemption);
        self.end(fulfilment, Body::Capture { hold, points: None }).await
    }

    /// Releases the points, and returns the reward to the stock.
    pub async fn cancel(&self, fulfilment: Fulfilment) -> Result<Answer, Error> {
        let hold = Arc::clone(&fulfilment.redemption);
        self.end(fulfilment, Body::Release { hold }).await
    }

    async fn end(&self, fulfilment: Fulfilment, body: Body) -> Result<Answer, Error> {
        let Fulfilment { programme, member, key, source, reason, .. } = fulfilment;
        self.execute(Command {
            programme,
            member,
            key,
            source,
            occurred_ms: None,
            accepted_ms: None,
            reference: None,
            reason,
            body,
        })
        .await
    }

    async fn execute(&self, command: Command) -> Result<Answer, Error> {
        let mut answers = self.0.decide(vec![command], Manner::Each).await;
        answers.pop().expect("each command is answered")
    }
}
