//! A proxy before a database server that cuts a connection at its next commit: before that went out, or after the server
//! has answered it.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What both engines' drivers send, in a message of its own.
const COMMIT: &[u8] = b"COMMIT";

/// When the next commit's connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never hears of it.
    Before = 1,
    /// The server has done it, and its answer is lost.
    After = 2,
}

/// A proxy that runs until the test ends.
pub struct Proxy {
    url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    armed: AtomicU8,
    cuts: AtomicUsize,
}

impl Proxy {
    /// One before the server of this URL, which is spoken to without TLS.
    pub async fn before(url: &str) -> Self {
        let (head, tail) = url.rsplit_once('@').unwrap();
        let (address, name) = tail.split_once('/').unwrap();
        let server = address.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let plain = if url.starts_with("postgres") { "sslmode=disable" } else { "ssl-mode=DISABLED" };
        let state = Arc::new(State::default());
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, state) = (server.clone(), shared.clone());
                tokio::spawn(async move {
                    // Either end may close at any time.
                    if let Ok(server) = TcpStream::connect(server).await {
                        let _ = state.pass(client, server).await;
                    }
                });
            }
        });
        Self { url: format!("{head}@127.0.0.1:{port}/{name}?{plain}"), state }
    }

    /// The URL of the database through it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Cuts at the next commit of whichever connection.
    pub fn arm(&self, cut: Cut) {
        self.state.armed.store(cut as u8, Ordering::SeqCst);
    }

    /// How often it has cut.
    pub fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

impl State {
    async fn pass(&self, mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
        let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        loop {
            tokio::select! {
                read = client.read(&mut asked) => {
                    let asked = &asked[..read?];
                    if asked.is_empty() {
                        return Ok(());
                    }
                    let is_commit = asked.windows(COMMIT.len()).any(|part| part == COMMIT);
                    match if is_commit { self.armed.swap(0, Ordering::SeqCst) } else { 0 } {
                        0 => server.write_all(asked).await?,
                        cut => {
                            if cut == Cut::After as u8 {
                                server.write_all(asked).await?;
                                // Whatever it says: it has done it.
                                let _said = server.read(&mut answered).await?;
                            }
                            self.cuts.fetch_add(1, Ordering::SeqCst);
                            return Ok(());
                        }
                    }
                }
                read = server.read(&mut answered) => {
                    let answered = &answered[..read?];
                    if answered.is_empty() {
                        return Ok(());
                    }
                    client.write_all(answered).await?;
                }
            }
        }
    }
}
