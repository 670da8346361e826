//! Reads batches back as text that the server formats, independently of the code that writes them.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tokio_postgres::error::SqlState;

use super::address::{TableAddress, quoted};
use super::escapes;
use super::failure::{self, PgError};
use super::session::{Connector, Limit, PgSession, Purpose, wait};
use super::table::{self, EXTRA, ExistingTable};
use crate::batch::range::{Range, written};
use crate::batch::{
    BATCH_ID, COLUMNS, CREATION_DATE, FieldType, PlainRow, column_bits, find_column,
};
use crate::client::ClientOptions;
use crate::error::{Failure, Kind};
use crate::text::join;

/// The number of rows read together.
const GROUP_ROWS: usize = 500;

const DOING: &str = "read the table";

/// A table to read.
#[derive(Clone)]
pub(crate) struct TableReader {
    address: TableAddress,
    options: Option<ClientOptions>,
    range: Option<Range>,
    /// The columns to read; `None` for all.
    columns_to_read: Option<Vec<usize>>,
}

/// The rows of a table, read on demand.
pub(crate) struct RowStream {
    /// The columns of the table, one bit each.
    pub(crate) columns: u32,
    /// Whether the table has a column for unknown fields.
    pub(crate) has_extra: bool,
    /// Columns that are not fields of a batch.
    pub(crate) unknown: Vec<String>,
    fields: Vec<usize>,
    /// `None` after the last row.
    session: Option<PgSession>,
    answers: Pin<Box<tokio_postgres::RowStream>>,
    /// The rows of the current group.
    rows: std::vec::IntoIter<PlainRow>,
}

impl TableReader {
    pub(crate) fn new(address: TableAddress) -> Self {
        Self {
            address,
            options: None,
            range: None,
            columns_to_read: None,
        }
    }

    /// Sets how to connect to the server.
    pub(crate) fn connect_with(&mut self, options: ClientOptions) {
        self.options = Some(options);
    }

    /// Limits reading to batches created in `range`, and to these columns: a table may contain many exports.
    pub(crate) fn limit(&mut self, range: Option<Range>, columns: Option<Vec<usize>>) {
        self.range = range;
        self.columns_to_read = columns;
    }

    /// Starts reading.
    pub(crate) fn open(&self) -> Result<RowStream, Failure> {
        let options = self.options.clone().ok_or_else(|| {
            let why = "no connection settings for the server of the table";
            Failure::new(Kind::Internal, why)
        })?;
        let address = self.address.clone();
        wait(self.start(&Arc::new(Connector { address, options })))
    }

    async fn start(&self, connector: &Arc<Connector>) -> Result<RowStream, Failure> {
        let open = async || open_table(connector).await;
        let (session, found) = connector.retry(open).await?;
        let (mut fields, has_extra, unknown) = columns(&found, &connector.address)?;
        let has_bounds = self
            .range
            .is_some_and(|range| range.start.or(range.end).is_some());
        if has_bounds && !fields.contains(&CREATION_DATE) {
            return Err(Failure::usage(
                format!(
                    "{} has no `batch_creation_date`, so its batches of a range cannot be found",
                    found.name
                ),
                "without `--start`, `--end`, `--since` and `--period`, all of its batches are compared; the manifest of an export with a range needs that field",
            ));
        }
        if let Some(columns_to_read) = &self.columns_to_read {
            fields.retain(|field| columns_to_read.contains(field));
        }
        let statement = select(
            &found.name,
            &fields,
            has_extra,
            has_zone(&found),
            self.range,
        );
        let answers = session.stream(DOING, &statement).await;
        Ok(RowStream {
            columns: column_bits(fields.iter().copied()),
            has_extra,
            unknown,
            fields,
            session: Some(session),
            answers: Box::pin(answers.map_err(|error| refused(error, &connector.address))?),
            rows: Vec::new().into_iter(),
        })
    }
}

/// Converts an error of the server: here the table is a source, not an output.
fn refused(error: PgError, address: &TableAddress) -> Failure {
    let is_about_rights = error.is(&SqlState::INSUFFICIENT_PRIVILEGE);
    let mut failure = error.failure;
    if failure.kind == Kind::Output {
        failure.kind = Kind::Usage;
        failure = failure.hint(if is_about_rights {
            let (table, user) = (address.table.quoted(), quoted(&address.user));
            format!("it needs: grant select on {table} to {user}")
        } else {
            "name a table that `trayscan export` wrote".to_owned()
        });
    }
    failure
}

