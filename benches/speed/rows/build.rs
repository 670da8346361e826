//! The two commands of the README in a fresh clone, and an edit.

use std::env;
use std::fs;

use crate::programs;
use crate::setup::Setup;
use crate::table::{Goal, Line};

/// The steps, with the goal of each in seconds of wall time on two cores.
const STEPS: [(&str, &[&str], f64); 3] = [
    ("`cargo build` from nothing", &["build"], 210.0),
    ("then `cargo test --no-run`", &["test", "--no-run"], 330.0),
    ("`cargo build` after an edit", &["build"], 40.0),
];

pub(crate) fn build(setup: &Setup) -> Vec<Line> {
    let goal = |seconds| Goal::at_most(seconds, 0.0, " s").without_moonshot();
    if !setup.long || !programs::installed("git") {
        let missing = STEPS.map(|(work, _, limit)| Line::missing(work, goal(limit), "--long, git"));
        return missing.into();
    }
    // Not in memory: it takes gigabytes.
    let clone = tempfile::tempdir().unwrap();
    let mut git = setup.command("git");
    programs::run(
        git.args(["clone", "-q", env!("CARGO_MANIFEST_DIR")])
            .arg(clone.path()),
    );
    let mut lines = Vec::new();
    for (at, (work, arguments, limit)) in STEPS.into_iter().enumerate() {
        if at == 2 {
            // All that follows moves by a line.
            let path = clone.path().join("src/text.rs");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replacen("\n\n", "\n\n\n", 1)).unwrap();
        }
        let mut cargo = setup.command(env!("CARGO"));
        cargo
            .args(arguments)
            .args(["--quiet", "--locked"])
            .current_dir(&clone)
            .env("HOME", env::var_os("HOME").unwrap_or_default());
        let run = programs::run(&mut cargo);
        let cpu = run.cpu.unwrap_or_default().as_secs_f64();
        let measured = format!("{cpu:.0} s of CPU");
        lines.push(Line::judged(work, run.seconds(), goal(limit), &measured));
    }
    lines
}
