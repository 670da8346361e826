//! `serve --archive`: it serves the current batches of the archive.

// Other runs write to the archive.
mod changes;

// The first lines, and unusable archives.
mod startup;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use rusqlite::Connection;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Output, Reply, Request, Server, export, run, trayscan};

/// An archive of the 250 batches of the sandbox, in a temporary folder.
struct Archive {
    folder: TempDir,
    path: PathBuf,
}

impl Archive {
    fn new() -> Self {
        static FIRST: OnceLock<Vec<u8>> = OnceLock::new();
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.db");
        let archive = Self { folder, path };
        let first = FIRST.get_or_init(|| {
            let ended = archive.sync(&[]);
            assert!(ended.stderr.starts_with("250 added"), "{ended:?}");
            fs::read(&archive.path).unwrap()
        });
        fs::write(&archive.path, first).unwrap();
        archive
    }

    fn sync(&self, args: &[&str]) -> Output {
        run(&[&["sync", self.name(), "--sandbox"], args].concat()).expect(0)
    }

    fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn serve(&self, args: &[&str]) -> Server {
        Server::start(&[&["--archive", self.name()], args].concat())
    }

    /// Exports directly from the archive.
    fn export(&self, args: &[&str]) -> String {
        let ended =
            run(&[&["export", "--archive", self.name(), "-f", "json"], args].concat()).expect(0);
        ended.stdout
    }

    /// Opens the archive without waiting for locks.
    fn db(&self) -> Connection {
        let db = Connection::open(&self.path).unwrap();
        db.busy_timeout(Duration::ZERO).unwrap();
        db
    }

    fn change(&self, sql: &str) {
        assert!(self.db().execute(sql, []).unwrap() > 0, "{sql}");
    }

