//! Batches on their way back, as text that the server itself writes: what is read shares nothing with
//! how it was written.

use std::borrow::Cow;
use std::io::{self, BufRead as _, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::address::Address;
use super::escapes;
use super::inspect::{self, Found};
use super::layout::EXTRA;
use super::session::Way;
use super::{failure, quoted};
use crate::batch::{BATCH_ID, COLUMNS, Kind, Values, find_column};
use crate::dates::{Range, written};
use crate::error::{self, Failure};

/// Pieces that may wait.
const WAITING: usize = 8;

/// A table that is read.
#[derive(Clone)]
pub(crate) struct Reading {
    address: Address,
    ca_cert: Option<PathBuf>,
    range: Option<Range>,
    /// Columns that are read; nothing for all.
    wanted: Option<Vec<usize>>,
}

/// One row, as plain text.
pub(crate) struct Row {
    texts: [Option<String>; COLUMNS.len()],
    /// Unknown fields, as JSON.
    extra: Option<String>,
}

impl Values for Row {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.texts[column].as_deref().map(Cow::Borrowed)
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.extra.as_deref().map(Cow::Borrowed)
    }
}

/// Rows that come.
pub(crate) struct Coming {
    /// Columns that the table has, one bit each.
    pub(crate) columns: u32,
    /// It has a column for unknown fields.
    pub(crate) has_extra: bool,
    /// Columns that no batch has.
    pub(crate) unknown: Vec<String>,
    fields: Vec<usize>,
    pieces: Pieces,
    begun: bool,
}

enum Answer {
    Table(Vec<usize>, bool, Vec<String>),
    Piece(Vec<u8>),
    End,
    Failed(Box<Failure>),
}

impl Reading {
    pub(crate) fn new(address: Address) -> Self {
        Self {
            address,
            ca_cert: None,
            range: None,
            wanted: None,
        }
    }

    /// Trusts an authority beside the system's.
    pub(crate) fn trust(&mut self, ca_cert: Option<&Path>) {
        self.ca_cert = ca_cert.map(Path::to_owned);
    }

    pub(crate) fn needs_roots(&self) -> bool {
        self.address.needs_roots()
    }

    /// Reads no batch that was created outside `range`, and no column beside these: a table holds those of
    /// many exports.
    pub(crate) fn limit(&mut self, range: Option<Range>, columns: Option<Vec<usize>>) {
        self.range = range;
        self.wanted = columns;
    }

    /// Begins to read.
    pub(crate) fn open(&self) -> Result<Coming, Failure> {
        let way = Way::new(&self.address, self.ca_cert.as_deref());
        let Self { range, wanted, .. } = self.clone();
        let (tell, answers) = sync_channel(WAITING);
        let work = move || {
            let answer = match read(&way, range, wanted.as_deref(), &tell) {
                Ok(()) => Answer::End,
                Err(failure) => Answer::Failed(Box::new(failure)),
            };
            // Nobody listens who has enough.
            let _ = tell.send(answer);
        };
        thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(work)
            .map_err(|error| {
                Failure::new(error::Kind::Internal, "cannot start a thread").caused_by(error)
            })?;
        match answers.recv() {
            Ok(Answer::Table(fields, has_extra, unknown)) => Ok(Coming {
                has_extra,
                columns: fields.iter().fold(0, |all, column| all | 1 << column),
                unknown,
                fields,
                pieces: Pieces {
                    answers,
                    piece: Vec::new(),
                    place: 0,
                },
                begun: false,
            }),
            Ok(Answer::Failed(failure)) => Err(*failure),
            _ => Err(ended()),
        }
    }
}

fn ended() -> Failure {
    Failure::new(
        error::Kind::Internal,
        "the thread that reads the table has ended",
    )
}

/// Hands everything on, piece by piece.
fn read(
    way: &Way,
    range: Option<Range>,
    wanted: Option<&[usize]>,
    tell: &SyncSender<Answer>,
) -> Result<(), Failure> {
    let address = &way.address;
    let failed = |error: &postgres::Error| failure::of(address, "read the table", error);
    let mut client = way.open()?;
    let found = inspect::find(&mut client, address)?.ok_or_else(|| {
        Failure::new(
            error::Kind::Usage,
            format!(
                "PostgreSQL at {} has no table {}",
                address.server(),
                address.table.quoted()
            ),
        )
        .hint("look at its name, and its schema: `table=schema.name`")
    })?;
    let (mut fields, has_extra, unknown) = columns(&found, address)?;
    if let Some(wanted) = wanted {
        fields.retain(|field| wanted.contains(field));
    }
    let statement = select(&found.name, &fields, has_extra, range);
    if tell
        .send(Answer::Table(fields, has_extra, unknown))
        .is_err()
    {
        return Ok(());
    }
    let mut reader = client
        .copy_out(&statement)
        .map_err(|error| failed(&error))?;
    loop {
        let piece = match reader.fill_buf() {
            Ok(piece) => piece.to_vec(),
            Err(error) => {
                let error = error.downcast::<postgres::Error>();
                return Err(error.map_or_else(
                    |other| {
                        Failure::new(error::Kind::Output, "cannot read the table").caused_by(other)
                    },
                    |error| failed(&error),
                ));
            }
        };
        if piece.is_empty() {
            return Ok(());
        }
        reader.consume(piece.len());
        if tell.send(Answer::Piece(piece)).is_err() {
            return Ok(());
        }
    }
}

