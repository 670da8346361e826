//! Tables locked by other sessions, and timeouts set by the user.

use std::io::BufRead as _;
use std::process::Stdio;

use serde_json::Value;

use super::holder::Holder;
use super::{Service, serving};
use crate::database::shared;

#[test]
fn waiting_for_a_lock_is_reported_and_then_continues() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let first = serving(&[&[]]);
    Service::scripted(&first).load(&address, &[]);
    let more = serving(&[&[("comment", "\"new\"")], &[]]);
    let service = Service::scripted(&more);
    // Locks by writers, by readers that intend to update, and by changes of the table itself.
    for (number, statements) in [
        "update batches set comment = comment",
        "select 1 from batches for update",
        "lock table batches in access exclusive mode",
    ]
    .iter()
    .enumerate()
    {
        database.sql(
            &name,
            "update batches set comment = 'old' where batch_id = 'b1'",
        );
        let holder = Holder::start(database, &name, statements);
        let mut child = service
            .command(&["export", "-o", &address])
            .stdout(Stdio::null())
            .start();
        let mut stderr = child.stderr.take().unwrap().lines();
        let waiting = stderr.next().unwrap().unwrap();
        for words in [
            "waiting for \"public\".\"batches\"",
            &format!("session {} (somebody-else, since 20", holder.pid),
            "giving up after 600 s",
        ] {
            assert!(waiting.contains(words), "{words}: {waiting}");
        }
        holder.release();
        let last = stderr.last().unwrap().unwrap();
        let new = u8::from(number == 0);
        assert!(last.contains(&format!("({new} new, 1 changed, ")), "{last}");
        assert!(child.wait().success());
    }
}

#[test]
fn a_lock_that_is_never_released_ends_with_code_5() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let first = serving(&[&[]]);
    Service::scripted(&first).load(&address, &[]);
    let holder = Holder::start(database, &name, "update batches set comment = comment");
    let more = serving(&[&[("comment", "\"new\"")]]);
    let service = Service::scripted(&more);
    // The default lock timeout, and the user's.
    let own = format!("{address}&options=-c%20lock_timeout%3D100ms");
    for (address, waited, is_told) in [(&address, "3 s", true), (&own, "100ms", false)] {
        let args = ["--timeout", "300ms", "--message-format", "json"];
        let ended = service.export(address, &args);
        assert_eq!(ended.code, Some(5), "{ended:?}");
        let error = ended.stderr.lines().last().unwrap();
        let error: Value = serde_json::from_str(error).unwrap();
        let error = &error["error"];
        assert_eq!(error["retry_later"], true, "{error}");
        let message = error["message"].as_str().unwrap();
        for words in [
            "the table \"batches\" is unchanged",
            "is locked",
            &format!("session {} (somebody-else", holder.pid),
            &format!("was not released within {waited}"),
        ] {
            assert!(message.contains(words), "{words}: {message}");
        }
        assert_eq!(ended.stderr.contains("waiting for"), is_told, "{ended:?}");
    }
}

#[test]
fn a_locked_table_skips_the_rehearsal_and_is_waited_for_at_the_end() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let scripted = serving(&[&[]]);
    let service = Service::scripted(&scripted);
    service.load(&address, &[]);
    let _holder = Holder::start(database, &name, "lock table batches");
    let asked = scripted.requests().len();
    let ended = service.export(&address, &["--timeout", "1s"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("is locked"), "{ended:?}");
    assert!(
        scripted.requests().len() > asked,
        "the batches were fetched"
    );
    // The same if another session is creating the table.
    let other = database.address(&name, "other");
    let _maker = Holder::start(database, &name, "create table other (a text)");
    let ended = service.export(&other, &["--timeout", "1s"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let waiting = "waiting for \"public\".\"other\", which is locked by another session";
    assert!(ended.stderr.contains(waiting), "{ended:?}");
}

#[test]
fn nothing_is_locked_if_nothing_is_written() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let scripted = serving(&[&[], &[]]);
    let service = Service::scripted(&scripted);
    service.load(&address, &[]);
    // Neither a writer of other rows nor a lock on these rows blocks the export.
    for statements in [
        "insert into batches select 'other', batch_name, batch_creation_date, null, 1, null, null, null, null, null, \
         null, null, null, null, null, null, null, true from batches limit 1",
        "select 1 from batches for update",
    ] {
        let holder = Holder::start(database, &name, statements);
        let ended = service.export(&address, &["--timeout", "10s"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("2 unchanged)"), "{ended:?}");
        assert!(!ended.stderr.contains("waiting"), "{ended:?}");
        drop(holder);
    }
}

#[test]
fn user_timeouts_apply() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let first = serving(&[&[]]);
    Service::scripted(&first).load(&address, &[]);
    // Of the role's timeouts, only the lock timeout applies to an export.
    database.sql(
        &name,
        "create role hurried login superuser; alter role hurried set statement_timeout = '7s'; \
         alter role hurried set lock_timeout = '6s'; \
         create table seen (at serial, statement text, lock text, idle text, nap float); \
         create function look() returns trigger language plpgsql as $$ begin \
         insert into seen (statement, lock, idle) values (current_setting('statement_timeout'), \
         current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')); \
         perform pg_sleep(current_setting('my.nap', true)::float); return new; end $$; \
         create trigger look before update on batches for each row execute function look()",
    );
    let seen = "select statement, lock, idle from seen order by at desc limit 1";
    let export = |address: &str, comment: &str, variables: &[(&str, &str)]| {
        let comment = format!("\"{comment}\"");
        let scripted = serving(&[&[("comment", comment.as_str())]]);
        let mut command = Service::scripted(&scripted).command(&["export", "-o", address]);
        command.args(["--timeout", "20s"]);
        command.envs(variables.iter().copied());
        command.output()
    };
    let hurried = address.replace("postgres@", "hurried@");
    let options =
        "-c statement_timeout=11s -c lock_timeout=12s --idle-in-transaction-session-timeout=13s";
    let encoded = options.replace(' ', "%20").replace('=', "%3D");
    for (number, (address, variables, limits)) in [
        (&address, &[][..], "206s|2s|206s"),
        (&hurried, &[], "206s|6s|206s"),
        (&address, &[("PGOPTIONS", options)], "11s|12s|13s"),
        (&hurried, &[("PGOPTIONS", options)], "11s|12s|13s"),
        (&format!("{address}&options={encoded}"), &[], "11s|12s|13s"),
    ]
    .into_iter()
    .enumerate()
    {
        export(address, &format!("{number}"), variables).expect(0);
        assert_eq!(database.sql(&name, seen), limits, "{address} {variables:?}");
    }

    let options = "-c statement_timeout=300ms -c my.nap=30";
    let ended = export(&address, "late", &[("PGOPTIONS", options)]).expect(8);
    for words in [
        "57014",
        "your own `statement_timeout`",
        "the table \"batches\" is unchanged",
    ] {
        assert!(ended.stderr.contains(words), "{words} {ended:?}");
    }
}
