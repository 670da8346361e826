//! Kills at any moment, signals, and full disks. Archives stay intact, nothing is lost, and the next run
//! continues.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::archives::{ArchiveFile, assert_sound, batches};
use crate::export::with;
use crate::fake::live::{DAY, LiveService, now};
use crate::files::{OLD, SLOW, names};
use crate::harness::{Output, Run, SOON, Server, Service, trayscan};

/// System calls that change files, or precede one that does.
const CALLS: [&str; 6] = [
    "pwrite64",
    "fsync",
    "unlink",
    "openat",
    "fcntl",
    "ftruncate",
];

/// Returns whether `strace` can kill a process here. If not, tests kill at random moments.
pub(crate) fn strace_kills() -> bool {
    static KILLS: OnceLock<bool> = OnceLock::new();
    *KILLS.get_or_init(|| {
        let mut command = Run::new("strace");
        command.args([
            "-f",
            "-o",
            "/dev/null",
            "-e",
            "inject=openat:signal=KILL:when=1",
        ]);
        let tried = command.arg("true").try_raw();
        let kills = tried.is_ok_and(|output| output.status.signal() == Some(9));
        if !kills {
            eprintln!("strace is missing or may not trace: killing at random moments instead");
        }
        kills
    })
}

/// When a run is killed.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    /// At the nth call of this system call.
    Call(&'static str, usize),
    After(Duration),
}

/// Runs `command` and kills it at `moment`. Returns `false` if it had already exited.
pub(crate) fn killed(command: &Run, moment: &Moment) -> bool {
    match moment {
        Moment::Call(call, nth) => {
            let kill = format!("signal=KILL:when={nth}");
            let output = command.injecting(call, &kill).raw();
            let is_killed = output.status.signal() == Some(9);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(is_killed || output.status.success(), "{moment:?}: {stderr}");
            is_killed
        }
        Moment::After(time) => {
            let mut child = command.under::<&str>(&[]).start();
            thread::sleep(*time);
            child.kill();
            child.wait().signal() == Some(9)
        }
    }
}

/// Returns random moments up to `most`. Prints the seed; set `TRAYSCAN_TEST_SEED` to repeat it.
fn random_moments(count: usize, most: Duration) -> Vec<Moment> {
    let seed = std::env::var("TRAYSCAN_TEST_SEED").ok();
    let seed = seed.map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
    eprintln!("TRAYSCAN_TEST_SEED={seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let most = u64::try_from(most.as_micros()).unwrap();
    let random_moments = (0..count).map(|_| Duration::from_micros(chance.u64(..most)));
    random_moments.map(Moment::After).collect()
}

/// Returns a moment for each of these calls and each of these positions.
fn moments_at(calls: &[&'static str], places: &[usize]) -> Vec<Moment> {
    let moments = |call| places.iter().map(move |nth| Moment::Call(call, *nth));
    calls.iter().copied().flat_map(moments).collect()
}

/// Runs `job` for every item, two at a time.
fn two_at_a_time<T: Sync>(items: &[T], job: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    job(item);
                }
            });
        }
    });
}

/// Copies an archive to a new folder.
fn copy(of: &ArchiveFile) -> ArchiveFile {
    let shelf = ArchiveFile::new();
    if of.path.exists() {
        fs::copy(&of.path, &shelf.path).unwrap();
    }
    shelf
}

/// A service, an existing archive, and the expected content after a successful run.
struct Scene {
    nursery: LiveService,
    before: ArchiveFile,
    args: Vec<&'static str>,
    expected: BTreeMap<String, String>,
    changes: Vec<(String, String)>,
}

impl Scene {
    /// A first run, without an archive.
    fn first() -> Self {
        let nursery = LiveService::start();
        nursery.state().page = 50;
        let today = now();
        nursery
            .state()
            .fill("a", (1..=200).map(|day| today - day * DAY));
        let expected = nursery.state().texts();
        Self {
            nursery,
            before: ArchiveFile::new(),
            args: vec!["-q"],
            expected,
            changes: Vec::new(),
        }
    }

