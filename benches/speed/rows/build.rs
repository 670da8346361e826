//! The two commands of the README from nothing, and an edit.

use std::env;
use std::fs::{self, File};
use std::time::SystemTime;

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
    if !setup.long {
        return vec![Line::told("the commands of the README", "with --long only")];
    }
    // Not in memory: it takes gigabytes.
    let target = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
    let mut lines = Vec::new();
    for (at, (work, arguments, goal)) in STEPS.into_iter().enumerate() {
        if at == 2 {
            let file = File::options().append(true).open(source).unwrap();
            file.set_modified(SystemTime::now()).unwrap();
        }
        let mut command = setup.command(env!("CARGO"));
        let home = env::var_os("HOME").unwrap_or_default();
        command
            .args(arguments)
            .args(["--quiet", "--locked"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("HOME", home)
            .env("CARGO_TARGET_DIR", target.path());
        let run = programs::run(&mut command);
        let cpu = run.cpu.unwrap_or_default().as_secs_f64();
        let goal = Goal::at_most(goal, 0.0, " s").without_moonshot();
        let measured = format!("{cpu:.0} s of CPU");
        lines.push(Line::judged(work, run.seconds(), goal, &measured));
    }
    let program = target.path().join("debug/trayscan");
    let megabytes = fs::metadata(program).map_or(0.0, |file| file.len() as f64 / 1e6);
    lines.push(Line::told(
        "size of that build",
        &format!("{megabytes:.0} MB"),
    ));
    lines
}
