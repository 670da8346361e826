//! Which columns are written, as what, and the statements that follow from it.

use tokio_postgres::types::Type;

use super::quoted;
use crate::batch::filter::Fields;
use crate::batch::{BATCH_ID, COLUMNS, FieldType};

/// The column of fields that nobody announced.
pub(super) const EXTRA: &str = "extra";

/// The table of one transaction that rows are copied into.
pub(super) const STAGING: &str = "pg_temp.trayscan_staging";

/// A column that is written.
#[derive(Clone, Debug)]
pub(super) struct TableField {
    /// Nothing for the fields that nobody announced.
    pub(super) column: Option<usize>,
    /// The table takes no null here.
    pub(super) not_null: bool,
    /// So many digits at most, and so many of them behind the point.
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

    /// Returns the types of a cell and of an array of them, as it is sent.
    pub(super) fn types(&self) -> (Type, Type) {
        match self.column.map(|column| COLUMNS[column].kind) {
            None => (Type::JSONB, Type::JSONB_ARRAY),
            Some(FieldType::Text) => (Type::TEXT, Type::TEXT_ARRAY),
            Some(FieldType::Date) => (Type::TIMESTAMPTZ, Type::TIMESTAMPTZ_ARRAY),
            Some(FieldType::Integer) => (Type::INT8, Type::INT8_ARRAY),
            Some(FieldType::Decimal) => (Type::NUMERIC, Type::NUMERIC_ARRAY),
            Some(FieldType::Boolean) => (Type::BOOL, Type::BOOL_ARRAY),
        }
    }

    /// Writes the condition that two rows differ here. Texts differ in any byte, whatever the collation of the
    /// table calls equal.
    fn differs(&self) -> String {
        let name = quoted(self.name());
        let exactly = match self.sql_type() {
            "text" => " collate \"C\"",
            _ => "",
        };
        format!("t.{name}{exactly} is distinct from s.{name}{exactly}")
    }
}

/// The columns that are written, in the order of the interface.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) fields: Vec<TableField>,
}

impl Layout {
    /// With `lenient`, only the identifier is always there.
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

    /// Lists the columns for SQL, each through `write`.
    pub(super) fn list(&self, write: impl Fn(&str) -> String) -> String {
        let names = self.fields.iter().map(|field| write(&quoted(field.name())));
        names.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn names(&self) -> String {
        self.list(str::to_owned)
    }

    /// Makes the table where there is none.
    pub(super) fn create(&self, table: &str) -> String {
        let field = |field: &TableField| {
            let null = match (field.column, field.not_null) {
                (Some(BATCH_ID), _) => " primary key",
                (_, true) => " not null",
                (_, false) => "",
            };
            format!("{} {}{null}", quoted(field.name()), field.sql_type())
        };
        let fields: Vec<String> = self.fields.iter().map(field).collect();
        format!("create table if not exists {table} ({})", fields.join(", "))
    }

    /// Makes the table that rows are copied into: with the types of `table`, where that is there. It is gone when
    /// the transaction ends.
    pub(super) fn create_staging(&self, table: Option<&str>) -> String {
        let name = STAGING.trim_start_matches("pg_temp.");
        if let Some(table) = table {
            let names = self.names();
            return format!(
                "create temporary table {name} on commit drop as select {names} from {table} limit 0"
            );
        }
        let field = |field: &TableField| format!("{} {}", quoted(field.name()), field.sql_type());
        let fields: Vec<String> = self.fields.iter().map(field).collect();
        format!(
            "create temporary table {name} ({}) on commit drop",
            fields.join(", ")
        )
    }

    /// Copies rows there, which come as one array for each column.
    pub(super) fn copy(&self) -> String {
        let names = self.names();
        let arrays: Vec<String> = (1..=self.fields.len()).map(|n| format!("${n}")).collect();
        format!(
            "insert into {STAGING} ({names}) select * from unnest({})",
            arrays.join(", ")
        )
    }

    /// Lets the server know how many keys there are.
    pub(super) fn analyze() -> String {
        format!("analyze {STAGING} ({})", key())
    }

    /// Counts the rows that are new, and those that differ.
    pub(super) fn compare(&self, table: &str) -> String {
        let key = key();
        format!(
            "select count(*) filter (where t.{key} is null), \
             count(*) filter (where t.{key} is not null and ({})) \
             from {STAGING} s left join {table} t on t.{key} = s.{key}",
            self.differ().unwrap_or_else(|| "false".to_owned())
        )
    }

    /// Changes the rows that differ; nothing where there is only a key.
    pub(super) fn update(&self, table: &str) -> Option<String> {
        let key = key();
        let others: Vec<String> = self
            .others()
            .map(|field| format!("{0} = s.{0}", quoted(field.name())))
            .collect();
        Some(format!(
            "update {table} t set {} from {STAGING} s where t.{key} = s.{key} and ({})",
            others.join(", "),
            self.differ()?,
        ))
    }

    /// Adds the rows that are new.
    pub(super) fn insert(&self, table: &str) -> String {
        let (names, key) = (self.names(), key());
        format!(
            "insert into {table} ({names}) select {names} from {STAGING} s \
             where not exists (select from {table} t where t.{key} = s.{key})"
        )
    }

    /// Writes the condition that two rows differ anywhere.
    fn differ(&self) -> Option<String> {
        let all: Vec<String> = self.others().map(TableField::differs).collect();
        (!all.is_empty()).then(|| all.join(" or "))
    }

    /// The columns beside the key.
    fn others(&self) -> impl Iterator<Item = &TableField> {
        let others = self.fields.iter();
        others.filter(|field| field.column != Some(BATCH_ID))
    }
}

fn key() -> String {
    quoted(COLUMNS[BATCH_ID].name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_every_column() {
        let all = Layout::new(&Fields::all(), false);
        let create = all.create(r#""batches""#);
        assert!(create.starts_with(
            r#"create table if not exists "batches" ("batch_id" text primary key, "batch_name" text not null, "batch_creation_date" timestamptz not null, "crop_type" text, "number_of_images" bigint not null, "#
        ), "{create}");
        assert!(
            create.ends_with(r#""warnings" boolean not null, "extra" jsonb)"#),
            "{create}"
        );
        assert_eq!(all.fields.len(), COLUMNS.len() + 1);
        let lenient = Layout::new(&Fields::all(), true).create("t");
        assert!(!lenient.contains("not null"), "{lenient}");
    }

    #[test]
    fn a_few_fields_make_a_small_statement() {
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
}
