//! Which columns are written, as what, and the statements that follow from it.

use super::quoted;
use crate::batch::{BATCH_ID, COLUMNS, Kind};
use crate::select::Fields;

/// The column of fields that nobody announced.
pub(super) const EXTRA: &str = "extra";

/// The table of this session that rows wait in.
pub(super) const STAGING: &str = "pg_temp.trayscan_staging";

/// A column that is written.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// Nothing for the fields that nobody announced.
    pub(super) column: Option<usize>,
    /// The table takes no null here.
    pub(super) not_null: bool,
    /// So many digits at most, and so many of them behind the point.
    pub(super) digits: Option<(usize, usize)>,
}

impl Field {
    pub(super) fn name(&self) -> &'static str {
        self.column.map_or(EXTRA, |column| COLUMNS[column].name)
    }

    pub(super) fn sql_type(&self) -> &'static str {
        match self.column.map(|column| COLUMNS[column].kind) {
            None => "jsonb",
            Some(Kind::Text) => "text",
            Some(Kind::Date) => "timestamptz",
            Some(Kind::Integer) => "bigint",
            Some(Kind::Decimal) => "numeric",
            Some(Kind::Boolean) => "boolean",
        }
    }
}

/// The columns that are written, in the order of the interface.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) fields: Vec<Field>,
}

impl Layout {
    /// With `lenient`, only the identifier is always there.
    pub(super) fn new(fields: &Fields, lenient: bool) -> Self {
        let mut columns = fields.columns.clone();
        columns.sort_unstable();
        let field = |column: usize| Field {
            column: Some(column),
            not_null: column == BATCH_ID || !lenient && !COLUMNS[column].nullable,
            digits: None,
        };
        let extra = (!fields.named).then_some(Field {
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
        let field = |field: &Field| {
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

    /// Makes the table that rows wait in: with the types of `table`, where that is there.
    pub(super) fn create_staging(&self, table: Option<&str>) -> String {
        let name = STAGING.trim_start_matches("pg_temp.");
        if let Some(table) = table {
            let names = self.names();
            return format!("create temporary table {name} as select {names} from {table} limit 0");
        }
        let field = |field: &Field| format!("{} {}", quoted(field.name()), field.sql_type());
        let fields: Vec<String> = self.fields.iter().map(field).collect();
        format!("create temporary table {name} ({})", fields.join(", "))
    }

    pub(super) fn copy(&self) -> String {
        let names = self.names();
        format!("copy {STAGING} ({names}) from stdin (format binary)")
    }

    /// Takes everything over that is new or changed.
    pub(super) fn upsert(&self, table: &str) -> String {
        let names = self.names();
        let key = quoted(COLUMNS[BATCH_ID].name);
        let others: Vec<String> = self.fields.iter().map(Field::name).map(quoted).collect();
        let others: Vec<&String> = others.iter().filter(|name| **name != key).collect();
        let each = |write: &dyn Fn(&String) -> String| {
            let all: Vec<String> = others.iter().map(|name| write(name)).collect();
            all.join(", ")
        };
        let update = if others.is_empty() {
            "nothing".to_owned()
        } else {
            format!(
                "update set {} where ({}) is distinct from ({})",
                each(&|name| format!("{name} = excluded.{name}")),
                each(&|name| format!("present.{name}")),
                each(&|name| format!("excluded.{name}")),
            )
        };
        format!(
            "insert into {table} as present ({names}) select {names} from {STAGING} on conflict ({key}) do {update}"
        )
    }
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
            layout.upsert(r#""t""#),
            r#"insert into "t" as present ("batch_id", "comment") select "batch_id", "comment" from pg_temp.trayscan_staging on conflict ("batch_id") do update set "comment" = excluded."comment" where (present."comment") is distinct from (excluded."comment")"#
        );
        let one = Fields::parse("batch_id").expect("fields");
        assert!(Layout::new(&one, false).upsert("t").ends_with("do nothing"));
    }
}
