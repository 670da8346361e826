//! Object storage: exports to real servers, read back with other clients.
//!
//! `tests/object-storage/servers.py` starts moto, Azurite and a small Google Cloud Storage server (`gcs.py`), and reads
//! with the clients of Amazon, Google and Microsoft. moto, Azurite and the clients are installed once from the package
//! registries. If that fails, these tests print a message and are skipped.

// Stores that fail, and lakes.
mod faults;
mod lakes;
mod proxy;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::{Answer, Batch, FakeService, page, token};
use crate::files::SLOW;
use crate::harness::{Output, Pipe, Run, Running, Server, trayscan};

/// Must never be printed.
const SECRET: &str = "wJalrXUtnFEMI-not-a-key";
/// Larger than one part, which has room for about 12,500 batches of NDJSON.
const LARGE: [&str; 4] = ["--batches", "15000", "--page-size", "1000"];

/// The servers, and the process that reads from them.
struct Servers {
    talk: Mutex<(ChildStdin, BufReader<Pipe>)>,
    s3: String,
    google: String,
    /// The file with the key of the service account.
    google_account: String,
    /// `None` if Azurite is not installed.
    azure: Option<String>,
    account: String,
    key: String,
    _child: Running,
}

/// Runs a command and returns whether it succeeded.
fn succeeds(command: &mut Run) -> bool {
    command
        .limit(std::time::Duration::from_secs(900))
        .succeeds()
}

/// Returns a Python with the required packages, installed once and kept between runs.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("object-storage");
    let python = folder.join("venv/bin/python");
    let imports =
        "import moto.server, boto3, azure.storage.blob, google.cloud.storage, cryptography";
    let is_ready = || succeeds(Run::new(&python).args(["-c", imports]));
    if !is_ready() {
        let packages = [
            "moto[s3,server]==5.2.5",
            "boto3==1.44.0",
            "azure-storage-blob",
            "google-cloud-storage==3.17.1",
        ];
        succeeds(
            Run::new("python3")
                .args(["-m", "venv"])
                .arg(folder.join("venv")),
        );
        succeeds(
            Run::new(&python)
                .args(["-m", "pip", "install", "-q"])
                .args(packages),
        );
    }
    is_ready().then_some(python)
}

/// Returns the entry point of Azurite, installed in the same way.
fn azurite() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("object-storage");
    let main = folder.join("node_modules/azurite/dist/src/blob/main.js");
    if !main.exists() {
        let quiet = [
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "azurite@3.35.0",
        ];
        succeeds(Run::new("npm").args(quiet).arg("--prefix").arg(&folder));
    }
    main.exists().then_some(main)
}

/// Returns the servers; `None` if they are not available.
fn servers() -> Option<&'static Servers> {
    static SERVERS: OnceLock<Option<Servers>> = OnceLock::new();
    let start = || {
        let Some(python) = python() else {
            eprintln!(
                "skipped: moto cannot be installed here (python3, pip and a registry are needed)"
            );
            return None;
        };
        let azurite = azurite();
        if azurite.is_none() {
            eprintln!(
                "skipped for az://: Azurite cannot be installed here (npm and a registry are needed)"
            );
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/object-storage/servers.py");
        let mut child = Run::new(python)
            .arg(script)
            .args(azurite)
            .stdin(Stdio::piped())
            // moto prints a long traceback for every connection that is cut.
            .stderr(Stdio::null())
            .start();
        let mut answers = child.stdout.take().unwrap();
        let mut first = String::new();
        answers.read_line(&mut first).unwrap();
        let addresses: Value = serde_json::from_str(&first).expect("the addresses of the servers");
        let text = |key: &str| addresses[key].as_str().map(String::from);
        Some(Servers {
            talk: Mutex::new((child.stdin.take().unwrap(), answers)),
            s3: text("s3").unwrap(),
            google: text("google").unwrap(),
            google_account: addresses["google_account"].to_string(),
            azure: text("azure"),
            account: text("account").unwrap(),
            key: text("key").unwrap(),
            _child: child,
        })
    };
    SERVERS.get_or_init(start).as_ref()
}

impl Servers {
    fn ask(&self, ask: &Value) -> Value {
        let mut talk: MutexGuard<'_, _> = self.talk.lock().unwrap();
        writeln!(talk.0, "{ask}").unwrap();
        let mut line = String::new();
        talk.1.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["error"], Value::Null, "{ask}");
        answer["answer"].clone()
    }
}

