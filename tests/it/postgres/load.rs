//! Batches that become rows of a table, new or existing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Files, Service, csv, serving, spawn_export, wait_for_exit};
use crate::database::{Database, shared};
use crate::harness::{Running, Server};

/// Returns the table as psql prints it in CSV, with dates in the format of the service.
fn table_as_csv(database: &Database, name: &str, table: &str) -> Vec<Vec<String>> {
    let columns = database.sql(
        name,
        &format!("select string_agg(case when attname = 'batch_creation_date' then \
         $$replace(to_char(batch_creation_date at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), '.000Z', 'Z')$$ \
         when attname = 'warnings' then 'warnings::text' else quote_ident(attname) end, ', ' order by attnum) \
         from pg_attribute where attrelid = '{table}'::regclass and attnum > 0 and attname <> 'extra'"),
    );
    let text = database.sql(
        name,
        &format!("copy (select {columns} from {table}) to stdout (format csv)"),
    );
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    let row = |record: csv::StringRecord| record.iter().map(String::from).collect();
    reader
        .records()
        .map(|record| row(record.unwrap()))
        .collect()
}

#[test]
fn a_role_that_quotes_all_names_loads_its_table_again() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let role =
        "create role quoting login superuser; alter role quoting set quote_all_identifiers = on";
    database.sql(&name, role);
    let address = database
        .address(&name, "batches")
        .replace("postgres@", "quoting@");
    let scripted = serving(&[&[]]);
    let service = Service::scripted(&scripted);
    service.load(&address, &[]);
    let last = service.load(&address, &[]);
    assert!(last.contains("(0 new, 0 changed, 1 unchanged)"), "{last}");
}

#[test]
fn the_result_counts_the_rows() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let before = serving(&[&[], &[]]);
    let after = serving(&[&[], &[("comment", "\"new\"")], &[]]);
    for (scripted, [new, changed, unchanged]) in [(before, [2, 0, 0]), (after, [1, 1, 1])] {
        let service = Service::scripted(&scripted);
        let last = service.load(&address, &["--message-format", "json"]);
        let last: Value = serde_json::from_str(&last).unwrap();
        let result = &last["result"];
        assert_eq!(result["new"], new, "{last}");
        assert_eq!(result["changed"], changed, "{last}");
        assert_eq!(result["unchanged"], unchanged, "{last}");
    }
}

#[test]
fn a_nested_name_that_appears_twice_is_refused() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    for odd in [r#"{"k":1,"k":2}"#, r#"[{"k":1,"\u006b":2}]"#] {
        let scripted = serving(&[&[("odd", odd)]]);
        let ended = Service::scripted(&scripted).export(&address, &[]);
        assert_eq!(ended.code, Some(7), "{ended:?}");
        assert!(
            ended.stderr.contains("members with the same name"),
            "{ended:?}"
        );
    }
}

#[test]
fn batches_are_inserted_once_and_updated_afterwards() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "700", "--seed", "5"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address(&name, "batches");

    let last = service.load(&address, &[]);
    assert!(last.contains("700 batches"), "{last}");
    assert!(last.contains("(700 new, 0 changed, 0 unchanged)"), "{last}");
    service.run(&["export", "-o", &files.at("a.csv")]);
    let expected: BTreeSet<_> = csv(&files.at("a.csv")).into_iter().collect();
    let found: BTreeSet<_> = table_as_csv(database, &name, "batches")
        .into_iter()
        .collect();
    assert_eq!(found.len(), 700);
    assert_eq!(found, expected);

    let versions = "select md5(string_agg(xmin::text || ctid, ',' order by batch_id)) from batches";
    let before = database.sql(&name, versions);
    let last = service.load(&address, &[]);
    assert!(last.contains("(0 new, 0 changed, 700 unchanged)"), "{last}");
    assert_eq!(database.sql(&name, versions), before, "rows were rewritten");

    database.sql(
        &name,
        "delete from batches where batch_id in (select batch_id from batches order by batch_id limit 7); \
         update batches set comment = 'mine', avg_germination_rate = null where batch_id in \
         (select batch_id from batches order by batch_id desc limit 11); \
         insert into batches (batch_id, batch_name, batch_creation_date, number_of_images, warnings) \
         values ('old', 'old', now(), 1, true)",
    );
    let last = service.load(&address, &[]);
    assert!(
        last.contains("(7 new, 11 changed, 682 unchanged)"),
        "{last}"
    );
    let found: BTreeSet<_> = table_as_csv(database, &name, "batches")
        .into_iter()
        .collect();
    assert_eq!(found.len(), 701, "batches missing from the export are kept");
    assert!(found.is_superset(&expected));
}

