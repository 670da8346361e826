//! The columns of a table and the SQL statements for them, and checks of an existing table.

use tokio_postgres::Row;

use super::address::quoted;
use super::failure::{self, PgError};
use super::session::{Limit, PgSession};
use crate::batch::filter::Fields;
use crate::batch::{BATCH_ID, COLUMNS, FieldType};
use crate::error::{Failure, Kind};
use crate::text;

/// The column for unknown fields.
pub(super) const EXTRA: &str = "extra";

/// The temporary table that rows are copied to.
pub(super) const STAGING: &str = "pg_temp.trayscan_staging";

/// A column to write.
#[derive(Clone, Debug)]
pub(super) struct TableField {
    /// `None` for unknown fields.
    pub(super) column: Option<usize>,
    /// Whether the column is `not null`.
    pub(super) not_null: bool,
    /// The maximum number of digits, and of those after the point.
    pub(super) digits: Option<(usize, usize)>,
}

impl TableField {
    pub(super) fn name(&self) -> &'static str {
        self.column.map_or(EXTRA, |column| COLUMNS[column].name)
    }

    pub(super) fn sql_type(&self) -> &'static str {
        match self.column.map(|column| COLUMNS[column].kind) {
            None => "jsonb",
            Some(FieldType::Text) => "text",
            Some(FieldType::Date) => "timestamptz",
            Some(FieldType::Integer) => "bigint",
            Some(FieldType::Decimal) => "numeric",
            Some(FieldType::Boolean) => "boolean",
        }
    }

    /// Returns the condition that two rows differ in this column. Texts are compared byte by byte, whatever
    /// the collation.
    fn differs(&self) -> String {
        let name = quoted(self.name());
        let exactly = match self.sql_type() {
            "text" => " collate \"C\"",
            _ => "",
        };
        format!("t.{name}{exactly} is distinct from s.{name}{exactly}")
    }
}

/// The columns to write, in the order of the interface.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) fields: Vec<TableField>,
}

impl Layout {
    /// With `lenient`, only `batch_id` is never null.
    pub(super) fn new(fields: &Fields, lenient: bool) -> Self {
        let mut columns = fields.columns.clone();
        columns.sort_unstable();
        let field = |column: usize| TableField {
            column: Some(column),
            not_null: column == BATCH_ID || !lenient && !COLUMNS[column].nullable,
            digits: None,
        };
        let extra = (!fields.named).then_some(TableField {
            column: None,
            not_null: false,
            digits: None,
        });
        Self {
            fields: columns.into_iter().map(field).chain(extra).collect(),
        }
    }

    /// Lists the columns for SQL.
    fn names(&self) -> String {
        text::join(self.fields.iter().map(|field| quoted(field.name())), ", ")
    }

    /// Defines the columns for SQL.
    fn definitions(&self, with_limits: bool) -> String {
        let definition = |field: &TableField| {
            let limit = if with_limits && field.not_null {
                " not null"
            } else {
                ""
            };
            format!("{} {}{limit}", quoted(field.name()), field.sql_type())
        };
        text::join(self.fields.iter().map(definition), ", ")
    }

    /// Creates the table, without its key.
    pub(super) fn create(&self, table: &str) -> String {
        format!("create table {table} ({})", self.definitions(true))
    }

    /// Adds the key to a table.
    pub(super) fn add_key(table: &str) -> String {
        format!("alter table {table} add primary key ({})", key())
    }

    /// Creates the temporary table, with the column types of `table` if that exists. It is dropped when the
    /// transaction ends.
    pub(super) fn create_staging(&self, table: Option<&str>) -> String {
        let name = STAGING.trim_start_matches("pg_temp.");
        if let Some(table) = table {
            let names = self.names();
            return format!(
                "create temporary table {name} on commit drop as select {names} from {table} limit 0"
            );
        }
        let fields = self.definitions(false);
        format!("create temporary table {name} ({fields}) on commit drop")
    }

    /// Copies rows to the temporary table.
    pub(super) fn copy(&self) -> String {
        let names = self.names();
        format!("copy {STAGING} ({names}) from stdin (format binary)")
    }

    /// Updates the server's statistics of the keys.
    pub(super) fn analyze() -> String {
        format!("analyze {STAGING} ({})", key())
    }

