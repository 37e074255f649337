//! Sign-in at the provider, from the address for the browser to the identity of the person who
//! comes back.

use crate::claims::{Claims, Client, Tokens, UserInfo, identity, with_user_info};
use crate::discovery::Discovery;
use crate::http::{self, Http};
use openidconnect::core::{CoreClientAuthMethod, CoreProviderMetadata, CoreResponseType};
use openidconnect::{
    AuthType, AuthenticationFlow, AuthorizationCode, ClaimsVerificationError, ClientId,
    ClientSecret, CsrfToken, IssuerUrl, Nonce, OAuth2TokenResponse, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, SignatureVerificationError,
    TokenResponse,
};
use raingauge_ports::BoxFuture;
use raingauge_ports::clock::Clock;
use raingauge_ports::identity::{Error, Identity, IdentityProvider, Ticket};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Largest difference between the provider's clock and this one.
const CLOCK_SKEW_S: i64 = 60;

/// A client registered at a provider. The settings have validated the addresses.
#[derive(Clone)]
pub struct Options {
    /// Exactly as the provider writes it.
    pub issuer: String,
    pub client_id: String,
    /// `None` for a client that proves itself by PKCE alone.
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
    /// The claim that determines roles; empty for none.
    pub groups_claim: String,
    /// Where the provider redirects browsers to.
    pub redirect_url: String,
}

/// Any provider that supports discovery.
pub struct Provider {
    options: Options,
    redirect_url: RedirectUrl,
    discovery: Discovery,
    http: Http,
    clock: Arc<dyn Clock>,
}

/// What is wrong with a token.
enum Flaw {
    /// It was signed by a key that the provider may have introduced since its keys were read.
    UnknownKey,
    Other(String),
}

impl Provider {
    /// Sends no request to the provider yet. An error names the invalid address.
    pub fn new(options: Options, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let wrong = |address: &str| format!("{address} is not an address");
        let issuer = IssuerUrl::new(options.issuer.clone()).map_err(|_| wrong(&options.issuer))?;
        let redirect_url = RedirectUrl::new(options.redirect_url.clone())
            .map_err(|_| wrong(&options.redirect_url))?;
        let discovery = Discovery::new(issuer, Arc::clone(&clock));
        Ok(Self { options, redirect_url, discovery, http: Http::new(), clock })
    }

    fn client(&self, provider: &CoreProviderMetadata) -> Client {
        let secret = self.options.client_secret.clone().map(ClientSecret::new);
        let id = ClientId::new(self.options.client_id.clone());
        let methods = provider.token_endpoint_auth_methods_supported();
        let has = |method| methods.is_none_or(|methods| methods.contains(&method));
        let auth = if has(CoreClientAuthMethod::ClientSecretBasic)
            || !has(CoreClientAuthMethod::ClientSecretPost)
        {
            AuthType::BasicAuth
        } else {
            AuthType::RequestBody
        };

        let client = Client::from_provider_metadata(provider.clone(), id, secret);
        client.set_redirect_uri(self.redirect_url.clone()).set_auth_type(auth)
    }

    async fn address(&self, ticket: Ticket) -> Result<String, Error> {
        let provider = self.discovery.provider(&self.http).await?;
        let client = self.client(&provider);
        let Ticket { state, nonce, verifier } = ticket;
        let challenge =
            PkceCodeChallenge::from_code_verifier_sha256(&PkceCodeVerifier::new(verifier));
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let request = client.authorize_url(flow, || CsrfToken::new(state), || Nonce::new(nonce));
        // The library requests the scope `openid` by itself.
        let scopes =
            self.options.scopes.iter().filter(|scope| *scope != "openid").cloned().map(Scope::new);
        let (address, _, _) = request.add_scopes(scopes).set_pkce_challenge(challenge).url();
        Ok(address.into())
    }

