//! The door to a hub's admin HTTP, for the commands that need more than a link: JSON in and out, and downloads.

use std::{fs, io, path::Path, time::Duration};

use clap::Args;
use eventflow::{event::code, wire::HubAddress};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use ureq::{
    Agent, Body,
    http::{Method, Request, Response, StatusCode, header},
};

use crate::{
    arguments::DATA_FOLDER,
    failure::{CUT_SHORT, Failure},
    parse::hub_address,
    stop::Stop,
};

/// Where a running hub tells where its admin HTTP is, in its data folder.
const ADDRESS_FILE: &str = "admin-address";
/// What opens it, in the data folder.
const TOKEN_FILE: &str = "admin-token";
/// Where it is by default.
const DEFAULT_PORT: u16 = 50_080;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take that isn't a download.
const ANSWER: Duration = Duration::from_secs(30);
/// How long the hub may take to make what is then downloaded.
const MADE: Duration = Duration::from_secs(3_600);

/// Where the admin HTTP is, and what opens it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct AdminLink {
    /// The hub's admin HTTP; by default what the running hub of the data folder says there; without --data-folder else 127.0.0.1:50080
    #[arg(
        long,
        global = true,
        env = "EVENTFLOW_ADMIN",
        hide_env_values = true,
        value_name = "HOST:PORT",
        value_parser = hub_address
    )]
    pub(crate) admin: Option<HubAddress>,
    /// Its token; by default the file admin-token in the data folder
    #[arg(long, global = true, env = "EVENTFLOW_ADMIN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) admin_token: Option<String>,
}

/// A hub's admin HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    agent: Agent,
    address: String,
    token: String,
    stop: Stop,
}

impl Admin {
    /// Finds address and token; `folder` is the hub's data folder. Nothing is sent yet.
    pub(crate) fn find(link: &AdminLink, folder: &Path, stop: Stop) -> Result<Self, Failure> {
        let token = match &link.admin_token {
            Some(token) => token.trim().to_owned(),
            None => read_token(folder)?,
        };
        let address = match &link.admin {
            Some(HubAddress { host, port, .. }) if host.contains(':') => format!("[{host}]:{port}"),
            Some(HubAddress { host, port, .. }) => format!("{host}:{port}"),
            None => match told_address(folder) {
                Some(address) => address,
                // Another hub than that of the folder isn't meant.
                None if folder != Path::new(DATA_FOLDER) => return Err(not_on(folder)),
                None => format!("127.0.0.1:{DEFAULT_PORT}"),
            },
        };
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let sentence = "the admin token must be letters and digits, as in the file admin-token of the hub's \
                            data folder";
            return Err(Failure::new(code::ADMIN_TOKEN, sentence));
        }
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("eventflow ", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT));
        Ok(Self { agent: config.build().into(), address, token, stop })
    }

    /// Asks for a JSON value.
    pub(crate) async fn get<T: DeserializeOwned + Send + 'static>(&self, path: &str) -> Result<T, Failure> {
        self.json(Method::GET, path, String::new()).await
    }

    /// Sends a JSON value, or none, by another method; the answer is a JSON value too.
    pub(crate) async fn send<B, T>(&self, method: Method, path: &str, body: Option<&B>) -> Result<T, Failure>
    where
        B: Serialize + Sync,
        T: DeserializeOwned + Send + 'static,
    {
        let body = body.map(serde_json::to_string).transpose();
        let body = body.map_err(|error| Failure::new(code::INTERNAL, error.to_string()))?;
        self.json(method, path, body.unwrap_or_default()).await
    }

    /// Gets what may be large, and may take the hub long to make. `sink` reads it, in a thread where it may block, and
    /// is told the length if the hub says it; what it returns is passed on. It isn't called when the hub refuses.
    pub(crate) async fn download<T: Send + 'static>(
        &self,
        method: Method,
        path: &str,
        sink: impl FnOnce(&mut dyn io::Read, Option<u64>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.blocking(method, path, String::new(), None, |mut response| {
            let length = response.body().content_length();
            sink(&mut response.body_mut().as_reader(), length)
        })
        .await
    }

    async fn json<T: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<T, Failure> {
        let address = self.address.clone();
        self.blocking(method, path, body, Some(ANSWER), move |mut response| {
            let text = response.body_mut().read_to_string().map_err(|error| nobody(&address, &error))?;
            serde_json::from_str(&text).map_err(|error| no_hub(&address, &error))
        })
        .await
    }

    /// Asks in a thread where that may block; a signal doesn't wait for it.
    async fn blocking<T: Send + 'static>(
        &self,
        method: Method,
        path: &str,
        body: String,
        all: Option<Duration>,
        read: impl FnOnce(Response<Body>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (admin, path) = (self.clone(), path.to_owned());
        let asked = tokio::task::spawn_blocking(move || read(admin.ask(method, &path, body, all)?));
        tokio::select! {
            asked = asked => asked.unwrap_or_else(|error| {
                Err(Failure::new(code::INTERNAL, format!("asking the admin HTTP failed: {error}")))
            }),
            () = self.stop.requested() => Err(CUT_SHORT),
        }
    }

    fn ask(
        &self,
        method: Method,
        path: &str,
        body: String,
        all: Option<Duration>,
    ) -> Result<Response<Body>, Failure> {
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("http://{}{path}", self.address))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::ACCEPT, "application/json, */*")
            .header(header::CONTENT_TYPE, "application/json");
        let told = |error: &dyn std::error::Error| nobody(&self.address, error);
        let request = request.body(body).map_err(|error| told(&error))?;
        let request = self
            .agent
            .configure_request(request)
            .timeout_global(all)
            .timeout_recv_response(Some(all.unwrap_or(MADE)))
            .allow_non_standard_methods(true);
        let response = self.agent.run(request.build()).map_err(|error| told(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(&method, path, response)) }
    }

    /// What an answer that is none means.
    fn refusal(&self, method: &Method, path: &str, mut response: Response<Body>) -> Failure {
        let status = response.status();
        let body = response.body_mut().read_to_string().unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        match (status, serde_json::from_str(&body)) {
            // A hub knows all paths of its version: its answer to others says only that.
            (StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, Ok(Refusal { code, message: _ }))
                if code.as_deref().is_none_or(|code| code == code::UNSUPPORTED) =>
            {
                let sentence = format!(
                    "the hub at {} doesn't serve {method} {path}: it is older than this program; update it",
                    self.address
                );
                Failure::new(code::UNSUPPORTED, sentence)
            }
            (StatusCode::UNAUTHORIZED, Ok(_)) => {
                let sentence = format!(
                    "the hub at {} doesn't take this admin token: give the one in the file admin-token of its \
                     data folder, by --admin-token, EVENTFLOW_ADMIN_TOKEN or --data-folder",
                    self.address
                );
                Failure::new(code::ADMIN_TOKEN, sentence)
            }
            (_, Ok(Refusal { code, message })) => {
                Failure::new(code.as_deref().unwrap_or(code::INTERNAL), message)
            }
            (_, Err(_)) => no_hub(&self.address, &format!("it answered {status} without a reason")),
        }
    }
}