    /// Counts the rows that are new, and those that differ.
    pub(super) fn compare(&self, table: &str) -> String {
        let key = key();
        format!(
            "select count(*) filter (where t.{key} is null), \
             count(*) filter (where t.{key} is not null) \
             from {STAGING} s left join {table} t on t.{key} = s.{key} where t.{key} is null or {}",
            self.differ().unwrap_or_else(|| "false".to_owned())
        )
    }

    /// Updates the rows that differ; `None` if there are no columns besides the key.
    pub(super) fn update(&self, table: &str) -> Option<String> {
        let (key, differ) = (key(), self.differ()?);
        let others = self.others().map(|field| quoted(field.name()));
        let others = text::join(others.map(|name| format!("{name} = s.{name}")), ", ");
        Some(format!(
            "update {table} t set {others} from {STAGING} s where t.{key} = s.{key} and ({differ})"
        ))
    }

    /// Inserts all rows.
    pub(super) fn insert_all(&self, table: &str) -> String {
        let names = self.names();
        format!("insert into {table} ({names}) select {names} from {STAGING} s")
    }

    /// Inserts the new rows.
    pub(super) fn insert(&self, table: &str) -> String {
        let (all, key) = (self.insert_all(table), key());
        format!("{all} where not exists (select from {table} t where t.{key} = s.{key})")
    }

    /// Returns the condition that two rows differ in any column.
    fn differ(&self) -> Option<String> {
        let all: Vec<String> = self.others().map(TableField::differs).collect();
        (!all.is_empty()).then(|| all.join(" or "))
    }

    /// Returns the columns besides the key.
    fn others(&self) -> impl Iterator<Item = &TableField> {
        let others = self.fields.iter();
        others.filter(|field| field.column != Some(BATCH_ID))
    }
}

fn key() -> String {
    quoted(COLUMNS[BATCH_ID].name)
}

pub(super) struct ExistingTable {
    pub(super) oid: String,
    /// With its schema, quoted for SQL.
    pub(super) name: String,
    /// Its `relkind` in the catalog.
    pub(super) kind: String,
    pub(super) columns: Vec<ExistingColumn>,
}

/// A column of an existing table.
pub(super) struct ExistingColumn {
    pub(super) name: String,
    /// As the server writes it.
    pub(super) sql_type: String,
    not_null: bool,
    /// Whether it has a default value.
    has_default: bool,
    /// What generates its values, if it is not written: an expression, or an identity.
    generator: Option<String>,
    /// The collation, if it is nondeterministic.
    collation: Option<String>,
}

/// Finds a table by its name, quoted for SQL.
pub(super) async fn find(
    session: &PgSession,
    table: &str,
) -> Result<Option<ExistingTable>, PgError> {
    let (doing, address) = ("look for the table", &session.connector.address);
    let statement = "select c.oid::text, n.nspname, c.relname, c.relkind::text from pg_catalog.pg_class c \
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1)";
    let tables = session
        .rows(doing, Limit::Short, statement, &[table])
        .await?;
    let Some(table) = tables.first() else {
        return Ok(None);
    };
    let failed = |error: tokio_postgres::Error| failure::of(address, doing, &error);
    let oid: String = table.try_get(0).map_err(failed)?;
    let statement = "select attname::text, format_type(atttypid, atttypmod), attnotnull, \
        atthasdef or attidentity <> '', case when attgenerated <> '' then 'expression' when attidentity = 'a' then 'identity' end, \
        (select collname::text from pg_catalog.pg_collation c \
        where c.oid = attcollation and not collisdeterministic) \
        from pg_catalog.pg_attribute where attrelid = $1::oid and attnum > 0 and not attisdropped \
        order by attnum";
    let rows = session
        .rows(doing, Limit::Short, statement, &[&oid])
        .await?;
    read(table, &rows, oid).map(Some).map_err(failed)
}

