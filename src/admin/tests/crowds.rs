//! Clients that take what others need: without a token nobody may.

use tokio::time::Instant;

use super::*;

/// All that comes until the connection ends, however it ends.
async fn to_the_end(link: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // What was sent behind the first request is read by nobody: the system may call that a reset.
    let _ = timeout(DEADLINE, link.read_to_end(&mut all)).await.expect("the connection ends");
    String::from_utf8_lossy(&all).into_owned()
}

#[actix_web::test]
async fn one_request_is_served_per_connection() {
    let world = World::start();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", world.addr);
    let mut link = TcpStream::connect(world.addr).await.unwrap();
    link.write_all(request.repeat(500).as_bytes()).await.unwrap();
    let answers = to_the_end(&mut link).await;
    assert!(answers.matches("HTTP/1.1 ").count() <= 1, "{} bytes", answers.len());
    // One that doesn't ask for the end is told of it.
    let answer = world.ask(&request).await;
    assert!(answer.contains("connection: close\r\n") && answer.contains("eventflow_"), "{answer}");
    world.stop().await;
}

#[actix_web::test]
async fn the_oldest_connection_makes_room_for_a_probe() {
    let world = World::start();
    let begun = "POST /certificates HTTP/1.1\r\nHost: localhost\r\n";
    let mut oldest = TcpStream::connect(world.addr).await.unwrap();
    oldest.write_all(begun.as_bytes()).await.unwrap();
    let mut crowd = Vec::new();
    let began = Instant::now();
    for _ in 0..3 * connections::MOST {
        let mut link = TcpStream::connect(world.addr).await.unwrap();
        // It may be cut already.
        let _ = link.write_all(begun.as_bytes()).await;
        crowd.push(link);
    }
    assert_eq!(status(&world.get("/livez", "").await), 200);
    assert_eq!(to_the_end(&mut oldest).await, "");
    assert!(began.elapsed() < REQUEST_TIMEOUT / 2, "it went before its time was over");
    drop(crowd);
    world.stop().await;
}

#[actix_web::test]
async fn a_connection_that_goes_on_and_on_is_cut() {
    let world = World::start();
    let mut link = TcpStream::connect(world.addr).await.unwrap();
    link.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    let began = Instant::now();
    assert_eq!(to_the_end(&mut link).await, "", "no word: nobody may be there to read it");
    assert!(began.elapsed() < REQUEST_TIMEOUT);
    world.stop().await;
}

#[actix_web::test]
async fn a_backup_lasts_longer_than_other_answers() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let world = World::with(Arc::new(Endless(tell)));
    let token = world.token.expose();
    let mut copying = TcpStream::connect(world.addr).await.unwrap();
    let head = format!("POST /backup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    copying.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(timeout(DEADLINE, told.recv()).await.unwrap(), Some("began"));
    let mut other = TcpStream::connect(world.addr).await.unwrap();
    other.write_all(b"GET").await.unwrap();
    to_the_end(&mut other).await;
    assert!(told.try_recv().is_err(), "it goes on");
    drop(copying);
    assert_eq!(timeout(DEADLINE, told.recv()).await.unwrap(), Some("ended"));
    world.stop().await;
}

#[actix_web::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::start();
    let token = world.token.expose();
    for (method, path) in [("POST", "/certificates"), ("POST", "/certificates/revoke"), ("PUT", "/log")] {
        let mut link = TcpStream::connect(world.addr).await.unwrap();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
        link.write_all(format!("{head}Content-Length: 100\r\n\r\n{{").as_bytes()).await.unwrap();
        let answer = to_the_end(&mut link).await;
        assert_eq!(status(&answer), 408, "{answer}");
        assert!(answer.contains("\"message\":\"the body wasn't here within"), "{answer}");
    }
    world.stop().await;
}

/// Requests that are here are all taken apart, at fifty times their size, before the first is answered.
#[actix_web::test]
async fn little_is_here_before_it_is_read() {
    let bound = bind(AdminConfig { addr: ([127, 0, 0, 1], 0).into() }).unwrap();
    let _client = TcpStream::connect(bound.addr()).await.unwrap();
    let (accepted, _) = bound.listener.accept().unwrap();
    // The system doubles what it is told.
    let size = socket2::SockRef::from(&accepted).recv_buffer_size().unwrap();
    assert!(size <= 2 * RECEIVED, "{size}");
}
