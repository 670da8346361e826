//! Failing connections and missing responses.

use std::time::{Duration, Instant};

use super::proxy::{COMMIT, COPY, Fault, Proxy};
use super::{Service, pages_then, serving};
use crate::database::{Database, shared};
use crate::fake::{Answer, Batch, FakeService, page};
use crate::harness::{Output, SOON};

/// The address of a table behind a proxy.
fn address_through(proxy: &Proxy, name: &str) -> String {
    let port = proxy.port;
    format!("postgres://postgres@127.0.0.1:{port}/{name}?table=batches&sslmode=disable")
}

fn count(database: &Database, name: &str) -> String {
    database.sql(name, "select count(*) from batches")
}

fn assert_stderr(ended: &Output, words: &[&str]) {
    for words in words {
        assert!(ended.stderr.contains(words), "{words} {ended:?}");
    }
}

#[test]
fn a_server_that_refuses_connections_is_retried() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let proxy = Proxy::start(database.port, |number| match number {
        1 | 2 | 4 => Fault::Refused,
        _ => Fault::None,
    });
    let scripted = serving(&[&[], &[]]);
    let ended = Service::scripted(&scripted).export(&address_through(&proxy, &name), &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Retried before the first request, and again at the end.
    let tried = ended.stderr.matches("trying again in 0.0 s").count();
    assert_eq!(tried, 3, "{ended:?}");
    assert_eq!(ended.stderr.matches("(1 of 5)").count(), 2, "{ended:?}");
    assert_stderr(&ended, &["(2 of 5)", "(2 new, 0 changed, 0 unchanged)"]);
    assert_eq!(proxy.connections(), 5);

    let ended = Service::scripted(&scripted).export(
        &address_through(&Proxy::start(database.port, |_| Fault::Refused), &name),
        &["--retries", "1", "--message-format", "json"],
    );
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_stderr(&ended, &["(1 of 1)", "\"retry_later\":true"]);
}

#[test]
fn a_server_that_never_responds_times_out() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let silent = Proxy::start(database.port, |_| Fault::Silence);
    let begun = Instant::now();
    let scripted = serving(&[&[]]);
    let mut command =
        Service::scripted(&scripted).command(&["export", "-o", &address_through(&silent, &name)]);
    command
        .args(["--retries", "1", "--message-format", "json"])
        .env("TRAYSCAN_TIMEOUT", "300ms");
    let ended = command.output().expect(5);
    assert_stderr(
        &ended,
        &["no answer within 0.3 s", "(1 of 1)", "\"retry_later\":true"],
    );
    assert_eq!(scripted.requests().len(), 0);
    assert!(begun.elapsed() < SOON);

    // The server accepts the connection and then stalls: at the start of the session, or while copying rows.
    for (silence, limit) in [(&b"begin "[..], "0.5 s"), (COPY, "6.0 s")] {
        let proxy = Proxy::start(database.port, move |_| Fault::Stalled(silence));
        let scripted = serving(&[&[]]);
        let args = ["--timeout", "500ms"];
        let ended = Service::scripted(&scripted).export(&address_through(&proxy, &name), &args);
        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert_stderr(&ended, &[&format!("no answer within {limit}")]);
    }
    assert_eq!(
        database.sql(&name, "select to_regclass('batches') is null"),
        "t"
    );
}

#[test]
fn timeout_settings_apply_without_a_service() {
    let Some(database) = shared() else { return };
    let silent = Proxy::start(database.port, |_| Fault::Silence);
    let ended =
        crate::harness::trayscan(&["export", "--sandbox", "-o", &address_through(&silent, "x")])
            .args(["--timeout", "200ms", "--retries", "0"])
            .output();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_stderr(&ended, &["no answer within 0.2 s"]);
}

/// Exports two batches through a proxy whose second connection has this fault.
fn faulty(database: &'static Database, fault: Fault, args: &[&str]) -> (Output, String, usize) {
    let name = database.fresh();
    // The first connection is the rehearsal.
    let proxy = Proxy::start(database.port, move |number| match number {
        2 => fault,
        _ => Fault::None,
    });
    let scripted = serving(&[&[], &[]]);
    let ended = Service::scripted(&scripted).export(&address_through(&proxy, &name), args);
    (ended, name, proxy.connections())
}

