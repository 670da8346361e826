//! Exports into PostgreSQL, read back with psql and `verify`.

// Locks, poolers, triggers, and connections that fail.
mod faults;
mod holder;
mod locks;
mod pooler;
mod proxy;
mod refused;
mod rows;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::{Database, PASSWORD, shared};
use crate::fake::{Answer, Batch, FakeService, cursor, page, token};
use crate::harness::{LIMIT, Output, Run, Running, Server, trayscan};

/// The address and credentials of the service to export from.
struct Service {
    address: SocketAddr,
    secret: String,
}

impl Service {
    fn of(server: &Server) -> Self {
        Self {
            address: server.address,
            secret: server.client_secret.clone(),
        }
    }

    fn scripted(service: &FakeService) -> Self {
        Self {
            address: service.address,
            secret: "a-secret".to_owned(),
        }
    }

    fn command(&self, args: &[&str]) -> Run {
        let mut command = trayscan(args);
        command
            .env("TRAYSCAN_BASE_URL", format!("http://{}", self.address))
            .env("TRAYSCAN_CLIENT_ID", "sandbox")
            .env("TRAYSCAN_CLIENT_SECRET", &self.secret)
            .env("TRAYSCAN_RETRY_WAIT", "0s");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        let ended = self.command(args).output();
        for printed in [&ended.stdout, &ended.stderr] {
            assert!(!printed.contains(PASSWORD), "a password: {ended:?}");
            assert!(!printed.contains(&self.secret), "a secret: {ended:?}");
        }
        ended
    }

    fn export(&self, address: &str, args: &[&str]) -> Output {
        self.run(&[&["export", "-o", address], args].concat())
    }

    /// Runs an export, which must succeed, and returns the last line of its output.
    fn load(&self, address: &str, args: &[&str]) -> String {
        let ended = self.export(address, args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stderr.lines().last().unwrap().to_owned()
    }
}

/// A service with valid batches except for these fields.
fn serving(batches: &[&[(&str, &str)]]) -> FakeService {
    let batches: Vec<String> = (1..)
        .zip(batches)
        .map(|(number, other)| changed(&format!("b{number}"), other))
        .collect();
    FakeService::with(&batches)
}

fn changed(id: &str, other: &[(&str, &str)]) -> String {
    Batch::new(id).with_all(other).text()
}

/// A folder for files.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.at(name)).unwrap()).unwrap()
    }
}

/// Reads a CSV file without its header.
fn csv(path: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let row = |record: csv::StringRecord| record.iter().map(String::from).collect();
    reader
        .records()
        .map(|record| row(record.unwrap()))
        .collect()
}

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
fn types_are_exact() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "1500", "--seed", "9"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    service.load(&database.address(&name, "batches"), &[]);
    service.run(&["export", "-o", &files.at("a.csv")]);
    let types = database.sql(&name, "select string_agg(format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ' ' order by attnum) from pg_attribute where attrelid = 'batches'::regclass and attnum > 0");
    let decimals = "numeric ".repeat(8);
    assert_eq!(
        types,
        format!(
            "text! text! timestamp with time zone! text bigint! bigint {decimals}text text text boolean! jsonb"
        )
    );
    let rows = csv(&files.at("a.csv"));
    for (column, field) in [
        (8, "avg_germination_rate"),
        (13, "avg_median_seedling_size_mm2"),
    ] {
        let hundredths = |row: &Vec<String>| -> i64 {
            match row[column].split_once('.') {
                Some((whole, fraction)) => format!("{whole}{fraction:0<2}").parse().unwrap(),
                None => row[column].parse::<i64>().unwrap_or_default() * 100,
            }
        };
        let sum: i64 = rows.iter().map(hundredths).sum();
        let found = database.sql(
            &name,
            &format!(
                "select trunc(sum({field}) * 100)::text, sum({field}) * 100 = {sum} from batches"
            ),
        );
        assert_eq!(found, format!("{sum}|t"));
    }
    // The instant does not depend on the time zone of the session.
    let (first, date) = (&rows[0][0], &rows[0][2]);
    let found = database.sql(&name, &format!("set timezone = 'Asia/Tokyo'; select batch_creation_date = '{date}' from batches where batch_id = '{first}'"));
    assert_eq!(found, "t");
}

