//! Heavy formats and options: CPU time and memory.

use std::fs;

use crate::programs::{self, Run};
use crate::server::TRAYSCAN;
use crate::setup::Setup;
use crate::table::{Goal, Line, median};

const BATCHES: usize = 100_000;
const ROUNDS: usize = 3;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What is measured: its name, the command, in which `{}` is a file in an empty folder, and the goal in seconds of CPU
/// time per million batches.
const WORK: [(&str, &str, f64); 10] = [
    ("xlsx", "export -o {}.xlsx", 22.0),
    ("sqlite", "export -o {}.sqlite", 8.0),
    ("parquet", "export -o {}.parquet", 5.0),
    ("csv.gz", "export -o {}.csv.gz", 10.0),
    ("csv.zst", "export -o {}.csv.zst", 5.0),
    (
        "--sort",
        "export --sort avg_germination_rate:desc -o {}.ndjson",
        5.0,
    ),
    ("--manifest", "export --manifest {}.json -o {}.ndjson", 2.0),
    ("first sync", "sync {}.db", 10.0),
    ("summary", "summary -o {}.csv", 3.0),
    ("report", "report -o {}.html", 4.0),
];

pub(crate) fn formats(setup: &Setup) -> Vec<Line> {
    WORK.iter()
        .map(|(name, command, goal)| {
            let runs: Vec<Run> = (0..ROUNDS).map(|_| run(setup, command)).collect();
            let goal = Goal::at_most(*goal, 0.0, " s").without_moonshot();
            let cpu = runs.iter().filter_map(|run| run.cpu);
            let millions = BATCHES as f64 / 1e6;
            let cpu: Vec<f64> = cpu.map(|cpu| cpu.as_secs_f64() / millions).collect();
            let work = format!("{name}, CPU for a million");
            if cpu.is_empty() {
                return Line::missing(&work, goal, "not known: no /proc");
            }
            let wall = median(runs.iter().map(Run::seconds)) / millions;
            let peaks = runs.iter().filter_map(|run| run.peak);
            let peak = peaks.max().unwrap_or_default() as f64 / MEBIBYTE;
            let measured = format!("{wall:.1} s; 100,000 take {peak:.0} MiB");
            Line::judged(&work, median(cpu), goal, &measured)
        })
        .collect()
}

fn run(setup: &Setup, command: &str) -> Run {
    let server = setup.server(BATCHES, &[]);
    let folder = setup.path("formats");
    fs::create_dir(&folder).unwrap();
    let output = folder.join("a");
    let words = command
        .split(' ')
        .map(|word| word.replace("{}", output.to_str().unwrap()));
    let mut command = Setup::with_access(setup.command(TRAYSCAN), &server);
    let run = programs::watch(command.arg("-q").args(words));
    fs::remove_dir_all(&folder).unwrap();
    run
}
