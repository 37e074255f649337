//! Making and revoking the tokens of the portal.

use crate::AccountError;
use crate::accounts::Accounts;
use crate::audit::AuditAction;
use crate::secrets::{hash_of, new_token};
use raingauge_core::access::{Scope, Scopes};
use raingauge_core::limits::PERSON_LEN_MAX;
use raingauge_ports::people::{ApiToken, Error};
use serde_json::json;

/// A request for a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    pub name: String,
    pub scopes: Scopes,
    /// `None` for a token that does not expire.
    pub lifetime_s: Option<i64>,
}

/// A token that was made. The secret is shown once and kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    pub name: String,
    pub secret: String,
    pub action: AuditAction,
}

impl Accounts {
    /// All tokens that were ever made in the portal, newest first.
    pub async fn tokens(&self) -> Result<Vec<ApiToken>, Error> {
        self.people.tokens().await
    }

    /// Makes a token on behalf of `by`. Every process knows it within two seconds.
    pub async fn create_token(
        &self,
        request: TokenRequest,
        by: &str,
    ) -> Result<NewToken, AccountError> {
        let TokenRequest { name, scopes, lifetime_s } = request;
        if name.is_empty() || name.len() > PERSON_LEN_MAX || name.contains(char::is_control) {
            let words = format!(
                "Give a name of 1 to {PERSON_LEN_MAX} bytes, by which its requests are known."
            );
            return Err(AccountError::Field("name", words));
        }

        if scopes.is_empty() {
            let words = "Choose what the token is good for.".to_owned();
            return Err(AccountError::Field("scope", words));
        }

        let secret = new_token();
        let now_s = self.clock.now_s();
        let token = ApiToken {
            id: 0,
            hash: hash_of(&secret),
            name,
            scopes,
            created_by: by.to_owned(),
            created_at: now_s,
            expires_at: lifetime_s.map(|lifetime_s| now_s + lifetime_s),
            revoked_at: None,
            used_at: None,
        };

        let token = self.people.add_token(token).await.map_err(|error| {
            let words = match error {
                Error::NameTaken(_) => {
                    "A token that is in use has this name. Choose another one.".to_owned()
                }
                other => other.to_string(),
            };
            AccountError::Field("name", words)
        })?;

        let scopes: Vec<&str> = token.scopes.iter().map(Scope::name).collect();
        let details = json!({ "scopes": scopes, "expiresAt": token.expires_at });
        let action = AuditAction::new("token.create", format!("token {}", token.name), details);

        Ok(NewToken { name: token.name, secret, action })
    }

    /// Revokes a token: it opens nothing after two seconds.
    pub async fn revoke_token(&self, id: i64) -> Result<AuditAction, Error> {
        let token = self.people.revoke_token(id, self.clock.now_s()).await?;
        Ok(AuditAction::new("token.revoke", format!("token {}", token.name), json!({})))
    }
}
