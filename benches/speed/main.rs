//! How fast trayscan is, and how little it takes: side by side with curl, jq and raw sockets.
//!
//! `cargo bench` starts the services it needs, runs all programs turn by turn, and prints one table
//! with what was measured, what the project asks of itself (the bar) and what it dreams of (the
//! moonshot). `cargo bench -- ndjson csv` measures only rows whose name contains one of the words;
//! `cargo bench -- --long` adds memory at 10,000,000 batches, which wants 8 GB. Machines differ and
//! are noisy: nothing here fails for being slow, and ratios tell more than seconds.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark stops and speaks"
)]

// A raw client that follows the cursor: the least that an export can cost.
mod client;

// What machine this is, and which programs are compared.
mod facts;

// Runs programs, and measures their time and memory.
mod programs;

// What is measured, a file for each subject.
mod rows;

// `trayscan serve`, started with given batches and faults, and stopped for certain.
mod server;

// What all rows share: services, a folder for outputs, commands that are ready to run.
mod setup;

// Lines, goals and how they are printed.
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
    let mut long = false;
    let mut words = Vec::new();
    for argument in &arguments {
        match argument.as_str() {
            "--long" => long = true,
            // Cargo says this on its own.
            "--bench" => {}
            word if word.starts_with('-') => {
                println!("usage: cargo bench -- [--long] [WORD]...");
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

    let setup = Setup::new(long);
    facts::print(&setup);
    table::print_head();
    for (name, measure) in wanted {
        for line in measure(&setup) {
            line.print(name);
        }
    }
    ExitCode::SUCCESS
}
