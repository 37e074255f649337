//! A browser: it keeps the cookie of its session, and sends forms as pages do.

use crate::world::{NOW_S, Page, World};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, StatusCode, header};
use raingauge_core::access::Role;
use raingauge_people::Options;
use raingauge_people::secrets::{csrf_of, hash_of, masked, new_secret};
use raingauge_ports::people::{NewUser, Session, User};
use std::net::SocketAddr;

pub const PASSWORD: &str = "four words of rain";
pub const HOST: &str = "rain.test:8080";

/// People sign in here.
pub fn options() -> Options {
    Options { sign_in: true, ..Options::default() }
}

pub struct Browser<'a> {
    pub world: &'a World,
    /// Name and value of the session's, or of the trip to a provider.
    pub cookie: Option<String>,
    /// By which the browser is known after a sign-in.
    pub mark: Option<String>,
    pub address: SocketAddr,
}

impl World {
    pub fn closed() -> Self {
        Self::with(options())
    }

    /// A browser in which nobody is signed in.
    pub fn browser(&self) -> Browser<'_> {
        Browser {
            world: self,
            cookie: None,
            mark: None,
            address: SocketAddr::from(([192, 0, 2, 7], 4_711)),
        }
    }

    /// Someone new with this role. The password is nothing that anybody could type.
    pub async fn user(&self, name: &str, role: Role) -> User {
        let [name, email, password, openid] = [name, "", "none", ""].map(str::to_owned);
        self.people
            .add_user(NewUser { name, email, role, password, openid, at_s: NOW_S })
            .await
            .unwrap()
    }

    /// A browser in which this user is signed in.
    pub async fn browser_of(&self, user: &User) -> Browser<'_> {
        let secret = new_secret();
        let session = Session {
            hash: hash_of(&secret),
            user_id: user.id,
            created_at: NOW_S,
            seen_at: NOW_S,
            expires_at: NOW_S + 86_400,
            address: "192.0.2.7".to_owned(),
            browser: "test".to_owned(),
        };
        self.people.open_session(session).await.unwrap();
        Browser { cookie: Some(format!("raingauge_session={secret}")), ..self.browser() }
    }

    /// The same, when the user's other sessions are over: nobody may have many.
    pub async fn only_browser_of(&self, user: &User) -> Browser<'_> {
        self.people.close_sessions(user.id, None).await.unwrap();
        self.browser_of(user).await
    }

    /// A browser of someone new with this role.
    pub async fn signed_in(&self, name: &str, role: Role) -> Browser<'_> {
        let user = self.user(name, role).await;
        self.browser_of(&user).await
    }
}

impl Browser<'_> {
    /// What forms carry in this session.
    pub fn csrf(&self) -> String {
        let secret = self.cookie.as_deref().and_then(|cookie| cookie.split_once('='));
        secret.map(|(_, secret)| masked(&csrf_of(secret))).unwrap_or_default()
    }

    pub async fn get(&mut self, address: &str) -> Page {
        self.send(Method::GET, address, &[], "").await
    }

    /// Sends a form of a page of ours.
    pub async fn post(&mut self, address: &str, fields: &[(&str, &str)]) -> Page {
        let csrf = self.csrf();
        let fields = fields.iter().copied().chain([("csrf", csrf.as_str())]);
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let origin = format!("http://{HOST}");
        self.send(
            Method::POST,
            address,
            &[("sec-fetch-site", "same-origin"), ("origin", &origin)],
            &form,
        )
        .await
    }

    pub async fn send(
        &mut self,
        method: Method,
        address: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Page {
        let mut request = Request::builder().method(method).uri(address).header(header::HOST, HOST);
        for cookie in self.cookie.iter().chain(&self.mark) {
            request = request.header(header::COOKIE, cookie);
        }

        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::from(body.to_owned())).unwrap();
        request.extensions_mut().insert(ConnectInfo(self.address));

        let page = self.world.send(request).await;
        for (place, line) in page.headers.get_all(header::SET_COOKIE).iter().enumerate() {
            let pair = line.to_str().unwrap().split(';').next().unwrap().to_owned();
            if pair.contains("raingauge_device=") {
                self.mark = Some(pair);
            } else if place == 0 {
                self.cookie = Some(pair).filter(|pair| !pair.ends_with('='));
            }
        }

        page
    }

    pub async fn sign_in(&mut self, name: &str, password: &str) -> Page {
        self.post("/sign-in", &[("name", name), ("password", password)]).await
    }

    /// Goes through a one-time link with the usual password.
    pub async fn follow_link(&mut self, path: &str, name: &str) -> Page {
        let fields = [("name", name), ("password", PASSWORD), ("again", PASSWORD)];
        self.post(path, &fields).await
    }
}

impl Page {
    #[track_caller]
    pub fn is(&self, status: StatusCode) -> &Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    #[track_caller]
    pub fn leads_to(&self, place: &str) -> &Self {
        assert_eq!((self.status, self.location()), (StatusCode::SEE_OTHER, place), "{}", self.text);
        self
    }

    /// The first text of the page that begins so, up to a quote, a blank or a tag.
    #[track_caller]
    pub fn found(&self, begin: &str) -> String {
        let Some(at) = self.text.find(begin) else { panic!("`{begin}` is not in {}", self.text) };
        let rest = &self.text[at..];
        rest.split(['"', '\'', '<', ' ']).next().unwrap_or_default().to_owned()
    }
}