/// Finds the table, in a read-only transaction.
async fn open_table(connector: &Arc<Connector>) -> Result<(PgSession, ExistingTable), PgError> {
    let session = connector.connect().await?;
    session.begin(Purpose::Read).await?;
    let address = &connector.address;
    let table = address.table.quoted();
    let found = table::find(&session, &table).await?.ok_or_else(|| {
        Failure::usage(
            format!("PostgreSQL at {} has no table {table}", address.server()),
            "check its name and its schema: `table=schema.name`",
        )
    })?;
    Ok((session, found))
}

/// Converts a row.
fn row(
    from: &tokio_postgres::Row,
    fields: &[usize],
    has_extra: bool,
) -> Result<PlainRow, tokio_postgres::Error> {
    let mut row = PlainRow::default();
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
    let (name, server) = (&found.name, address.server());
    Err(Failure::usage(
        format!(
            "{name} of PostgreSQL at {server} has no `batch_id`, so it is not a table of batches"
        ),
        "name a table that `trayscan export` wrote, with `table=`",
    ))
}

/// Returns whether dates have a time zone. Without one, they are taken for UTC, as other programs do.
fn has_zone(found: &ExistingTable) -> bool {
    let mut columns = found.columns.iter();
    let date = columns.find(|column| column.name == COLUMNS[CREATION_DATE].name);
    date.is_none_or(|date| !date.sql_type.ends_with("without time zone"))
}

/// Selects every column as text; dates in the format of the service.
fn select(
    table: &str,
    fields: &[usize],
    has_extra: bool,
    has_zone: bool,
    range: Option<Range>,
) -> String {
    let in_utc = if has_zone { " at time zone 'UTC'" } else { "" };
    let text = |&column: &usize| {
        let name = quoted(COLUMNS[column].name);
        match COLUMNS[column].kind {
            // Other programs may have stored dates that the service never sends; they are not reformatted.
            FieldType::Date => format!(
                "case when {name} >= '0001-01-01Z' and {name} < '10000-01-01Z' then to_char({name}{in_utc}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') else {name}::text end"
            ),
            _ => format!("{name}::text"),
        }
    };
    let extra = has_extra.then(|| format!("{}::text", quoted(EXTRA)));
    let texts = join(fields.iter().map(text).chain(extra), ", ");
    let range = range.unwrap_or_default();
    let until = if range.excludes_end { "<" } else { "<=" };
    let bounds = [(">=", range.start), (until, range.end)].into_iter();
    let bounds = bounds.filter_map(|(is, second)| Some((is, written(second?))));
    let bounds = bounds.map(|(is, date)| format!("\"batch_creation_date\" {is} '{date}'"));
    let conditions = match &*join(bounds, " and ") {
        "" => String::new(),
        bounds => format!(" where {bounds}"),
    };
    format!("select {texts} from {table}{conditions}")
}

impl RowStream {
    /// Returns the next row; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<PlainRow>, Failure> {
        if self.rows.len() == 0 && self.session.is_some() {
            let rows = wait(self.next_group());
            self.rows = rows.map_err(|error| error.failure)?.into_iter();
        }
        Ok(self.rows.next())
    }

    /// Reads some rows. Closes the session after the last one, or after an error.
    async fn next_group(&mut self) -> Result<Vec<PlainRow>, PgError> {
        let mut rows = Vec::new();
        let Some(session) = self.session.take() else {
            return Ok(rows);
        };
        let failed = |error| failure::of(&session.connector.address, DOING, &error);
        while rows.len() < GROUP_ROWS {
            let next = session.within(DOING, Limit::Long, self.answers.try_next());
            let read = next.await.and_then(|next| {
                let row = |next| row(&next, &self.fields, self.has_extra).map_err(failed);
                next.map(row).transpose()
            });
            let Ok(Some(row)) = read else {
                session.close().await;
                return read.map(|_| rows);
            };
            rows.push(row);
        }
        self.session = Some(session);
        Ok(rows)
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
            select("\"t\"", &[BATCH_ID], false, true, Some(range)),
            "select \"batch_id\"::text from \"t\" where \"batch_creation_date\" >= '2026-05-01T00:00:00Z' and \"batch_creation_date\" < '2026-05-02T00:00:00Z'"
        );
        assert!(!select("\"t\"", &[BATCH_ID], false, true, None).contains("where"));
    }
}
