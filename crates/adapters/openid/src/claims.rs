//! The claims of a token about a person, and the types of `openidconnect` that carry them.

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreRevocableToken,
    CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    IdTokenClaims, IdTokenFields, StandardClaims, StandardErrorResponse, StandardTokenResponse,
    UserInfoClaims,
};
use raingauge_ports::identity::Identity;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::HashMap;

/// Claims that the standard does not name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Others(HashMap<String, Json>);

impl AdditionalClaims for Others {}

type Fields = IdTokenFields<
    Others,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;

/// A client as created from discovery.
pub type Client = openidconnect::Client<
    Others,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    StandardTokenResponse<Fields, CoreTokenType>,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

pub type Tokens = StandardTokenResponse<Fields, CoreTokenType>;
pub type Claims = IdTokenClaims<Others, CoreGenderClaim>;
pub type UserInfo = UserInfoClaims<Others, CoreGenderClaim>;

/// The identity from the signed claims. A blank separates issuer and subject; no issuer contains
/// one.
pub fn identity(claims: &Claims, groups_claim: &str) -> Identity {
    let standard = Standard {
        email: claims.email().map(|email| email.to_string()),
        is_email_verified: claims.email_verified(),
        others: claims.additional_claims(),
    };
    let openid = format!("{} {}", claims.issuer().as_str(), claims.subject().as_str());
    standard.add_to(Identity { openid, ..Identity::default() }, groups_claim)
}

/// The same identity, completed from the user info endpoint.
pub fn with_user_info(identity: Identity, info: &UserInfo, groups_claim: &str) -> Identity {
    let claims: &StandardClaims<CoreGenderClaim> = info.standard_claims();
    let standard = Standard {
        email: claims.email().map(|email| email.to_string()),
        is_email_verified: claims.email_verified(),
        others: info.additional_claims(),
    };
    standard.add_to(identity, groups_claim)
}

struct Standard<'a> {
    email: Option<String>,
    is_email_verified: Option<bool>,
    others: &'a Others,
}

impl Standard<'_> {
    /// An address and whether it is verified belong together and come from one source.
    fn add_to(self, known: Identity, groups_claim: &str) -> Identity {
        let (email, is_email_verified) = match self.email {
            Some(email) if known.email.is_empty() => (email, self.is_email_verified == Some(true)),
            _ => (known.email, known.is_email_verified),
        };
        let groups =
            if known.groups.is_empty() { self.others.texts(groups_claim) } else { known.groups };
        Identity { openid: known.openid, email, is_email_verified, groups }
    }
}

impl Others {
    /// The texts of a claim: one, or a list. The path of a nested claim has dots, such as
    /// `realm_access.roles`.
    fn texts(&self, path: &str) -> Vec<String> {
        let found = self.0.get(path).or_else(|| {
            let (first, rest) = path.split_once('.')?;
            rest.split('.').try_fold(self.0.get(first)?, |inner, name| inner.get(name))
        });
        match found {
            Some(Json::String(text)) => vec![text.clone()],
            Some(Json::Array(values)) => {
                values.iter().filter_map(Json::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }
}
