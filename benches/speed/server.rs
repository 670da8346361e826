//! Starts and stops `trayscan serve` with given batches and faults.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

pub(crate) const TRAYSCAN: &str = env!("CARGO_BIN_EXE_trayscan");

/// A service that runs until this is dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) batches: usize,
    pub(crate) faults: Vec<String>,
    /// The time it took to generate the batches.
    pub(crate) ready_after: Duration,
    /// Host and port.
    pub(crate) address: String,
    pub(crate) base_url: String,
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Server {
    /// Starts a service with pages of 1000; `None` if it does not know a fault.
    pub(crate) fn start(batches: usize, faults: &[&str]) -> Option<Self> {
        let started = Instant::now();
        let mut process = Command::new(TRAYSCAN)
            .args(["serve", "--listen", "127.0.0.1:0", "--format", "json"])
            .args(["--batches", &batches.to_string(), "--page-size", "1000"])
            .args(["--token-ttl", "10h"])
            .args(faults.iter().flat_map(|fault| ["--fault", fault]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let answer = BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut first);
        let mut server = Self {
            process,
            batches,
            faults: faults.iter().map(ToString::to_string).collect(),
            ready_after: started.elapsed(),
            address: String::new(),
            base_url: String::new(),
            id: String::new(),
            secret: String::new(),
        };
        if answer.unwrap() == 0 {
            let status = server.process.wait().unwrap();
            // Usage error: this trayscan does not know the fault.
            assert_eq!(status.code(), Some(2), "`trayscan serve` did not start");
            return None;
        }
        let access: Value = serde_json::from_str(&first).unwrap();
        let text = |key: &str| access[key].as_str().unwrap().to_owned();
        server.base_url = text("base_url");
        server.address = server.base_url.strip_prefix("http://").unwrap().to_owned();
        server.id = text("client_id");
        server.secret = text("client_secret");
        Some(server)
    }

    /// Returns a connection and a token for `version`, which is `v1` or `v2`.
    pub(crate) fn log_in(&self, version: &str) -> (Client, String) {
        let mut client = Client::connect(&self.address);
        let token = client.log_in(version, &self.id, &self.secret);
        (client, token)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already, and a failed kill cannot be handled here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
