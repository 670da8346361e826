//! Object storage: exports to real servers, read back with other clients.
//!
//! `tests/object-storage/servers.py` starts moto, Azurite and a small Google Cloud Storage server (`gcs.py`), and reads
//! with the clients of Amazon, Google and Microsoft. moto, Azurite and the clients are installed once from the package
//! registries. If that fails, these tests print a message and are skipped.

// What is written.
mod objects;

// What is kept.
mod existing;

// What cannot be written or read.
mod refused;

// Stores that fail, and lakes.
mod faults;
mod lakes;
mod proxy;

// The examples for Kubernetes and Airflow.
#[cfg(feature = "postgres")]
mod schedulers;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use tempfile::TempDir;

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