    /// A full run with new, changed and vanished batches.
    fn later() -> Self {
        let mut scene = Self::first();
        scene.before.complete(&scene.nursery, &[]);
        let gone = ["a0020", "a0030"];
        {
            let mut stock = scene.nursery.state();
            for id in ["a0000", "a0100", "a0150"] {
                stock.edit(id, "comment", "\"edited\"");
                scene.changes.push(("changed".to_owned(), id.to_owned()));
            }
            let today = now();
            stock.fill("b", (0..40).map(|minute| today - minute * 60));
            scene.expected = stock.texts();
            for id in gone {
                stock.items.remove(id).unwrap();
                scene.changes.push(("vanished".to_owned(), id.to_owned()));
            }
        }
        scene.args.push("--full");
        scene
    }

    /// Kills a run at each of these moments. More than a third must kill it before it exits.
    fn kill_at(&self, moments: &[Moment]) {
        let kills = AtomicUsize::new(0);
        two_at_a_time(moments, |moment| {
            kills.fetch_add(usize::from(self.kill(moment)), Ordering::SeqCst);
        });
        let kills = kills.into_inner();
        assert!(kills * 3 > moments.len(), "{kills} of {}", moments.len());
    }

    /// Returns the duration of a complete run.
    fn duration(&self) -> Duration {
        let shelf = copy(&self.before);
        let started = Instant::now();
        shelf.complete(&self.nursery, &self.args);
        started.elapsed()
    }