#[test]
fn an_empty_export_creates_the_table() {
    let Some(database) = shared() else { return };
    let scripted = serving(&[]);
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let last = Service::scripted(&scripted).load(&address, &[]);
    assert!(last.contains("(0 new, 0 changed, 0 unchanged)"), "{last}");
    assert_eq!(database.sql(&name, "select count(*) from batches"), "0");
    let key = "select pg_get_constraintdef(oid) from pg_constraint where conname = 'batches_pkey'";
    assert_eq!(database.sql(&name, key), "PRIMARY KEY (batch_id)");
}

#[test]
fn table_names_with_special_characters_are_quoted() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(
        &name,
        "create table batches (a text); create schema \"odd.\"\"s\"",
    );
    for (table, sql) in [
        ("Batches", "\"Batches\""),
        (
            "x%22;%20drop%20table%20batches;%20--",
            "\"x\"\"; drop table batches; --\"",
        ),
        ("%22odd.%22%22s%22.t", "\"odd.\"\"s\".t"),
        ("%22a.b%22", "\"a.b\""),
        ("public.%C3%A4", "public.\"ä\""),
        ("trayscan_staging", "public.trayscan_staging"),
    ] {
        let scripted = serving(&[&[], &[]]);
        let address = database.address(&name, table);
        let service = Service::scripted(&scripted);
        service.load(&address, &[]);
        let again = serving(&[&[], &[("comment", "\"new\"")]]);
        let last = Service::scripted(&again).load(&address, &[]);
        assert!(last.contains("(0 new, 1 changed, 1 unchanged)"), "{last}");
        assert_eq!(
            database.sql(&name, &format!("select count(*) from {sql}")),
            "2",
            "{table}"
        );
    }
    assert_eq!(database.sql(&name, "select count(*) from batches"), "0");
}

#[test]
fn a_hundred_thousand_batches_are_loaded() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "100000"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address(&name, "batches");
    let last = service.load(&address, &["--manifest", &files.at("m.json")]);
    assert!(
        last.contains("(100,000 new, 0 changed, 0 unchanged)"),
        "{last}"
    );
    let found = database.sql(
        &name,
        "select count(*), count(distinct batch_id) from batches",
    );
    assert_eq!(found, "100000|100000");
    let ended = service.run(&["verify", &address, "--manifest", &files.at("m.json")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn concurrent_exports_take_turns() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "4000", "--seed", "2"]);
    let service = Service::of(&server);
    let name = database.fresh();
    let address = database.address(&name, "batches");
    for round in 0..2 {
        let children: Vec<Running> = (0..5).map(|_| spawn_export(&service, &address)).collect();
        let mut new = 0;
        for child in children {
            let ended = wait_for_exit(child);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let last = ended.stderr.lines().last().unwrap().to_owned();
            new += u64::from(last.contains("(4,000 new, 0 changed, 0 unchanged)"));
            new += 10 * u64::from(last.contains("(0 new, 0 changed, 4,000 unchanged)"));
        }
        assert_eq!(new, if round == 0 { 41 } else { 50 });
    }
    assert_eq!(database.sql(&name, "select count(*) from batches"), "4000");
}

#[test]
fn an_existing_user_table_is_used_as_it_is() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(
        &name,
        "create table mine (note text default 'mine', id bigint generated always as identity, \
         comment text collate \"C\", avg_germination_rate numeric(12,2), batch_id varchar not null unique, \
         shout text generated always as (upper(comment)) stored)",
    );
    let address = database.address(&name, "mine");
    let fields = ["--fields", "avg_germination_rate,batch_id,comment"];
    let scripted = serving(&[
        &[("comment", "\"a\"")],
        &[("avg_germination_rate", "\"-9999999999.99\"")],
    ]);
    let service = Service::scripted(&scripted);
    let last = service.load(&address, &fields);
    assert!(last.contains("(2 new, "), "{last}");
    database.sql(&name, "update mine set note = 'kept'");
    let again = serving(&[
        &[("comment", "\"b\"")],
        &[("avg_germination_rate", "\"-9999999999.990\"")],
    ]);
    let last = Service::scripted(&again).load(&address, &fields);
    assert!(last.contains("(0 new, 1 changed, 1 unchanged)"), "{last}");
    let found = database.sql(
        &name,
        "select batch_id, comment, shout, note, avg_germination_rate, id from mine order by 1",
    );
    assert_eq!(found, "b1|b|B|kept|87.50|1\nb2|||kept|-9999999999.99|2");

    // The column would round this value, so it must be refused.
    let finer = serving(&[&[], &[("avg_germination_rate", "\"87.505\"")]]);
    let ended = Service::scripted(&finer).export(&address, &fields);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(
        ended.stderr.contains("batch `b2`") && ended.stderr.contains("87.505"),
        "{ended:?}"
    );
    assert_eq!(
        database.sql(&name, "select comment from mine where batch_id = 'b1'"),
        "b"
    );
}
