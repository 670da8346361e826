//! `trayscan serve` compared with a minimal server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use crate::client::Client;
use crate::programs::{self, Run};
use crate::setup::Setup;
use crate::table::{Line, time};

const ROUNDS: usize = 7;

/// Fetches 1,000,000 batches over one connection each, and drops the bodies.
pub(crate) fn serve(setup: &Setup) -> Vec<Line> {
    let server = setup.server(1_000_000, &[]);
    let (mut client, token) = server.log_in("v2");
    let mut lengths = Vec::new();
    client.walk(&token, |_, body| lengths.push(body.len()));
    let lengths = Arc::new(lengths);
    let bare = bare_server(&lengths);
    let rounds = programs::interleave(
        ROUNDS,
        [
            &mut || timed(|| client.walk(&token, |_, _| ())),
            &mut || {
                let mut client = Client::connect(&bare);
                timed(|| {
                    for _ in lengths.iter() {
                        client.exchange("GET / HTTP/1.1\r\n\r\n");
                    }
                })
            },
        ],
    );
    let bytes: usize = lengths.iter().sum();
    let rate = bytes as f64 / rounds.median(|runs| runs[0].seconds()) / 1e9;
    vec![
        Line::told(
            "1,000,000 fetched, against a bare server",
            &format!(
                "{:.2}x ({}, {rate:.2} GB/s; bare server {})",
                rounds.ratio(0, 1),
                rounds.wall(0),
                rounds.wall(1)
            ),
        ),
        Line::told("1,000,000 made up", &time(server.ready_after.as_secs_f64())),
    ]
}

fn timed(work: impl FnOnce()) -> Run {
    let started = Instant::now();
    work();
    Run {
        wall: started.elapsed(),
        ..Run::default()
    }
}

/// Starts a server that sends pages of the given lengths in order, from a single buffer.
fn bare_server(lengths: &Arc<Vec<usize>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let lengths = Arc::clone(lengths);
    thread::spawn(move || {
        let page = vec![b'x'; lengths.iter().copied().max().unwrap()];
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            for length in lengths.iter() {
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    if request.read_line(&mut line).unwrap_or_default() == 0 {
                        break;
                    }
                }
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&page[..*length]).unwrap();
            }
        }
    });
    address
}
