//! Ends without warning: a kill at any moment, a signal, a full disk. Archives stay sound, nothing is
//! lost, and the next run carries on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::archives::{Shelf, assert_sound, batches, with_access};
use crate::export::with;
use crate::files::{OLD, Running, SLOW, names};
use crate::harness::{Ended, SOON, Server, trayscan};
use crate::nursery::{DAY, Nursery, now};

/// Calls that change files, or come before one that does.
const CALLS: [&str; 6] = [
    "pwrite64",
    "fsync",
    "unlink",
    "openat",
    "fcntl",
    "ftruncate",
];

/// Tells whether `strace` can kill here; where not, random instants have to do.
pub(crate) fn strace_kills() -> bool {
    static KILLS: OnceLock<bool> = OnceLock::new();
    *KILLS.get_or_init(|| {
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-o",
            "/dev/null",
            "-e",
            "inject=openat:signal=KILL:when=1",
        ]);
        let tried = command.arg("true").stderr(Stdio::null()).status();
        let kills = tried.is_ok_and(|status| status.signal() == Some(9));
        if !kills {
            eprintln!("strace is not here, or may not trace: killing at random instants instead");
        }
        kills
    })
}

/// Where a run is killed.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    /// When it makes the call for the nth time.
    Call(&'static str, usize),
    After(Duration),
}

/// Runs `command`, kills it at `moment`, and tells whether it had not ended before.
pub(crate) fn killed(command: &Command, moment: &Moment) -> bool {
    match moment {
        Moment::Call(call, nth) => {
            let mut traced = Command::new("strace");
            let inject = format!("inject={call}:signal=KILL:when={nth}");
            traced
                .args(["-f", "-o", "/dev/null"])
                .args(["-e", &format!("trace={call}"), "-e", &inject])
                .arg(command.get_program())
                .args(command.get_args())
                .env_clear();
            for (name, value) in command.get_envs() {
                traced.env(name, value.unwrap_or_default());
            }
            traced.stdin(Stdio::null());
            let output = traced.output().unwrap();
            let is_killed = output.status.signal() == Some(9);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(is_killed || output.status.success(), "{moment:?}: {told}");
            is_killed
        }
        Moment::After(time) => {
            let mut again = Command::new(command.get_program());
            again.args(command.get_args()).env_clear();
            for (name, value) in command.get_envs() {
                again.env(name, value.unwrap_or_default());
            }
            let again = again.stdin(Stdio::null()).stdout(Stdio::null());
            let mut child = again.stderr(Stdio::null()).spawn().unwrap();
            thread::sleep(*time);
            let _ = child.kill();
            child.wait().unwrap().signal() == Some(9)
        }
    }
}

