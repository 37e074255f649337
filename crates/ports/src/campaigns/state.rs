//! What waits for its time.

use super::bytes::{Reader, Writer};
use super::{ActionId, CampaignId};

/// Something that is to happen at a time: a delayed action, or an evaluation that is put off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Milliseconds since 1970, by the times of the log.
    pub due_ms: i64,
    pub action: ActionId,
    pub campaign: CampaignId,
    pub subject: String,
    /// What is to be done, in the format of the engine.
    pub body: Vec<u8>,
}

impl Timer {
    const VERSION: u8 = 1;

    /// The stored form, without time and id, which are its key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let fields = Writer::new(Self::VERSION).u32(self.campaign).text(&self.subject);
        fields.bytes(&self.body).finish()
    }

    /// `None` if the bytes are malformed, or of a newer version.
    pub fn from_bytes(due_ms: i64, action: ActionId, bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(bytes, Self::VERSION)?;
        let timer = Self {
            due_ms,
            action,
            campaign: fields.u32()?,
            subject: fields.text()?,
            body: fields.bytes()?.to_vec(),
        };
        fields.finish(timer)
    }
}
