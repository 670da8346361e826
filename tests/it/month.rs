//! An archive over weeks, compared with a small model of the service. Batches are added (some late), edited
//! and deleted; the service has faults, its clock jumps, and runs are killed. After a run without faults, the
//! archive equals the model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use rusqlite::Connection;

use crate::archives::{ArchiveFile, assert_sound};
use crate::harness::{Output, Server, run, trayscan};

/// The faults of the service on a day.
const FAULTS: [&[&str]; 13] = [
    &[],
    &["503:0.2"],
    &["500:0.1", "429:0.1"],
    &["reset:0.1"],
    &["truncate:0.1"],
    &["token-uses:4"],
    &["cursor-expiry:2"],
    &["shuffle"],
    &["newest-first"],
    &["duplicates:0.3"],
    &["empty-pages:0.3"],
    &["v2-missing", "v1-truncate"],
    &["dates-with-cursor:refused"],
];

/// The days that every run fetches again; only `--full` finds older changes.
const LOOKBACK: i64 = 7;

/// A service whose batches change, an archive of it, and a model of its batches.
struct World {
    rng: Rng,
    shelf: ArchiveFile,
    /// The archive that the service serves; the test writes to it directly.
    served: PathBuf,
    address: SocketAddr,
    /// The simulated day, as days before today.
    days_ago: i64,
    number: u32,
    /// The batches of the service, by ID.
    model: BTreeMap<String, String>,
    /// The creation date of each batch.
    created: BTreeMap<String, DateTime<Utc>>,
    /// The IDs of deleted batches.
    deleted: BTreeSet<String>,
    /// A log of all events, printed if a test fails.
    log: String,
}

impl World {
    fn new(seed: u64, days: i64) -> Self {
        let shelf = ArchiveFile::new();
        let served = shelf.folder.path().join("service.db");
        run(&["sync", served.to_str().unwrap(), "--sandbox", "-q"]).expect(0);
        let db = Connection::open(&served).unwrap();
        db.execute("DELETE FROM batches", []).unwrap();
        // A fixed, unique address, so that the service can be restarted at the same one.
        let process = std::process::id();
        let part = |shift: u32| u8::try_from(process >> shift & 0x7f).unwrap() + 1;
        let port = 20_000 + u16::try_from(seed % 10_000).unwrap();
        Self {
            rng: Rng::with_seed(seed),
            shelf,
            served,
            address: SocketAddr::from(([127, part(14), part(7), part(0)], port)),
            days_ago: days,
            number: 0,
            model: BTreeMap::new(),
            created: BTreeMap::new(),
            deleted: BTreeSet::new(),
            log: format!("seed {seed}\n"),
        }
    }

    fn now(&self) -> DateTime<Utc> {
        Utc::now() - TimeDelta::days(self.days_ago)
    }

    fn note(&mut self, what: &str) {
        writeln!(self.log, "{} days ago: {what}", self.days_ago).unwrap();
    }

    fn serve(&self, faults: &[&str], clock: i64) -> Server {
        let days = clock - self.days_ago;
        let mut command = trayscan(&["serve", "--format", "json", "-q", "--page-size", "20"]);
        command
            .args(["--client-secret", "month-secret-hunter6"])
            .args(["--listen", &self.address.to_string()])
            .args(["--seed", &self.number.to_string()])
            .arg("--archive")
            .arg(&self.served)
            .args(["--fault", &format!("clock:{days:+}d")]);
        for fault in faults {
            command.args(["--fault", fault]);
        }
        Server::spawn(command)
    }

    /// Adds a batch to the service, or a new version of an existing one.
    fn put(&mut self, id: &str, created: DateTime<Utc>) {
        self.number += 1;
        let version = self.number;
        let created_text = created.format("%Y-%m-%dT%H:%M:%S%.3fZ");
        let received = format!(
            r#"{{"batch_id":"{id}","batch_name":"lot {id}","batch_creation_date":"{created_text}","crop_type":null,"number_of_images":{version},"total_cells_per_tray":null,"avg_germinated_seedlings":null,"avg_non_germinated_seedlings":null,"avg_germination_rate":"{}.50","avg_usable_seedlings":null,"avg_non_usable_cells":null,"avg_usable_seedling_rate":null,"avg_coefficient_of_variation":null,"avg_median_seedling_size_mm2":null,"scanned_by_email":null,"analysis_link":null,"comment":"version {version}","warnings":false}}"#,
            version % 100
        );
        self.on_the_service(
            "INSERT INTO batches (batch_id, received, first_seen, last_changed) VALUES (?1, ?2, '', '')
             ON CONFLICT DO UPDATE SET received = excluded.received",
            &[id, &received],
        );
        self.created.insert(id.to_owned(), created);
        self.model.insert(id.to_owned(), received);
    }

    fn on_the_service(&self, sql: &str, values: &[&str]) {
        let db = Connection::open(&self.served).unwrap();
        db.busy_timeout(Duration::from_secs(20)).unwrap();
        let changed = db.execute(sql, rusqlite::params_from_iter(values));
        assert_eq!(changed.unwrap(), 1, "{}", self.log);
    }