    /// Kills a run at `moment`, checks the archive, and checks it again after another run. Returns whether
    /// the run was killed.
    fn kill(&self, moment: &Moment) -> bool {
        let shelf = copy(&self.before);
        let was_killed = killed(&shelf.command(&self.nursery, &self.args), moment);
        // The archive can be read after the kill, unless it is still empty.
        if was_killed && fs::metadata(&shelf.path).is_ok_and(|file| file.len() > 0) {
            let mut command = trayscan(&["sync", "--status", "-f", "json"]);
            let ended = command.arg(&shelf.path).output();
            let is_empty = fs::metadata(&shelf.path).unwrap().len() == 0;
            let code = if is_empty { 8 } else { 0 };
            assert_eq!(ended.code, Some(code), "{moment:?}: {}", ended.stderr);
        }
        let what = format!("{moment:?} {:?}", self.args);
        let ended = shelf.sync(&self.nursery, &self.args);
        assert_eq!(ended.code, Some(0), "{what}: {}", ended.stderr);
        shelf.assert_holds(&self.expected, &what);
        let db = shelf.open();
        let mut rows = db
            .prepare("SELECT kind, batch_id FROM changes ORDER BY 1, 2")
            .unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        let changes: Vec<(String, String)> = rows.unwrap().map(Result::unwrap).collect();
        assert_eq!(changes, self.changes, "{what}: each change once");
        let indexes = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
        assert!(shelf.one::<i64>(indexes) >= 4, "{what}");
        let key = "SELECT count(*) FROM pragma_index_list('batches') WHERE \"unique\"";
        assert_eq!(shelf.one::<i64>(key), 1, "{what}");
        assert_eq!(shelf.one::<i64>("PRAGMA user_version"), 1, "{what}");
        let status = shelf.status();
        assert_eq!(status["gaps"], Value::Array(Vec::new()), "{what}");
        assert_eq!(status["covered"].as_array().unwrap().len(), 1, "{what}");
        let outcomes: Vec<&str> = status["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes[0], "complete", "{what}");
        assert!(!outcomes.contains(&"running"), "{what}: {status}");
        was_killed
    }
}

#[test]
fn a_first_run_can_be_killed_at_any_moment() {
    let scene = Scene::first();
    let moments = if strace_kills() {
        let mut moments = moments_at(&["pwrite64"], &[1, 2, 4, 8, 12, 14, 40, 90, 150]);
        moments.extend(moments_at(&["fsync"], &[1, 2, 3, 4, 5, 8, 12, 20]));
        moments.extend(moments_at(&["unlink"], &[1, 2, 3, 5]));
        moments.extend(moments_at(&["openat", "fcntl"], &[2, 5, 9, 12]));
        moments
    } else {
        random_moments(25, scene.duration())
    };
    scene.kill_at(&moments);
}

#[test]
#[ignore = "takes minutes"]
fn a_sync_can_be_killed_at_every_system_call() {
    if !strace_kills() {
        return;
    }
    for scene in [Scene::first(), Scene::later()] {
        for call in CALLS {
            let next = AtomicUsize::new(1);
            let last = AtomicUsize::new(usize::MAX);
            two_at_a_time(&[(), ()], |()| {
                loop {
                    let nth = next.fetch_add(1, Ordering::SeqCst);
                    if nth > last.load(Ordering::SeqCst) {
                        break;
                    }
                    if !scene.kill(&Moment::Call(call, nth)) {
                        last.fetch_min(nth, Ordering::SeqCst);
                    }
                }
            });
            let calls = last.into_inner() - 1;
            eprintln!("{:?}: {call} {calls}", scene.args);
            assert!(calls >= 3 || call == "ftruncate");
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn a_sync_can_be_killed_at_random_moments() {
    for scene in [Scene::first(), Scene::later()] {
        // Slow enough for several commits per run.
        scene.nursery.state().page = 5;
        scene.nursery.state().latency = Duration::from_millis(50);
        two_at_a_time(&random_moments(60, Duration::from_millis(2500)), |moment| {
            scene.kill(moment);
        });
    }
}

#[test]
fn repeatedly_killed_runs_still_make_progress() {
    let nursery = LiveService::start();
    let today = now();
    nursery
        .state()
        .fill("a", (1..=500).map(|day| today - day * DAY));
    nursery.state().latency = Duration::from_millis(80);
    let shelf = ArchiveFile::new();
    let mut kept = Vec::new();
    // The first commit takes at least a second.
    while kept.len() < 3 {
        let command = shelf.command(&nursery, &["-q", "--parallel", "1"]);
        killed(&command, &Moment::After(Duration::from_millis(1900)));
        assert_sound(&shelf.path, "killed");
        let status = shelf.status();
        kept.push(status["batches"].as_u64().unwrap());
        assert!(kept.is_sorted(), "{kept:?}");
    }
    assert!(kept[0] > 0 && kept[2] > kept[0], "{kept:?}");
    nursery.state().latency = Duration::ZERO;
    let known = nursery.asked();
    shelf.complete(&nursery, &["--parallel", "1"]);
    let asked = nursery.requests_since(known);
    assert!(
        asked[0].query("start_date").is_some(),
        "it did not continue"
    );
    let expected = nursery.state().texts();
    shelf.assert_holds(&expected, "after the last run");
}

// Exports.

/// Asserts that a killed export leaves the complete old or new file and at most one hidden file, and that
/// the next export succeeds and removes the hidden file.
fn kill_export(nursery: &LiveService, complete: &[u8], moment: &Moment) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, OLD).unwrap();
    let mut command = trayscan(&["export", "-q", "-o"]);
    command.service(nursery);
    command.arg(&path);
    let was_killed = killed(&command, moment);
    let found = fs::read(&path).unwrap();
    assert!(
        found == OLD || found == complete,
        "{moment:?}: {} bytes",
        found.len()
    );
    assert!(was_killed || found == complete, "{moment:?}");
    let (hidden, others): (Vec<_>, Vec<_>) = names(folder.path())
        .into_iter()
        .map(|name| name.into_string().unwrap())
        .partition(|name| name.starts_with(".trayscan-"));
    assert_eq!(others, ["a.csv"], "{moment:?}");
    assert!(
        hidden.len() <= usize::from(was_killed),
        "{moment:?}: {hidden:?}"
    );
    let ended = command.output();
    assert_eq!(ended.code, Some(0), "{moment:?}: {ended:?}");
    assert!(fs::read(&path).unwrap() == complete, "{moment:?}");
    assert_eq!(
        names(folder.path()),
        ["a.csv"],
        "{moment:?}: files left over"
    );
}

fn kill_exports(moments: &[Moment]) {
    let nursery = LiveService::start();
    let today = now();
    nursery.state().page = 50;
    nursery
        .state()
        .fill("a", (1..=400).map(|day| today - day * DAY));
    let mut command = trayscan(&["export", "-q", "-f", "csv"]);
    command.service(&nursery);
    let complete = command.raw().stdout;
    assert_eq!(str::from_utf8(&complete).unwrap().lines().count(), 401);
    two_at_a_time(moments, |moment| kill_export(&nursery, &complete, moment));
}

/// The system calls of an export that change files.
const EXPORT_CALLS: [&str; 7] = [
    "write",
    "openat",
    "fsync",
    "rename",
    "renameat2",
    "unlink",
    "fchmod",
];

#[test]
#[ignore = "takes minutes"]
fn an_export_can_be_killed_at_every_system_call() {
    if strace_kills() {
        let places: Vec<usize> = (1..=40).collect();
        kill_exports(&moments_at(&EXPORT_CALLS, &places));
    }
    kill_exports(&random_moments(100, Duration::from_millis(150)));
}

// Signals.

#[test]
fn a_signal_stops_it_and_keeps_received_batches() {
    let server = Server::start(&SLOW);
    let all = batches(&server, "");
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        for workers in ["1", "4"] {
            let shelf = ArchiveFile::new();
            let mut command = shelf.command(&server, &["--parallel", workers]);
            let running = command.start_until_third_page();
            running.signal(signal);
            let stderr = running.ends_soon_with(code);
            assert!(
                stderr.contains(&format!("ended by SIG{signal}")),
                "{stderr}"
            );
            assert!(
                stderr.contains("the next run continues from there"),
                "{stderr}"
            );
            assert_eq!(shelf.names(), ["a.db"]);
            assert_sound(&shelf.path, signal);
            let kept = shelf.received();
            assert!(kept.len() >= 10, "{}", kept.len());
            assert!(kept.iter().all(|(id, text)| all.get(id) == Some(text)));
            let status = shelf.status();
            let run = &status["runs"][0];
            assert_eq!(run["outcome"], "interrupted", "{run}");
            assert_eq!(
                (&run["exit_code"], &run["added"]),
                (&code.into(), &kept.len().into())
            );
            assert!(run["ended"].is_string(), "{run}");
        }
    }
}

#[test]
fn a_signal_before_the_first_page_leaves_no_file() {
    let server = with(&[], &["latency:1h"]);
    let shelf = ArchiveFile::new();
    let running = shelf.command(&server, &[]).start_logged();
    while !shelf.path.exists() {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(200));
    running.signal("TERM");
    running.ends_soon_with(143);
    assert_eq!(shelf.names(), [""; 0]);
}

#[test]
fn a_signal_interrupts_the_wait_for_the_archive() {
    let server = Server::start(&SLOW);
    let shelf = ArchiveFile::new();
    let first = shelf.command(&server, &[]).start_until_third_page();
    let mut second = shelf.command(&server, &["--wait", "10m"]).start_logged();
    let started = Instant::now();
    while !second.line().contains("waiting for") {
        assert!(started.elapsed() < SOON);
    }
    second.signal("INT");
    let status = second.ends_within(SOON);
    assert_eq!(status.map(|status| status.code()), Some(Some(130)));
    first.signal("KILL");
}

// Full disks.

/// Runs `script` with the program as `$0` and a small private disk as `$1`. Returns `None` if this user
/// may not mount one.
fn on_a_small_disk(server: &dyn Service, disk: &Path, script: &str) -> Option<Output> {
    let mount = "mount -t tmpfs -o size=200k tmpfs \"$1\" 2>/dev/null || exit 77; cd \"$1\"\n";
    let mut command = Run::new("unshare");
    command.env_clear().env("HOME", "/nonexistent");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.service(server);
    command.args(["--mount", "/bin/sh", "-c", &format!("{mount}{script}")]);
    command.arg(env!("CARGO_BIN_EXE_trayscan")).arg(disk);
    let output = command.try_raw().ok()?;
    let refused = String::from_utf8_lossy(&output.stderr).contains("unshare");
    if refused || output.status.code() == Some(77) {
        eprintln!("skipped: this user may not mount a small disk");
        return None;
    }
    Some(Output::of(output))
}

#[test]
fn a_full_disk_beside_an_invalid_batch_loses_nothing() {
    let nursery = LiveService::start();
    let today = now();
    nursery
        .state()
        .fill("a", (1..=500).map(|day| today - day * DAY));
    nursery.state().edit("a0250", "batch_name", "null");
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "\"$0\" sync a.db; echo \"code $?\"
        mount -o remount,size=20m . || mount -o remount,size=20m \"$1\"
        \"$0\" sync a.db; echo \"code $?\"; cp a.db {}/after.db",
        folder.path().display()
    );
    let Some(ended) = on_a_small_disk(&nursery, &disk, &script) else {
        return;
    };
    assert_eq!(ended.stdout, "code 8\ncode 7\n", "{ended:?}");
    let found = crate::archives::received(&folder.path().join("after.db"));
    assert_eq!(found.len(), 499, "all but the invalid one: {ended:?}");
}

