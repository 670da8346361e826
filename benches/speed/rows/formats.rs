//! Heavy formats and options: CPU time and memory.

use std::fs;

use crate::programs::{self, Run};
use crate::setup::Setup;
use crate::table::{Goal, Line, median};

const BATCHES: usize = 100_000;
const ROUNDS: usize = 3;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What is measured: its name, the command, in which `{}` is a file in an empty folder, and the goal in seconds of CPU
/// time per million batches. Commands before `;` are not measured.
const WORK: [(&str, &str, f64); 17] = [
    ("ndjson", "export -o {}.ndjson", 1.25),
    ("csv", "export -o {}.csv", 1.5),
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
    ("verify ndjson", "export -o {}.ndjson;verify {}.ndjson", 4.0),
    ("verify csv", "export -o {}.csv;verify {}.csv", 5.0),
    ("verify xlsx", "export -o {}.xlsx;verify {}.xlsx", 10.0),
    (
        "verify parquet",
        "export -o {}.parquet;verify {}.parquet",
        6.0,
    ),
    ("first sync", "sync {}.db", 10.0),
    ("another sync", "sync {}.db;sync {}.db", 1.0),
    ("summary", "summary -o {}.csv", 3.0),
    ("report", "report -o {}.html", 4.0),
];

pub(crate) fn formats(setup: &Setup) -> Vec<Line> {
    WORK.iter()
        .map(|(name, command, goal)| {
            let goal = Goal::at_most(*goal, 0.0, " s").without_moonshot();
            let work = format!("{name}, CPU for a million");
            let measured = measure(setup, command);
            let Some(now) = measured[0].cpu else {
                return Line::missing(&work, goal, "not known: no /proc");
            };
            let mut text = measured[0].describe();
            if let [_, before] = measured.as_slice() {
                let cpu = before.cpu.unwrap_or_default();
                text = format!("{text}; before: {cpu:.2} s, {}", before.describe());
            }
            Line::judged(&work, now, goal, &text)
        })
        .collect()
}

/// The figures of one program, per million batches.
struct Figures {
    cpu: Option<f64>,
    wall: f64,
    /// The peak of memory in MiB, for the batches measured.
    peak: f64,
}

impl Figures {
    fn of(runs: &[Run]) -> Self {
        let millions = BATCHES as f64 / 1e6;
        let cpu: Vec<_> = runs.iter().filter_map(|run| run.cpu).collect();
        let peak = runs.iter().filter_map(|run| run.peak).max();
        Self {
            cpu: (!cpu.is_empty())
                .then(|| median(cpu.iter().map(|cpu| cpu.as_secs_f64() / millions))),
            wall: median(runs.iter().map(Run::seconds)) / millions,
            peak: peak.unwrap_or_default() as f64 / MEBIBYTE,
        }
    }

    fn describe(&self) -> String {
        format!("wall {:.1} s, {:.0} MiB", self.wall, self.peak)
    }
}

/// Measures the programs in turns.
fn measure(setup: &Setup, command: &str) -> Vec<Figures> {
    let programs = setup.programs();
    let mut runs = vec![Vec::new(); programs.len()];
    for _ in 0..ROUNDS {
        for (program, runs) in programs.iter().zip(&mut runs) {
            runs.push(run(setup, program, command));
        }
    }
    runs.iter().map(|runs| Figures::of(runs)).collect()
}

/// Runs the commands; returns the time of the last one.
fn run(setup: &Setup, program: &str, commands: &str) -> Run {
    let server = setup.server(BATCHES, &[]);
    let folder = setup.path("formats");
    fs::create_dir(&folder).unwrap();
    let output = folder.join("a");
    let mut last = Run::default();
    for command in commands.split(';') {
        let words = command
            .split(' ')
            .map(|word| word.replace("{}", output.to_str().unwrap()));
        let mut command = Setup::with_access(setup.command(program), &server);
        last = programs::watch(command.arg("-q").args(words));
    }
    fs::remove_dir_all(&folder).unwrap();
    last
}