#[test]
fn verify_of_the_table_gives_the_digest_of_the_export() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "900", "--seed", "3"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address_of(&format!("guarded:{PASSWORD}@127.0.0.1"), &name, "batches");
    let (manifest, text) = (files.at("m.json"), files.at("a.csv"));
    service.load(&address, &["--manifest", &manifest]);
    service.run(&["export", "-o", &text, "--manifest", &files.at("a.json")]);
    let receipt = files.json("m.json");
    assert_eq!(receipt["set_digest"], files.json("a.json")["set_digest"]);
    let entry = &receipt["files"][0];
    let shown = format!(
        "postgres://guarded@127.0.0.1:{}/{name}?table=batches",
        database.port
    );
    assert_eq!(
        entry,
        &json!({"path": shown, "format": "postgres", "batches": 900, "set_digest": receipt["set_digest"], "unknown_fields_digest": receipt["unknown_fields_digest"]})
    );
    assert!(!fs::read_to_string(&manifest).unwrap().contains(PASSWORD));

    for args in [
        &["--manifest", &manifest][..],
        &["--against", &text],
        &["--service"],
        &["--service", "--manifest", &manifest],
    ] {
        let ended = service.run(&[&["verify", &address], args].concat());
        assert_eq!(ended.code, Some(0), "{args:?} {ended:?}");
        assert!(!ended.stderr.contains("bytes"), "{ended:?}");
    }
    let ended = service.run(&["verify", &text, "--against", &address]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = service.run(&["verify", &address, "--format", "json"]);
    let report: Value = ended.json();
    assert_eq!(report["digest"], receipt["set_digest"], "{report}");

    database.sql(
        &name,
        "update batches set comment = 'other' where batch_id = (select min(batch_id) from batches)",
    );
    let ended = service.run(&["verify", &address, "--against", &text]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(ended.stdout.contains("comment"), "{ended:?}");
    let ended = service.run(&["verify", &address, "--manifest", &manifest]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
}

#[test]
fn a_table_of_many_exports_is_verified_range_by_range() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "3000", "--seed", "3"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address(&name, "batches");
    for month in ["2026-04", "2026-05", "2026-06"] {
        let manifest = files.at(month);
        let last = service.load(
            &address,
            &["--start", month, "--end", month, "--manifest", &manifest],
        );
        assert!(!last.starts_with("0 batches"), "{last}");
    }
    for month in ["2026-04", "2026-05", "2026-06"] {
        for more in [&[][..], &["--service"]] {
            let args = ["verify", &address, "--manifest", &files.at(month)];
            let ended = service.run(&[&args[..], more].concat());
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(
                ended.stderr.contains("a table may contain many exports"),
                "{ended:?}"
            );
        }
    }
    database.sql(
        &name,
        "delete from batches where batch_id = (select min(batch_id) from batches \
         where batch_creation_date >= '2026-05-01Z' and batch_creation_date < '2026-06-01Z')",
    );
    for (month, code) in [("2026-04", 0), ("2026-05", 7), ("2026-06", 0)] {
        let ended = service.run(&["verify", &address, "--manifest", &files.at(month)]);
        assert_eq!(ended.code, Some(code), "{month} {ended:?}");
    }
}

const HOSTILE: [&str; 14] = [
    "plain",
    "a,b;c\td",
    "\"quoted\"",
    "two\nlines\r\n",
    "=1+1",
    "\u{1b}[31m\u{202e}",
    "🌱 ß 発芽",
    "'); drop table batches; --",
    "\\",
    "\u{0}",
    " ",
    "null",
    "\u{feff}x",
    "\\N \\. \\u{0}",
];

#[test]
fn nulls_and_hostile_text_round_trip() {
    let Some(database) = shared() else { return };
    let batches: Vec<String> = HOSTILE
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let json = json!(text).to_string();
            let id = json!(format!("{number}{text}")).to_string();
            let more = format!("{{\"a\":[{json},1.50,null]}}");
            changed(
                "x",
                &[
                    ("batch_id", &id),
                    ("batch_name", &json),
                    ("comment", &json),
                    ("more", &more),
                ],
            )
        })
        .chain([changed("plain", &[])])
        .collect();
    let scripted = FakeService::with(&batches);
    let service = Service::scripted(&scripted);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address(&name, "batches");
    let ended = service.export(&address, &["--manifest", &files.at("m.json")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Two texts with U+0000 or its escape, each in three known fields and an unknown one.
    let note = "8 text cells contain control characters that postgres cannot store";
    assert!(ended.stderr.contains(note), "{ended:?}");

    let rows = database.sql(&name, "select json_agg(b order by batch_id) from batches b");
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let row = |id: &str| {
        rows.iter()
            .find(|row| row["batch_id"] == id)
            .unwrap_or_else(|| panic!("{id:?}"))
    };
    for (number, text) in HOSTILE.iter().enumerate() {
        let stored = text
            .replace("\\u{0}", "\\u{5c}u{0}")
            .replace('\0', "\\u{0}");
        let row = row(&format!("{number}{stored}"));
        assert_eq!(row["comment"], stored.as_str());
        assert_eq!(row["batch_name"], stored.as_str());
        assert_eq!(row["extra"]["more"]["a"][0], stored.as_str());
        assert_eq!(row["crop_type"], Value::Null);
    }
    assert_eq!(row("plain")["extra"], Value::Null);
    assert_eq!(
        database.sql(
            &name,
            "select extra->'more'->'a'->1 from batches where batch_id = '0plain'"
        ),
        "1.50"
    );

    let ended = service.run(&["verify", &address, "--manifest", &files.at("m.json")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
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
        last.contains("(100000 new, 0 changed, 0 unchanged)"),
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

/// A service with `pages` pages of 5000 batches, followed by the response of `last`.
fn pages_then(pages: usize, last: impl Fn() -> Answer + Send + Sync + 'static) -> FakeService {
    FakeService::start(move |asked| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        let number: usize = asked
            .query("next_token")
            .map(|cursor| cursor[cursor.len() - 4..].parse().unwrap())
            .unwrap_or_default();
        if number == pages {
            return last();
        }
        let comment = json!("x".repeat(200)).to_string();
        let batches: Vec<String> = (0..5000)
            .map(|batch| changed(&format!("{number}-{batch}"), &[("comment", &comment)]))
            .collect();
        Answer::ok(page(&batches, Some(&cursor(number + 1))))
    })
}

/// Waits until `condition` is true.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn spawn_export(service: &Service, address: &str) -> Running {
    let mut command = service.command(&["export", "-o", address, "--parallel", "1"]);
    command.start()
}

fn wait_for_exit(child: Running) -> Output {
    child.output()
}

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
        "--error-format",
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
            new += u64::from(last.contains("(4000 new, 0 changed, 0 unchanged)"));
            new += 10 * u64::from(last.contains("(0 new, 0 changed, 4000 unchanged)"));
        }
        assert_eq!(new, if round == 0 { 41 } else { 50 });
    }
    assert_eq!(database.sql(&name, "select count(*) from batches"), "4000");
}

