//! The machine and the versions of the programs.

use std::fs;
use std::process::Stdio;
use std::thread;

use chrono::Utc;

use crate::server::TRAYSCAN;
use crate::setup::Setup;

pub(crate) fn print(setup: &Setup) {
    let field = |path: &str, name: &str| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let file = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_owned());
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| {
        let kibibytes: f64 = text.strip_suffix(" kB")?.parse().ok()?;
        Some(format!("{:.1} GiB", kibibytes / 1024.0 / 1024.0))
    });
    let version = |program: &str| {
        let mut command = setup.command(program);
        let answer = command.arg("--version").stdout(Stdio::piped()).output();
        answer.map_or_else(
            |_| "not installed".to_owned(),
            |output| {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                // Drops the long rest of `curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/…`.
                text.split(" (").next().unwrap_or(&text).trim().to_owned()
            },
        )
    };
    let facts = [
        ("CPU", field("/proc/cpuinfo", "model name")),
        (
            "cores",
            thread::available_parallelism()
                .ok()
                .map(|cores| cores.to_string()),
        ),
        ("memory", memory),
        ("kernel", file("/proc/sys/kernel/osrelease")),
        ("load", file("/proc/loadavg")),
        ("date", Some(Utc::now().format("%F %R UTC").to_string())),
        ("trayscan", Some(version(TRAYSCAN))),
        ("curl", Some(version("curl"))),
        ("jq", Some(version("jq"))),
    ];
    for (name, fact) in facts {
        println!("{name:9} {}", fact.as_deref().unwrap_or("not known"));
    }
    println!(
        "\n\
         Pages of 1000, services on this machine, all in turn; medians, also of ratios.\n\
         curl: one process and connection, all addresses known beforehand, bodies dropped.\n\
         store: a raw socket that follows the cursor and writes the bodies to a file as they are.\n"
    );
}