/// Reads the catalog entries of a table and its columns.
fn read(table: &Row, rows: &[Row], oid: String) -> Result<ExistingTable, tokio_postgres::Error> {
    let column = |row: &Row| {
        Ok(ExistingColumn {
            name: row.try_get(0)?,
            sql_type: row.try_get(1)?,
            not_null: row.try_get(2)?,
            has_default: row.try_get(3)?,
            generator: row.try_get(4)?,
            collation: row.try_get(5)?,
        })
    };
    Ok(ExistingTable {
        oid,
        name: format!(
            "{}.{}",
            quoted(table.try_get(1)?),
            quoted(table.try_get(2)?)
        ),
        kind: table.try_get(3)?,
        columns: rows.iter().map(column).collect::<Result<_, _>>()?,
    })
}

/// Returns whether `batch_id` alone is a unique key.
async fn has_key(session: &PgSession, oid: &str) -> Result<bool, PgError> {
    let statement = "select exists (select from pg_catalog.pg_index i join pg_catalog.pg_attribute a \
        on a.attrelid = i.indrelid and a.attnum = i.indkey[0] \
        where i.indrelid = $1::oid and a.attname = $2 and i.indisunique and i.indisvalid \
        and i.indimmediate and i.indnkeyatts = 1 and i.indpred is null and i.indexprs is null)";
    let parameters = [oid, COLUMNS[BATCH_ID].name];
    session
        .value("look for a key", statement, &parameters)
        .await
}

