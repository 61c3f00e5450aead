//! Against sockets that answer as hubs do, and as others do.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    thread,
};

use serde_json::{Value, json};

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Answers one request with these bytes, and returns it.
fn answering(answer: &str) -> (SocketAddr, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let answer = answer.to_owned();
    let serving = thread::spawn(move || {
        let (mut link, _) = listener.accept().unwrap();
        let (mut request, mut chunk) = (String::new(), [0; 4_096]);
        loop {
            let read = link.read(&mut chunk).unwrap();
            request.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
            let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
                break;
            }
        }
        link.write_all(answer.as_bytes()).unwrap();
        request
    });
    (addr, serving)
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn admin(addr: SocketAddr) -> Admin {
    let address = HubAddress { id: None, host: addr.ip().to_string(), port: addr.port() };
    let link = AdminLink { admin: Some(address), admin_token: Some(TOKEN.into()) };
    Admin::find(&link, Path::new("/nowhere"), Stop::listen().unwrap()).unwrap()
}

/// What a GET comes to when it is answered like this.
async fn got(answer: &str) -> Result<Value, (String, String)> {
    let (addr, serving) = answering(answer);
    let got = admin(addr).get::<Value>("/status").await;
    let request = serving.join().unwrap();
    assert!(request.starts_with("GET /status HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{request}");
    got.map_err(told)
}

fn told(failure: Failure) -> (String, String) {
    match failure {
        Failure::Told { code, sentence } | Failure::Misused { code, sentence } => (code, sentence),
        Failure::Silent { exit } => panic!("it says nothing and exits with {exit}"),
    }
}

#[tokio::test]
async fn answers_become_values_or_reasons() {
    assert_eq!(got(&http("200 OK", "{\"a\":1}\n")).await, Ok(json!({ "a": 1 })));
    let refused =
        |status: &str, code: &str| http(status, &json!({ "code": code, "message": "So." }).to_string());
    for (answer, code, part) in [
        (refused("401 Unauthorized", code::ADMIN_TOKEN), code::ADMIN_TOKEN, "doesn't take this admin token"),
        (
            refused("404 Not Found", code::UNSUPPORTED),
            code::UNSUPPORTED,
            "doesn't serve GET /status: it is older",
        ),
        (http("404 Not Found", "{\"message\":\"as hubs said before\"}"), code::UNSUPPORTED, "it is older"),
        (refused("404 Not Found", code::EVENT_NOT_FOUND), code::EVENT_NOT_FOUND, "So."),
        (refused("503 Service Unavailable", code::HUB_BUSY), code::HUB_BUSY, "So."),
        (http("200 OK", "<html>"), code::NO_HUB, "is no admin HTTP"),
        (http("302 Found", ""), code::NO_HUB, "it answered 302"),
        ("SSH-2.0-x\r\n".into(), code::NO_HUB, "no admin HTTP of a hub answers"),
    ] {
        let (found, sentence) = got(&answer).await.unwrap_err();
        assert_eq!(found, code, "{answer}: {sentence}");
        assert!(sentence.contains(part), "{sentence}");
        assert!(!sentence.contains(TOKEN), "{sentence}");
    }
}

#[tokio::test]
async fn values_are_sent_and_large_answers_read_as_they_come() {
    let (addr, serving) = answering(&http("200 OK", "[]"));
    let answer: Value =
        admin(addr).send(Method::PUT, "/log", Some(&json!({ "level": "debug" }))).await.unwrap();
    assert_eq!(answer, json!([]));
    let request = serving.join().unwrap();
    assert!(request.starts_with("PUT /log HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"level\":\"debug\"}"), "{request}");

    let (addr, serving) = answering(&http("200 OK", "bytes"));
    let sink = |from: &mut dyn io::Read, length: Option<u64>| {
        let mut text = String::new();
        from.read_to_string(&mut text)?;
        Ok((text, length))
    };
    assert_eq!(
        admin(addr).download(Method::GET, "/backup", sink).await.unwrap(),
        ("bytes".to_owned(), Some(5))
    );
    serving.join().unwrap();
}

#[tokio::test]
async fn address_and_token_come_from_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let link = AdminLink { admin: None, admin_token: None };
    let find = || Admin::find(&link, folder.path(), Stop::listen().unwrap());
    let (found, sentence) = told(find().unwrap_err());
    assert_eq!(found, code::ADMIN_TOKEN);
    assert!(
        sentence.contains("admin-token can't be read") && sentence.contains("--admin-token"),
        "{sentence}"
    );
    fs::write(folder.path().join(TOKEN_FILE), format!("{TOKEN}\n")).unwrap();
    // No hub runs on it: the one on the default port is another's.
    let (found, sentence) = told(find().unwrap_err());
    assert_eq!(found, code::NO_HUB);
    assert!(sentence.contains(&folder.path().display().to_string()), "{sentence}");
    fs::write(folder.path().join(ADDRESS_FILE), "[::1]:7\n").unwrap();
    let admin = find().unwrap();
    assert_eq!((admin.address.as_str(), admin.token.as_str()), ("[::1]:7", TOKEN));
    fs::write(folder.path().join(TOKEN_FILE), "two words").unwrap();
    assert_eq!(told(find().unwrap_err()).0, code::ADMIN_TOKEN);
}

#[tokio::test]
async fn nobody_there_is_told_with_what_to_do() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (found, sentence) = told(admin(free).get::<Value>("/status").await.unwrap_err());
    assert_eq!(found, code::NO_HUB);
    assert!(sentence.contains(&free.to_string()) && sentence.contains("--admin"), "{sentence}");
}
