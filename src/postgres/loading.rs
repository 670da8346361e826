//! Batches on their way into a table.
//!
//! Whoever writes fills pieces, and a thread with the session copies them: a few wait between the two,
//! so that memory stays small and neither waits for the other for long. Each piece is a `COPY` of its own.
//! While the service is awaited, no transaction is open that would keep the server from cleaning up.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use postgres::Client;

use super::address::Address;
use super::cells::{Inexact, Rows};
use super::failure;
use super::layout::{EXTRA, Layout};
use super::session::Way;
use super::upsert::{self, Counts, Upsert};
use crate::batch::{BATCH_ID, Batch, COLUMNS};
use crate::error::{Failure, Kind};
use crate::select::Fields;
use crate::ui;

/// Bytes of a piece.
const PIECE: usize = 1 << 20;
/// Pieces that may wait.
const WAITING: usize = 3;

/// The way into a table. Dropped without [`Loading::finish`], nothing of it is there.
pub(crate) struct Loading {
    rows: Rows,
    pieces: Option<SyncSender<Order>>,
    answers: Receiver<Answer>,
}

enum Order {
    Copy(Vec<u8>),
    Finish,
}

enum Answer {
    Ready(Box<Layout>),
    Failed(Box<Failure>),
    Done(Counts),
}

impl Loading {
    /// Opens a session and checks that everything can be written.
    pub(crate) fn open(
        address: &Address,
        ca_cert: Option<&Path>,
        fields: &Fields,
        lenient: bool,
    ) -> Result<Self, Failure> {
        if !fields.columns.contains(&BATCH_ID) {
            return Err(Failure::new(
                Kind::Usage,
                "without `batch_id`, nobody can tell which row of the table is which batch",
            )
            .hint("add `batch_id` to `--fields`"));
        }
        let layout = Layout::new(fields, lenient);
        let way = Way::new(address, ca_cert);
        let (pieces, orders) = sync_channel(WAITING);
        let (tell, answers) = sync_channel(1);
        let work = move || {
            let answer = match load(&way, layout, &orders, &tell) {
                Ok(Some(counts)) => Answer::Done(counts),
                Ok(None) => return,
                Err(failure) => Answer::Failed(Box::new(failure)),
            };
            // Nobody listens where the export has failed already.
            let _ = tell.send(answer);
        };
        thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(work)
            .map_err(|error| {
                Failure::new(Kind::Internal, "cannot start a thread").caused_by(error)
            })?;
        match answers.recv() {
            Ok(Answer::Ready(layout)) => Ok(Self {
                rows: Rows::new(*layout),
                pieces: Some(pieces),
                answers,
            }),
            Ok(Answer::Failed(failure)) => Err(*failure),
            Ok(Answer::Done(_)) | Err(_) => Err(gone()),
        }
    }

    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.rows
            .add(batch)
            .map_err(|inexact| refused(batch, &inexact))?;
        if self.rows.len() >= PIECE {
            let piece = self.rows.take();
            self.order(Order::Copy(piece))?;
        }
        Ok(())
    }

    /// Takes everything over; the only road to anything in the table. Tells how many texts have escapes.
    pub(crate) fn finish(mut self) -> Result<(Counts, u64), Failure> {
        if !self.rows.is_empty() {
            let piece = self.rows.take();
            self.order(Order::Copy(piece))?;
        }
        self.order(Order::Finish)?;
        match self.answers.recv() {
            Ok(Answer::Done(counts)) => Ok((counts, self.rows.escaped)),
            Ok(Answer::Failed(failure)) => Err(*failure),
            Ok(Answer::Ready(_)) | Err(_) => Err(gone()),
        }
    }

    fn order(&mut self, order: Order) -> Result<(), Failure> {
        let sent = self.pieces.as_ref().map(|pieces| pieces.send(order));
        if let Some(Ok(())) = sent {
            return Ok(());
        }
        // It ended, and said why.
        self.pieces = None;
        match self.answers.recv() {
            Ok(Answer::Failed(failure)) => Err(*failure),
            _ => Err(gone()),
        }
    }
}

/// Says what a run that did not finish leaves in the table.
pub(crate) fn left_behind(address: &Address) -> String {
    let table = address.table.quoted();
    if upsert::may_be_done() {
        format!("the table {table} is as it was before, or has all of it")
    } else {
        format!("the table {table} is as it was before")
    }
}

fn gone() -> Failure {
    Failure::new(Kind::Internal, "the thread that loads the table has ended")
}

/// Does what is ordered; returns nothing where that ends without a finish.
fn load(
    way: &Way,
    layout: Layout,
    orders: &Receiver<Order>,
    tell: &SyncSender<Answer>,
) -> Result<Option<Counts>, Failure> {
    let mut client = way.open()?;
    let upsert = Upsert::prepare(&mut client, &way.address, layout)?;
    if tell
        .send(Answer::Ready(Box::new(upsert.layout().clone())))
        .is_err()
    {
        return Ok(None);
    }
    let copy = upsert.layout().copy();
    for order in orders {
        match order {
            Order::Copy(piece) => copy_piece(&mut client, &copy, &piece)
                .map_err(|error| failure::of(&way.address, "copy batches", &error))?,
            Order::Finish => return upsert.run(&mut client).map(Some),
        }
    }
    Ok(None)
}

fn copy_piece(client: &mut Client, copy: &str, piece: &[u8]) -> Result<(), postgres::Error> {
    let mut writer = client.copy_in(copy)?;
    // What it cannot write it says again at the end, and then in its own words.
    for part in piece.chunks(64 * 1024) {
        if writer.write_all(part).is_err() {
            break;
        }
    }
    writer.finish().map(drop)
}

fn refused(batch: &Batch, inexact: &Inexact) -> Failure {
    let name = inexact.column.map_or(EXTRA, |column| COLUMNS[column].name);
    let value = match inexact.column {
        Some(column) => batch.plain(column).unwrap_or_default().into_owned(),
        None => batch.extra().unwrap_or_default(),
    };
    let value = if value.is_empty() {
        "null".to_owned()
    } else {
        ui::brief(&value)
    };
    Failure::new(
        Kind::Protocol,
        format!(
            "batch `{}`: `{name}` is {value}: {}",
            ui::brief(&batch.id()),
            inexact.why
        ),
    )
    .hint("leave the field out with `--fields`, or write json or csv, which keep everything")
}
