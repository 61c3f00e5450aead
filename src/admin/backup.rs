//! `POST /backup`: a copy of the database, made while the hub works.

use std::{
    any::Any,
    fmt,
    fs::File,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{BodySize, MessageBody},
    http::header::{CACHE_CONTROL, CONTENT_DISPOSITION},
    web::{self, Bytes},
};
use tokio::{io::AsyncReadExt, sync::mpsc};

use super::{AdminState, access::Operator, connections::Connection, endpoint::guarded, problem::Problem};
use crate::event::Fault;

/// Bytes of one piece; so many pieces wait for the client.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;
/// A client that takes nothing for so long gets no more: the copy takes up room on the disk.
const STALL: Duration = Duration::from_secs(30);

/// A copy of the database, whole and checked.
pub struct Snapshot {
    /// It has no name any more: its room is given back with this handle.
    pub file: File,
    /// Its length.
    pub bytes: u64,
    /// Dropped when it was sent, or nobody takes it any more.
    pub hold: Box<dyn Any + Send>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Makes copies of the database, one at a time.
#[async_trait::async_trait]
pub trait Backup: fmt::Debug + Send + Sync {
    /// Makes one. Dropping the future ends the work.
    ///
    /// # Errors
    /// A fault that says why there is none: one is being made already, the disk has no room for it, there is no file.
    async fn snapshot(&self) -> Result<Snapshot, Fault>;
}

pub(super) fn endpoints(config: &mut web::ServiceConfig) {
    config.service(guarded("/backup", "POST").route(web::post().to(backup)));
}

async fn backup(
    _: Operator,
    state: web::Data<AdminState>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let kept = request.conn_data::<Connection>().map(Connection::keep);
    let Snapshot { file, bytes, hold } = state.backup.snapshot().await?;
    let (pieces, sent) = mpsc::channel(PIECES);
    actix_web::rt::spawn(async move {
        send(file, &pieces).await;
        drop((hold, kept));
    });
    Ok(HttpResponse::Ok()
        .content_type("application/vnd.sqlite3")
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"eventflow.db\""))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(Body { pieces: sent, bytes }))
}

/// Reads the file to its end, as fast as the client takes it.
async fn send(file: File, pieces: &mpsc::Sender<io::Result<Bytes>>) {
    let mut file = tokio::fs::File::from_std(file);
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece).await;
        let piece = match read {
            Ok(0) => return,
            Ok(_) => Ok(Bytes::from(piece)),
            Err(error) => Err(error),
        };
        let failed = piece.is_err();
        // It went away, or takes nothing: its answer ends short of the length that it was told.
        if pieces.send_timeout(piece, STALL).await.is_err() || failed {
            return;
        }
    }
}

/// An answer whose length is known, piece by piece.
struct Body {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    bytes: u64,
}

impl MessageBody for Body {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        self.pieces.poll_recv(context)
    }
}
