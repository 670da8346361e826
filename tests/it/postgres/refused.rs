//! Tables that cannot be written, that reject or change rows, and tables that are created during an export.

use std::sync::{Arc, Mutex};

use super::holder::Holder;
use super::{Service, changed, serving, wait_for, wait_for_exit};
use crate::database::{Database, shared};
use crate::fake::{Answer, FakeService, page, token};
use crate::harness::Output;

fn assert_stderr(ended: &Output, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    for words in words {
        assert!(ended.stderr.contains(words), "{words}: {ended:?}");
    }
}

#[test]
fn rows_rejected_by_the_table_are_an_error() {
    let Some(database) = shared() else { return };
    let first = serving(&[&[], &[]]);
    let more = serving(&[&[], &[("comment", "\"new\"")], &[]]);
    let keep_out = "create function keep_out() returns trigger language plpgsql as \
                    $$ begin return null; end $$; create trigger keep_out before insert or update \
                    on batches for each row execute function keep_out()";
    let policies = "create policy reads on batches for select using (true); \
                    create policy adds on batches for insert with check (true); \
                    create policy changes on batches for update using (false); \
                    alter table batches enable row level security; \
                    grant select, insert, update on batches to weak";
    for (statements, user, written) in [
        (
            keep_out,
            "postgres",
            "added 0 of 1 new ones and updated 0 of 1 that differ",
        ),
        (
            "create rule keep_out as on insert to batches do instead nothing",
            "postgres",
            "added 0 of 1 new ones and updated 1 of 1 that differ",
        ),
        (
            policies,
            "weak",
            "added 1 of 1 new ones and updated 0 of 1 that differ",
        ),
    ] {
        let name = database.fresh();
        let address = database.address(&name, "batches");
        Service::scripted(&first).load(&address, &[]);
        database.sql(&name, statements);
        let rows = "select string_agg(batch_id || ' ' || xmin || ' ' || ctid, ', ' order by 1) from batches";
        let before = database.sql(&name, rows);
        let address = database.address_of(&format!("{user}@127.0.0.1"), &name, "batches");
        // Nothing has changed, so nothing is rejected.
        let last = Service::scripted(&first).load(&address, &[]);
        assert!(last.contains("2 unchanged)"), "{last}");
        let ended = Service::scripted(&more).export(&address, &[]);
        let words = [
            written,
            "a trigger, a rule or row-level security of \"public\".\"batches\" may be the cause",
            "the table \"batches\" is unchanged",
        ];
        assert_stderr(&ended, 8, &words);
        assert_eq!(database.sql(&name, rows), before, "{statements}");
    }
}

#[test]
fn rows_removed_by_a_trigger_are_an_error() {
    let Some(database) = shared() else { return };
    let remove = "create function remove() returns trigger language plpgsql as \
                  $$ begin delete from batches where batch_id = new.batch_id; return null; end $$; ";
    for trigger in [
        "create trigger remove after insert on batches for each row execute function remove()",
        "create constraint trigger remove after insert on batches deferrable initially deferred \
         for each row execute function remove()",
    ] {
        let name = database.fresh();
        let address = database.address(&name, "batches");
        Service::scripted(&serving(&[&[]])).load(&address, &[]);
        database.sql(&name, &format!("{remove}{trigger}"));
        let ended = Service::scripted(&serving(&[&[], &[], &[]])).export(&address, &[]);
        let words = [
            "added 0 of 2 new ones and updated 0 of 0 that differ",
            "a trigger, a rule or row-level security",
            "the table \"batches\" is unchanged",
        ];
        assert_stderr(&ended, 8, &words);
        let left = database.sql(&name, "select string_agg(batch_id, ' ') from batches");
        assert_eq!(left, "b1", "{trigger}");
    }
}

