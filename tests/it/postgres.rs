//! Exports into PostgreSQL, read back with psql and `verify`.

// What arrives in a table.
mod load;
mod values;
mod verify;

// Passwords and certificates.
mod login;

// Runs that end early.
mod interrupted;

// Locks, poolers, triggers, and connections that fail.
mod faults;
mod holder;
mod locks;
mod pooler;
mod proxy;
mod refused;
mod rows;

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::PASSWORD;
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