#[test]
fn a_full_disk_ends_with_code_8_and_the_next_run_continues() {
    let server = Server::start(&["--batches", "400", "--page-size", "20"]);
    let expected = batches(&server, "");
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "\"$0\" sync a.db --start 2026-10-27 || exit 1
        \"$0\" sync a.db --start 2020; echo \"code $?\"; ls -A
        cp a.db {0}/full.db; \"$0\" sync a.db --status -f json > {0}/full.json
        mount -o remount,size=20m . || mount -o remount,size=20m \"$1\"
        \"$0\" sync a.db --start 2020; echo \"code $?\"; ls -A; cp a.db {0}/after.db",
        folder.path().display()
    );
    let Some(ended) = on_a_small_disk(&server, &disk, &script) else {
        return;
    };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "code 8\na.db\ncode 0\na.db\n", "{ended:?}");
    assert!(
        ended.stderr.contains("no space left for the archive"),
        "{ended:?}"
    );
    assert_sound(&folder.path().join("full.db"), "full");
    let status = fs::read(folder.path().join("full.json")).unwrap();
    let status: Value = serde_json::from_slice(&status).unwrap();
    assert!(status["batches"].as_u64().unwrap() > 0, "{status}");
    assert_sound(&folder.path().join("after.db"), "after");
    let found = crate::archives::received(&folder.path().join("after.db"));
    assert!(found == expected, "{} of {}", found.len(), expected.len());
}

