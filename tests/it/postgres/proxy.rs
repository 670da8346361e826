//! A proxy in front of PostgreSQL that drops, stalls and cuts connections.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The message that ends a transaction.
pub(super) const COMMIT: &[u8] = b"Q\0\0\0\x0bcommit\0";
/// The start of the data of every message that copies batches.
pub(super) const COPY: &[u8] = b"PGCOPY\n";

/// What happens to a connection.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    None,
    /// The connection is closed at once.
    Refused,
    /// There is never a response.
    Silence,
    /// From this message on the server receives nothing, so there is no response.
    Stalled(&'static [u8]),
    /// Cut before this message reaches the server.
    CutBefore(&'static [u8]),
    /// Cut after this message reaches the server, before its response.
    CutAfter(&'static [u8]),
    /// Cut at this message, which reaches the server after the delay.
    Delayed(&'static [u8], Duration),
}

pub(super) struct Proxy {
    pub(super) port: u16,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    /// Forwards connections to `server`; `fault` selects the fault of each, counted from 1.
    pub(super) fn start(
        server: u16,
        fault: impl Fn(usize) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
                let fault = fault(number);
                thread::spawn(move || serve(client, server, fault));
            }
        });
        Self { port, connections }
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(mut client: TcpStream, port: u16, fault: Fault) {
    match fault {
        Fault::Refused => return,
        Fault::Silence => {
            let mut bytes = [0; 4096];
            while client.read(&mut bytes).is_ok_and(|length| length > 0) {}
            return;
        }
        _ => {}
    }
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    let (mut from_server, mut to_client) =
        (server.try_clone().unwrap(), client.try_clone().unwrap());
    let (mut before, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
    let answers = thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let needle: &[u8] = match fault {
        Fault::Stalled(needle)
        | Fault::CutBefore(needle)
        | Fault::CutAfter(needle)
        | Fault::Delayed(needle, _) => needle,
        _ => &[],
    };
    loop {
        let length = match client.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(length) => length,
        };
        before.extend_from_slice(&bytes[..length]);
        let is_there = before
            .windows(needle.len().max(1))
            .any(|part| part == needle);
        before.drain(..before.len().saturating_sub(needle.len()));
        if is_there {
            return apply_fault(&client, &mut server, &bytes[..length], fault);
        }
        if server.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = answers.join();
}

/// Applies the fault at the message.
fn apply_fault(mut client: &TcpStream, server: &mut TcpStream, message: &[u8], fault: Fault) {
    match fault {
        Fault::Stalled(_) => {
            let mut bytes = [0; 4096];
            while client.read(&mut bytes).is_ok_and(|length| length > 0) {}
        }
        Fault::CutAfter(_) => {
            // The client receives nothing from here on, not even what is in flight.
            client.shutdown(Shutdown::Both).unwrap();
            server.write_all(message).unwrap();
            // The server processes it before it notices the closed connection.
            server.shutdown(Shutdown::Write).unwrap();
            return;
        }
        Fault::Delayed(_, delay) => {
            client.shutdown(Shutdown::Both).unwrap();
            thread::sleep(delay);
            server.write_all(message).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
            return;
        }
        _ => client.shutdown(Shutdown::Both).unwrap(),
    }
    let _ = server.shutdown(Shutdown::Both);
}
