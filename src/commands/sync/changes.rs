//! `sync --changes`: lists which batches were added, changed or vanished.

use std::io;
use std::path::Path;

use serde::Serialize;

use crate::archive::{Archive, ArchiveChange};
use crate::batch::range::written;
use crate::cli::ListFormat;
use crate::error::Failure;
use crate::storage::{Compression, EncodedOutput, Escapes, Location, Storage};
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
    storage: &Storage,
    path: &Path,
    since: Option<i64>,
    format: Option<ListFormat>,
) -> anyhow::Result<()> {
    let archive = Archive::read(path)?;
    let format = format.unwrap_or(if terminal::stdout().is_terminal() {
        ListFormat::Table
    } else {
        ListFormat::Ndjson
    });
    let mut list = List::new(format, storage)?;
    let since = since.map(written).unwrap_or_default();
    let mut changes = 0_u64;
    archive.each_change(&since, |change| {
        changes += 1;
        each_line(&change, |line| list.add(line))
    })?;
    list.finish()?;
    let archive = path.display().to_string();
    let result = serde_json::json!({"archive": archive, "changes": changes});
    terminal::finish(None, &result, None);
    Ok(())
}

impl<'a> ChangeLine<'a> {
    /// Returns the cells in the order of [`NAMES`]. Empty if absent.
    fn cells(&self) -> [&'a str; 7] {
        let optional = [self.batch_name, self.field, self.old, self.new];
        let [name, field, old, new] = optional.map(Option::unwrap_or_default);
        let (noticed, change) = (self.noticed, self.change);
        [noticed, change, self.batch_id, name, field, old, new]
    }
}

/// Passes the lines of `change` to `add`.
fn each_line(
    change: &ArchiveChange,
    mut add: impl FnMut(&ChangeLine<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
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
    fn new(format: ListFormat, storage: &Storage) -> Result<Self, Failure> {
        let mut output = storage.create(&Location::Stdout, Compression::None, false)?;
        Ok(match format {
            ListFormat::Text | ListFormat::Prometheus => {
                return Err(Failure::usage(
                    "`--changes` supports only table, json, ndjson and csv",
                    "text and prometheus are for `--status`",
                ));
            }
            ListFormat::Table => Self::Table(vec![NAMES.map(str::to_owned).to_vec()]),
            ListFormat::Json => {
                output.escape_on_terminal(Escapes::IndentedJson);
                Self::Json {
                    is_first: true,
                    output,
                }
            }
            ListFormat::Ndjson => {
                output.escape_on_terminal(Escapes::Json);
                Self::Ndjson(output)
            }
            ListFormat::Csv => {
                output.escape_on_terminal(Escapes::Text);
                // An empty list also has a header.
                let mut csv = csv::Writer::from_writer(output);
                csv.write_record(NAMES).map_err(csv_failure)?;
                Self::Csv(Box::new(csv))
            }
        })
    }

    fn add(&mut self, line: &ChangeLine<'_>) -> Result<(), Failure> {
        match self {
            Self::Table(rows) => {
                rows.push(line.cells().map(str::to_owned).to_vec());
                Ok(())
            }
            Self::Json { is_first, output } => {
                let before: &[u8] = if std::mem::replace(is_first, false) {
                    b"[\n"
                } else {
                    b",\n"
                };
                output.write_all(before)?;
                let written = serde_json::to_writer(&mut *output, line);
                written.map_err(|error| output.failure(error.into()))
            }
            Self::Ndjson(output) => {
                let written = serde_json::to_writer(&mut *output, line);
                written.map_err(|error| output.failure(error.into()))?;
                output.write_all(b"\n")
            }
            Self::Csv(csv) => csv.write_record(line.cells()).map_err(csv_failure),
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
                output.write_all(end)?;
                output
            }
            Self::Ndjson(output) => output,
            Self::Csv(csv) => {
                let output = csv.into_inner().map_err(csv::IntoInnerError::into_error);
                output.map_err(|error| csv_failure(error.into()))?
            }
        };
        output.publish().map(drop)
    }
}

/// Converts an error of the list as CSV. A closed pipe is recognised by the underlying I/O error.
fn csv_failure(error: csv::Error) -> Failure {
    let error = match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    };
    Failure::from_output(&Location::Stdout.name(), error)
}
