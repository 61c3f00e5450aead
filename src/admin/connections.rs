//! Who is connected: few at a time, each for one request, none for long.
//!
//! HTTP is open to everybody who reaches the address, without a token. So no connection may hold what others need: when
//! all places are taken, the oldest connection is cut for the new one. A probe takes a moment; who holds a place for
//! longer is the older one.

use std::{
    any::Any,
    collections::BTreeMap,
    net::Shutdown,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{
    Error,
    body::MessageBody,
    dev::{Extensions, ServiceRequest, ServiceResponse},
    middleware::Next,
    rt::{net::TcpStream, task::JoinHandle},
};
use socket2::{SockRef, Socket};

/// Connections at once; beyond, the oldest makes room.
pub(super) const MOST: usize = 64;
/// A connection is cut after it, wherever it stands: the request, the work and the answer take less. Tests shouldn't
/// wait that long.
const LONGEST: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 30 });

/// All connections, by the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    last: u64,
    taken: BTreeMap<u64, Arc<Place>>,
}

impl Connections {
    /// Gives a place to a new connection, that of the oldest if there is none; the connection holds it in its data.
    pub(super) fn admit(self: &Arc<Self>, stream: &dyn Any, data: &mut Extensions) {
        let Some(stream) = stream.downcast_ref::<TcpStream>() else { return };
        let stream = SockRef::from(stream);
        let Ok(socket) = stream.try_clone() else {
            // No handle is left in this process: who can't be cut later is cut now.
            let _ = stream.shutdown(Shutdown::Both);
            return;
        };
        let place = Arc::new(Place { socket, kept: AtomicBool::new(false) });
        let mut places = self.places();
        if places.taken.len() >= MOST {
            let oldest = places.taken.iter().find(|(_, place)| !place.kept.load(Ordering::Relaxed));
            if let Some(number) = oldest.map(|(number, _)| *number)
                && let Some(place) = places.taken.remove(&number)
            {
                place.cut();
            }
        }
        places.last += 1;
        let number = places.last;
        places.taken.insert(number, place.clone());
        let limit = actix_web::rt::spawn(cut_later(Arc::downgrade(&place)));
        data.insert(Connection { number, place, asked: AtomicBool::new(false), limit, all: self.clone() });
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // Whoever panicked left no half of a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Another handle to the socket of a connection.
#[derive(Debug)]
struct Place {
    socket: Socket,
    /// Whether it lasts as long as its answer takes.
    kept: AtomicBool,
}

impl Place {
    /// Ends the connection, and forgets what it didn't take.
    fn cut(&self) {
        let _ = self.socket.set_linger(Some(Duration::ZERO));
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

async fn cut_later(place: Weak<Place>) {
    tokio::time::sleep(LONGEST).await;
    if let Some(place) = place.upgrade()
        && !place.kept.load(Ordering::Relaxed)
    {
        place.cut();
    }
}

/// A connection's place, given back with this value.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    place: Arc<Place>,
    asked: AtomicBool,
    limit: JoinHandle<()>,
    all: Arc<Connections>,
}

impl Connection {
    /// Lets the connection last, for an answer that takes long, until the returned value is dropped.
    pub(super) fn keep(&self) -> Kept {
        self.place.kept.store(true, Ordering::Relaxed);
        Kept(Arc::downgrade(&self.place))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.limit.abort();
        self.all.places().taken.remove(&self.number);
    }
}

/// A connection that lasts; from its drop on as long as any other.
#[derive(Debug)]
pub(super) struct Kept(Weak<Place>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(place) = self.0.upgrade() {
            place.kept.store(false, Ordering::Relaxed);
            actix_web::rt::spawn(cut_later(self.0.clone()));
        }
    }
}

/// Serves the first request of a connection. What a client sends behind it without waiting for the answer is served to
/// nobody: thousands of answers would wait for a client that reads none.
pub(super) async fn one_request(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let more = request.conn_data::<Connection>().is_some_and(|connection| {
        let more = connection.asked.swap(true, Ordering::Relaxed);
        if more {
            // The connection ends behind the answer before.
            let _ = connection.place.socket.shutdown(Shutdown::Read);
        }
        more
    });
    if more {
        // Nothing is read while this one waits.
        std::future::pending::<()>().await;
    }
    next.call(request).await
}
