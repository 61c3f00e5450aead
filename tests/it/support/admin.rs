//! What an operator asks a hub by HTTP.

use std::net::SocketAddr;

use eventflow::pki::Bundle;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{PATIENCE, TestHub};

/// A hub's admin HTTP, with its token.
pub struct Admin {
    addr: SocketAddr,
    pub token: String,
}

impl Admin {
    pub fn of(hub: &TestHub) -> Self {
        let info = hub.handle.info();
        let token = std::fs::read_to_string(hub.data().join("admin-token")).unwrap().trim().to_owned();
        Self { addr: info.admin.unwrap(), token }
    }

    /// The status and the body of what is answered.
    pub async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut link = TcpStream::connect(self.addr).await.unwrap();
        let (length, host) = (body.len(), self.addr);
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {host}\r\n") };
        let head = format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}");
        link.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, link.read_to_string(&mut answer)).await.expect("an answer in time").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The same with the token; JSON both ways.
    pub async fn json(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let headers = format!("Authorization: Bearer {}\r\nAccept: application/json\r\n", self.token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.ask(method, path, &headers, &body).await;
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    /// Issues a bundle, and writes it into a file of the hub's temporary folder.
    pub async fn issue(&self, hub: &TestHub, file: &str, wish: Value) -> Bundle {
        let headers = format!("Authorization: Bearer {}\r\n", self.token);
        let (status, toml) = self.ask("POST", "/certificates", &headers, &wish.to_string()).await;
        assert_eq!(status, 201, "{toml}");
        let path = hub.folder.path().join(file);
        std::fs::write(&path, toml).unwrap();
        Bundle::read(&path).unwrap()
    }

    /// Revokes what an id has; how many links were cut.
    pub async fn revoke(&self, id: &str) -> u64 {
        let body = serde_json::json!({ "id": id });
        let (status, revoked) = self.json("POST", "/certificates/revoke", body).await;
        assert_eq!(status, 200, "{revoked}");
        revoked["links_cut"].as_u64().unwrap()
    }
}