    async fn identify(&self, code: String, ticket: Ticket) -> Result<Identity, Error> {
        let provider = self.discovery.provider(&self.http).await?;
        let mut client = self.client(&provider);
        let tokens = self.exchange(&client, code, &ticket).await?;
        let nonce = Nonce::new(ticket.nonce);
        let claims = match self.claims(&client, &tokens, &nonce) {
            Err(Flaw::UnknownKey) => {
                client = self.client(&*self.discovery.renewed(&self.http).await?);
                self.claims(&client, &tokens, &nonce)
            }
            claims => claims,
        };

        let claims = claims.map_err(|flaw| match flaw {
            Flaw::UnknownKey => {
                Error::Unproven("it is signed by a key that the provider does not have".to_owned())
            }
            Flaw::Other(words) => Error::Unproven(words),
        })?;
        self.completed(&client, &tokens, &claims).await
    }

    async fn exchange(
        &self,
        client: &Client,
        code: String,
        ticket: &Ticket,
    ) -> Result<Tokens, Error> {
        let request = client.exchange_code(AuthorizationCode::new(code));
        let request =
            request.map_err(|_| Error::Unproven("it names no token endpoint".to_owned()))?;
        let request = request.set_pkce_verifier(PkceCodeVerifier::new(ticket.verifier.clone()));

        request.request_async(&self.http).await.map_err(|error| match error {
            RequestTokenError::ServerResponse(refusal) => Error::Refused(refusal.to_string()),
            RequestTokenError::Request(error) => unavailable(&error),
            // The answer may contain tokens and is not repeated.
            RequestTokenError::Parse(_, _) => {
                Error::Unproven("its token answer cannot be read".to_owned())
            }
            RequestTokenError::Other(words) => Error::Unproven(words),
        })
    }

    /// Returns the claims of the ID token once the whole token is verified.
    fn claims(&self, client: &Client, tokens: &Tokens, nonce: &Nonce) -> Result<Claims, Flaw> {
        let token = tokens
            .id_token()
            .ok_or_else(|| Flaw::Other("there is no ID token in it".to_owned()))?;
        let expired_s = self.clock.now_s() - CLOCK_SKEW_S;
        let time = UNIX_EPOCH + Duration::from_secs(expired_s.max(0) as u64);
        let verifier = client.id_token_verifier().set_time_fn(move || time.into());

        token.claims(&verifier, nonce).cloned().map_err(|error| match error {
            ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey,
            ) => Flaw::UnknownKey,
            ClaimsVerificationError::SignatureVerification(error) => Flaw::Other(error.to_string()),
            error => Flaw::Other(error.to_string()),
        })
    }

    /// Many providers return the e-mail address or groups only from their user info endpoint.
    async fn completed(
        &self,
        client: &Client,
        tokens: &Tokens,
        claims: &Claims,
    ) -> Result<Identity, Error> {
        let groups_claim = self.options.groups_claim.as_str();
        let identity = identity(claims, groups_claim);
        let is_whole =
            !identity.email.is_empty() && (groups_claim.is_empty() || !identity.groups.is_empty());
        if is_whole {
            return Ok(identity);
        }

        let subject = Some(claims.subject().clone());
        let Ok(request) = client.user_info(tokens.access_token().clone(), subject) else {
            return Ok(identity);
        };
        let info: UserInfo =
            request.request_async(&self.http).await.map_err(|error| match error {
                openidconnect::UserInfoError::Request(error) => unavailable(&error),
                error => Error::Unproven(format!("its page of claims: {error}")),
            })?;

        Ok(with_user_info(identity, &info, groups_claim))
    }
}

fn unavailable(error: &http::Error) -> Error {
    Error::Unavailable(error.to_string())
}

impl IdentityProvider for Provider {
    fn begin(&self, ticket: Ticket) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(self.address(ticket))
    }

    fn finish(&self, code: String, ticket: Ticket) -> BoxFuture<'_, Result<Identity, Error>> {
        Box::pin(self.identify(code, ticket))
    }
}