#[test]
fn a_lost_commit_response_is_resolved() {
    let Some(database) = shared() else { return };
    let all = "(2 new, 0 changed, 0 unchanged)";
    // The commit succeeded and only the response was lost: the server confirms it.
    let (ended, name, connections) = faulty(database, Fault::CutAfter(COMMIT), &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_stderr(&ended, &[all, "asking the server for the result"]);
    assert!(!ended.stderr.contains("trying again"), "{ended:?}");
    assert_eq!((count(database, &name).as_str(), connections), ("2", 3));

    // The commit never reached the server: everything is repeated.
    let (ended, name, connections) = faulty(database, Fault::CutBefore(COMMIT), &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_stderr(&ended, &[all, "trying again in 0.0 s (1 of 5)"]);
    assert_eq!((count(database, &name).as_str(), connections), ("2", 4));

    // The commit reaches the server late.
    let delay = Duration::from_millis(1500);
    let (ended, name, connections) = faulty(database, Fault::Delayed(COMMIT, delay), &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_stderr(&ended, &[all]);
    assert!(!ended.stderr.contains("trying again"), "{ended:?}");
    assert_eq!((count(database, &name).as_str(), connections), ("2", 3));

    // The response is late, and the server is still waiting for the commit.
    let args = ["--timeout", "500ms"];
    let (ended, _, _) = faulty(database, Fault::Stalled(COMMIT), &args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_stderr(&ended, &[all, "no answer within 0.5 s"]);
}

#[test]
fn a_commit_that_cannot_be_checked_is_reported() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let proxy = Proxy::start(database.port, |number| match number {
        1 => Fault::None,
        2 => Fault::CutAfter(COMMIT),
        _ => Fault::Refused,
    });
    let scripted = serving(&[&[], &[]]);
    let args = ["--retries", "1", "--message-format", "json"];
    let ended = Service::scripted(&scripted).export(&address_through(&proxy, &name), &args);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_stderr(
        &ended,
        &[
            "it contains either all batches or none of them",
            "\"retry_later\":true",
        ],
    );
    assert!(!ended.stderr.contains("is unchanged"), "{ended:?}");
}

#[test]
fn a_connection_cut_during_the_load_is_reopened() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let proxy = Proxy::start(database.port, |number| match number {
        2 => Fault::CutAfter(COPY),
        3 => Fault::CutBefore(b"insert into"),
        _ => Fault::None,
    });
    let service = pages_then(2, || Answer::ok(page::<Batch>(&[], None)));
    let ended = Service::scripted(&service).export(&address_through(&proxy, &name), &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_stderr(
        &ended,
        &["the connection was lost", "(2 of 5)", "(10,000 new, "],
    );
    assert_eq!(count(database, &name), "10000");
}

#[test]
fn terminated_sessions_are_restarted() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let once: &FakeService = &serving(&[&[]]);
    let service = Service::scripted(once);
    let address = database.address(&name, "batches");
    service.load(&address, &[]);
    // A sequence is not rolled back, so only the first attempt fails.
    for (number, what) in [
        "pg_terminate_backend(pg_backend_pid())",
        "raise_error('40001')",
        "raise_error('40P01')",
    ]
    .iter()
    .enumerate()
    {
        database.sql(
            &name,
            &format!(
                "delete from batches; create sequence tries{number}; \
                 create or replace function raise_error(code text) returns void language plpgsql as \
                 $$ begin raise exception using errcode = code, message = 'try again'; end $$; \
                 create or replace function once() returns trigger language plpgsql as \
                 $$ begin if nextval('tries{number}') = 1 then perform {what}; end if; return new; end $$; \
                 create or replace trigger once before insert on batches for each row execute function once()"
            ),
        );
        let ended = service.export(&address, &[]);
        assert_eq!(ended.code, Some(0), "{what} {ended:?}");
        assert_stderr(&ended, &["(1 of 5)", "(1 new, 0 changed, 0 unchanged)"]);
        assert_eq!(count(database, &name), "1");
    }
}

#[test]
fn too_many_clients_is_retried() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(
        "postgres",
        &format!("create role crowded login; alter role crowded connection limit 0; grant all on database {name} to crowded; alter database {name} owner to crowded"),
    );
    let address = database.address_of("crowded@127.0.0.1", &name, "batches");
    let scripted = serving(&[&[]]);
    let ended = Service::scripted(&scripted).export(&address, &["--retries", "1"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_stderr(&ended, &["SQLSTATE 53300", "(1 of 1)"]);
    assert_eq!(scripted.requests().len(), 0);
}
