//! Compares the time, memory and size of trayscan with curl, jq and raw sockets.
//!
//! `cargo bench` starts the servers it needs, runs all programs in turns, and prints one table with the measurements,
//! the goals (the bar) and the ambitious goals (the moonshot). `cargo bench -- ndjson csv` measures only rows whose name
//! contains one of the words; `cargo bench -- --long` adds memory at 10,000,000 batches, which needs 8 GB of memory, and clean builds. With
//! `--before PROGRAM`, the rows `formats` and `callgrind` also measure another build, in turns. Machines are noisy:
//! nothing here fails for being slow, and ratios say more than seconds.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark stops and speaks"
)]

// A raw client that follows the cursor: the lower bound of an export.
mod client;

// The machine and the versions of the programs.
mod facts;

// A minimal service that sends prepared pages.
mod pages;

// Runs programs and measures their time and memory.
mod programs;

// The measurements, one file per subject.
mod rows;

// Starts and stops `trayscan serve` with given batches and faults.
mod server;

// Shared by all rows: servers, a folder for outputs, prepared commands.
mod setup;

// The table: rows, goals, and how they are printed.
mod table;

use std::env;
use std::process::ExitCode;

use rows::ROWS;
use setup::Setup;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [role, arguments @ ..] = arguments.as_slice()
        && role == client::ROLE
    {
        client::play(arguments);
        return ExitCode::SUCCESS;
    }
    let (mut long, mut before) = (false, None);
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--long" => long = true,
            "--before" => before = arguments.next().cloned(),
            // Cargo adds this argument itself.
            "--bench" => {}
            word if word.starts_with('-') => {
                println!("usage: cargo bench -- [--long] [--before PROGRAM] [WORD]...");
                return ExitCode::from(2);
            }
            word => words.push(word),
        }
    }
    let wanted: Vec<_> = ROWS
        .iter()
        .filter(|(name, _)| words.is_empty() || words.iter().any(|word| name.contains(*word)))
        .collect();
    if wanted.is_empty() {
        let names: Vec<_> = ROWS.iter().map(|(name, _)| *name).collect();
        println!("no such row; the rows are {}", names.join(", "));
        return ExitCode::from(2);
    }

    let setup = Setup::new(long, before);
    facts::print(&setup);
    table::print_head();
    for (name, measure) in wanted {
        for line in measure(&setup) {
            line.print(name);
        }
    }
    ExitCode::SUCCESS
}