/// Instants up to `most`, by chance; the seed is told, and can be given again.
fn instants(count: usize, most: Duration) -> Vec<Moment> {
    let seed = std::env::var("TRAYSCAN_TEST_SEED").ok();
    let seed = seed.map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
    eprintln!("TRAYSCAN_TEST_SEED={seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let most = u64::try_from(most.as_micros()).unwrap();
    let instants = (0..count).map(|_| Duration::from_micros(chance.u64(..most)));
    instants.map(Moment::After).collect()
}

/// Moments that are spread over a run: the first ones of each call, and then ever fewer.
fn spread(calls: &[&'static str], places: &[usize]) -> Vec<Moment> {
    let moments = |call| places.iter().map(move |nth| Moment::Call(call, *nth));
    calls.iter().copied().flat_map(moments).collect()
}

/// Does `job` with every item, two at a time.
fn by_two<T: Sync>(items: &[T], job: impl Fn(&T) + Sync) {
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

/// Copies an archive into a folder of its own.
fn copy(of: &Shelf) -> Shelf {
    let shelf = Shelf::new();
    if of.path.exists() {
        fs::copy(&of.path, &shelf.path).unwrap();
    }
    shelf
}

/// A service, an archive from before, and what it must hold when all is well.
struct Scene {
    nursery: Nursery,
    before: Shelf,
    args: Vec<&'static str>,
    expected: BTreeMap<String, String>,
    changes: Vec<(String, String)>,
}

impl Scene {
    /// Nothing is there yet.
    fn first() -> Self {
        let nursery = Nursery::open();
        nursery.stock().page = 50;
        let today = now();
        nursery
            .stock()
            .fill("a", (1..=200).map(|day| today - day * DAY));
        let expected = nursery.stock().texts();
        Self {
            nursery,
            before: Shelf::new(),
            args: vec!["-q"],
            expected,
            changes: Vec::new(),
        }
    }

    /// A full run that adds, changes, and finds batches gone.
    fn later() -> Self {
        let mut scene = Self::first();
        scene.before.complete(&scene.nursery, &[]);
        let gone = ["a0020", "a0030"];
        {
            let mut stock = scene.nursery.stock();
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

    /// Kills a run at each of these moments, few of which may come too late.
    fn kill_at(&self, moments: &[Moment]) {
        let kills = AtomicUsize::new(0);
        by_two(moments, |moment| {
            kills.fetch_add(usize::from(self.kill(moment)), Ordering::SeqCst);
        });
        let kills = kills.into_inner();
        assert!(kills * 3 > moments.len(), "{kills} of {}", moments.len());
    }

    /// Returns how long a run takes that nobody kills.
    fn takes(&self) -> Duration {
        let shelf = copy(&self.before);
        let started = Instant::now();
        shelf.complete(&self.nursery, &self.args);
        started.elapsed()
    }

    /// Kills a run at `moment`, looks at what it left, and lets another one carry on. Returns whether
    /// it was killed.
    fn kill(&self, moment: &Moment) -> bool {
        let shelf = copy(&self.before);
        let was_killed = killed(&shelf.command(&self.nursery, &self.args), moment);
        // What is left can be read as it is, unless it is not an archive yet.
        if was_killed && fs::metadata(&shelf.path).is_ok_and(|file| file.len() > 0) {
            let mut command = trayscan(&["sync", "--status", "-f", "json"]);
            let ended = Ended::of(command.arg(&shelf.path).output().unwrap());
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
        assert_eq!(changes, self.changes, "{what}: once each");
        let indexes = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
        assert!(shelf.one::<i64>(indexes) >= 4, "{what}");
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
fn a_first_run_may_be_killed_anywhere() {
    let scene = Scene::first();
    let moments = if strace_kills() {
        let mut moments = spread(&["pwrite64"], &[1, 2, 4, 8, 12, 14, 40, 90, 150]);
        moments.extend(spread(&["fsync"], &[1, 2, 3, 4, 5, 8, 12, 20]));
        moments.extend(spread(&["unlink"], &[1, 2, 3, 5]));
        moments.extend(spread(&["openat", "fcntl"], &[2, 5, 9, 12]));
        moments
    } else {
        instants(25, scene.takes())
    };
    scene.kill_at(&moments);
}

#[test]
fn a_later_run_may_be_killed_anywhere() {
    let scene = Scene::later();
    let moments = if strace_kills() {
        let mut moments = spread(&["pwrite64"], &[1, 3, 9, 12, 15, 40, 60]);
        moments.extend(spread(&["fsync"], &[1, 2, 3, 4, 5, 6, 7, 8]));
        moments.extend(spread(&["unlink"], &[1, 2, 3]));
        moments
    } else {
        instants(20, scene.takes())
    };
    scene.kill_at(&moments);
}

#[test]
#[ignore = "takes minutes"]
fn at_every_system_call() {
    if !strace_kills() {
        return;
    }
    for scene in [Scene::first(), Scene::later()] {
        for call in CALLS {
            let next = AtomicUsize::new(1);
            let last = AtomicUsize::new(usize::MAX);
            by_two(&[(), ()], |()| {
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
fn at_many_instants() {
    for scene in [Scene::first(), Scene::later()] {
        // So slow that there are commits on the way.
        scene.nursery.stock().page = 5;
        scene.nursery.stock().latency = Duration::from_millis(50);
        by_two(&instants(60, Duration::from_millis(2500)), |moment| {
            scene.kill(moment);
        });
    }
}

#[test]
fn runs_that_are_killed_again_and_again_come_to_an_end() {
    let nursery = Nursery::open();
    let today = now();
    nursery
        .stock()
        .fill("a", (1..=500).map(|day| today - day * DAY));
    nursery.stock().latency = Duration::from_millis(80);
    let shelf = Shelf::new();
    let mut kept = Vec::new();
    // A commit comes after a second at the soonest.
    while kept.len() < 3 {
        let command = shelf.command(&nursery, &["-q", "--parallel", "1"]);
        killed(&command, &Moment::After(Duration::from_millis(1900)));
        assert_sound(&shelf.path, "killed");
        let status = shelf.status();
        kept.push(status["batches"].as_u64().unwrap());
        assert!(kept.is_sorted(), "{kept:?}");
    }
    assert!(kept[0] > 0 && kept[2] > kept[0], "{kept:?}");
    nursery.stock().latency = Duration::ZERO;
    let known = nursery.asked();
    shelf.complete(&nursery, &["--parallel", "1"]);
    let asked = nursery.asked_since(known);
    assert!(asked[0].query("start_date").is_some(), "it carries on");
    let expected = nursery.stock().texts();
    shelf.assert_holds(&expected, "in the end");
}

// Exports.

/// Asserts that an export that was killed left the old file or the new one, whole, and at most one
/// hidden file beside it; and that the next one ends well and removes that file.
fn kill_export(nursery: &Nursery, whole: &[u8], moment: &Moment) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, OLD).unwrap();
    let mut command = trayscan(&["export", "-q", "-o"]);
    with_access(&mut command, nursery);
    command.arg(&path);
    let was_killed = killed(&command, moment);
    let found = fs::read(&path).unwrap();
    assert!(
        found == OLD || found == whole,
        "{moment:?}: {} bytes",
        found.len()
    );
    assert!(was_killed || found == whole, "{moment:?}");
    let (hidden, others): (Vec<_>, Vec<_>) = names(folder.path())
        .into_iter()
        .map(|name| name.into_string().unwrap())
        .partition(|name| name.starts_with(".trayscan-"));
    assert_eq!(others, ["a.csv"], "{moment:?}");
    assert!(
        hidden.len() <= usize::from(was_killed),
        "{moment:?}: {hidden:?}"
    );
    let ended = Ended::of(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{moment:?}: {ended:?}");
    assert!(fs::read(&path).unwrap() == whole, "{moment:?}");
    assert_eq!(names(folder.path()), ["a.csv"], "{moment:?}: no litter");
}

fn kill_exports(moments: &[Moment]) {
    let nursery = Nursery::open();
    let today = now();
    nursery.stock().page = 50;
    nursery
        .stock()
        .fill("a", (1..=400).map(|day| today - day * DAY));
    let mut command = trayscan(&["export", "-q", "-f", "csv"]);
    with_access(&mut command, &nursery);
    let whole = command.output().unwrap().stdout;
    assert_eq!(str::from_utf8(&whole).unwrap().lines().count(), 401);
    by_two(moments, |moment| kill_export(&nursery, &whole, moment));
}

/// Calls of an export that matter.
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
fn an_export_may_be_killed_anywhere() {
    if strace_kills() {
        kill_exports(&spread(&EXPORT_CALLS, &[1, 2, 4]));
    } else {
        kill_exports(&instants(20, Duration::from_millis(120)));
    }
}

#[test]
#[ignore = "takes minutes"]
fn an_export_at_every_system_call() {
    if strace_kills() {
        let places: Vec<usize> = (1..=40).collect();
        kill_exports(&spread(&EXPORT_CALLS, &places));
    }
    kill_exports(&instants(100, Duration::from_millis(150)));
}

// Signals.

#[test]
fn a_signal_ends_it_soon_and_what_came_is_kept() {
    let server = Server::start(&SLOW);
    let all = batches(&server, "");
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        for workers in ["1", "4"] {
            let shelf = Shelf::new();
            let mut command = shelf.command(&server, &["--parallel", workers]);
            let running = Running::in_the_middle(&mut command);
            running.signal(signal);
            let told = running.ends_soon_with(code);
            assert!(told.contains(&format!("ended by SIG{signal}")), "{told}");
            assert!(told.contains("the next run continues from there"), "{told}");
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
fn a_signal_before_anything_came_leaves_nothing() {
    let server = with(&[], &["latency:1h"]);
    let shelf = Shelf::new();
    let running = Running::spawn(&mut shelf.command(&server, &[]));
    while !shelf.path.exists() {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(200));
    running.signal("TERM");
    running.ends_soon_with(143);
    assert_eq!(shelf.names(), [""; 0]);
}

#[test]
fn a_signal_ends_a_wait_for_the_archive() {
    let server = Server::start(&SLOW);
    let shelf = Shelf::new();
    let first = Running::in_the_middle(&mut shelf.command(&server, &[]));
    let mut second = Running::spawn(&mut shelf.command(&server, &["--wait", "10m"]));
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

/// Runs `script` with the program as `$0` and a small disk as `$1`, which nobody else sees; nothing
/// where that cannot be done.
fn on_a_small_disk(server: &Server, disk: &Path, script: &str) -> Option<Ended> {
    let mount = "mount -t tmpfs -o size=200k tmpfs \"$1\" 2>/dev/null || exit 77; cd \"$1\"\n";
    let mut command = Command::new("unshare");
    command.env_clear().env("HOME", "/nonexistent");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    with_access(&mut command, server);
    command.args(["--mount", "/bin/sh", "-c", &format!("{mount}{script}")]);
    command.arg(env!("CARGO_BIN_EXE_trayscan")).arg(disk);
    let output = command.stdin(Stdio::null()).output().ok()?;
    let refused = String::from_utf8_lossy(&output.stderr).contains("unshare");
    if refused || output.status.code() == Some(77) {
        eprintln!("skipped: this user may not mount a small disk");
        return None;
    }
    Some(Ended::of(output))
}

#[test]
fn a_full_disk_ends_with_code_8_and_the_next_run_carries_on() {
    let server = Server::start(&["--batches", "400", "--page-size", "20"]);
    let expected = batches(&server, "");
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "\"$0\" sync a.db --start 2026-08 || exit 1
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
fn a_disk_that_is_full_from_the_start_is_told_and_left_as_it_was() {
    let server = Server::start(&["--batches", "400"]);
    let folder = TempDir::new().unwrap();
    let script = "head -c 1m /dev/zero > filler 2>/dev/null
        \"$0\" sync a.db; echo \"code $?\"; ls -A";
    let Some(ended) = on_a_small_disk(&server, folder.path(), script) else {
        return;
    };
    assert_eq!(ended.stdout, "code 8\nfiller\n", "{ended:?}");
}
