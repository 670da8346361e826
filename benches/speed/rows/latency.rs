//! Slow responses and narrow links.

use super::ROUNDS;
use crate::programs;
use crate::setup::Setup;
use crate::table::{Goal, Line};

const SLOW: &str = "latency:50ms";
const NARROW: &str = "bandwidth:100";

pub(crate) fn one_worker(setup: &Setup) -> Vec<Line> {
    let server = setup.server(20_000, &[SLOW]);
    let rounds = programs::interleave(
        ROUNDS,
        [
            &mut || setup.export(&server, "ndjson", &["--parallel", "1"]),
            &mut || setup.follow(&server),
        ],
    );
    vec![Line::judged(
        "50 ms, 20,000, against following",
        rounds.ratio(0, 1),
        Goal::at_most(1.05, 1.02, "x"),
        &format!("{}; raw client {}", rounds.wall(0), rounds.wall(1)),
    )]
}

pub(crate) fn workers(setup: &Setup) -> Vec<Line> {
    let server = setup.server(100_000, &[SLOW]);
    let rounds = programs::interleave(
        ROUNDS,
        [
            &mut || setup.export(&server, "ndjson", &["--parallel", "1"]),
            &mut || setup.export(&server, "ndjson", &["--parallel", "8"]),
            &mut || setup.export(&server, "ndjson", &["--parallel", "16"]),
        ],
    );
    let line = |workers: usize, program, goal| {
        Line::judged(
            &format!("50 ms, 100,000, {workers} workers against 1"),
            rounds.ratio(0, program),
            goal,
            &format!("{}; 1 worker {}", rounds.wall(program), rounds.wall(0)),
        )
    };
    vec![
        line(8, 1, Goal::at_least(5.0, 7.0, "x")),
        line(16, 2, Goal::at_least(9.0, 12.0, "x")),
    ]
}

pub(crate) fn link(setup: &Setup) -> Vec<Line> {
    let work = "50 ms, 100 Mbit/s, gzip and 8 against 1";
    let goal = Goal::at_least(5.0, 7.5, "x");
    let plain = setup.server_if_known(100_000, &[SLOW, NARROW]);
    let packed = setup.server_if_known(100_000, &[SLOW, NARROW, "gzip"]);
    let (Some(plain), Some(packed)) = (plain, packed) else {
        let why = "not available: the service does not know these faults";
        return vec![Line::missing(work, goal, why)];
    };
    let rounds = programs::interleave(
        ROUNDS,
        [
            &mut || setup.export(&plain, "ndjson", &["--parallel", "1"]),
            &mut || setup.export(&packed, "ndjson", &["--parallel", "8"]),
        ],
    );
    let measured = format!("{}; 1 worker, plain {}", rounds.wall(1), rounds.wall(0));
    vec![Line::judged(work, rounds.ratio(0, 1), goal, &measured)]
}
