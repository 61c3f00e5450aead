//! Plain HTTP to a hub's admin server, as anybody's client would ask.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{PATIENCE, TestHub};

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// Sends a head without its end, a header a line, and reads the answer.
pub async fn ask(admin: SocketAddr, head: &str) -> Answer {
    with_body(admin, head, "").await
}

/// The same with a body.
pub async fn with_body(admin: SocketAddr, head: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(admin).await.unwrap();
    let length = body.len();
    let request = format!("{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer in time").unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    // Our answers are short: none comes in chunks.
    Answer { status, body: body.to_owned() }
}

/// A GET with the hub's own token.
pub async fn get(hub: &TestHub, path: &str) -> Answer {
    send(hub, "GET", path, "").await
}

/// Any method with the hub's own token.
pub async fn send(hub: &TestHub, method: &str, path: &str, body: &str) -> Answer {
    let info = hub.handle.info();
    let token = hub.handle.admin_token().expose();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
    with_body(info.admin.expect("the admin HTTP is on"), &head, body).await
}
