//! A way to a hub that a test can cut and mend.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// A wire between a client and a hub that can be cut and mended.
pub struct Wire {
    pub address: SocketAddr,
    pub whole: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Wire {
    pub async fn to(hub: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let whole = watch::Sender::new(true);
        let sender = whole.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut whole = sender.subscribe();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(hub).await.unwrap();
                    tokio::select! {
                        // Its ends close when it is dropped.
                        _ = whole.wait_for(|whole| !whole) => {}
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                    }
                });
            }
        });
        Self { address, whole, task }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}
