//! The two protocols of replies.

/// The protocol of a connection: RESP2 until `HELLO 3` asks for RESP3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Two,
    Three,
}

impl Protocol {
    /// The number that `HELLO` takes and answers.
    pub fn number(self) -> i64 {
        match self {
            Protocol::Two => 2,
            Protocol::Three => 3,
        }
    }
}
