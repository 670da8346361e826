//! Runs programs and measures their time and memory.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::table;

/// The time and memory of one run of a program.
#[derive(Clone, Copy, Default)]
pub(crate) struct Run {
    pub(crate) wall: Duration,
    pub(crate) cpu: Option<Duration>,
    /// Peak resident memory in bytes; measured only by [`watch`].
    pub(crate) peak: Option<u64>,
}

impl Run {
    pub(crate) fn seconds(&self) -> f64 {
        self.wall.as_secs_f64()
    }
}

/// Returns whether a program is installed.
pub(crate) fn installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns the path of a program. With its name alone, the system would copy the memory map of the benchmark to start it, which
/// takes longer than many programs.
pub(crate) fn path(program: &str) -> PathBuf {
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(program));
    paths
        .find(|path| path.is_file())
        .unwrap_or_else(|| program.into())
}

/// Runs a program and waits for it.
pub(crate) fn run(command: &mut Command) -> Run {
    timed(|| {
        let child = command.spawn().unwrap();
        finish(command, child);
    })
}

/// Runs a program whose output is piped into another.
pub(crate) fn run_into(first: &mut Command, second: &mut Command) -> Run {
    timed(|| {
        let mut writer = first.stdout(Stdio::piped()).spawn().unwrap();
        let reader = second.stdin(writer.stdout.take().unwrap()).spawn().unwrap();
        finish(first, writer);
        finish(second, reader);
    })
}

/// Runs a program and samples its memory every few milliseconds, so the time is not exact.
pub(crate) fn watch(command: &mut Command) -> Run {
    let mut peak = None;
    let mut run = timed(|| {
        let mut child = command.spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            peak = resident_peak(child.id()).or(peak);
            thread::sleep(Duration::from_millis(2));
        }
        finish(command, child);
    });
    run.peak = peak;
    run
}

fn timed(work: impl FnOnce()) -> Run {
    let cpu = children_cpu();
    let started = Instant::now();
    work();
    Run {
        wall: started.elapsed(),
        cpu: children_cpu()
            .zip(cpu)
            .map(|(after, before)| after.saturating_sub(before)),
        peak: None,
    }
}

fn finish(command: &Command, mut child: Child) {
    let status = child.wait().unwrap();
    assert!(
        status.success(),
        "{} ended with {status}",
        command.get_program().display()
    );
}

/// Returns the CPU time of all finished child processes, in steps of 10 ms.
fn children_cpu() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may contain spaces; the state, the third field, follows it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = |at: usize| fields.split(' ').nth(at)?.parse::<u64>().ok();
    // proc(5): fields 16 and 17, `cutime` and `cstime`, in clock ticks, which are 10 ms everywhere.
    Some(Duration::from_millis(10 * (ticks(13)? + ticks(14)?)))
}

fn resident_peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Runs programs in turn, so that a slow moment of the machine affects all of them.
///
/// Each round starts with a different program, so that none always runs after the heaviest one.
pub(crate) fn interleave<const N: usize>(
    rounds: usize,
    mut programs: [&mut dyn FnMut() -> Run; N],
) -> Rounds<N> {
    let rounds = (0..rounds).map(|round| {
        let mut runs = [Run::default(); N];
        for step in 0..N {
            let program = (round + step) % N;
            runs[program] = programs[program]();
        }
        runs
    });
    Rounds(rounds.collect())
}

/// The runs of several programs, by round.
pub(crate) struct Rounds<const N: usize>(pub(crate) Vec<[Run; N]>);

impl<const N: usize> Rounds<N> {
    /// Returns the median of `figure` over all rounds.
    pub(crate) fn median(&self, figure: impl Fn(&[Run; N]) -> f64) -> f64 {
        table::median(self.0.iter().map(figure))
    }

    /// Returns the median ratio of the time of `first` to that of `second`.
    pub(crate) fn ratio(&self, first: usize, second: usize) -> f64 {
        self.median(|runs| runs[first].seconds() / runs[second].seconds())
    }

    /// Formats the time of one program.
    pub(crate) fn wall(&self, program: usize) -> String {
        table::time(self.median(|runs| runs[program].seconds()))
    }

    /// Formats the CPU time of one program.
    pub(crate) fn cpu(&self, program: usize) -> String {
        let mut times: Vec<_> = self.0.iter().map(|runs| runs[program].cpu).collect();
        times.sort_unstable();
        times[times.len() / 2].map_or_else(
            || "not known".to_owned(),
            |time| format!("{:.2} s", time.as_secs_f64()),
        )
    }
}