/// A bucket for one test.
struct Bucket {
    servers: &'static Servers,
    scheme: &'static str,
    name: String,
    folder: TempDir,
}

impl Bucket {
    /// Creates a bucket; `None` if the server is not available.
    fn new(scheme: &'static str, kind: &str) -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let servers = servers()?;
        if scheme == "az" && servers.azure.is_none() {
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let bucket = Self {
            servers,
            scheme,
            name: format!("{kind}-{number}"),
            folder: TempDir::new().unwrap(),
        };
        bucket.ask("make", "", &[]);
        Some(bucket)
    }

    /// Returns one bucket for each available kind of server.
    fn all() -> Vec<Self> {
        let schemes = ["s3", "gs", "az"];
        schemes
            .iter()
            .filter_map(|scheme| Self::new(scheme, "all"))
            .collect()
    }

    fn ask(&self, what: &str, key: &str, body: &[u8]) -> Value {
        self.servers.ask(&json!({
            "provider": self.scheme, "do": what, "bucket": self.name, "key": key,
            "body": BASE64_STANDARD.encode(body),
        }))
    }

    fn get(&self, key: &str) -> Vec<u8> {
        let body = self.ask("get", key, &[]);
        BASE64_STANDARD.decode(body.as_str().unwrap()).unwrap()
    }

    fn list(&self) -> Vec<String> {
        let names = self.ask("list", "", &[]);
        let names = names.as_array().unwrap().iter();
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    /// Asserts that no incomplete upload is left, if the server can list them.
    fn assert_no_incomplete_uploads(&self) {
        if self.scheme != "az" {
            assert_eq!(self.ask("uploads", "", &[]), json!([]), "{}", self.name);
        }
    }

    /// Counts the incomplete uploads of an object.
    fn uploads_of(&self, key: &str) -> usize {
        let uploads = self.ask("uploads", "", &[]);
        let uploads = uploads.as_array().unwrap().iter();
        uploads.filter(|name| *name == key).count()
    }

    fn address(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme, self.name)
    }

    fn local(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the URL of the store.
    fn endpoint(&self) -> String {
        match self.scheme {
            "s3" => self.servers.s3.clone(),
            "gs" => self.servers.google.clone(),
            _ => self.servers.azure.clone().unwrap(),
        }
    }

    /// Returns the same bucket with another local folder.
    fn duplicate(&self) -> Self {
        Self {
            name: self.name.clone(),
            folder: TempDir::new().unwrap(),
            ..*self
        }
    }

    /// Sets the usual environment variables of the cloud provider.
    fn with_keys<'a>(&self, command: &'a mut Run) -> &'a mut Run {
        let servers = self.servers;
        match self.scheme {
            "s3" => command
                .env("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
                .env("AWS_SECRET_ACCESS_KEY", SECRET)
                .env("AWS_REGION", "us-east-1"),
            "gs" => {
                let account = self.local("account.json");
                fs::write(&account, &servers.google_account).unwrap();
                command.env("GOOGLE_APPLICATION_CREDENTIALS", account)
            }
            _ => command
                .env("AZURE_STORAGE_ACCOUNT_NAME", &servers.account)
                .env("AZURE_STORAGE_ACCOUNT_KEY", &servers.key),
        };
        self.use_endpoint(command, &self.endpoint())
    }

    /// Sets the endpoint of the store.
    fn use_endpoint<'a>(&self, command: &'a mut Run, endpoint: &str) -> &'a mut Run {
        let variable = match self.scheme {
            "s3" => "AWS_ENDPOINT_URL",
            "gs" => "GOOGLE_BASE_URL",
            _ => "AZURE_STORAGE_ENDPOINT",
        };
        command.env(variable, endpoint)
    }

    /// Sets the address and credentials of the service.
    fn with_service<'a>(command: &'a mut Run, server: &Server) -> &'a mut Run {
        command.service(server)
    }

    fn command(&self, words: &[&str]) -> Run {
        let mut command = trayscan(words);
        self.with_keys(&mut command);
        command
    }

    fn export_command(&self, server: &Server, args: &[&str]) -> Run {
        let mut command = self.command(&["export"]);
        Self::with_service(&mut command, server)
            .env("TRAYSCAN_RETRIES", "0")
            .args(args);
        command
    }

    fn export(&self, server: &Server, args: &[&str]) -> Output {
        self.ended(&mut self.export_command(server, args))
    }

    /// Runs a command and asserts that no secret is printed.
    fn ended(&self, command: &mut Run) -> Output {
        let ended = command.output();
        for secret in [
            SECRET,
            &self.servers.key,
            "AKIAEXAMPLE",
            "PRIVATE KEY",
            "Bearer",
            "Signature",
            "uploadId",
        ] {
            let printed = [&ended.stdout, &ended.stderr];
            assert!(
                !printed.iter().any(|text| text.contains(secret)),
                "{ended:?}"
            );
        }
        ended
    }

    fn verify(&self, args: &[&str]) -> Output {
        self.ended(&mut self.command(&[&["verify"], args].concat()))
    }
}

