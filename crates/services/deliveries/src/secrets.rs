//! Secrets of destinations, which are read when they are needed.

use crate::destination::SecretSource;
use raingauge_campaigns::sign::Secret;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a secret is used before it is read again.
const RELOAD: Duration = Duration::from_secs(5);
/// Most secrets of a destination: the old and the new one of a rotation.
const SECRETS_MAX: usize = 2;
/// Largest file of secrets, in bytes.
const FILE_LEN_MAX: u64 = 4_096;

/// Why there is no secret. Never contains one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("its secret cannot be read from {place}: {why}")]
    Unreadable { place: String, why: String },
    #[error("{place} must hold one secret, or two while one replaces the other: {why}")]
    Malformed { place: String, why: String },
}

/// What a source held.
type Reading = Result<Arc<[Secret]>, Error>;

/// The secrets of one destination.
#[derive(Debug, Default)]
pub struct Secrets {
    source: Option<SecretSource>,
    read: Option<(Instant, Reading)>,
}

impl Secrets {
    /// Secrets from a source; none, without one.
    pub fn of(source: Option<SecretSource>) -> Self {
        Self { source, read: None }
    }

    /// Changes the source, if it is another one.
    pub fn follow(&mut self, source: &Option<SecretSource>) {
        if self.source != *source {
            *self = Self::of(source.clone());
        }
    }

    /// The secrets as they were read a short time ago. After a failure, those that were read before
    /// are used no longer.
    pub fn current(&mut self) -> Reading {
        let Some(source) = &self.source else { return Ok(Arc::default()) };
        match &self.read {
            Some((at, secrets)) if at.elapsed() < RELOAD => secrets.clone(),
            _ => {
                let secrets = read(source);
                self.read = Some((Instant::now(), secrets.clone()));
                secrets
            }
        }
    }
}

fn read(source: &SecretSource) -> Reading {
    let (place, text) = match source {
        SecretSource::Environment(name) => {
            let place = format!("the variable {name}");
            // The error of a variable that is no text would show it.
            (place, std::env::var(name).map_err(|_| "it is not set, or is no text".to_owned()))
        }
        SecretSource::File(path) => {
            let place = format!("the file {}", path.display());
            let is_small = std::fs::metadata(path).map(|file| file.len() <= FILE_LEN_MAX);
            let text = match is_small {
                Ok(true) => std::fs::read_to_string(path).map_err(|error| error.to_string()),
                Ok(false) => Err(format!("it has more than {FILE_LEN_MAX} bytes")),
                Err(error) => Err(error.to_string()),
            };
            (place, text)
        }
    };

    let text = text.map_err(|why| Error::Unreadable { place: place.clone(), why })?;
    let malformed = |why: String| Error::Malformed { place: place.clone(), why };
    let secrets = text.split_whitespace().map(Secret::parse);
    let secrets: Vec<Secret> =
        secrets.collect::<Result<_, _>>().map_err(|error| malformed(error.to_string()))?;
    if !(1..=SECRETS_MAX).contains(&secrets.len()) {
        return Err(malformed(format!("it holds {}", secrets.len())));
    }
    Ok(secrets.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const NEW: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).expect("written");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let mut secrets = Secrets::of(Some(SecretSource::File(path.clone())));
        assert!(matches!(secrets.current(), Err(Error::Unreadable { .. })));

        write(&path, &format!("{OLD}\n"));
        assert!(secrets.current().is_err(), "it is not read for each request");
        tokio::time::advance(RELOAD).await;
        assert_eq!(secrets.current().map(|found| found.len()), Ok(1));

        write(&path, &format!("{NEW} {OLD}\n"));
        tokio::time::advance(RELOAD).await;
        assert_eq!(secrets.current().map(|found| found.len()), Ok(2));

        secrets.follow(&None);
        assert_eq!(secrets.current().map(|found| found.len()), Ok(0));
    }

    #[test]
    fn what_is_no_secret_is_refused_and_not_repeated() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let long = "x".repeat(FILE_LEN_MAX as usize + 1);
        let texts = ["", "whsec_short", &OLD[6..], &format!("{OLD} {OLD} {NEW}"), &long];
        for text in texts {
            write(&path, text);
            let error = read(&SecretSource::File(path.clone())).expect_err("refused");
            assert!(!error.to_string().contains(&OLD[6..]), "{error}");
        }

        let missing = SecretSource::Environment("RAINGAUGE_SECRET_OF_NOBODY".to_owned());
        assert!(matches!(read(&missing), Err(Error::Unreadable { .. })));
    }
}
