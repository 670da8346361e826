//! `sync --changes`: lists which batches were added, changed or vanished.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use serde::Serialize;

use crate::archive::{Archive, ArchiveChange};
use crate::batch::range::written;
use crate::cli::ListFormat;
use crate::error::Failure;
use crate::storage::{Compression, EncodedOutput, Escapes, Location, OutputTarget};
use crate::terminal;

/// One line of the list: a batch, or one field of it.
#[derive(Serialize)]
struct ChangeLine<'a> {
    noticed: &'a str,
    change: &'a str,
    batch_id: &'a str,
    batch_name: Option<&'a str>,
    field: Option<&'a str>,
    old: Option<&'a str>,
    new: Option<&'a str>,
}

pub(super) fn run(
    path: &Path,
    since: Option<i64>,
    format: Option<ListFormat>,
) -> anyhow::Result<()> {
    let archive = Archive::read(path)?;
    let format = format.unwrap_or(if io::stdout().is_terminal() {
        ListFormat::Table
    } else {
        ListFormat::Ndjson
    });
    let mut list = List::new(format)?;
    let since = since.map(written).unwrap_or_default();
    archive.changes()?.each(&since, |change| {
        each_line(&change, |line| list.add(line)).map_err(Failure::from_output)
    })?;
    list.finish()?;
    Ok(())
}

/// Passes the lines of `change` to `add`.
fn each_line(
    change: &ArchiveChange,
    mut add: impl FnMut(&ChangeLine<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let line = |field, old, new| ChangeLine {
        noticed: &change.noticed,
        change: &change.kind,
        batch_id: &change.batch_id,
        batch_name: change.batch_name.as_deref(),
        field,
        old,
        new,
    };
    if change.fields.is_empty() {
        return add(&line(None, None, None));
    }
    change.fields.iter().try_for_each(|field| {
        add(&line(
            Some(&field.field),
            field.old.as_deref(),
            field.new.as_deref(),
        ))
    })
}

/// Writes the list in one of its formats.
enum List {
    /// All rows: column widths depend on the widest.
    Table(Vec<Vec<String>>),
    Json {
        is_first: bool,
        output: EncodedOutput,
    },
    Ndjson(EncodedOutput),
    Csv(Box<csv::Writer<EncodedOutput>>),
}

const NAMES: [&str; 7] = [
    "noticed",
    "change",
    "batch_id",
    "batch_name",
    "field",
    "old",
    "new",
];

impl List {
    fn new(format: ListFormat) -> Result<Self, Failure> {
        let target = OutputTarget::open(&Location::Stdout, false)?;
        let mut output =
            EncodedOutput::new(target, Compression::None).map_err(Failure::from_output)?;
        match format {
            ListFormat::Table => {}
            ListFormat::Json | ListFormat::Ndjson => output.escape_on_terminal(Escapes::Json),
            ListFormat::Csv => output.escape_on_terminal(Escapes::Text),
        }
        Ok(match format {
            ListFormat::Table => Self::Table(vec![NAMES.map(str::to_owned).to_vec()]),
            ListFormat::Json => Self::Json {
                is_first: true,
                output,
            },
            ListFormat::Ndjson => Self::Ndjson(output),
            ListFormat::Csv => {
                // An empty list also has a header.
                let mut csv = csv::WriterBuilder::new()
                    .has_headers(false)
                    .from_writer(output);
                csv.write_record(NAMES)
                    .map_err(|error| Failure::from_output(from_csv(error)))?;
                Self::Csv(Box::new(csv))
            }
        })
    }

    fn add(&mut self, line: &ChangeLine<'_>) -> io::Result<()> {
        match self {
            Self::Table(rows) => {
                let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
                rows.push(vec![
                    line.noticed.to_owned(),
                    line.change.to_owned(),
                    line.batch_id.to_owned(),
                    text(line.batch_name),
                    text(line.field),
                    text(line.old),
                    text(line.new),
                ]);
                Ok(())
            }
            Self::Json { is_first, output } => {
                let before: &[u8] = if std::mem::replace(is_first, false) {
                    b"[\n"
                } else {
                    b",\n"
                };
                output.write_all(before)?;
                serde_json::to_writer(output, line).map_err(io::Error::from)
            }
            Self::Ndjson(output) => {
                serde_json::to_writer(&mut *output, line)?;
                output.write_all(b"\n")
            }
            Self::Csv(csv) => csv.serialize(line).map_err(from_csv),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        let output = match self {
            Self::Table(rows) => {
                let text = if rows.len() == 1 {
                    String::new()
                } else {
                    terminal::grid(&rows, &[])
                };
                return terminal::print(&text);
            }
            Self::Json {
                is_first,
                mut output,
            } => {
                let end: &[u8] = if is_first { b"[]\n" } else { b"\n]\n" };
                output.write_all(end).map_err(Failure::from_output)?;
                output
            }
            Self::Ndjson(output) => output,
            Self::Csv(csv) => {
                let output = csv.into_inner().map_err(csv::IntoInnerError::into_error);
                output.map_err(Failure::from_output)?
            }
        };
        output.publish().map(drop)
    }
}

/// Returns the underlying I/O error, so that a closed pipe is recognised.
fn from_csv(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