/// Finds the fields of batches among the columns of a table, and names the others.
fn columns(found: &Found, address: &Address) -> Result<(Vec<usize>, bool, Vec<String>), Failure> {
    let (mut fields, mut has_extra, mut unknown) = (Vec::new(), false, Vec::new());
    for column in &found.columns {
        match find_column(&column.name) {
            Some(field) => fields.push(field),
            None if column.name == EXTRA => has_extra = true,
            None => unknown.push(column.name.clone()),
        }
    }
    if fields.contains(&BATCH_ID) {
        return Ok((fields, has_extra, unknown));
    }
    Err(Failure::new(
        error::Kind::Usage,
        format!(
            "{} of PostgreSQL at {} has no `batch_id`, and is no table of batches",
            found.name,
            address.server()
        ),
    )
    .hint("name a table that `trayscan export` wrote, with `table=`"))
}

/// Asks for every column as text; dates as the service writes them.
fn select(table: &str, fields: &[usize], has_extra: bool, range: Option<Range>) -> String {
    let text = |&column: &usize| {
        let name = quoted(COLUMNS[column].name);
        match COLUMNS[column].kind {
            // Others can have put dates there that no service writes; they are shown as they are.
            Kind::Date => format!(
                "case when {name} >= '0001-01-01Z' and {name} < '10000-01-01Z' then to_char({name} at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') else {name}::text end"
            ),
            _ => format!("{name}::text"),
        }
    };
    let extra = has_extra.then(|| format!("{}::text", quoted(EXTRA)));
    let texts: Vec<String> = fields.iter().map(text).chain(extra).collect();
    let mut conditions = Vec::new();
    if let Some(range) = range {
        let date = quoted("batch_creation_date");
        conditions.extend(
            range
                .start
                .map(|start| format!("{date} >= '{}'", written(start))),
        );
        let until = if range.excludes_end { "<" } else { "<=" };
        conditions.extend(
            range
                .end
                .map(|end| format!("{date} {until} '{}'", written(end))),
        );
    }
    let conditions = if conditions.is_empty() {
        String::new()
    } else {
        format!(" where {}", conditions.join(" and "))
    };
    format!(
        "copy (select {} from {table}{conditions}) to stdout (format binary)",
        texts.join(", ")
    )
}

impl Coming {
    /// Returns the next row; nothing after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, Failure> {
        self.take_row()
            .map_err(|error| match error.downcast::<Told>() {
                Ok(Told(failure)) => *failure,
                Err(error) => {
                    Failure::new(error::Kind::Output, "PostgreSQL sent what makes no sense")
                        .caused_by(error)
                }
            })
    }

    fn take_row(&mut self) -> io::Result<Option<Row>> {
        if !self.begun {
            let mut head = [0; 19];
            self.pieces.read_exact(&mut head)?;
            self.begun = true;
        }
        let mut count = [0; 2];
        self.pieces.read_exact(&mut count)?;
        if i16::from_be_bytes(count) < 0 {
            // Whatever went wrong is told behind the last row.
            let mut rest = Vec::new();
            self.pieces.read_to_end(&mut rest)?;
            return Ok(None);
        }
        let mut row = Row {
            texts: [const { None }; COLUMNS.len()],
            extra: None,
        };
        for &column in &self.fields {
            row.texts[column] = self.pieces.value()?.map(|text| match COLUMNS[column].kind {
                Kind::Text => escapes::undone(&text).into_owned(),
                _ => text,
            });
        }
        if self.has_extra {
            let extra = self.pieces.value()?;
            row.extra = extra.map(|json| escapes::undone_in_json(&json).into_owned());
        }
        Ok(Some(row))
    }
}

/// What came, as one stream.
struct Pieces {
    answers: Receiver<Answer>,
    piece: Vec<u8>,
    place: usize,
}

impl Pieces {
    /// Reads a value with its length before it; `None` if it is null.
    fn value(&mut self) -> io::Result<Option<String>> {
        let mut length = [0; 4];
        self.read_exact(&mut length)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(length)) else {
            return Ok(None);
        };
        let mut text = vec![0; length];
        self.read_exact(&mut text)?;
        String::from_utf8(text).map(Some).map_err(io::Error::other)
    }
}

impl Read for Pieces {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.place == self.piece.len() {
            match self.answers.recv() {
                Ok(Answer::Piece(piece)) => (self.piece, self.place) = (piece, 0),
                Ok(Answer::End) => return Ok(0),
                Ok(Answer::Failed(failure)) => return Err(io::Error::other(Told(failure))),
                Ok(Answer::Table(..)) | Err(_) => {
                    return Err(io::Error::other(Told(Box::new(ended()))));
                }
            }
        }
        let rest = &self.piece[self.place..];
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        self.place += length;
        Ok(length)
    }
}

/// A failure on its way through a stream.
#[derive(Debug)]
struct Told(Box<Failure>);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Told {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_condition() {
        let range = Range {
            start: Some(1_777_593_600),
            end: Some(1_777_680_000),
            excludes_end: true,
        };
        assert_eq!(
            select("\"t\"", &[BATCH_ID], false, Some(range)),
            "copy (select \"batch_id\"::text from \"t\" where \"batch_creation_date\" >= '2026-05-01T00:00:00Z' and \"batch_creation_date\" < '2026-05-02T00:00:00Z') to stdout (format binary)"
        );
        assert!(!select("\"t\"", &[BATCH_ID], false, None).contains("where"));
    }
}