#[test]
fn triggers_of_partitions_and_of_a_new_table_are_noticed() {
    let Some(database) = shared() else { return };
    let remove = "create function remove() returns trigger language plpgsql as \
                  $$ begin delete from batches where batch_id = new.batch_id; return null; end $$; ";
    let trigger = "create trigger remove after insert on";
    let partitioned = format!(
        "create table batches (batch_id text primary key, comment text) partition by hash (batch_id); \
         create table part partition of batches for values with (modulus 1, remainder 0); \
         {trigger} part for each row execute function remove()"
    );
    let event = format!(
        "create function add_trigger() returns event_trigger language plpgsql as \
         $$ begin if to_regclass('batches') is not null then \
         {trigger} batches for each row execute function remove(); end if; end $$; \
         create event trigger add_trigger on ddl_command_end when tag in ('CREATE TABLE') \
         execute function add_trigger()"
    );
    for setup in [partitioned, event] {
        let name = database.fresh();
        let address = database.address(&name, "batches");
        database.sql(&name, &format!("{remove}{setup}"));
        let flags = ["--fields", "batch_id,comment"];
        let ended = Service::scripted(&serving(&[&[], &[]])).export(&address, &flags);
        assert_stderr(&ended, 8, &["added 0 of 2 new ones"]);
    }
}

#[test]
fn rows_changed_by_a_trigger_are_told() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    Service::scripted(&serving(&[&[]])).load(&address, &[]);
    database.sql(
        &name,
        "alter table batches add changed_at timestamptz; \
         create function note() returns trigger language plpgsql as \
         $$ begin new.changed_at = now(); return new; end $$; \
         create trigger note before insert or update on batches for each row execute function note()",
    );
    let ended = Service::scripted(&serving(&[&[], &[]])).export(&address, &[]);
    assert_stderr(&ended, 0, &["(1 new, 0 changed, 1 unchanged)"]);
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
    database.sql(
        &name,
        "create or replace function note() returns trigger language plpgsql as \
         $$ begin new.comment = 'hidden'; return new; end $$",
    );
    let ended = Service::scripted(&serving(&[&[], &[], &[]])).export(&address, &[]);
    let words = [
        "(1 new, 0 changed, 2 unchanged)",
        "the values of 1 batch in \"public\".\"batches\" are not as exported",
        "a trigger may have changed them",
    ];
    assert_stderr(&ended, 0, &words);
}

#[test]
fn rows_moved_to_a_child_table_by_a_trigger_are_found() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(
        &name,
        "create table batches (batch_id text primary key, comment text); \
         create table child (primary key (batch_id)) inherits (batches); \
         create function divert() returns trigger language plpgsql as \
         $$ begin insert into child values (new.*); return null; end $$; \
         create trigger divert before insert on batches for each row execute function divert()",
    );
    let address = database.address(&name, "batches");
    for (comment, counts) in [
        ("\"a\"", "(1 new, 0 changed, 0 unchanged)"),
        ("\"b\"", "(0 new, 1 changed, 0 unchanged)"),
        ("\"b\"", "(0 new, 0 changed, 1 unchanged)"),
    ] {
        let scripted = serving(&[&[("comment", comment)]]);
        let last = Service::scripted(&scripted).load(&address, &["--fields", "batch_id,comment"]);
        assert!(last.contains(counts), "{last}");
    }
    assert_eq!(database.sql(&name, "select * from child"), "b1|b");
}

#[test]
fn a_key_that_treats_two_batches_as_equal_is_refused() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(
        &name,
        "create collation careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
         create table batches (batch_id varchar collate careless primary key, comment text)",
    );
    let address = database.address(&name, "batches");
    let fields = ["--fields", "batch_id,comment"];
    let batches = [changed("x1", &[]), changed("X1", &[])];
    let scripted = FakeService::with(&batches);
    let service = Service::scripted(&scripted);
    let ended = service.export(&address, &fields);
    let statement =
        "alter table \"public\".\"batches\" alter column \"batch_id\" type text collate \"C\"";
    let why = "\"batch_id\" has the nondeterministic collation \"careless\"";
    assert_stderr(&ended, 8, &[why, statement]);
    assert_eq!(
        scripted.requests().len(),
        0,
        "detected before the first request"
    );
    database.sql(&name, statement);
    let last = service.load(&address, &fields);
    assert!(last.contains("(2 new, "), "{last}");
}

