//! Reads batches back as text that the server formats, independently of the code that writes them.

use std::borrow::Cow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use futures_util::TryStreamExt as _;

use super::address::TableAddress;
use super::address::quoted;
use super::escapes;
use super::failure::{self, PgError, with_retries};
use super::session::{Connector, Limit, PgSession, Purpose, Reach, spawn_thread};
use super::table::{self, EXTRA, ExistingTable};
use crate::batch::range::{Range, written};
use crate::batch::{BATCH_ID, COLUMNS, FieldType, Values, find_column};
use crate::error::{self, Failure};

/// The number of rows sent together.
const GROUP_ROWS: usize = 500;
/// The number of such groups that may be queued.
const QUEUED_GROUPS: usize = 2;

/// A table to read.
#[derive(Clone)]
pub(crate) struct TableReader {
    address: TableAddress,
    reach: Option<Reach>,
    range: Option<Range>,
    /// The columns to read; `None` for all.
    columns_to_read: Option<Vec<usize>>,
}

/// One row, as plain text.
pub(crate) struct TableRow {
    texts: [Option<String>; COLUMNS.len()],
    /// Unknown fields, as JSON.
    extra: Option<String>,
}

impl Values for TableRow {
    fn plain(&self, column: usize) -> Option<Cow<'_, str>> {
        self.texts[column].as_deref().map(Cow::Borrowed)
    }

    fn unknown_fields(&self) -> Option<Cow<'_, str>> {
        self.extra.as_deref().map(Cow::Borrowed)
    }
}

/// The rows of a table.
pub(crate) struct RowStream {
    /// The columns of the table, one bit each.
    pub(crate) columns: u32,
    /// Whether the table has a column for unknown fields.
    pub(crate) has_extra: bool,
    /// Columns that are not fields of a batch.
    pub(crate) unknown: Vec<String>,
    answers: Receiver<ReadEvent>,
    rows: std::vec::IntoIter<TableRow>,
}

enum ReadEvent {
    Table(Vec<usize>, bool, Vec<String>),
    Rows(Vec<TableRow>),
    End,
    Failed(Box<Failure>),
}

impl TableReader {
    pub(crate) fn new(address: TableAddress) -> Self {
        Self {
            address,
            reach: None,
            range: None,
            columns_to_read: None,
        }
    }

    /// Sets how to connect to the server.
    pub(crate) fn reach_as(&mut self, reach: Reach) {
        self.reach = Some(reach);
    }

    /// Limits reading to batches created in `range`, and to these columns: a table may contain many exports.
    pub(crate) fn limit(&mut self, range: Option<Range>, columns: Option<Vec<usize>>) {
        self.range = range;
        self.columns_to_read = columns;
    }

