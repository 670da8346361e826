//! Signals, refused pages and crashes during an export.

use super::{Service, pages_then, serving, spawn_export, wait_for, wait_for_exit};
use crate::database::{Database, shared};
use crate::fake::{Answer, Batch, page};
use crate::harness::Run;

#[test]
fn an_interrupted_run_leaves_the_table_unchanged() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let before = serving(&[&[], &[]]);
    Service::scripted(&before).load(&address, &[]);
    let state = || {
        database.sql(
            &name,
            "select md5(string_agg(b::text || xmin, ',')) from batches b",
        )
    };
    let kept = state();
    let sessions = format!(
        "select count(*) from pg_stat_activity where datname = '{name}' and application_name = 'trayscan'"
    );

    for signal in ["TERM", "INT", "KILL"] {
        let service = pages_then(2, Answer::silence);
        let child = spawn_export(&Service::scripted(&service), &address);
        wait_for("the last page is asked for", || {
            service.requests().len() == 4
        });
        // No database session stays open while the export waits for the service.
        wait_for("the rehearsal ends", || {
            database.sql("postgres", &sessions) == "0"
        });
        let kill = format!("kill -{signal} {}", child.pid());
        assert!(Run::new("sh").args(["-c", &kill]).succeeds());
        let ended = wait_for_exit(child);
        if signal != "KILL" {
            assert!(
                ended.stderr.contains("the table \"batches\" is unchanged"),
                "{ended:?}"
            );
        }
        let code = match signal {
            "TERM" => Some(143),
            "INT" => Some(130),
            _ => None,
        };
        assert_eq!(ended.code, code, "{ended:?}");
        assert_eq!(state(), kept);
    }

    let service = pages_then(2, || Answer::error(422, "no more"));
    let ended = Service::scripted(&service).export(&address, &["--parallel", "1"]);
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(
        ended.stderr.contains("the table \"batches\" is unchanged"),
        "{ended:?}"
    );
    assert_eq!(state(), kept);
    let fresh = database.address(&name, "never");
    let ended = Service::scripted(&service).export(&fresh, &["--parallel", "1"]);
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert_eq!(
        database.sql(&name, "select to_regclass('never') is null"),
        "t"
    );
}

#[test]
fn a_server_crash_ends_with_code_5() {
    let Some(database) = Database::start() else {
        return;
    };
    // Stops with this run, like the shared server.
    let database: &'static Database = Box::leak(Box::new(database));
    let name = database.fresh();
    let service = pages_then(1, || {
        database.kill();
        Answer::ok(page::<Batch>(&[], None))
    });
    let args = [
        "--parallel",
        "1",
        "--retries",
        "2",
        "--message-format",
        "json",
    ];
    let ended = Service::scripted(&service).export(&database.address(&name, "batches"), &args);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    for words in [
        "the table \\\"batches\\\" is unchanged",
        &format!("127.0.0.1:{}", database.port),
        "trying again in 0.0 s (2 of 2)",
        "\"retry_later\":true",
    ] {
        assert!(ended.stderr.contains(words), "{words} {ended:?}");
    }
}