    /// Adds a batch with exactly this text.
    fn add(&self, received: &str) {
        let (_, id) = received.split_once(r#""batch_id":""#).unwrap();
        let (id, _) = id.split_once('"').unwrap();
        let sql = "INSERT INTO batches (batch_id, received, first_seen, last_changed) VALUES (?1, ?2, '', '')";
        assert_eq!(self.db().execute(sql, (id, received)), Ok(1));
    }
}

/// Returns a batch with this ID and creation date.
fn batch(id: &str, created: &str) -> String {
    batch_with(id, &format!(r#""{created}""#), "")
}

fn batch_with(id: &str, created: &str, rest: &str) -> String {
    format!(
        r#"{{"batch_id":"{id}","batch_name":"n","batch_creation_date":{created},"crop_type":null,"number_of_images":1,"total_cells_per_tray":null,"avg_germinated_seedlings":null,"avg_non_germinated_seedlings":null,"avg_germination_rate":"12.50","avg_usable_seedlings":null,"avg_non_usable_cells":null,"avg_usable_seedling_rate":null,"avg_coefficient_of_variation":null,"avg_median_seedling_size_mm2":null,"scanned_by_email":null,"analysis_link":null,"comment":null,"warnings":false{rest}}}"#
    )
}

fn exported(server: &Server, args: &[&str]) -> String {
    let ended = export(server, &[&["-f", "json"], args].concat()).expect(0);
    ended.stdout
}

fn ids(json: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Named {
        batch_id: String,
    }
    let batches: Vec<Named> = serde_json::from_str(json).unwrap();
    batches.into_iter().map(|batch| batch.batch_id).collect()
}

fn served(server: &Server) -> BTreeSet<String> {
    let all = ids(&exported(server, &[]));
    let once: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(once.len(), all.len(), "each batch once");
    once
}

fn ask(server: &Server, token: &str, query: &str) -> Reply {
    server.send(&Request::batches("v2", query).token(token))
}

/// Returns the query for the next page.
fn next(reply: &Reply) -> String {
    format!(
        "next_token={}",
        reply.json()["next_token"].as_str().unwrap()
    )
}

#[test]
fn an_export_from_a_served_archive_equals_one_from_the_archive() {
    let archive = Archive::new();
    let server = archive.serve(&["--page-size", "40"]);
    let plain = archive.export(&[]);
    for args in [
        &["--api", "v1"][..],
        &["--api", "v2"],
        &["--parallel", "1"],
        &["--parallel", "9"],
    ] {
        assert_eq!(exported(&server, args), plain, "{args:?}");
    }

    // Bounds just before and after fractions of a second.
    let second = "2025-03-01T06:00:00";
    let fractions = ["", ".000", ".5", ".0000001", ".000001", ".9999999999"];
    for (number, fraction) in fractions.iter().enumerate() {
        archive.add(&batch(
            &format!("fraction {number}"),
            &format!("{second}{fraction}Z"),
        ));
    }
    let mut sizes = BTreeSet::new();
    for (start, end) in [
        ("2025-03-01T05:59:59Z", "2025-03-01T06:00:00Z"),
        ("2025-03-01T06:00:00Z", "2025-03-01T06:00:00Z"),
        ("2025-03-01T06:00:00Z", "2025-03-01T06:00:01Z"),
        ("2025-03-01T06:00:01Z", "2025-03-02T06:00:01Z"),
        ("2024-06", "2025-03-01T06:00:00Z"),
        ("2025-03-01", "2025-03-01"),
        ("2025", "2026-01"),
    ] {
        let range = ["--start", start, "--end", end, "--sort", "batch_id"];
        let expected = archive.export(&range);
        sizes.insert(ids(&expected).len());
        for api in ["v1", "v2"] {
            let args = [&range[..], &["--api", api]].concat();
            assert_eq!(exported(&server, &args), expected, "{args:?}");
        }
    }
    assert!(sizes.len() >= 4, "ranges that tell something: {sizes:?}");
}

#[test]
fn faults_limits_and_page_sizes_apply_to_an_archive() {
    let archive = Archive::new();
    let sorted = ["--sort", "batch_id"];
    let expected = archive.export(&sorted);
    let faults = [
        "shuffle",
        "duplicates:0.3",
        "empty-pages:0.3",
        "cursor-expiry:3",
        "503:0.1",
        "truncate:0.05",
    ];
    let mut args = vec!["--page-size", "30", "--seed", "7"];
    args.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
    let server = archive.serve(&args);
    let ended = export(&server, &["-f", "json", "--sort", "batch_id"]);
    assert_eq!((ended.code, ended.stdout), (Some(0), expected.clone()));
    assert!(ended.stderr.contains("expired"), "{}", ended.stderr);

    let server = archive.serve(&["--v1-limit", "90"]);
    assert_eq!(server.flat("").len(), 90);
    let server = archive.serve(&["--v1-limit", "90", "--fault", "v1-refuse"]);
    assert_eq!(
        exported(&server, &["--api", "v1", "--sort", "batch_id"]),
        expected
    );
}

#[test]
fn each_batch_is_served_exactly_as_received() {
    let archive = Archive::new();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let long = "é\\u0000\\n\u{1f33b}".repeat(20_000);
    let strange = [
        batch_with(
            "unknown",
            r#""2026-05-01T06:00:00Z""#,
            r#","z":{"batch_creation_date":"1970-01-01T00:00:00Z"},"a":-0.0e+5,"":[null,1e400]"#,
        ),
        batch_with("deep", r#""2026-05-01T06:00:00Z""#, &format!(r#","deep":{deep}"#)),
        batch_with("long", r#""2026-05-01T06:00:00.25Z""#, &format!(r#","long":"{long}""#)),
        batch_with("escaped", r#""2026-05-01T06:00:00Z""#, "")
            .replace("creation_date", r"cre\u0061tion_date"),
        r#"{"warnings":true,"number_of_images":0,"batch_creation_date":"2026-05-01T06:00:00Z","batch_name":"\"],[{","batch_id":"few"}"#.to_owned(),
    ];
    for text in &strange {
        archive.add(text);
    }
    let server = archive.serve(&["--page-size", "50"]);
    let reply = server.send(&Request::batches("v1", "").token(&server.token("v1")));
    let body = String::from_utf8(reply.body.clone()).unwrap();
    for text in &strange {
        let neighbours = [format!(",{text},"), format!(",{text}]")];
        assert!(
            neighbours.iter().any(|text| body.contains(text)),
            "{text:.200}"
        );
    }
    let range = ["--start", "2026-05-01", "--end", "2026-05-01", "--sort"];
    let range = [&range[..], &["batch_id"]].concat();
    let expected = archive.export(&range);
    let found: BTreeSet<String> = ids(&expected).into_iter().collect();
    let added = ["unknown", "deep", "long", "escaped", "few"];
    assert!(added.iter().all(|id| found.contains(*id)), "{found:?}");
    for api in ["v1", "v2"] {
        let args = [&range[..], &["--api", api]].concat();
        assert!(exported(&server, &args) == expected, "{api}");
    }
}

#[test]
fn a_batch_without_a_creation_date_comes_before_all_others() {
    let archive = Archive::new();
    for (id, created) in [
        ("null", "null"),
        ("number", "1777615200"),
        ("offset", r#""2026-05-01T06:00:00+02:00""#),
    ] {
        archive.add(&batch_with(id, created, ""));
    }
    let undated = ["null", "number", "offset"];
    let server = archive.serve(&["--page-size", "20"]);
    let token = server.token("v2");
    let first = |query: &str| ids(&ask(&server, &token, query).json()["data"].to_string());
    assert_eq!(first("")[..3], undated);
    assert_eq!(first("end_date=2020-01-01T00:00:00Z"), undated);
    assert_eq!(
        first("start_date=0001-01-01T00:00:00Z")
            .iter()
            .filter(|id| undated.contains(&id.as_str()))
            .count(),
        0
    );
    // Exports with several workers include them too.
    for workers in ["1", "8"] {
        let args = ["--lenient", "--parallel", workers, "--sort", "batch_id"];
        let expected = archive.export(&["--lenient", "--sort", "batch_id"]);
        assert_eq!(ids(&expected).len(), 253);
        assert_eq!(exported(&server, &args), expected, "{workers}");
    }
    export(&server, &["-f", "json"]).expect(7);
}

#[test]
fn an_archive_synced_from_a_served_archive_has_the_same_batches() {
    let archive = Archive::new();
    archive.add(&batch_with(
        "new",
        r#""2026-05-01T06:00:00.123Z""#,
        r#","extra":[1]"#,
    ));
    archive.change("UPDATE batches SET vanished = 'x' WHERE rowid % 10 = 0");
    let server = archive.serve(&["--page-size", "30"]);
    let second = archive.at("b.db");
    let ended = sync(&server, &second, &[]);
    assert!(ended.stderr.contains("226 added"), "{ended:?}");
    let digest = |source: &str| {
        let (out, manifest) = (archive.at("out.json"), archive.at("manifest.json"));
        run(&[
            "export",
            "--archive",
            source,
            "-o",
            &out,
            "--manifest",
            &manifest,
        ])
        .expect(0);
        let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
        assert_eq!(manifest["batches"], 226);
        manifest["set_digest"].clone()
    };
    let before = digest(archive.name());
    assert_eq!(digest(&second), before);

    // `sync` finds the changes in the first archive.
    archive.change(
        "UPDATE batches SET received = replace(received, '12.50', '99.00') WHERE batch_id = 'new'",
    );
    archive.change("UPDATE batches SET vanished = NULL WHERE rowid = 10");
    archive.change("UPDATE batches SET vanished = 'x' WHERE rowid = 11");
    let ended = sync(&server, &second, &["--full"]);
    assert!(
        ended
            .stderr
            .contains("1 added, 1 changed, 224 unchanged, 1 vanished"),
        "{ended:?}"
    );
    let after = digest(archive.name());
    assert_ne!(after, before);
    assert_eq!(digest(&second), after);
}

/// Syncs the archive at `path` from `server`.
fn sync(server: &Server, path: &str, args: &[&str]) -> Output {
    let mut command = trayscan(&[&["sync", path, "--retry-wait", "0s"], args].concat());
    command.service(server);
    command.output().expect(0)
}

#[test]
fn serving_does_not_modify_the_archive() {
    let archive = Archive::new();
    let before = fs::read(&archive.path).unwrap();
    let server = archive.serve(&["--page-size", "60"]);
    served(&server);
    server.flat("");
    let files = || fs::read_dir(archive.folder.path()).unwrap().count();
    assert_eq!(files(), 1, "no other files");
    assert_eq!(server.stop().code, Some(0));
    assert!(fs::read(&archive.path).unwrap() == before);
    assert_eq!(files(), 1);
}

#[test]
fn sync_warns_if_clocks_differ_by_more_than_a_minute() {
    let folder = TempDir::new().unwrap();
    for (number, (fault, says)) in [
        ("clock:+0s", None),
        ("clock:+30s", None),
        ("clock:-30s", None),
        ("clock:+30d", Some("30 days behind the service's")),
        ("clock:-2h", Some("ahead of the service's")),
    ]
    .into_iter()
    .enumerate()
    {
        let server = Server::start(&["--batches", "5", "--fault", fault]);
        let archive = folder.path().join(format!("{number}.db"));
        let ended = sync(&server, archive.to_str().unwrap(), &[]);
        let warning = ended.stderr.lines().find(|line| line.contains("clock"));
        assert_eq!(warning.is_some(), says.is_some(), "{ended:?}");
        let is_expected = warning.is_none_or(|line| {
            line.starts_with("warning: the clock of this machine is")
                && line.contains(says.unwrap())
        });
        assert!(is_expected, "{ended:?}");
    }
}
