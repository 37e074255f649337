//! An OpenID provider on a port of this process, which says whatever a test wants it to, the truth
//! or not.

use crate::browser::{Browser, HOST, options};
use crate::world::{Page, World};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json as JsonBody, Router};
use openidconnect::core::{
    CoreEdDsaPrivateSigningKey, CoreGenderClaim, CoreJsonWebKeySet,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm,
};
use openidconnect::{AdditionalClaims, IdToken, IdTokenClaims, JsonWebKeyId, PrivateSigningKey};
use parking_lot::Mutex;
use raingauge_core::access::Role;
use raingauge_people::Options;
use raingauge_people::openid::{OpenId, Rules};
use raingauge_portal::{Fields, OPENID_BACK};
use raingauge_ports::clock::Clock;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;

pub const CLIENT: &str = "rain";
pub const SECRET: &str = "the secret of the client";
pub const LABEL: &str = "Sign in with the harbour";

/// Claims that the standard does not name.
#[derive(Debug, Deserialize, Serialize)]
struct Others(HashMap<String, Json>);

impl AdditionalClaims for Others {}

type Token =
    IdToken<Others, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;

/// What the provider does. Tests change it as they go.
pub struct Says {
    pub key: CoreEdDsaPrivateSigningKey,
    /// What the ID token claims, with the nonce of the trip where there is none.
    pub claims: Json,
    pub user_info: Json,
    /// What becomes of a token before it is sent.
    pub forge: fn(String) -> Option<String>,
    pub token_status: StatusCode,
    pub nonce: String,
    /// The forms that came to the token endpoint, with who sent them.
    pub asked: Vec<(Fields, String)>,
    pub discoveries: usize,
}

#[derive(Clone)]
pub struct Provider {
    pub issuer: String,
    pub says: Arc<Mutex<Says>>,
}

/// A key that nobody has used before.
pub fn new_key(name: &str) -> CoreEdDsaPrivateSigningKey {
    // PKCS #8 before 32 bytes of an Ed25519 key (RFC 8410), in hexadecimal.
    let der = hex::decode("302e020100300506032b657004220420").unwrap();
    let bytes: Vec<u8> = der.into_iter().chain(rand::random::<[u8; 32]>()).collect();
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", base64(&bytes));
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(JsonWebKeyId::new(name.to_owned())))
        .unwrap()
}

/// Of a length that is a multiple of three.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes
        .chunks_exact(3)
        .map(|three| three.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)));
    groups
        .flat_map(|all| {
            [18, 12, 6, 0].map(|shift| char::from(DIGITS[(all >> shift & 63) as usize]))
        })
        .collect()
}

impl Provider {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let says = Says {
            key: new_key("first"),
            claims: json!({}),
            user_info: json!({}),
            forge: Some,
            token_status: StatusCode::OK,
            nonce: String::new(),
            asked: Vec::new(),
            discoveries: 0,
        };

        let provider = Self { issuer, says: Arc::new(Mutex::new(says)) };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/claims", get(user_info))
            .with_state(provider.clone());

        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    pub fn says<T>(&self, change: impl FnOnce(&mut Says) -> T) -> T {
        change(&mut self.says.lock())
    }

    /// The token is about this person, with what differs from the usual.
    pub fn claims(&self, subject: &str, email: &str, more: Json) {
        let now_s = crate::world::NOW_S;
        let mut claims = json!({
            "iss": self.issuer, "sub": subject, "aud": CLIENT, "iat": now_s, "exp": now_s + 300, "email": email,
            "email_verified": true,
        });
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.says(|says| says.claims = claims);
    }

    /// A portal at which people may sign in by this provider, under these rules.
    pub fn world(&self, rules: Rules) -> World {
        self.world_with(rules, Options { public_url: Some(format!("http://{HOST}")), ..options() })
    }