fn assert_code(ended: &Output, code: i32) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
}

/// Names with every extension, and whether two exports of the format are identical.
const NAMES: [(&str, bool); 9] = [
    ("a.json", true),
    ("a.ndjson.zst", true),
    ("a.csv", true),
    ("a.csv.gz", true),
    ("a.tsv", true),
    ("a.ndjson", true),
    ("a.parquet", false),
    ("a.xlsx", false),
    ("a.sqlite", false),
];

#[test]
fn every_format_is_written_to_every_store_and_verifies() {
    let server = Server::start(&["--batches", "300"]);
    for bucket in Bucket::all() {
        let local = bucket.local("local.csv");
        assert_code(&bucket.export(&server, &["-o", &local]), 0);
        for (name, identical) in NAMES {
            let (address, manifest) = (
                bucket.address(&format!("exports/{name}")),
                bucket.address("m.json"),
            );
            let done = bucket.export(&server, &["-o", &address, "--manifest", &manifest]);
            assert_code(&done, 0);
            assert!(done.stderr.contains(&format!("to `{address}`")), "{done:?}");
            let file = bucket.local(name);
            assert_code(&bucket.export(&server, &["-o", &file]), 0);
            let bytes = bucket.get(&format!("exports/{name}"));
            assert!(!identical || bytes == fs::read(&file).unwrap(), "{address}");
            // The manifest describes what other clients read.
            let content: Value = serde_json::from_slice(&bucket.get("m.json")).unwrap();
            assert_eq!(content["files"][0]["path"], json!(address));
            assert_eq!(content["files"][0]["bytes"], json!(bytes.len()));
            for args in [
                &[&*address, "--manifest", &manifest][..],
                &[&*address, "--against", &local],
                &[&*local, "--against", &address],
            ] {
                assert_code(&bucket.verify(args), 0);
            }
        }
        bucket.assert_no_incomplete_uploads();
        assert_eq!(bucket.list().len(), NAMES.len() + 1);
    }
}

#[test]
fn objects_have_the_right_content_type() {
    let server = Server::start(&["--batches", "20"]);
    let large = Server::start(&LARGE);
    let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    for bucket in Bucket::all() {
        for (name, content_type) in [
            ("a.csv", "text/csv"),
            ("a.tsv", "text/tab-separated-values"),
            ("a.json", "application/json"),
            ("a.ndjson", "application/x-ndjson"),
            ("a.csv.gz", "application/gzip"),
            ("a.ndjson.zst", "application/zstd"),
            ("a.parquet", "application/vnd.apache.parquet"),
            ("a.xlsx", sheet),
            ("a.sqlite", "application/vnd.sqlite3"),
            ("large.ndjson", "application/x-ndjson"),
        ] {
            let server = if name.starts_with("large") {
                &large
            } else {
                &server
            };
            let address = bucket.address(name);
            assert_code(&bucket.export(server, &["-o", &address]), 0);
            let properties = bucket.ask("head", name, &[]);
            assert_eq!(properties, json!([content_type, null]), "{address}");
        }
    }
}

