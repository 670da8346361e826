//! Peak resident memory.

use super::ROUNDS;
use crate::programs::{self, Run};
use crate::server::Server;
use crate::setup::{self, Setup};
use crate::table::{self, Goal, Line, grouped};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Memory per batch, because duplicate detection must keep something of every batch.
const BYTES_A_BATCH: f64 = 16.0;

/// From this size on the output is dropped, because it would take the memory that the service needs.
const TOO_LARGE: usize = 10_000_000;

pub(crate) fn one_worker(setup: &Setup) -> Vec<Line> {
    each_size(setup, |server| {
        ["v1", "v2"]
            .map(|version| {
                let arguments = ["--parallel", "1", "--api", version];
                line(setup, server, version, &arguments, (32.0, 16.0))
            })
            .into()
    })
}

pub(crate) fn eight_workers(setup: &Setup) -> Vec<Line> {
    each_size(setup, |server| {
        let arguments = ["--parallel", "8"];
        if server.batches < TOO_LARGE {
            let outputs = [["--parallel", "1"], arguments].map(|arguments| {
                setup
                    .export_kept(server, "ndjson", &arguments, programs::run)
                    .1
            });
            assert!(
                setup::same(&outputs[0], &outputs[1]),
                "8 workers write something else than 1"
            );
        }
        vec![line(
            setup,
            server,
            "8 workers in order",
            &arguments,
            (64.0, 40.0),
        )]
    })
}

fn each_size(setup: &Setup, measure: impl Fn(&Server) -> Vec<Line>) -> Vec<Line> {
    let mut lines = Vec::new();
    for batches in [100_000, 1_000_000] {
        lines.extend(measure(&setup.server(batches, &[])));
    }
    if setup.long {
        // Not kept until the end, because it is too large.
        let server = Server::start(TOO_LARGE, &[]).expect("no fault is known everywhere");
        lines.extend(measure(&server));
    }
    lines
}

/// Measures one export. `limits` are the bar and the moonshot in MiB; the bar excludes the memory per batch.
fn line(
    setup: &Setup,
    server: &Server,
    what: &str,
    arguments: &[&str],
    limits: (f64, f64),
) -> Line {
    let work = format!("{what}, {}", grouped(server.batches));
    let (bar, moonshot) = limits;
    let batches = BYTES_A_BATCH * server.batches as f64 / MEBIBYTE;
    let goal = Goal::at_most(bar + batches, moonshot, " MiB");
    let peaks: Option<Vec<f64>> = (0..ROUNDS)
        .map(|_| Some(watch(setup, server, arguments).peak? as f64 / MEBIBYTE))
        .collect();
    let Some(peaks) = peaks else {
        return Line::missing(&work, goal, "not known: no /proc");
    };
    let most = peaks.iter().copied().fold(0.0, f64::max);
    Line::judged(
        &work,
        table::median(peaks),
        goal,
        &format!("at most {most:.2} MiB"),
    )
}

fn watch(setup: &Setup, server: &Server, arguments: &[&str]) -> Run {
    if server.batches < TOO_LARGE {
        setup
            .export_kept(server, "ndjson", arguments, programs::watch)
            .0
    } else {
        let mut command = setup.export_command(server, arguments);
        programs::watch(command.args(["-f", "ndjson"]))
    }
}