#[test]
fn passwords_are_found_where_postgresql_looks_and_never_shown() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address_of("guarded@127.0.0.1", &name, "batches");
    let files = Files::new();
    let pass = |text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = files.at("pass");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let right = format!("127.0.0.1:{}:*:guarded:{PASSWORD}\n", database.port);
    let run = |address: &str, variables: &[(&str, &str)]| {
        let scripted = serving(&[&[]]);
        let service = Service::scripted(&scripted);
        let mut command = service.command(&["export", "-vv", "-o", address]);
        command.envs(variables.iter().copied());
        let ended = command.output();
        assert!(!ended.stderr.contains(PASSWORD), "{ended:?}");
        (ended, scripted.requests().len())
    };
    let (ended, asked) = run(&address, &[]);
    assert_eq!((ended.code, asked), (Some(8), 0), "{ended:?}");
    assert!(
        ended.stderr.contains("requires a password") && ended.stderr.contains(".pgpass"),
        "{ended:?}"
    );

    let (ended, asked) = run(&address, &[("PGPASSWORD", "wrong-and-hidden")]);
    assert_eq!((ended.code, asked), (Some(8), 0), "{ended:?}");
    assert!(
        ended.stderr.contains("28P01") && ended.stderr.contains("`guarded`"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("wrong-and-hidden"), "{ended:?}");
    let inline = address.replace("guarded@", "guarded:wrong-and-hidden@");
    let (ended, _) = run(&inline, &[]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert!(!ended.stderr.contains("wrong-and-hidden"), "{ended:?}");

    let (ended, _) = run(&address, &[("PGPASSWORD", PASSWORD)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (ended, _) = run(&address, &[("PGPASSFILE", &pass(&right, 0o600))]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (ended, _) = run(&address, &[("PGPASSFILE", &pass(&right, 0o644))]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert!(ended.stderr.contains("chmod 600"), "{ended:?}");
    let inline = address.replace("guarded@", &format!("guarded:{PASSWORD}@"));
    let (ended, _) = run(&inline, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = [
        ("PGHOST", database.socket_folder().to_str().unwrap()),
        ("PGPORT", &database.port.to_string()),
        ("PGUSER", "postgres"),
        ("PGDATABASE", &name),
    ];
    let (ended, _) = run("postgres://", &all);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("(0 new, 0 changed, 1 unchanged)"),
        "{ended:?}"
    );
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

#[test]
fn values_are_exact_or_refused() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address(&name, "batches");
    let digits = format!("{}.{}", "7".repeat(3000), "123456789".repeat(300));
    let decimal = json!(digits).to_string();
    let scripted = serving(&[
        &[
            ("avg_germination_rate", &decimal),
            ("batch_creation_date", "\"2026-05-01T06:00:00.123456Z\""),
        ],
        &[
            ("avg_germination_rate", "\"-0.00\""),
            ("number_of_images", "9223372036854775807"),
        ],
    ]);
    let files = Files::new();
    let service = Service::scripted(&scripted);
    service.load(&address, &["--manifest", &files.at("m.json")]);
    let found = database.sql(&name, "select avg_germination_rate, extract(microseconds from batch_creation_date), number_of_images from batches order by batch_id");
    assert_eq!(
        found,
        format!("{digits}|123456|12\n0.00|0|9223372036854775807")
    );
    let ended = service.run(&["verify", &address, "--manifest", &files.at("m.json")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");

    for (field, value, why) in [
        (
            "batch_creation_date",
            "\"2026-05-01T06:00:00.1234567Z\"",
            "microsecond",
        ),
        ("more", "\"\\ud83c\"", "jsonb"),
    ] {
        let scripted = serving(&[&[], &[(field, value)]]);
        let ended = Service::scripted(&scripted).export(&database.address(&name, "other"), &[]);
        assert_eq!(ended.code, Some(7), "{field} {ended:?}");
        assert!(
            ended.stderr.contains("b2") && ended.stderr.contains(why),
            "{ended:?}"
        );
    }
}

#[test]
fn invalid_values_become_null_if_requested() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let invalid: &[&[(&str, &str)]] = &[&[
        ("warnings", "\"yes\""),
        ("avg_germination_rate", "\"much\""),
    ]];
    let address = database.address(&name, "lenient");
    let scripted = serving(invalid);
    Service::scripted(&scripted).load(&address, &["--lenient"]);
    let found = database.sql(
        &name,
        "select warnings is null, avg_germination_rate is null, batch_name from lenient",
    );
    assert_eq!(found, "t|t|Tray");

    let strict = database.address(&name, "strict");
    let right = serving(&[&[]]);
    Service::scripted(&right).load(&strict, &[]);
    let scripted = serving(invalid);
    let ended = Service::scripted(&scripted).export(&strict, &["--lenient"]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(
        ended.stderr.contains("the column does not allow null"),
        "{ended:?}"
    );
}

#[test]
fn certificates_are_checked_according_to_sslmode() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let certificate = database.certificate.to_str().unwrap();
    let address = |host: &str, more: &str| {
        let plain = database.address_of(&format!("postgres@{host}"), &name, "batches");
        format!("{plain}{more}")
    };
    let rooted = format!("&sslmode=verify-full&sslrootcert={certificate}");
    let authority = format!("&sslmode=verify-ca&sslrootcert={certificate}");
    for (address, args, code) in [
        (address("localhost", ""), &[][..], 0),
        (address("localhost", "&sslmode=disable"), &[], 0),
        (address("localhost", "&sslmode=require"), &[], 0),
        (address("localhost", "&sslmode=verify-full"), &[], 13),
        (address("localhost", "&sslmode=verify-ca"), &[], 13),
        (
            address("localhost", "&sslmode=verify-full"),
            &["--ca-cert", certificate],
            0,
        ),
        (
            address("127.0.0.1", "&sslmode=verify-full"),
            &["--ca-cert", certificate],
            13,
        ),
        (
            address("127.0.0.1", "&sslmode=verify-ca"),
            &["--ca-cert", certificate],
            0,
        ),
        (address("localhost", &rooted), &[], 0),
        (address("127.0.0.1", &rooted), &[], 13),
        (address("127.0.0.1", &authority), &[], 0),
        (
            address("localhost", "&sslmode=verify-full&sslrootcert=/nonexistent"),
            &[],
            2,
        ),
    ] {
        let scripted = serving(&[&[]]);
        let ended = Service::scripted(&scripted).export(&address, args);
        assert_eq!(ended.code, Some(code), "{address} {ended:?}");
        if code == 13 {
            assert!(
                ended.stderr.contains("is not trusted") && ended.stderr.contains("`--ca-cert`"),
                "{ended:?}"
            );
            assert_eq!(scripted.requests().len(), 0);
        }
    }
    let (scripted, files) = (serving(&[&[]]), Files::new());
    let service = Service::scripted(&scripted);
    service.run(&["export", "-o", &files.at("a.csv")]);
    let tls = address("localhost", "&sslmode=verify-full");
    let ended = service.run(&["verify", &tls, "--against", &files.at("a.csv")]);
    assert_eq!(ended.code, Some(13), "{ended:?}");
    let ended = service.run(&[
        "verify",
        &tls,
        "--against",
        &files.at("a.csv"),
        "--ca-cert",
        certificate,
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn channel_binding_can_be_required() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let guarded = format!("guarded:{PASSWORD}@localhost");
    let address = |user: &str, more: &str| {
        let plain = database.address_of(user, &name, "batches");
        format!("{plain}{more}")
    };
    let trusted = "postgres@localhost";
    for (address, code, why) in [
        (address(&guarded, "&channel_binding=require"), 0, ""),
        (
            address(&guarded, "&channel_binding=require&sslmode=require"),
            0,
            "",
        ),
        (
            address(&guarded, "&channel_binding=disable&sslmode=require"),
            0,
            "",
        ),
        (
            address(&guarded, "&channel_binding=prefer&sslmode=disable"),
            0,
            "",
        ),
        (
            address(&guarded, "&channel_binding=require&sslmode=disable"),
            2,
            "`channel_binding=require` needs TLS",
        ),
        // This user needs no password, so nothing is bound to the channel.
        (
            address(trusted, "&channel_binding=require"),
            13,
            "did not use channel binding",
        ),
    ] {
        let scripted = serving(&[&[]]);
        let ended = Service::scripted(&scripted).export(&address, &[]);
        assert_eq!(ended.code, Some(code), "{address} {ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert_eq!(scripted.requests().is_empty(), code != 0, "{address}");
    }
}

#[test]
fn a_remote_host_must_offer_tls() {
    // The server answers that it has no TLS.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 8];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(b"N").unwrap();
        }
    });
    let scripted = serving(&[&[]]);
    for demand in ["sslmode=verify-full", "channel_binding=require"] {
        let address = format!("postgres://me@127.0.0.1:{port}/db?{demand}");
        let ended = Service::scripted(&scripted).export(&address, &[]);
        assert_eq!(ended.code, Some(13), "{ended:?}");
        assert!(ended.stderr.contains("does not support TLS"), "{ended:?}");
        assert_eq!(scripted.requests().len(), 0);
    }
}

#[test]
fn an_unreadable_table_is_reported() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(&name, "create table other (a text)");
    for (table, code, why) in [
        ("nothing", 2, "has no table"),
        ("other", 2, "no `batch_id`"),
    ] {
        let ended = trayscan(&["verify", &database.address(&name, table)])
            .output()
            .expect(code);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
    let path = PathBuf::from("postgres://me:hidden-words@127.0.0.1:1/db");
    let ended = trayscan(&["verify", path.to_str().unwrap(), "--retries", "0"])
        .output()
        .expect(5);
    assert!(!ended.stderr.contains("hidden-words"), "{ended:?}");
}