#[test]
fn an_empty_export_creates_an_object() {
    let server = Server::start(&["--batches", "0"]);
    for bucket in Bucket::all() {
        for (name, _) in NAMES {
            let address = bucket.address(name);
            for args in [
                &["-o", &*address][..],
                &[
                    "-o",
                    &*bucket.address(&format!("new-{name}")),
                    "--no-clobber",
                ],
            ] {
                assert_code(&bucket.export(&server, args), 0);
            }
            assert_eq!(bucket.get(name).is_empty(), name == "a.ndjson", "{address}");
        }
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_large_export_uses_a_multipart_upload() {
    let server = Server::start(&LARGE);
    for bucket in Bucket::all() {
        let address = bucket.address("large.ndjson");
        assert_code(&bucket.export(&server, &["-o", &address]), 0);
        let local = bucket.local("large.ndjson");
        assert_code(&bucket.export(&server, &["-o", &local]), 0);
        let size = fs::metadata(&local).unwrap().len();
        assert!(
            bucket.get("large.ndjson") == fs::read(&local).unwrap(),
            "{address}"
        );
        let parts = bucket.ask("parts", "large.ndjson", &[]);
        assert_eq!(parts, json!(size.div_ceil(8 << 20)), "{size} bytes");
        bucket.assert_no_incomplete_uploads();
        // Too large for a conditional write: checked first, and then completed.
        let kept = bucket.export(&server, &["-o", &address, "--no-clobber"]);
        assert_code(&kept, 8);
        let other = bucket.address("other.ndjson");
        assert_code(&bucket.export(&server, &["-o", &other, "--no-clobber"]), 0);
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn a_partitioned_export_writes_one_object_per_value() {
    let server = Server::start(&["--batches", "400"]);
    for bucket in Bucket::all() {
        let template = bucket.address("lake/year={year}/{crop_type}.csv.gz");
        let manifest = bucket.address("lake/manifest.json");
        let done = bucket.export(&server, &["-o", &template, "--manifest", &manifest]);
        assert_code(&done, 0);
        let template = bucket.local("lake/year={year}/{crop_type}.csv.gz");
        assert_code(&bucket.export(&server, &["-o", &template]), 0);
        let content: Value = serde_json::from_slice(&bucket.get("lake/manifest.json")).unwrap();
        let files = content["files"].as_array().unwrap();
        assert!(files.len() > 10 && bucket.list().len() == files.len() + 1);
        for (place, file) in files.iter().enumerate() {
            let address = file["path"].as_str().unwrap();
            let key = address.strip_prefix(&bucket.address("")).unwrap();
            assert!(
                bucket.get(key) == fs::read(bucket.local(key)).unwrap(),
                "{address}"
            );
            if place % 9 == 0 {
                assert_code(&bucket.verify(&[address, "--manifest", &manifest]), 0);
            }
        }
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn hostile_values_stay_below_the_prefix() {
    let crops = [
        "../../etc",
        "a/b\\c",
        "%2e%2e",
        "?x=1&y#z",
        "Chicorée 🌱",
        "a\u{0}b",
        "..",
        " ",
    ];
    let batch = |(number, crop): (usize, &&str)| {
        Batch::new(&format!("{number:08}")).with("crop_type", json!(crop))
    };
    let batches: Vec<Batch> = crops.iter().enumerate().map(batch).collect();
    for bucket in Bucket::all() {
        let service =
            FakeService::answering(vec![token(); 2], vec![Answer::ok(page(&batches, None)); 2]);
        let export = |template: &str| {
            let mut command = bucket.command(&["export", "--parallel", "1", "-o", template]);
            command
                .env("TRAYSCAN_BASE_URL", service.base_url())
                .env("TRAYSCAN_CLIENT_ID", "id")
                .env("TRAYSCAN_CLIENT_SECRET", "a-secret");
            bucket.ended(&mut command)
        };
        assert_code(&export(&bucket.address("in/{crop_type}.csv")), 0);
        assert_code(&export(&bucket.local("in/{crop_type}.csv")), 0);
        let mut names: Vec<String> = fs::read_dir(bucket.local("in"))
            .unwrap()
            .map(|entry| format!("in/{}", entry.unwrap().file_name().to_str().unwrap()))
            .collect();
        names.sort();
        assert_eq!(bucket.list(), names);
        assert_eq!(names.len(), crops.len());
        for name in names {
            assert!(
                bucket.get(&name) == fs::read(bucket.local(&name)).unwrap(),
                "{name}"
            );
        }
    }
}

#[test]
fn no_clobber_keeps_an_existing_object() {
    let server = Server::start(&["--batches", "20"]);
    for bucket in Bucket::all() {
        bucket.ask("put", "a.csv", b"old");
        let address = bucket.address("a.csv");
        let known = server.address;
        let kept = bucket.export(&server, &["-o", &address, "--no-clobber"]);
        assert_code(&kept, 8);
        assert!(
            kept.stderr.contains("exists, and `--no-clobber` keeps it"),
            "{kept:?} {known}"
        );
        assert_eq!(bucket.get("a.csv"), b"old");
        let new = bucket.address("b.csv");
        assert_code(&bucket.export(&server, &["-o", &new, "--no-clobber"]), 0);
        assert_code(&bucket.export(&server, &["-o", &address]), 0);
        assert!(bucket.get("a.csv") == bucket.get("b.csv"));
        let template = bucket.address("{crop_type}.csv");
        assert_code(
            &bucket.export(&server, &["-o", &template, "--no-clobber"]),
            0,
        );
        let before = bucket.list();
        assert_code(
            &bucket.export(&server, &["-o", &template, "--no-clobber"]),
            8,
        );
        assert_eq!(bucket.list(), before);
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn no_clobber_keeps_an_object_created_during_the_run() {
    let server = Server::start(&SLOW);
    for bucket in Bucket::all() {
        let address = bucket.address("a.csv");
        let mut command = bucket.export_command(&server, &["-o", &address, "--no-clobber"]);
        let mut running = command.start_until_third_page();
        bucket.ask("put", "a.csv", b"theirs");
        let status = running.ends_within(crate::harness::LIMIT);
        assert_eq!(status.unwrap().code(), Some(8));
        assert_eq!(bucket.get("a.csv"), b"theirs");
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn an_interrupted_or_failed_run_keeps_the_old_object_and_leaves_no_parts() {
    let slow = Server::start(&SLOW);
    // Slow enough that a part is being uploaded when it fails.
    let faults = [
        "--batches=20000",
        "--page-size=1000",
        "--fault=bad-cursor:500",
        "--fault=cursor-expiry:19",
        "--fault=latency:30ms",
    ];
    for bucket in Bucket::all() {
        for (name, args) in [
            ("a.ndjson", &[][..]),
            ("a.xlsx", &[]),
            ("{crop_type}.csv", &["--limit", "1400"]),
        ] {
            bucket.ask("put", name, b"old");
            let address = bucket.address(name);
            for (signal, code) in [("TERM", 143), ("INT", 130)] {
                let args = [&["-o", &*address], args].concat();
                let running = bucket.export_command(&slow, &args).start_until_third_page();
                running.signal(signal);
                let mut running = running;
                let ended = running.ends_within(crate::harness::LIMIT);
                assert_eq!(ended.unwrap().code(), Some(code));
                bucket.assert_no_incomplete_uploads();
            }
            assert_eq!(bucket.get(name), b"old");
        }
        let before = bucket.list();
        let address = bucket.address("a.ndjson");
        // Each server fails only once.
        let failing = Server::start(&faults);
        let failed = bucket.export(&failing, &["-o", &address, "--parallel", "1"]);
        assert_code(&failed, 5);
        assert!(
            failed.stderr.contains(&format!("`{address}` is unchanged")),
            "{failed:?}"
        );
        assert_eq!(
            (bucket.get("a.ndjson"), bucket.list()),
            (b"old".to_vec(), before)
        );
        if bucket.scheme == "s3" {
            let log = bucket.ask("log", "", &[]).to_string();
            assert!(
                log.contains("partNumber=1&"),
                "no part was sent before it failed"
            );
        }
        bucket.assert_no_incomplete_uploads();
    }
}

#[test]
fn unwritable_targets_are_detected_before_the_first_request() {
    let server = Server::start(&["--batches", "20"]);
    for bucket in Bucket::all() {
        for name in ["a.csv", "a.sqlite", "{year}.csv"] {
            let address = format!("{}://no-such-place/{name}", bucket.scheme);
            let failed = bucket.export(&server, &["-o", &address]);
            assert_code(&failed, 8);
            assert!(
                failed
                    .stderr
                    .contains("no-such-place` may not exist: create it first"),
                "{failed:?}"
            );
        }
        let address = bucket.address("a.csv");
        let (variable, path) = match bucket.scheme {
            "s3" => ("AWS_ENDPOINT_URL", ""),
            "gs" => ("GOOGLE_BASE_URL", ""),
            _ => ("AZURE_STORAGE_ENDPOINT", "/devstoreaccount1"),
        };
        for (endpoint, code, words) in [
            ("http://127.0.0.1:1", 5, "no response"),
            (
                "http://storage.invalid",
                13,
                "plain http to another machine",
            ),
            ("ftp://127.0.0.1", 2, "is not a valid address"),
        ] {
            let mut command = bucket.export_command(&server, &["-o", &address]);
            let failed = bucket.ended(command.env(variable, format!("{endpoint}{path}")));
            assert_code(&failed, code);
            assert!(failed.stderr.contains(words), "{failed:?}");
        }
        // The metadata service of the test machine must not be used.
        let mut command = bucket.export_command(&server, &["-o", &address]);
        for name in [
            "AWS_EC2_METADATA_DISABLED",
            "NO_GCE_CHECK",
            "AZURE_METADATA_DISABLED",
        ] {
            command.env(name, "true");
        }
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AZURE_STORAGE_ACCOUNT_KEY",
        ] {
            command.env_remove(name);
        }
        let failed = bucket.ended(&mut command);
        assert_code(&failed, 2);
        assert!(failed.stderr.contains("no credentials for"), "{failed:?}");
        assert!(bucket.list().is_empty());
        bucket.assert_no_incomplete_uploads();
    }
    let log = server.stop();
    assert!(!log.stderr.contains("/v2/"), "requests were sent: {log:?}");
}

#[test]
fn a_wrong_key_is_reported_without_showing_it() {
    let server = Server::start(&["--batches", "20"]);
    let Some(bucket) = Bucket::new("az", "locked") else {
        return;
    };
    bucket.ask("put", "a.csv", b"old");
    let address = bucket.address("a.csv");
    let wrong = BASE64_STANDARD.encode("not the key of this account at all");
    for (variable, value) in [
        ("AZURE_STORAGE_ACCOUNT_KEY", wrong.clone()),
        (
            "AZURE_STORAGE_SAS_TOKEN",
            "sv=2024-08-04&ss=b&srt=co&sp=rwl&se=2099-01-01T00:00:00Z&sig=c2VjcmV0LXNpZ25hdHVyZS1oZXJl".to_owned(),
        ),
    ] {
        for (words, code) in [(&["export", "-o"][..], 8), (&["verify"], 4)] {
            let mut command = match words {
                ["verify"] => bucket.command(&["verify", &address]),
                _ => bucket.export_command(&server, &["-o", &address]),
            };
            command.env_remove("AZURE_STORAGE_ACCOUNT_KEY").env(variable, &value);
            let failed = bucket.ended(&mut command);
            assert_code(&failed, code);
            assert!(failed.stderr.contains("it answered 403 Auth"), "{failed:?}");
            for secret in [&*wrong, "c2VjcmV0LXNpZ25hdHVyZS1oZXJl", "sig="] {
                assert!(!failed.stderr.contains(secret), "{failed:?}");
            }
        }
    }
    assert_eq!(bucket.get("a.csv"), b"old");
}

#[test]
fn a_line_break_in_a_credential_is_reported_without_showing_it() {
    let server = Server::start(&["--batches", "20"]);
    for (scheme, variables) in [
        (
            "s3",
            &[
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
                "AWS_REGION",
            ][..],
        ),
        ("gs", &["GOOGLE_BEARER_TOKEN"]),
        ("az", &["AZURE_STORAGE_TOKEN", "AZURE_STORAGE_KEY"]),
    ] {
        let Some(bucket) = Bucket::new(scheme, "mounted") else {
            continue;
        };
        for variable in variables {
            let address = bucket.address("a.csv");
            let mut command = bucket.export_command(&server, &["-o", &address]);
            command.env(variable, "c2VjcmV0LXZhbHVl\n");
            let refused = bucket.ended(&mut command);
            assert_code(&refused, 2);
            let message = format!("{variable} contains a line break");
            assert!(refused.stderr.contains(&message), "{refused:?}");
            assert!(!refused.stderr.contains("c2VjcmV0"), "{refused:?}");
        }
    }
}

#[test]
fn an_unknown_account_is_reported() {
    let server = Server::start(&["--batches", "20"]);
    let Some(bucket) = Bucket::new("gs", "locked") else {
        return;
    };
    let address = bucket.address("a.csv");
    let other = bucket.local("other.json");
    let account = bucket.servers.google_account.replace("lake@", "pond@");
    fs::write(&other, account).unwrap();
    for (mut command, code) in [
        (bucket.export_command(&server, &["-o", &address]), 8),
        (bucket.command(&["verify", &address]), 4),
    ] {
        command.env("GOOGLE_APPLICATION_CREDENTIALS", &other);
        let failed = bucket.ended(&mut command);
        assert_code(&failed, code);
        for part in ["answered 401 Auth", "check GOOGLE_APPLICATION_CREDENTIALS"] {
            assert!(failed.stderr.contains(part), "{failed:?}");
        }
    }
    assert!(bucket.list().is_empty());
}

#[test]
fn a_missing_object_cannot_be_verified() {
    for bucket in Bucket::all() {
        for args in [
            &[&*bucket.address("none.csv")][..],
            &["-", "--manifest", &bucket.address("none.json")],
        ] {
            let failed = bucket.verify(args);
            assert_code(&failed, 2);
            assert!(failed.stderr.contains("no such object"), "{failed:?}");
        }
    }
}

#[test]
fn a_custom_certificate_is_trusted_if_configured() {
    let server = Server::start(&["--batches", "20"]);
    let Some(bucket) = Bucket::new("s3", "sealed") else {
        return;
    };
    let names = vec!["localhost".to_owned()];
    let certified = rcgen::generate_simple_self_signed(names).unwrap();
    let (certificate, address) = (bucket.local("own.crt"), bucket.address("a.csv"));
    fs::write(&certificate, certified.cert.pem()).unwrap();
    let key = certified.signing_key.serialize_pem();
    fs::write(bucket.local("own.key"), key).unwrap();
    let endpoint = bucket.ask("tls", &bucket.local("own"), &[]);
    let run = |mut command: Run, args: &[&str]| {
        command.env("AWS_ENDPOINT_URL", endpoint.as_str().unwrap());
        bucket.ended(command.args(args))
    };
    let export = || bucket.export_command(&server, &["-o", &address]);
    let verify = || bucket.command(&["verify", &address]);

    let refused = run(export(), &[]);
    assert_code(&refused, 13);
    assert!(refused.stderr.contains("`--ca-cert`"), "{refused:?}");
    assert!(bucket.list().is_empty());
    let trusted = ["--ca-cert", &certificate];
    assert_code(&run(export(), &trusted), 0);
    assert_eq!(bucket.list(), ["a.csv"]);
    assert_code(&run(verify(), &[]), 13);
    assert_code(&run(verify(), &trusted), 0);
    let config = bucket.local("config.toml");
    let profile = format!("[profiles.default]\nca_cert = \"{certificate}\"\n");
    fs::write(&config, profile).unwrap();
    assert_code(&run(verify(), &["--config", &config]), 0);
    assert_code(&run(verify(), &["--ca-cert", &config]), 2);
}

#[test]
fn a_full_disk_for_the_temporary_file_is_reported_and_nothing_is_sent() {
    let server = Server::start(&["--batches", "900"]);
    for bucket in Bucket::all().into_iter().take(1) {
        for name in ["a.xlsx", "a.sqlite"] {
            bucket.ask("put", name, b"old");
            let address = bucket.address(name);
            let inner = bucket.export_command(&server, &["-o", &address]);
            // Only this shell sees the mount, which disappears when it exits.
            let script = "mount -t tmpfs -o size=64k tmpfs \"$TMPDIR\" 2>/dev/null || exit 77
                \"$0\" \"$@\"; code=$?; ls -A \"$TMPDIR\"; exit $code";
            let mut outer = inner.under(&["unshare", "--mount", "/bin/sh", "-c", script]);
            outer.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
            let disk = TempDir::new().unwrap();
            let tried = outer.env("TMPDIR", disk.path()).try_raw();
            let Some(output) = tried.ok().filter(|output| {
                let refused = String::from_utf8_lossy(&output.stderr).contains("unshare");
                output.status.code() != Some(77) && !refused
            }) else {
                eprintln!("skipped: this user may not mount a small disk");
                return;
            };
            let ended = Output::of(output);
            assert_code(&ended, 8);
            assert_eq!(ended.stdout, "", "{ended:?}");
            for part in [&*address, "the disk is full"] {
                assert!(ended.stderr.contains(part), "{ended:?}");
            }
            assert_eq!(bucket.get(name), b"old");
            bucket.assert_no_incomplete_uploads();
        }
    }
}