#[test]
fn a_temporary_table_is_refused() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let temporary = database.address(&name, "batches") + "&options=-c%20search_path%3Dpg_temp";
    for address in [database.address(&name, "pg_temp.batches"), temporary] {
        let scripted = serving(&[&[]]);
        let ended = Service::scripted(&scripted).export(&address, &[]);
        assert_stderr(&ended, 2, &["is a temporary table", "`table=schema.name`"]);
        assert_eq!(scripted.requests().len(), 0, "{address}");
    }
}

/// Waits until a session in the database `name` is blocked by another.
fn wait_for_a_waiter(database: &Database, name: &str) {
    let waiting = format!(
        "select count(*) > 0 from pg_stat_activity where datname = '{name}' and wait_event_type = 'Lock'"
    );
    wait_for("the export waits", || {
        database.sql("postgres", &waiting) == "t"
    });
}

const FIELDS: [&str; 2] = ["--fields", "batch_id,avg_germination_rate"];

/// Exports to a table that another session creates with these columns, at the start or while pages are fetched.
fn export_meanwhile(database: &'static Database, columns: &str, at_start: bool) -> Output {
    let name = database.fresh();
    let create = format!("create table batches ({columns})");
    let holder: Arc<Mutex<Option<Holder>>> = Arc::default();
    let hold = {
        let (holder, name) = (Arc::clone(&holder), name.clone());
        move || {
            let mut holder = holder.lock().unwrap();
            holder.get_or_insert_with(|| Holder::start(database, &name, &create));
        }
    };
    if at_start {
        hold();
    }
    let scripted = FakeService::start(move |asked| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        if !at_start {
            hold();
        }
        Answer::ok(page(&[changed("b1", &[])], None))
    });
    let address = database.address(&name, "batches");
    let child = Service::scripted(&scripted)
        .command(&["export", "-o", &address])
        .args(FIELDS)
        .start();
    wait_for_a_waiter(database, &name);
    holder.lock().unwrap().take().unwrap().release();
    let ended = wait_for_exit(child);
    let rows = database.sql(&name, "select count(*) from batches");
    assert_eq!(rows == "1", ended.code == Some(0), "{rows} {ended:?}");
    ended
}

#[test]
fn a_table_created_concurrently_is_checked_again() {
    let Some(database) = shared() else { return };
    let fitting = "batch_id text primary key, avg_germination_rate numeric";
    let rounding = "batch_id text primary key, avg_germination_rate numeric(12,2)";
    let lacking = "batch_id text primary key";
    for at_start in [true, false] {
        let ended = export_meanwhile(database, fitting, at_start);
        assert_stderr(&ended, 0, &["trying again", "(1 new, "]);
        let ended = export_meanwhile(database, lacking, at_start);
        let why = "\"avg_germination_rate\" is missing";
        assert_stderr(&ended, 8, &["trying again", why]);
    }
    let ended = export_meanwhile(database, rounding, true);
    assert_stderr(&ended, 0, &["(1 new, "]);
    let ended = export_meanwhile(database, rounding, false);
    assert_stderr(&ended, 5, &["other limits on numbers", "again"]);
}

#[test]
fn a_table_that_changes_during_the_export_is_checked_again() {
    let Some(database) = shared() else { return };
    for (change, code, says) in [
        (
            "alter table batches alter avg_germination_rate type numeric(12,1)",
            5,
            "changed \"public\".\"batches\" during the export, with other limits",
        ),
        (
            "alter table batches drop constraint batches_pkey",
            8,
            "\"batch_id\" is not a unique key",
        ),
        (
            "alter table batches rename to kept; create view batches as select * from kept",
            8,
            "it is a view",
        ),
    ] {
        let name = database.fresh();
        let create =
            "create table batches (batch_id text primary key, avg_germination_rate numeric(12,2))";
        database.sql(&name, create);
        let scripted = {
            let name = name.clone();
            FakeService::start(move |asked| {
                if asked.path().ends_with("/auth") {
                    return token();
                }
                database.sql(&name, change);
                Answer::ok(page(&[changed("b1", &[])], None))
            })
        };
        let address = database.address(&name, "batches");
        let ended = Service::scripted(&scripted).export(&address, &FIELDS);
        assert_stderr(&ended, code, &[says]);
        assert_eq!(database.sql(&name, "select count(*) from batches"), "0");
    }
}