    pub fn world_with(&self, rules: Rules, options: Options) -> World {
        let redirect_url = format!("{}{OPENID_BACK}", options.public_url.clone().unwrap());
        let client = raingauge_openid::Options {
            issuer: self.issuer.clone(),
            client_id: CLIENT.to_owned(),
            client_secret: Some(SECRET.to_owned()),
            scopes: ["openid", "email", "profile"].map(str::to_owned).to_vec(),
            groups_claim: if rules.groups.is_empty() { String::new() } else { "groups".to_owned() },
            redirect_url,
        };

        World::with_openid(options, |clock: Arc<dyn Clock>| OpenId {
            provider: Arc::new(raingauge_openid::Provider::new(client, clock).unwrap()),
            rules,
        })
    }

    /// Begins at the portal. Answers what the address passes to the provider, and keeps the nonce
    /// for the token.
    pub async fn begin(&self, browser: &mut Browser<'_>, next: &str) -> Fields {
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
        let page = browser.get(&format!("/sign-in/openid?{query}")).await;
        let address = page.is(StatusCode::SEE_OTHER).location().to_owned();
        let (place, query) = address.split_once('?').unwrap();
        assert_eq!(place, format!("{}/authorize", self.issuer));
        let told = Fields::parse(query.as_bytes());
        self.says(|says| says.nonce = told.text("nonce").to_owned());
        told
    }

    /// Goes to the provider and comes back with a code.
    pub async fn sign_in(&self, browser: &mut Browser<'_>, next: &str) -> Page {
        let told = self.begin(browser, next).await;
        come_back(browser, told.text("state")).await
    }
}

pub async fn come_back(browser: &mut Browser<'_>, state: &str) -> Page {
    browser.get(&format!("{OPENID_BACK}?code=a-code&state={state}")).await
}

/// Nobody comes in without an address that an administrator has given.
pub fn rules() -> Rules {
    Rules { label: LABEL.to_owned(), domains: Vec::new(), role: Role::Viewer, groups: Vec::new() }
}

async fn configuration(State(provider): State<Provider>) -> JsonBody<Json> {
    provider.says(|says| says.discoveries += 1);
    let at = |path: &str| format!("{}/{path}", provider.issuer);
    JsonBody(json!({
        "issuer": provider.issuer, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "jwks_uri": at("keys"), "userinfo_endpoint": at("claims"), "response_types_supported": ["code"],
        "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["EdDSA"],
    }))
}

async fn keys(State(provider): State<Provider>) -> JsonBody<Json> {
    let key = provider.says(|says| says.key.as_verification_key());
    JsonBody(serde_json::to_value(CoreJsonWebKeySet::new(vec![key])).unwrap())
}

async fn token(State(provider): State<Provider>, headers: HeaderMap, body: String) -> Response {
    let by = headers
        .get(header::AUTHORIZATION)
        .map(|by| by.to_str().unwrap().to_owned())
        .unwrap_or_default();
    provider.says(|says| {
        says.asked.push((Fields::parse(body.as_bytes()), by));

        if says.token_status != StatusCode::OK {
            return (says.token_status, JsonBody(json!({ "error": "invalid_client" }))).into_response();
        }
        let mut claims = says.claims.clone();
        if claims.get("nonce").is_none() {
            claims["nonce"] = json!(says.nonce);
        }

        let claims: IdTokenClaims<Others, CoreGenderClaim> =
            serde_json::from_value(claims).unwrap();
        let algorithm = CoreJwsSigningAlgorithm::EdDsa;
        let signed = Token::new(claims, &says.key, algorithm, None, None).unwrap();
        let signed = serde_json::to_value(signed).unwrap().as_str().unwrap().to_owned();
        let answer =
            json!({ "access_token": "an-access-token", "token_type": "Bearer", "id_token": (says.forge)(signed) });

        JsonBody(answer).into_response()
    })
}

async fn user_info(State(provider): State<Provider>, headers: HeaderMap) -> Response {
    assert_eq!(headers[header::AUTHORIZATION], "Bearer an-access-token");
    JsonBody(provider.says(|says| says.user_info.clone())).into_response()
}
