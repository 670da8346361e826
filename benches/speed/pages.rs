//! A minimal service that sends prepared pages, so that their JSON can have any spelling.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Starts a service of version 2 that sends these pages in order; returns its address. The cursor of each page
/// must be the number of the next one. It runs until the benchmark ends.
pub(crate) fn serve(pages: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let pages = Arc::new(pages);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, pages) = (stream.unwrap(), Arc::clone(&pages));
            // The client may close the connection at any time.
            thread::spawn(move || answer(&stream, &pages).unwrap_or_default());
        }
    });
    address
}

fn answer(mut stream: &TcpStream, pages: &[String]) -> std::io::Result<()> {
    const TOKEN: &str = r#"{"access_token":"t","token_type":"Bearer","expires_in":36000}"#;
    stream.set_nodelay(true)?;
    let mut requests = BufReader::new(stream);
    loop {
        let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
        if requests.read_line(&mut first)? == 0 {
            return Ok(());
        }
        while line != "\r\n" {
            line.clear();
            requests.read_line(&mut line)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        std::io::copy(&mut requests.by_ref().take(length), &mut std::io::sink())?;
        let cursor = first.split_once("next_token=").map_or("0", |(_, rest)| {
            rest.split(['&', ' ']).next().unwrap_or_default()
        });
        let body = if first.starts_with("POST") {
            TOKEN
        } else {
            &pages[cursor.parse::<usize>().unwrap()]
        };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )?;
        stream.write_all(body.as_bytes())?;
    }
}