    /// Adds, edits and deletes batches, as in a day at the nursery.
    fn change_batches(&mut self) {
        let now = self.now();
        for _ in 0..self.rng.u32(0..25) {
            // One in five arrives late because its scanner was offline for days.
            let late = if self.rng.u32(0..5) == 0 {
                LOOKBACK - 2
            } else {
                0
            };
            let seconds = self.rng.i64(0..=late * 86_400 + 40_000);
            let id = format!("b{}", self.number);
            self.put(&id, now - TimeDelta::seconds(seconds));
        }
        let ids: Vec<String> = self.model.keys().cloned().collect();
        for id in ids {
            match self.rng.u32(0..60) {
                0..2 => {
                    let created = self.created[&id];
                    self.put(&id, created);
                    self.note(&format!("{id} was edited"));
                }
                2 if self.rng.bool() => {
                    self.on_the_service("DELETE FROM batches WHERE batch_id = ?1", &[&id]);
                    self.model.remove(&id);
                    self.deleted.insert(id.clone());
                    self.note(&format!("{id} was deleted"));
                }
                _ => {}
            }
        }
    }

    /// Runs the cron job of the README, which may be killed at any moment.
    fn sync_at_night(&mut self) {
        let faults = FAULTS[self.rng.usize(0..FAULTS.len())];
        // Sometimes the service's clock is wrong by more than a year.
        let clock = match self.rng.u32(0..8) {
            0 => 400,
            1 => -400,
            _ => 0,
        };
        if self.rng.u32(0..10) == 0 {
            self.note("the service is down");
            let ended = self.cron(None);
            assert_eq!(ended.code, Some(5), "{ended:?}\n{}", self.log);
            return;
        }
        let server = self.serve(faults, clock);
        let kill = (self.rng.u32(0..3) == 0).then(|| Duration::from_millis(self.rng.u64(5..400)));
        self.note(&format!("{faults:?}, clock {clock:+}, killed: {kill:?}"));
        let ended = self.cron(kill);
        assert!(
            ended.code == Some(0) || kill.is_some() && ended.code.is_none(),
            "{ended:?}\n{}",
            self.log
        );
        drop(server);
        // If the service's clock was wrong too, the archive may only be complete after a later run.
        self.check_archive(ended.code == Some(0) && clock == 0);
    }

    fn cron(&self, kill: Option<Duration>) -> Output {
        let mut command = trayscan(&["sync", "-q", "--wait", "10m", "--retries", "30"]);
        command.service(self);
        command.arg(&self.shelf.path);
        let mut child = command.start();
        if let Some(after) = kill {
            thread::sleep(after);
            child.kill();
        }
        child.output()
    }

    /// Asserts that the archive is intact. If `is_complete`, also asserts that it contains all batches of the
    /// model.
    fn check_archive(&self, is_complete: bool) {
        if !self.shelf.path.exists() {
            assert!(!is_complete, "{}", self.log);
            return;
        }
        // A killed first run may leave an empty file. Opening any other file repairs it after a kill.
        if std::fs::metadata(&self.shelf.path).unwrap().len() == 0 {
            return;
        }
        assert_sound(&self.shelf.path, &self.log);
        if is_complete {
            let found = self.shelf.received();
            for id in self.model.keys() {
                assert!(found.contains_key(id), "{id} is missing\n{}", self.log);
            }
        }
    }

    /// Runs a sync and a full sync without faults, and asserts that the archive equals the model.
    fn finish(mut self) {
        let server = self.serve(&[], 0);
        let ended = self.cron(None);
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", self.log);
        self.check_archive(true);
        let status = self.shelf.status();
        assert_eq!(
            status["gaps"].as_array().unwrap().len(),
            0,
            "{status}\n{}",
            self.log
        );
        let ended = self.shelf.sync(&self, &["--full"]);
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", self.log);

        let db = self.shelf.open();
        let rows = |sql: &str| -> Vec<(String, String)> {
            let mut rows = db.prepare(sql).unwrap();
            let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.unwrap().map(Result::unwrap).collect()
        };
        let present = rows("SELECT batch_id, received FROM batches WHERE vanished IS NULL");
        let present: BTreeMap<String, String> = present.into_iter().collect();
        assert!(
            present == self.model,
            "{present:?}\n{:?}\n{}",
            self.model,
            self.log
        );
        let vanished = rows("SELECT batch_id, vanished FROM batches WHERE vanished IS NOT NULL");
        for (id, _) in &vanished {
            assert!(self.deleted.contains(id), "{id}\n{}", self.log);
        }
        assert_sound(&self.shelf.path, &self.log);

        // `verify` agrees that the archive equals the service.
        let mut verify = trayscan(&["verify", "--service"]);
        verify.service(&self);
        let verified = verify.arg(&self.shelf.path).output();
        assert_eq!(verified.code, Some(0), "{verified:?}\n{}", self.log);
        drop(server);
        // It also detects a difference.
        let id = self.model.keys().next().unwrap().clone();
        let created = self.created[&id];
        self.put(&id, created);
        let server = self.serve(&[], 0);
        let mut verify = trayscan(&["verify", "--service"]);
        verify.service(&self);
        let verified = verify.arg(&self.shelf.path).output();
        assert_eq!(verified.code, Some(7), "{verified:?}\n{}", self.log);
        assert!(verified.stdout.contains(&id), "{verified:?}");
        drop(server);
    }
}

impl crate::harness::Service for World {
    fn access(&self) -> [String; 3] {
        let address = format!("http://{}", self.address);
        let [id, secret] = ["sandbox", "month-secret-hunter6"].map(str::to_owned);
        [address, id, secret]
    }
}

fn simulate(seed: u64, days: i64) {
    let mut world = World::new(seed, days);
    while world.days_ago > 0 {
        world.change_batches();
        world.sync_at_night();
        world.days_ago -= 1;
    }
    world.finish();
}

/// A failure prints its seed; call `simulate` with it to repeat that month.
#[test]
#[ignore = "takes minutes"]
fn archives_are_correct_after_many_random_months() {
    for seed in 2..40 {
        simulate(seed, 31);
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_cron_job_keeps_an_archive_correct_for_a_month() {
        simulate(1, 31);
    }
}
