//! A server like Copilot's, in the player of a program's session: JSON-RPC on a port of this machine. It answers nothing
//! itself: each call goes to the stage, and each reply comes from there.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest call, in bytes.
const CALL_MAX: usize = 1 << 20;
/// At most this many clients at once.
const CLIENTS_MAX: usize = 16;

/// A call of a client, or the reply to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    pub client: u64,
    pub body: Value,
}

type Clients = Arc<Mutex<HashMap<u64, TcpStream>>>;

/// Serves until standard input closes.
///
/// # Errors
/// If this machine refuses a port or a thread.
pub fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // The program that started the session is its client, too: it does not end with Pilotlight.
    let _program = TcpStream::connect(listener.local_addr()?)?;
    let clients = Clients::default();
    let accepted = Arc::clone(&clients);
    std::thread::Builder::new().name("accept".into()).spawn(move || accept(&listener, &accepted))?;
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(Call { client, body }) = serde_json::from_str(&line) else { continue };
        if let Some(stream) = lock(&clients).get_mut(&client) {
            let body = body.to_string();
            let _ = write!(stream, "Content-Length: {}\r\n\r\n{body}", body.len()); // it may have gone
        }
    }
    Ok(())
}

fn lock(clients: &Clients) -> std::sync::MutexGuard<'_, HashMap<u64, TcpStream>> {
    clients.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, clients: &Clients) {
    for (id, stream) in (0..).zip(listener.incoming().flatten()) {
        let Ok(reading) = stream.try_clone() else { continue };
        if lock(clients).len() == CLIENTS_MAX {
            continue;
        }
        lock(clients).insert(id, stream);
        let left = Arc::clone(clients);
        let read = move || {
            let mut reading = BufReader::new(reading);
            while let Some(body) = frame(&mut reading) {
                let call = serde_json::to_string(&Call { client: id, body }).unwrap_or_default() + "\n";
                if io::stdout().write_all(call.as_bytes()).and_then(|()| io::stdout().flush()).is_err() {
                    break;
                }
            }
            lock(&left).remove(&id);
        };
        if std::thread::Builder::new().name("client".into()).spawn(read).is_err() {
            lock(clients).remove(&id);
        }
    }
}

/// The next call. `None` at the end, and for what is no call.
fn frame(reading: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if reading.by_ref().take(CALL_MAX as u64).read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("Content-Length: ").map_or(length, |length| length.parse::<usize>().ok());
    }
    let mut body = vec![0; length.filter(|length| *length <= CALL_MAX)?];
    reading.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
