//! The `trayscan` program: hands the arguments over and exits with the code it gets back.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(trayscan::run(std::env::args_os()))
}
