//! Exports to files compared with curl, a raw client and jq, and how their time grows.

use std::fs::File;
use std::io::Read as _;

use super::ROUNDS;
use crate::programs::{self, Run};
use crate::setup::{Output, Setup};
use crate::table::{self, Goal, Line, grouped};

const SEQUENTIAL: [&str; 2] = ["--parallel", "1"];

pub(crate) fn ndjson(setup: &Setup) -> Vec<Line> {
    to_file(setup, "ndjson", (3.0, 2.0), (2.0, 1.25))
}

pub(crate) fn json(setup: &Setup) -> Vec<Line> {
    to_file(setup, "json", (3.0, 2.0), (2.0, 1.25))
}

pub(crate) fn csv(setup: &Setup) -> Vec<Line> {
    to_file(setup, "csv", (3.5, 2.2), (2.0, 1.3))
}

/// Compares an export of 1,000,000 batches with curl and with the raw client, which stores the bodies.
///
/// In both pairs the first value is the bar, the second the moonshot.
fn to_file(setup: &Setup, ending: &str, of_curl: (f64, f64), of_store: (f64, f64)) -> Vec<Line> {
    let server = setup.server(1_000_000, &[]);
    let has_curl = programs::installed("curl");
    let mut curl = setup.curl(&server, "v2", "/dev/null");
    let rounds = programs::interleave(
        ROUNDS,
        [
            &mut || setup.export(&server, ending, &SEQUENTIAL),
            &mut || if_installed(has_curl, || programs::run(&mut curl)),
            &mut || setup.store(&server),
        ],
    );
    let own = format!("{}, CPU {}", rounds.wall(0), rounds.cpu(0));
    let goal = Goal::at_most(of_curl.0, of_curl.1, "x");
    let first = "1,000,000 to a file, against curl";
    let against_curl = if has_curl {
        let measured = format!("{own}; curl {}, CPU {}", rounds.wall(1), rounds.cpu(1));
        Line::judged(first, rounds.ratio(0, 1), goal, &measured)
    } else {
        Line::missing(first, goal, "curl is not installed")
    };
    let against_store = Line::judged(
        "1,000,000 to a file, against store",
        rounds.ratio(0, 2),
        Goal::at_most(of_store.0, of_store.1, "x"),
        &format!("{own}; store {}, CPU {}", rounds.wall(2), rounds.cpu(2)),
    );
    vec![against_curl, against_store]
}

/// Runs a program if it is installed; otherwise the time is zero.
fn if_installed(installed: bool, program: impl FnOnce() -> Run) -> Run {
    if installed { program() } else { Run::default() }
}

pub(crate) fn version_1(setup: &Setup) -> Vec<Line> {
    let work = "one array of 100,000, against curl";
    let goal = Goal::at_most(4.0, 2.5, "x");
    if !programs::installed("curl") {
        return vec![Line::missing(work, goal, "curl is not installed")];
    }
    let server = setup.server(100_000, &[]);
    let mut curl = setup.curl(&server, "v1", "/dev/null");
    let rounds = programs::interleave(
        2 * ROUNDS + 1,
        [
            &mut || setup.export(&server, "ndjson", &["--parallel", "1", "--api", "v1"]),
            &mut || programs::run(&mut curl),
        ],
    );
    let measured = format!("{}; curl {}", rounds.wall(0), rounds.wall(1));
    vec![Line::judged(work, rounds.ratio(0, 1), goal, &measured)]
}

pub(crate) fn jq(setup: &Setup) -> Vec<Line> {
    let work = "100,000 as ndjson, against curl and jq";
    let goal = Goal::at_least(50.0, 100.0, "x");
    for program in ["curl", "jq"] {
        if !programs::installed(program) {
            return vec![Line::missing(
                work,
                goal,
                &format!("{program} is not installed"),
            )];
        }
    }
    let server = setup.server(100_000, &[]);
    let mut curl = setup.curl(&server, "v2", "-");
    let output = Output(setup.path("jq.ndjson"));
    let mut jq = setup.command("jq");
    jq.args(["-c", ".data[]"]);
    let rounds = programs::interleave(
        ROUNDS,
        [
            &mut || setup.export(&server, "ndjson", &SEQUENTIAL),
            &mut || {
                jq.stdout(File::create(&output.0).unwrap());
                programs::run_into(&mut curl, &mut jq)
            },
        ],
    );
    let mut lines = Vec::new();
    File::open(&output.0)
        .and_then(|mut file| file.read_to_end(&mut lines))
        .unwrap();
    assert_eq!(memchr::memchr_iter(b'\n', &lines).count(), server.batches);
    let measured = format!("{}; curl and jq {}", rounds.wall(0), rounds.wall(1));
    vec![Line::judged(work, rounds.ratio(1, 0), goal, &measured)]
}

/// The sizes to compare, and the number of runs of each per round.
///
/// A small export takes milliseconds, mostly start-up, so a single run says little.
const SIZES: [(usize, usize); 4] = [(1, 21), (10_000, 21), (100_000, 5), (1_000_000, 1)];

/// Compares the time per batch between sizes, without the start-up time.
///
/// The start-up time is that of an export of one batch, which starts, logs in and fetches one page.
pub(crate) fn growth(setup: &Setup) -> Vec<Line> {
    let servers = SIZES.map(|(batches, _)| setup.server(batches, &[]));
    let rounds: Vec<[f64; 4]> = (0..ROUNDS)
        .map(|round| {
            let mut seconds = [0.0; 4];
            for step in 0..SIZES.len() {
                let at = (round + step) % SIZES.len();
                let times = SIZES[at].1;
                let export = |_| setup.export(&servers[at], "ndjson", &SEQUENTIAL).seconds();
                // The mean, because a long run includes slow moments as well.
                seconds[at] = (0..times).map(export).sum::<f64>() / times as f64;
            }
            seconds
        })
        .collect();
    // Microseconds per batch.
    let each = |round: &[f64; 4], at: usize| (round[at] - round[0]) * 1e6 / SIZES[at].0 as f64;
    [(1, 2), (2, 3)]
        .map(|(small, large)| {
            let middle = |at| table::median(rounds.iter().map(|round| each(round, at)));
            let ratios = rounds
                .iter()
                .map(|round| each(round, large) / each(round, small));
            let ratio = table::median(ratios);
            Line::judged(
                &format!("{} to {}", grouped(SIZES[small].0), grouped(SIZES[large].0)),
                (ratio - 1.0) * 100.0,
                Goal::at_most(15.0, 0.0, " %").without_moonshot(),
                &format!(
                    "{ratio:.2}x a batch: {:.2} us, then {:.2} us",
                    middle(small),
                    middle(large)
                ),
            )
        })
        .into()
}
