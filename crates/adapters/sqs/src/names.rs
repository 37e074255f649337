//! The queues of SQS that letters lie in: their names, and how they are made.

use crate::calls::{is_code, unavailable};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use raingauge_ports::points::{QUEUE_WAIT_S_MAX, QueueError, QueueName, Shelf};
use std::time::Duration;

/// For how long SQS keeps a letter: its longest, 14 days.
const RETENTION_S: u32 = 1_209_600;
/// After how many receives SQS itself gives a letter up: its most. It catches only letters that end
/// the process which receives them: all others are buried by their receiver, with a reason. Each
/// receive counts, also while the ledger is away, so a lower number would bury letters that wait.
const RECEIVES_MAX: u32 = 1_000;
/// Longest call, beyond what a receive waits.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// How SQS is reached. Without a form for debugging: it has a secret.
#[derive(Clone, PartialEq)]
pub struct Options {
    pub region: String,
    /// Address of a server that speaks the protocol; `None` for the region's.
    pub endpoint: Option<String>,
    /// What the names of queues begin with.
    pub prefix: String,
    pub access_key_id: Option<String>,
    pub access_key: Option<String>,
    /// Belongs to temporary keys.
    pub session_token: Option<String>,
}

/// The address of each queue.
pub struct Addresses {
    of: Vec<(QueueName, Shelf, String)>,
}

impl Options {
    pub fn client(&self) -> Result<Client, QueueError> {
        let (Some(id), Some(key)) = (&self.access_key_id, &self.access_key) else {
            return Err(QueueError::Unavailable(
                "SQS needs an access key: set points.sqs_access_key_id and points.sqs_access_key, \
                 or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                    .to_owned(),
            ));
        };

        let timeouts = TimeoutConfig::builder()
            .operation_attempt_timeout(Duration::from_secs(QUEUE_WAIT_S_MAX) + ANSWER_MAX);
        let credentials = Credentials::new(
            id.as_str(),
            key.as_str(),
            self.session_token.clone(),
            None,
            "raingauge",
        );
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(credentials)
            .retry_config(RetryConfig::standard())
            .timeout_config(timeouts.build());
        let config = match &self.endpoint {
            Some(endpoint) => config.endpoint_url(endpoint),
            None => config,
        };
        Ok(Client::from_conf(config.build()))
    }

    /// SQS allows no dots in names.
    fn name(&self, queue: QueueName, shelf: Shelf) -> String {
        format!("{}{}", self.prefix, shelf.name_of(queue).replace('.', "-"))
    }

    /// Finds the queues, and makes those that are missing. Dead letters come first, because the
    /// queue of the living names that of the dead.
    pub async fn addresses(&self, client: &Client) -> Result<Addresses, QueueError> {
        let mut of = Vec::new();
        for queue in QueueName::ALL {
            let dead = self.address(client, queue, Shelf::Dead, None).await?;
            let policy = policy(client, &dead).await?;
            let waiting = self.address(client, queue, Shelf::Waiting, Some(policy)).await?;
            of.push((queue, Shelf::Dead, dead));
            of.push((queue, Shelf::Waiting, waiting));
        }
        Ok(Addresses { of })
    }

    async fn address(
        &self,
        client: &Client,
        queue: QueueName,
        shelf: Shelf,
        policy: Option<String>,
    ) -> Result<String, QueueError> {
        let name = self.name(queue, shelf);
        let url = match client.get_queue_url().queue_name(&name).send().await {
            Ok(found) => {
                if let (Some(url), Some(policy)) = (found.queue_url(), &policy) {
                    renew(client, url, policy).await;
                }
                found.queue_url
            }
            Err(error)
                if is_code(&error, "QueueDoesNotExist") || is_code(&error, "NonExistentQueue") =>
            {
                tracing::info!(queue = name, "making a queue of SQS");
                let retention = QueueAttributeName::MessageRetentionPeriod;
                let made = client
                    .create_queue()
                    .queue_name(&name)
                    .attributes(retention, RETENTION_S.to_string());
                let made = match policy {
                    Some(policy) => made.attributes(QueueAttributeName::RedrivePolicy, policy),
                    None => made,
                };
                made.send().await.map_err(unavailable)?.queue_url
            }
            Err(error) => return Err(unavailable(error)),
        };
        url.ok_or_else(|| QueueError::Unavailable(format!("SQS says no address of queue {name}")))
    }
}

/// Gives a queue that was made before the policy of today. Where that is not allowed, it keeps its
/// own.
async fn renew(client: &Client, url: &str, policy: &str) {
    let name = QueueAttributeName::RedrivePolicy;
    let renewed = client.set_queue_attributes().queue_url(url).attributes(name, policy);
    if let Err(error) = renewed.send().await {
        let error = unavailable(error);
        tracing::warn!(%error, queue = url, "the redrive policy of a queue of SQS stays what it is");
    }
}

/// What SQS itself does with a letter that is received again and again.
async fn policy(client: &Client, dead: &str) -> Result<String, QueueError> {
    let asked =
        client.get_queue_attributes().queue_url(dead).attribute_names(QueueAttributeName::QueueArn);
    let found = asked.send().await.map_err(unavailable)?;
    let arn = found.attributes().and_then(|all| all.get(&QueueAttributeName::QueueArn));
    let arn = arn.ok_or_else(|| QueueError::Unavailable(format!("SQS says no ARN of {dead}")))?;
    let policy = serde_json::json!({ "deadLetterTargetArn": arn, "maxReceiveCount": RECEIVES_MAX });
    Ok(policy.to_string())
}

impl Addresses {
    pub fn get(&self, queue: QueueName, shelf: Shelf) -> &str {
        let mut all = self.of.iter();
        let found = all.find(|(of, on, _)| (*of, *on) == (queue, shelf));
        found.map(|(.., url)| url.as_str()).expect("every queue has an address")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            region: "eu-central-1".to_owned(),
            endpoint: None,
            prefix: "rain-".to_owned(),
            access_key_id: Some("id".to_owned()),
            access_key: None,
            session_token: None,
        }
    }

    #[test]
    fn names_have_no_dots() {
        assert_eq!(options().name(QueueName::Retry, Shelf::Dead), "rain-retry-dead");
        assert_eq!(options().name(QueueName::Award, Shelf::Waiting), "rain-award");
    }

    #[test]
    fn half_a_key_is_refused_with_advice() {
        let error = options().client().map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("AWS_SECRET_ACCESS_KEY"), "{error}");
    }
}
