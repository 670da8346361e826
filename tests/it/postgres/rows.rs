//! Which rows are written, and which are left alone.

use super::{Service, pages_then, serving};
use crate::database::{Database, shared};
use crate::fake::{Answer, Batch, page};
use crate::harness::Server;

#[test]
fn unchanged_rows_are_neither_written_nor_locked() {
    // Needs its own server, because writes of other tests would count in the WAL.
    let Some(database) = Database::start() else {
        return;
    };
    database.sql("postgres", "alter system set autovacuum = off");
    database.sql("postgres", "select pg_reload_conf()");
    let server = Server::start(&["--batches", "5000", "--seed", "5"]);
    let service = Service::of(&server);
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let place = || database.sql(&name, "select pg_current_wal_lsn()");
    let since = |place: &str| -> u64 {
        let bytes = format!("select pg_current_wal_lsn() - '{place}'");
        database.sql(&name, &bytes).parse().unwrap()
    };
    let begin = place();
    service.load(&address, &[]);
    let first = since(&begin);
    let rows = "select md5(string_agg(xmin::text || ctid || xmax, ',' order by batch_id)), \
                count(*) filter (where xmax <> 0) from batches";
    let before = database.sql(&name, rows);
    assert!(before.ends_with("|0"), "{before}");
    // The first write to a page after a checkpoint puts the whole page into the WAL.
    service.load(&address, &[]);
    database.sql(&name, "vacuum analyze");
    let begin = place();
    let last = service.load(&address, &[]);
    let again = since(&begin);
    assert!(
        last.contains("(0 new, 0 changed, 5,000 unchanged)"),
        "{last}"
    );
    assert_eq!(database.sql(&name, rows), before);
    assert!(
        again < 150_000 && again < first / 10,
        "{again} of {first} bytes"
    );

    // One row is changed and one is new; the others stay untouched.
    let ids = "(select batch_id from batches order by batch_id limit 2)";
    let others = "select md5(string_agg(xmin::text || ctid || xmax, ',' order by batch_id)) from batches \
                  where batch_id <> all (array(select id from touched))";
    database.sql(
        &name,
        &format!(
            "create table touched as select batch_id as id from {ids} b; \
             update batches set comment = 'mine' where batch_id = (select min(id) from touched); \
             delete from batches where batch_id = (select max(id) from touched)"
        ),
    );
    let before = database.sql(&name, others);
    let last = service.load(&address, &[]);
    assert!(
        last.contains("(1 new, 1 changed, 4,998 unchanged)"),
        "{last}"
    );
    assert_eq!(database.sql(&name, others), before);
}

#[test]
fn texts_equal_only_under_a_collation_are_updated() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(
        &name,
        "create collation careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
         create unlogged table batches (batch_id text primary key, comment text collate careless)",
    );
    let address = database.address(&name, "batches");
    let fields = ["--fields", "batch_id,comment"];
    for (comment, counts) in [
        ("\"basil\"", "(1 new, 0 changed, 0 unchanged)"),
        ("\"Basil\"", "(0 new, 1 changed, 0 unchanged)"),
        ("\"Basil\"", "(0 new, 0 changed, 1 unchanged)"),
        ("null", "(0 new, 1 changed, 0 unchanged)"),
    ] {
        let scripted = serving(&[&[("comment", comment)]]);
        let last = Service::scripted(&scripted).load(&address, &fields);
        assert!(last.contains(counts), "{comment} {last}");
    }
}

#[test]
fn triggers_fire_only_for_written_rows() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let first = serving(&[&[], &[]]);
    Service::scripted(&first).load(&address, &[]);
    database.sql(
        &name,
        "create table seen (what text, id text); \
         create function look() returns trigger language plpgsql as \
         $$ begin insert into seen values (tg_op, new.batch_id); return new; end $$; \
         create trigger look before insert or update on batches for each row execute function look(); \
         create function shout() returns trigger language plpgsql as \
         $$ begin insert into seen values (tg_op, 'statement'); return null; end $$; \
         create trigger shout after insert or update on batches for each statement execute function shout()",
    );
    let seen =
        "select coalesce(string_agg(what || ' ' || id, ', ' order by id, what), '') from seen";
    Service::scripted(&first).load(&address, &[]);
    assert_eq!(database.sql(&name, seen), "");
    let more = serving(&[&[], &[("comment", "\"new\"")], &[]]);
    Service::scripted(&more).load(&address, &[]);
    assert_eq!(
        database.sql(&name, seen),
        "UPDATE b2, INSERT b3, INSERT statement, UPDATE statement"
    );
}

#[test]
fn the_comparison_gets_memory_unless_the_user_has_set_a_limit() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    Service::scripted(&serving(&[&[]])).load(&address, &[]);
    database.sql(
        &name,
        "create table seen (memory text); \
         create function look() returns trigger language plpgsql as \
         $$ begin insert into seen values (current_setting('work_mem')); return new; end $$; \
         create trigger look before update on batches for each row execute function look()",
    );
    for (number, (options, databases, memory)) in [
        ("", "", "64MB"),
        ("-c work_mem=1MB", "", "1MB"),
        ("", "2MB", "2MB"),
        ("", "100MB", "100MB"),
        ("-c work_mem=1MB", "100MB", "1MB"),
    ]
    .into_iter()
    .enumerate()
    {
        if !databases.is_empty() {
            let set = format!("alter database {name} set work_mem = '{databases}'");
            database.sql(&name, &set);
        }
        database.sql(&name, "truncate seen");
        let comment = format!("\"{number}\"");
        let scripted = serving(&[&[("comment", &comment)]]);
        let mut command = Service::scripted(&scripted).command(&["export", "-o", &address]);
        command.env("PGOPTIONS", options).output().expect(0);
        assert_eq!(database.sql(&name, "select memory from seen"), memory);
    }
}

#[test]
fn a_full_disk_for_the_row_buffer_is_reported() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let service = pages_then(4, || Answer::ok(page::<Batch>(&[], None)));
    let command = Service::scripted(&service).command(&["export", "-o", &address]);
    let limit = ["sh", "-c", "ulimit -f 8192; exec \"$@\"", "sh"];
    let ended = command.under(&limit).output().expect(8);
    for words in [
        "cannot buffer batches for PostgreSQL in ",
        "TMPDIR",
        "is unchanged",
    ] {
        assert!(ended.stderr.contains(words), "{words} {ended:?}");
    }
    assert_eq!(
        database.sql(&name, "select to_regclass('batches') is null"),
        "t"
    );
}