#[test]
fn a_disk_full_from_the_start_ends_with_code_8_and_leaves_no_file() {
    let server = Server::start(&["--batches", "400"]);
    let folder = TempDir::new().unwrap();
    let script = "head -c 1m /dev/zero > filler 2>/dev/null
        \"$0\" sync a.db; echo \"code $?\"; ls -A";
    let Some(ended) = on_a_small_disk(&server, folder.path(), script) else {
        return;
    };
    assert_eq!(ended.stdout, "code 8\nfiller\n", "{ended:?}");
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_later_run_can_be_killed_at_any_moment() {
        let scene = Scene::later();
        let moments = if strace_kills() {
            let mut moments = moments_at(&["pwrite64"], &[1, 3, 9, 12, 15, 40, 60]);
            moments.extend(moments_at(&["fsync"], &[1, 2, 3, 4, 5, 6, 7, 8]));
            moments.extend(moments_at(&["unlink"], &[1, 2, 3]));
            moments
        } else {
            random_moments(20, scene.duration())
        };
        scene.kill_at(&moments);
    }

    #[test]
    #[ignore = "slow"]
    fn an_export_can_be_killed_at_any_moment() {
        if strace_kills() {
            kill_exports(&moments_at(&EXPORT_CALLS, &[1, 2, 4]));
        } else {
            kill_exports(&random_moments(20, Duration::from_millis(120)));
        }
    }
}