    /// Starts reading.
    pub(crate) fn open(&self) -> Result<RowStream, Failure> {
        let Self {
            address,
            reach,
            range,
            columns_to_read,
        } = self.clone();
        let reach = reach.ok_or_else(|| {
            let why = "no connection settings for the server of the table";
            Failure::new(error::Kind::Internal, why)
        })?;
        let connector = Connector { address, reach };
        let (sender, answers) = sync_channel(QUEUED_GROUPS);
        // The channel reports how it ended.
        let _ = spawn_thread(async move || {
            let answer = match read(&connector, range, columns_to_read.as_deref(), &sender).await {
                Ok(()) => ReadEvent::End,
                Err(failure) => ReadEvent::Failed(Box::new(failure)),
            };
            // The receiver may be gone.
            let _ = sender.send(answer);
            Ok(())
        })?;
        match answers.recv() {
            Ok(ReadEvent::Table(fields, has_extra, unknown)) => Ok(RowStream {
                has_extra,
                columns: fields.iter().fold(0, |all, column| all | 1 << column),
                unknown,
                answers,
                rows: Vec::new().into_iter(),
            }),
            Ok(ReadEvent::Failed(failure)) => Err(*failure),
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

/// Sends all rows.
async fn read(
    connector: &Connector,
    range: Option<Range>,
    columns_to_read: Option<&[usize]>,
    sender: &SyncSender<ReadEvent>,
) -> Result<(), Failure> {
    let (session, found) =
        with_retries(connector.reach.policy, async || open_table(connector).await).await?;
    let (mut fields, has_extra, unknown) = columns(&found, &connector.address)?;
    if let Some(columns_to_read) = columns_to_read {
        fields.retain(|field| columns_to_read.contains(field));
    }
    let statement = select(&found.name, &fields, has_extra, range);
    let answer = ReadEvent::Table(fields.clone(), has_extra, unknown);
    if sender.send(answer).is_err() {
        return Ok(());
    }
    let handed_on = send_rows(&session, &statement, &fields, has_extra, sender).await;
    session.close().await;
    handed_on.map_err(|error| error.failure)
}

/// Finds the table, in a read-only transaction.
async fn open_table(connector: &Connector) -> Result<(PgSession<'_>, ExistingTable), PgError> {
    let session = connector.connect().await?;
    session.begin(Purpose::Read).await?;
    let address = &connector.address;
    let Some(found) = table::find(&session, &address.table.quoted()).await? else {
        return Err(Failure::new(
            error::Kind::Usage,
            format!(
                "PostgreSQL at {} has no table {}",
                address.server(),
                address.table.quoted()
            ),
        )
        .hint("check its name and its schema: `table=schema.name`")
        .into());
    };
    Ok((session, found))
}

/// Sends rows until the last one, or until the receiver is gone.
async fn send_rows(
    session: &PgSession<'_>,
    statement: &str,
    fields: &[usize],
    has_extra: bool,
    sender: &SyncSender<ReadEvent>,
) -> Result<(), PgError> {
    let doing = "read the table";
    let failed =
        |error: tokio_postgres::Error| failure::of(&session.connector.address, doing, &error);
    let mut coming = std::pin::pin!(session.stream(doing, statement).await?);
    let mut rows = Vec::new();
    loop {
        let next = session.within(doing, Limit::Long, coming.try_next());
        let next = next.await?;
        let is_last = next.is_none();
        if let Some(next) = next {
            rows.push(row(&next, fields, has_extra).map_err(failed)?);
        }
        if is_last || rows.len() == GROUP_ROWS {
            let rows = ReadEvent::Rows(std::mem::take(&mut rows));
            if sender.send(rows).is_err() || is_last {
                return Ok(());
            }
        }
    }
}

/// Converts a row.
fn row(
    from: &tokio_postgres::Row,
    fields: &[usize],
    has_extra: bool,
) -> Result<TableRow, tokio_postgres::Error> {
    let mut row = TableRow {
        texts: [const { None }; COLUMNS.len()],
        extra: None,
    };
    for (index, &column) in fields.iter().enumerate() {
        let text: Option<&str> = from.try_get(index)?;
        row.texts[column] = text.map(|text| match COLUMNS[column].kind {
            FieldType::Text => escapes::undone(text).into_owned(),
            _ => text.to_owned(),
        });
    }
    if has_extra {
        let extra: Option<&str> = from.try_get(fields.len())?;
        row.extra = extra.map(|json| escapes::undone_in_json(json).into_owned());
    }
    Ok(row)
}

/// Finds the fields of batches among the columns of a table; also returns the other columns.
fn columns(
    found: &ExistingTable,
    address: &TableAddress,
) -> Result<(Vec<usize>, bool, Vec<String>), Failure> {
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
            "{} of PostgreSQL at {} has no `batch_id`, so it is not a table of batches",
            found.name,
            address.server()
        ),
    )
    .hint("name a table that `trayscan export` wrote, with `table=`"))
}

/// Selects every column as text; dates in the format of the service.
fn select(table: &str, fields: &[usize], has_extra: bool, range: Option<Range>) -> String {
    let text = |&column: &usize| {
        let name = quoted(COLUMNS[column].name);
        match COLUMNS[column].kind {
            // Other programs may have stored dates that the service never sends; they are not reformatted.
            FieldType::Date => format!(
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
    format!("select {} from {table}{conditions}", texts.join(", "))
}

impl RowStream {
    /// Returns the next row; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<TableRow>, Failure> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            match self.answers.recv() {
                Ok(ReadEvent::Rows(rows)) => self.rows = rows.into_iter(),
                Ok(ReadEvent::End) => return Ok(None),
                Ok(ReadEvent::Failed(failure)) => return Err(*failure),
                Ok(ReadEvent::Table(..)) | Err(_) => return Err(ended()),
            }
        }
    }
}

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
            "select \"batch_id\"::text from \"t\" where \"batch_creation_date\" >= '2026-05-01T00:00:00Z' and \"batch_creation_date\" < '2026-05-02T00:00:00Z'"
        );
        assert!(!select("\"t\"", &[BATCH_ID], false, None).contains("where"));
    }
}
