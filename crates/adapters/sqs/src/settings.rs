//! The settings of queues on SQS.

use crate::names::Options;
use raingauge_settings::{FromText, Wrong, settings};

settings! {
    pub struct Settings in "points" {
        /// Where the queues of points are: in the data folder (in the database, of a cluster), or
        /// on Amazon SQS.
        place as "queue": Place = one_of(&["embedded", "sqs"]);
        /// Region of the SQS queues.
        region as "sqs_region": String = text("us-east-1");
        /// Address of a server that speaks the protocol of SQS; empty for the region's.
        endpoint as "sqs_endpoint": Option<String> = text("");
        /// What the names of the SQS queues begin with.
        prefix as "sqs_prefix": String = text("raingauge-");
        /// Id of the access key for SQS; empty for the variable AWS_ACCESS_KEY_ID.
        access_key_id as "sqs_access_key_id": Option<String> = text("");
        /// The access key itself; empty for the variable AWS_SECRET_ACCESS_KEY.
        access_key as "sqs_access_key": Option<String> = secret();
    }
}

/// Where queues are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Embedded,
    Sqs,
}

impl FromText for Place {
    fn from_text(word: &str) -> Result<Self, Wrong> {
        Ok(if word == "sqs" { Self::Sqs } else { Self::Embedded })
    }
}

impl Settings {
    pub fn is_chosen(&self) -> bool {
        self.place == Place::Sqs
    }

    /// The options, with what is missing of the key from variables of the environment.
    pub fn options(&self, variable: impl Fn(&str) -> Option<String>) -> Options {
        let or_variable = |given: &Option<String>, name| given.clone().or_else(|| variable(name));
        Options {
            region: self.region.clone(),
            endpoint: self.endpoint.clone(),
            prefix: self.prefix.clone(),
            access_key_id: or_variable(&self.access_key_id, "AWS_ACCESS_KEY_ID"),
            access_key: or_variable(&self.access_key, "AWS_SECRET_ACCESS_KEY"),
            session_token: variable("AWS_SESSION_TOKEN"),
        }
    }
}