/// What a hub says when it doesn't answer as asked.
#[derive(Debug, Deserialize)]
struct Refusal {
    code: Option<String>,
    message: String,
}

/// What a running hub wrote into its data folder; none, or nothing of use: no such hub runs.
fn told_address(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?;
    let address: std::net::SocketAddr = text.trim().parse().ok()?;
    Some(address.to_string())
}

fn read_token(folder: &Path) -> Result<String, Failure> {
    let path = folder.join(TOKEN_FILE);
    fs::read_to_string(&path).map(|text| text.trim().to_owned()).map_err(|error| {
        let sentence = format!(
            "the admin token {} can't be read: {error}; name the hub's data folder by --data-folder or \
             EVENTFLOW_DATA, or give the token by --admin-token or EVENTFLOW_ADMIN_TOKEN",
            path.display()
        );
        Failure::new(code::ADMIN_TOKEN, sentence)
    })
}

fn not_on(folder: &Path) -> Failure {
    let sentence = format!(
        "no hub with admin HTTP runs on the data folder {}: start it, with its setting admin.enabled on, or say by \
         --admin or EVENTFLOW_ADMIN where it is",
        folder.display()
    );
    Failure::new(code::NO_HUB, sentence)
}

fn nobody(address: &str, error: &(impl std::error::Error + ?Sized)) -> Failure {
    let sentence = format!(
        "no admin HTTP of a hub answers at {address}: {error}; is the hub running, and is its setting \
         admin.enabled on? Name another by --admin or EVENTFLOW_ADMIN"
    );
    Failure::new(code::NO_HUB, sentence)
}

fn no_hub(address: &str, reason: &dyn std::fmt::Display) -> Failure {
    let sentence = format!(
        "what listens at {address} is no admin HTTP of a hub: {reason}; name the hub's by --admin or \
         EVENTFLOW_ADMIN"
    );
    Failure::new(code::NO_HUB, sentence)
}

#[cfg(test)]
mod tests;
