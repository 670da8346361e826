//! Start-up time, binary size, and bytes per batch.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::programs::{self, Run};
use crate::server::TRAYSCAN;
use crate::setup::Setup;
use crate::table::{Goal, Line, known};

/// Many rounds, because the processes are short and machines are noisy.
const STARTS: usize = 21;

pub(crate) fn start_up(setup: &Setup) -> Vec<Line> {
    let mut lines = vec![binary(setup)];
    let goal = Goal::at_most(5.0, 1.0, " ms");
    let works = [
        "`--version`, above `true`",
        "one batch exported, above `true`",
    ];
    if !programs::installed("true") {
        lines.extend(works.map(|work| Line::missing(work, goal, "`true` is not installed")));
        return lines;
    }
    let server = setup.server(1, &[]);
    let mut nothing = setup.command("true");
    let mut version = setup.command(TRAYSCAN);
    version.arg("--version");
    let mut export = setup.export_command(&server, &["--parallel", "1", "-f", "ndjson"]);
    let rounds = programs::interleave(
        STARTS,
        [
            &mut || programs::run(&mut nothing),
            &mut || programs::run(&mut version),
            &mut || programs::run(&mut export),
        ],
    );
    let cpu = [nothing, version, export].map(|mut command| mean_cpu(&mut command));
    for (at, work) in works.into_iter().enumerate() {
        let program = at + 1;
        let above = rounds.median(|runs| runs[program].seconds() - runs[0].seconds());
        let measured = format!(
            "{} against {}; CPU {} against {}",
            rounds.wall(program),
            rounds.wall(0),
            cpu[program],
            cpu[0]
        );
        lines.push(Line::judged(work, above * 1e3, goal, &measured));
    }
    lines
}

/// Formats the CPU time of a short program. CPU time has steps of 10 ms, so many runs are needed.
fn mean_cpu(command: &mut Command) -> String {
    const TIMES: u32 = 100;
    let runs: Vec<Run> = (0..TIMES).map(|_| programs::run(command)).collect();
    let sum = runs.iter().map(|run| run.cpu).sum::<Option<_>>();
    known(sum.map(|sum: Duration| sum / TIMES))
}

fn binary(setup: &Setup) -> Line {
    let work = "binary, stripped";
    let goal = Goal::at_most(12.0, 8.0, " MB");
    let megabytes = |path| fs::metadata(path).unwrap().len() as f64 / 1e6;
    let as_built = format!("{:.2} MB as built", megabytes(TRAYSCAN.as_ref()));
    if !programs::installed("strip") {
        return Line::missing(work, goal, &format!("strip is not installed; {as_built}"));
    }
    let copy = setup.path("stripped");
    fs::copy(TRAYSCAN, &copy).unwrap();
    programs::run(setup.command("strip").arg(&copy));
    let line = Line::judged(work, megabytes(copy.as_path()), goal, &as_built);
    fs::remove_file(copy).unwrap();
    line
}

pub(crate) fn callgrind(setup: &Setup) -> Vec<Line> {
    [("ndjson", 4_000.0, 2_500.0), ("csv", 6_500.0, 4_500.0)]
        .map(|(format, bar, moonshot)| {
            let work = format!("instructions a batch, {format}");
            let goal = Goal::at_most(bar, moonshot, "");
            if !programs::installed("valgrind") {
                return Line::missing(&work, goal, "valgrind is not installed");
            }
            let (small, large) = (1_000, 10_000);
            let counts: Vec<_> = setup
                .programs()
                .into_iter()
                .map(|program| {
                    let count = |batches| instructions(setup, program, batches, format);
                    let (few, many) = (count(small), count(large));
                    let each = (many - few) / (large - small) as f64;
                    (each, few - each * small as f64)
                })
                .collect();
            let (each, rest) = counts[0];
            let mut measured = format!("and {:.1} million", rest / 1e6);
            if let Some((before, _)) = counts.get(1) {
                measured = format!("{measured}; before: {before:.0}");
            }
            Line::judged(&work, each, goal, &measured)
        })
        .into()
}

/// Counts the instructions of one export.
fn instructions(setup: &Setup, program: &str, batches: usize, format: &str) -> f64 {
    let server = setup.server(batches, &[]);
    let mut command = Setup::with_access(setup.command("valgrind"), &server);
    let output = command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([program, "export", "-q", "--parallel", "1", "-f", format])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let (_, count) = told.rsplit_once("Collected : ").unwrap();
    count.split_whitespace().next().unwrap().parse().unwrap()
}