#[test]
fn unwritable_tables_are_detected_before_the_first_request() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(
        &name,
        "create view a_view as select 1; create table unfit (batch_id text, batch_creation_date timestamp, \
         number_of_images integer, mine text not null); \
         create schema closed; create table closed.batches (batch_id text primary key); \
         create table theirs (batch_id text primary key, comment text); grant usage on schema closed to weak; \
         grant select, insert on theirs to weak; revoke create on schema public from public",
    );
    let weak = |table: &str| database.address_of("weak@127.0.0.1", &name, table);
    let strong = |table: &str| database.address(&name, table);
    let elsewhere = format!("postgres://me@127.0.0.1:1/{name}");
    for (address, args, code, says) in [
        (
            elsewhere,
            &[][..],
            5,
            &["cannot reach", "127.0.0.1:1", "user `me`"][..],
        ),
        (
            database.address("nowhere", "a"),
            &[],
            8,
            &["3D000", "`nowhere`", "createdb nowhere"],
        ),
        (
            database.address_of("nobody@127.0.0.1", &name, "a"),
            &[],
            8,
            &["28000", "`nobody`"],
        ),
        (strong("a_view"), &[], 8, &["it is a view"]),
        (
            strong("unfit"),
            &[],
            8,
            &[
                "\"batch_name\" is missing",
                "\"number_of_images\" is integer, but should be bigint",
                "\"batch_id\" is not a unique key",
                "\"mine\" must not be null, but is not written",
                "alter table \"public\".\"unfit\" ",
                "add column \"batch_name\" text",
                "\"batch_creation_date\" at time zone 'UTC'",
                "add unique (\"batch_id\")",
            ],
        ),
        (
            strong("missing.batches"),
            &[],
            8,
            &["3F000", "create schema \"missing\""],
        ),
        (weak("batches"), &[], 8, &["42501", "create the table"]),
        (
            weak("closed.batches"),
            &["--fields", "batch_id"],
            8,
            &[
                "no select, insert, update permission",
                "grant select, insert, update on \"closed\".\"batches\" to \"weak\"",
            ],
        ),
        (
            weak("theirs"),
            &["--fields", "batch_id,comment"],
            8,
            &["no update permission"],
        ),
        (strong("a"), &["--fields", "comment"], 2, &["`batch_id`"]),
        (strong("a"), &["--format", "csv"], 2, &["`--format csv`"]),
        (strong("a"), &["--no-clobber"], 2, &["`--no-clobber`"]),
        (strong("a"), &["--excel"], 2, &["`--excel`", "postgres"]),
        (strong("a_{year}"), &[], 2, &["`{year}`"]),
        (format!("{}&tabel=x", strong("a")), &[], 2, &["`tabel`"]),
    ] {
        let scripted = serving(&[&[]]);
        let ended = Service::scripted(&scripted).export(&address, args);
        assert_eq!(ended.code, Some(code), "{address} {ended:?}");
        for word in says {
            assert!(ended.stderr.contains(word), "{word} {ended:?}");
        }
        assert_eq!(scripted.requests().len(), 0, "{address}");
    }
    assert_eq!(database.sql(&name, "select to_regclass('a') is null"), "t");
    // The statement in the message fixes the problem.
    let scripted = serving(&[&[]]);
    let ended = Service::scripted(&scripted).export(&strong("unfit"), &[]);
    let (_, rest) = ended.stderr.split_once("change it with: ").unwrap();
    let (statement, _) = rest.split_once("; or name").unwrap();
    database.sql(&name, statement);
    let last = Service::scripted(&scripted).load(&strong("unfit"), &[]);
    assert!(last.contains("(1 new, "), "{last}");
}