impl ExistingTable {
    /// Checks that the table fits `layout`, and records the limits of its columns.
    pub(super) async fn check(
        &self,
        session: &PgSession,
        layout: &mut Layout,
    ) -> Result<(), PgError> {
        let (name, server) = (&self.name, session.connector.address.server());
        let unfit = |why: &str| {
            let message =
                format!("batches do not fit into {name} of PostgreSQL at {server}: {why}");
            Failure::new(Kind::Output, message)
        };
        if !matches!(self.kind.as_str(), "r" | "p") {
            let kind = match self.kind.as_str() {
                "v" => "a view",
                "m" => "a materialized view",
                "f" => "a foreign table",
                _ => "not a table",
            };
            return Err(unfit(&format!("it is {kind}"))
                .hint("name a table, or a new one, with `table=`")
                .into());
        }
        self.check_rights(session).await?;
        let (mut wrong, mut mend) = (Vec::new(), Vec::new());
        for field in &mut layout.fields {
            let mut columns = self.columns.iter();
            let present = columns.find(|column| column.name == field.name());
            fit(field, present, &mut wrong, &mut mend);
        }
        for column in &self.columns {
            let mut fields = layout.fields.iter();
            let is_written = fields.any(|field| field.name() == column.name);
            if !is_written && column.not_null && !column.has_default && column.generator.is_none() {
                let name = quoted(&column.name);
                wrong.push(format!("{name} must not be null, but is not written"));
                mend.push(format!("alter column {name} drop not null"));
            }
        }
        let has_id = self.columns.iter().any(|column| column.name == "batch_id");
        if has_id && !has_key(session, &self.oid).await? {
            wrong.push("\"batch_id\" is not a unique key".to_owned());
            mend.push("add unique (\"batch_id\")".to_owned());
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let mend = mend.join(", ");
        let hint = format!(
            "change it with: alter table {name} {mend}; or name another table with `table=`"
        );
        Err(unfit(&wrong.join("; ")).hint(hint).into())
    }

    /// Checks the permissions on the whole table: those on columns alone do not allow locking it.
    async fn check_rights(&self, session: &PgSession) -> Result<(), PgError> {
        let (doing, address) = ("check the permissions", &session.connector.address);
        let statement = "select has_table_privilege(id, 'select'), has_table_privilege(id, 'insert'), has_table_privilege(id, 'update') from (select $1::oid as id) as one";
        let rows = session
            .rows(doing, Limit::Short, statement, &[&self.oid])
            .await?;
        let mut lacking = Vec::new();
        for (column, right) in ["select", "insert", "update"].into_iter().enumerate() {
            if !session.cell::<bool>(doing, &rows, column)? {
                lacking.push(right);
            }
        }
        if lacking.is_empty() {
            return Ok(());
        }
        let (name, lacking) = (&self.name, lacking.join(", "));
        let (server, user) = (address.server(), quoted(&address.user));
        let message = format!("no {lacking} permission on {name} of PostgreSQL at {server}");
        let hint = format!("ask its owner to run: grant {lacking} on {name} to {user}");
        Err(Failure::new(Kind::Output, message).hint(hint).into())
    }
}

/// Returns what is wrong with a column and how to change it; records its limits.
fn fit(
    field: &mut TableField,
    present: Option<&ExistingColumn>,
    wrong: &mut Vec<String>,
    mend: &mut Vec<String>,
) {
    let (name, should) = (quoted(field.name()), field.sql_type());
    let Some(present) = present else {
        wrong.push(format!("{name} is missing"));
        mend.push(format!("add column {name} {should}"));
        return;
    };
    field.not_null = present.not_null;
    if let Some(generator) = &present.generator {
        wrong.push(format!("{name} is generated by the table"));
        mend.push(format!("alter column {name} drop {generator}"));
        return;
    }
    let is = present.sql_type.as_str();
    let fits = match should {
        "text" => matches!(is, "text" | "character varying"),
        "timestamptz" => is == "timestamp with time zone",
        "numeric" => {
            field.digits = digits(is);
            is == "numeric" || field.digits.is_some()
        }
        other => is == other,
    };
    if !fits {
        wrong.push(format!("{name} is {is}, but should be {should}"));
        let is_local = is.starts_with("timestamp") && is.ends_with("without time zone");
        let using = if is_local && should == "timestamptz" {
            format!("{name} at time zone 'UTC'")
        } else {
            format!("{name}::{should}")
        };
        mend.push(format!("alter column {name} type {should} using {using}"));
    } else if let Some(collation) = &present.collation
        && field.column == Some(BATCH_ID)
    {
        let collation = quoted(collation);
        wrong.push(format!(
            "{name} has the nondeterministic collation {collation}, which may treat two batches as one"
        ));
        mend.push(format!("alter column {name} type {should} collate \"C\""));
    }
}

/// Parses `numeric(12,2)`; `None` for other types.
fn digits(sql_type: &str) -> Option<(usize, usize)> {
    let inside = sql_type.strip_prefix("numeric(")?.strip_suffix(')')?;
    let (all, behind) = inside.split_once(',')?;
    let (all, behind): (usize, usize) = (all.parse().ok()?, behind.parse().ok()?);
    // PostgreSQL allows more digits after the point than in total, but that is not used in practice.
    (behind <= all).then_some((all, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_every_column() {
        let all = Layout::new(&Fields::all(), false);
        let create = all.create(r#""batches""#);
        assert!(create.starts_with(
            r#"create table "batches" ("batch_id" text not null, "batch_name" text not null, "batch_creation_date" timestamptz not null, "crop_type" text, "number_of_images" bigint not null, "#
        ), "{create}");
        assert!(
            create.ends_with(r#""warnings" boolean not null, "extra" jsonb)"#),
            "{create}"
        );
        assert_eq!(all.fields.len(), COLUMNS.len() + 1);
        let lenient = Layout::new(&Fields::all(), true).create("t");
        assert_eq!(lenient.matches("not null").count(), 1, "{lenient}");
    }

    #[test]
    fn few_fields_make_short_statements() {
        let two = Fields::parse("comment,batch_id").expect("fields");
        let layout = Layout::new(&two, false);
        assert_eq!(
            layout.update(r#""t""#).as_deref(),
            Some(
                r#"update "t" t set "comment" = s."comment" from pg_temp.trayscan_staging s where t."batch_id" = s."batch_id" and (t."comment" collate "C" is distinct from s."comment" collate "C")"#
            )
        );
        assert_eq!(
            layout.insert(r#""t""#),
            r#"insert into "t" ("batch_id", "comment") select "batch_id", "comment" from pg_temp.trayscan_staging s where not exists (select from "t" t where t."batch_id" = s."batch_id")"#
        );
        let one = Fields::parse("batch_id").expect("fields");
        assert_eq!(Layout::new(&one, false).update("t"), None);
    }

    #[test]
    fn digits_are_read_from_a_type() {
        assert_eq!(digits("numeric(12,2)"), Some((12, 2)));
        for other in ["numeric", "numeric(2,-3)", "numeric(2,3)", "text"] {
            assert_eq!(digits(other), None, "{other}");
        }
    }
}
