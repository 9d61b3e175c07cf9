//! Tests of the socket itself, with orders that have no effect. Who may give which order is tested in
//! [`caller`](super::caller), and with the real program in `tests/control/`.

use super::*;
use crate::observation::{Observation, ObservedHome};
use pilotlight_core::agent::Agent;
use pilotlight_core::fleet::Session;
use pilotlight_core::order::{Operation, Order, ShownRequest, Step};
use pilotlight_core::time::Moment;
use pilotlight_system::paths;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

/// What the tray says of its sessions.
fn observation() -> Observation {
    let session = Session::new(Agent::reported("robot").unwrap(), "one");
    let home =
        ObservedHome { agent: "robot".into(), path: "/home/dev/.robot".into(), since: None, sessions: vec![session] };
    Observation { now: Moment::default(), homes: vec![home] }
}

/// A tray on a thread of its own that accepts orders and leaves it to the test to answer them.
struct Tray {
    scratch: TempDir,
    pending: Receiver<PendingOrder>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Tray {
    fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    fn start_in(scratch: TempDir) -> Self {
        let (orders, pending) = channel();
        let (end, ended) = oneshot::channel();
        let folder = scratch.path().to_owned();
        let (ready, is_ready) = channel();
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let handle = move |request| match request {
                    Command::Act(pending) => drop(orders.send(pending)),
                    Command::ReportSessions(reply) => drop(reply.send(observation())),
                    Command::RestartBridgeListener(reply) => drop(reply.send(())),
                    other => panic!("no client may ask for {other:?}"),
                };
                let served = serve(&folder, CallerPolicy::default(), handle).unwrap();
                ready.send(()).unwrap();
                let _ = ended.await;
                drop(served);
            });
        });
        is_ready.recv().unwrap();
        Self { scratch, pending, end: Some(end), thread: Some(thread) }
    }

    fn socket(&self) -> PathBuf {
        self.scratch.path().join("pilotlight.sock")
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn end(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Tray {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the tray's answer to these bytes, up to the end of the connection.
fn answer_to(mut stream: UnixStream, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes); // it may be refused before it is written
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer); // unread input resets the connection after the answer
    String::from_utf8(answer).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn stop(id: &str) -> Order {
    Order::new(id, Operation::Stop)
}

fn line(order: &Order) -> Vec<u8> {
    let mut line = serde_json::to_vec(order).unwrap();
    line.push(b'\n');
    line
}

fn done(words: &str) -> OrderReport {
    OrderReport::End(Outcome::Done(words.into()))
}

fn refused(answer: &str) -> String {
    let mut lines = answer.lines();
    let report = serde_json::from_str(lines.next().expect("an answer")).unwrap();
    let OrderReport::End(Outcome::Refused(reason)) = report else { panic!("{report:?}") };
    assert_eq!(lines.next(), None);
    reason
}

#[test]
fn an_order_goes_in_and_its_reports_come_out() {
    let tray = Tray::start();
    let folder = tray.scratch.path().to_owned();
    let asks = std::thread::spawn(move || {
        runtime().block_on(async {
            let mut asked = ask(&folder, &stop("one")).await.unwrap().expect("a tray serves");
            let mut reports = Vec::new();
            while let Some(report) = asked.next().await.unwrap() {
                reports.push(report);
            }
            assert_eq!(asked.next().await.unwrap(), None, "and still over");
            reports
        })
    });
    let pending = tray.pending.recv().unwrap();
    assert_eq!(pending.order, stop("one"));
    let reports = [
        OrderReport::Step(Step::Abort, "a\nb".into()),
        OrderReport::Request(ShownRequest::verbatim("x".repeat(300_000))),
        done("it is over"),
    ];
    for report in &reports {
        pending.report(report.clone());
    }
    assert_eq!(asks.join().unwrap(), reports);
}

#[test]
fn without_a_tray_there_is_nobody_to_ask() {
    let scratch = tempfile::tempdir().unwrap();
    let too_long = scratch.path().join("x".repeat(200));
    for folder in [scratch.path(), &scratch.path().join("absent"), &too_long] {
        assert!(runtime().block_on(ask(folder, &stop("one"))).unwrap().is_none(), "{}", folder.display());
    }
}

#[test]
fn the_socket_is_the_users_alone_and_goes_with_the_tray() {
    let mut tray = Tray::start();
    let meta = fs::symlink_metadata(tray.socket()).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o600);
    assert_eq!(fs::read_dir(tray.scratch.path()).unwrap().count(), 1, "no other file is left");
    tray.end();
    assert!(!tray.socket().exists());
}

#[test]
fn a_dead_trays_socket_is_replaced_and_the_next_trays_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let socket = scratch.path().join("pilotlight.sock");
    for leftover in [socket.clone(), scratch.path().join("pilotlight.new")] {
        drop(std::os::unix::net::UnixListener::bind(leftover).unwrap());
    }
    assert!(runtime().block_on(ask(scratch.path(), &stop("one"))).unwrap().is_none(), "nobody listens there");
    let mut tray = Tray::start_in(scratch);
    drop(tray.connect());
    // Another tray replaces the socket; this one's end must not remove it.
    fs::remove_file(&socket).unwrap();
    let _next = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    tray.end();
    assert!(socket.exists());
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("folder");
    paths::make_folder(&folder).unwrap();
    let serve_in = |folder: &Path| {
        let runtime = runtime();
        let _inside = runtime.enter();
        serve(folder, CallerPolicy::default(), |_| {}).map(drop)
    };
    serve_in(&folder).unwrap();
    for mode in [0o720, 0o702] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        let error = serve_in(&folder).unwrap_err();
        assert!(error.to_string().contains("chmod go-w"), "{error}");
    }
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(scratch.path(), &link).unwrap();
    assert!(serve_in(&link).unwrap_err().to_string().contains("is not a folder, or a link to one"));
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&folder, Some(65534), None).unwrap();
        assert!(serve_in(&folder).unwrap_err().to_string().contains("belongs to another user"));
    }
    assert!(!folder.join("pilotlight.sock").exists());
}

#[test]
fn an_invalid_order_is_refused_with_a_reason() {
    let tray = Tray::start();
    for (bytes, words) in [
        (&b"\n"[..], "does not understand"),
        (b"{}\n", "does not understand"),
        (b"{\"id\":\"one\",\"ask\":\"stop\",\"more\":1}\n", "unknown field `more`"),
        (b"{\"id\":\"one\",\"ask\":\"explode\"}\n", "unknown variant `explode`"),
        (b"\xff\xfe\0\n", "does not understand"),
        (&[b'['; 60_000], "no order came"),
        (&[b'x'; 1 << 20], "64 KB"),
        (&[&[b'['; 60_000][..], b"\n"].concat(), "does not understand"),
    ] {
        let reason = refused(&answer_to(tray.connect(), bytes));
        assert!(reason.contains(words), "{reason}");
    }
    let mut broken_off = tray.connect();
    broken_off.write_all(b"{\"id\":\"one\",").unwrap();
    broken_off.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    broken_off.read_to_string(&mut answer).unwrap();
    assert!(refused(&answer).contains("is cut off"));
    assert!(tray.pending.try_recv().is_err(), "nothing of it was an order");
}

#[test]
fn an_order_of_maximum_length_is_accepted_and_a_longer_one_is_not_sent() {
    let tray = Tray::start();
    let of_length = |length: usize| {
        let empty = line(&stop("")).len();
        stop(&"i".repeat(length - empty))
    };
    let pending = std::thread::scope(|scope| {
        let stream = tray.connect();
        let answers = scope.spawn(move || answer_to(stream, &line(&of_length(ORDER_MAX))));
        let pending = tray.pending.recv().unwrap();
        pending.report(done("taken"));
        assert!(answers.join().unwrap().contains("taken"));
        pending
    });
    assert_eq!(pending.order, of_length(ORDER_MAX));
    assert!(refused(&answer_to(tray.connect(), &line(&of_length(ORDER_MAX + 1)))).contains("64 KB"));
    let error = runtime().block_on(ask(tray.scratch.path(), &of_length(ORDER_MAX + 1))).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[test]
fn an_order_whose_client_vanished_is_taken_back() {
    let tray = Tray::start();
    let mut stream = tray.connect();
    stream.write_all(&line(&stop("one"))).unwrap();
    let pending = tray.pending.recv().unwrap();
    drop(stream);
    // The conversation ends as soon as the client disconnects, and whoever carries out the order can see that.
    let closed = runtime().block_on(async { timeout(Duration::from_secs(20), pending.reply.closed()).await });
    assert!(closed.is_ok(), "its place is free for others");
    assert!(pending.is_abandoned());
    pending.report(done("it is over"));
    // A client that disconnects before its order is read gives none.
    let mut stream = tray.connect();
    stream.write_all(&line(&stop("two"))).unwrap();
    drop(stream);
    let late = tray.pending.recv_timeout(Duration::from_millis(300));
    assert!(late.is_err() || late.is_ok_and(|pending| pending.is_abandoned()));
}

/// A client that closes only its own end hears what became of its order.
#[test]
fn case_201b_an_order_that_is_taken_back_says_what_happened() {
    let tray = Tray::start();
    let take_back = |name: &str| {
        let mut stream = tray.connect();
        stream.write_all(&line(&stop(name))).unwrap();
        let pending = tray.pending.recv().unwrap();
        (stream, pending)
    };
    let heard = |mut stream: UnixStream| {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let (stream, pending) = take_back("one");
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(heard(stream).contains("nothing was sent") && pending.is_abandoned());
    let (stream, pending) = take_back("two");
    pending.begin();
    stream.shutdown(Shutdown::Write).unwrap();
    runtime().block_on(async { timeout(Duration::from_secs(20), pending.taken_back()).await }).unwrap();
    pending.report(done("stopped"));
    assert!(heard(stream).contains("stopped"));
}

#[test]
fn a_dropped_order_is_reported_as_unconfirmed() {
    let tray = Tray::start();
    std::thread::scope(|scope| {
        let stream = tray.connect();
        let answers = scope.spawn(move || answer_to(stream, &line(&stop("one"))));
        drop(tray.pending.recv().unwrap());
        let answer = answers.join().unwrap();
        assert!(answer.contains("unconfirmed") && answer.contains("did not report the outcome"), "{answer}");
    });
}

#[test]
fn a_tray_that_ends_mid_order_causes_a_readable_error() {
    let mut tray = Tray::start();
    let folder = tray.scratch.path().to_owned();
    let asks = std::thread::spawn(move || {
        runtime().block_on(async { ask(&folder, &stop("one")).await.unwrap().unwrap().next().await })
    });
    let pending = tray.pending.recv().unwrap();
    tray.end();
    assert!(asks.join().unwrap().unwrap_err().to_string().contains("broke off"));
    pending.report(done("nobody hears it"));
}

#[test]
fn what_concerns_no_session_is_answered_at_once() {
    let tray = Tray::start();
    let folder = tray.scratch.path();
    let told = runtime().block_on(ask_for_sessions(folder)).unwrap().unwrap();
    assert_eq!(told.homes[0].sessions, observation().homes[0].sessions);
    assert_eq!(runtime().block_on(ask_to_listen_to_bridges(folder)).unwrap(), Some(()));
    assert!(refused(&answer_to(tray.connect(), b"\"explode\"\n")).contains("unknown variant `explode`"));
    assert!(tray.pending.try_recv().is_err(), "neither is an order");
}

/// The last report of an answer.
fn last(answer: &str) -> OrderReport {
    serde_json::from_str(answer.lines().last().expect("an answer")).unwrap()
}

#[test]
fn case_137_a_client_that_gives_an_order_is_served_before_idle_ones() {
    let tray = Tray::start();
    // As many clients as one process may have, all silent.
    let silent: Vec<_> = (0..CLIENTS_PER_PROCESS_MAX).map(|_| tray.connect()).collect();
    let mut speaks = tray.connect();
    speaks.write_all(&line(&stop("speaks"))).unwrap();
    let pending = tray.pending.recv_timeout(CLIENT_TIMEOUT / 2).expect("it is heard at once");
    pending.report(done("heard"));
    let mut answer = String::new();
    speaks.read_to_string(&mut answer).unwrap();
    assert_eq!((answer.lines().next(), last(&answer)), (Some("\"heard\""), done("heard")));
    for (n, mut stream) in silent.into_iter().enumerate() {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let reason = refused(&answer);
        let expected = if n == 0 { "other clients were waiting" } else { "no order came within 5 s" };
        assert!(reason.contains(expected), "{n}: {reason}");
    }
    // Several at once, none of which waits for another.
    let mut streams: Vec<_> = (0..CLIENTS_PER_PROCESS_MAX).map(|_| tray.connect()).collect();
    for (n, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&line(&stop(&n.to_string()))).unwrap();
    }
    let mut pending: Vec<_> = streams.iter().map(|_| tray.pending.recv().unwrap()).collect();
    // All of them have given an order: nobody is dismissed for one more.
    let reason = refused(&answer_to(tray.connect(), b""));
    assert!(reason.contains("takes no more orders at once"), "{reason}");
    pending.reverse();
    for it in pending {
        it.report(done(&it.order.id));
    }
    for (n, mut stream) in streams.into_iter().enumerate() {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(last(&answer), done(&n.to_string()));
    }
}

#[test]
fn the_longest_waiting_client_of_the_busiest_process_is_dismissed() {
    runtime().block_on(async {
        let mut kept = Vec::new();
        let mut tasks = JoinSet::new();
        let mut client = |process, kept: &mut Vec<oneshot::Receiver<()>>| {
            let (dismiss, dismissed) = oneshot::channel();
            kept.push(dismissed);
            (tasks.spawn(async {}).id(), Client { process: Some(process), dismiss })
        };
        // 15 clients per process, one less than the maximum, until the socket is full.
        let mut clients: Vec<_> = (0..CLIENTS_MAX).map(|n| client(n as u32 / 15, &mut kept)).collect();
        let of = |clients: &[(task::Id, Client)], process| {
            clients.iter().filter(|(_, client)| client.process == Some(process)).count()
        };
        assert!(make_room(&mut clients, Some(4), false) && clients.len() == CLIENTS_MAX - 1);
        assert_eq!((of(&clients, 0), of(&clients, 4)), (14, 4), "the first of those with the most");
        assert_eq!(kept[0].try_recv(), Ok(()));
        // A client that has given its order stays.
        kept[1].close();
        clients.push(client(1, &mut kept));
        assert!(make_room(&mut clients, Some(1), false));
        assert_eq!((of(&clients, 1), kept[15].try_recv()), (15, Ok(())), "its own, though others have none to spare");
        clients.push(client(9, &mut kept));
        for dismissed in &mut kept {
            dismissed.close();
        }
        assert!(!make_room(&mut clients, Some(7), false) && clients.len() == CLIENTS_MAX, "all have given one");
        let mut few = vec![client(1, &mut kept), client(2, &mut kept)];
        assert!(make_room(&mut few, Some(3), true) && few.len() == 1, "for the descriptor that it takes");
        kept.last_mut().unwrap().close();
        assert!(make_room(&mut few, Some(3), true) && few.len() == 1, "whoever has given an order stays");
    });
}

#[test]
fn probing_a_socket_with_a_full_backlog_does_not_block() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    assert_eq!(socket_state(folder).unwrap(), SocketState::Absent);
    let listener = std::os::unix::net::UnixListener::bind(folder.join("pilotlight.sock")).unwrap();
    assert_eq!(socket_state(folder).unwrap(), SocketState::Served);
    rustix::net::listen(&listener, 0).unwrap();
    for _ in 0..4 {
        assert_eq!(socket_state(folder).unwrap(), SocketState::Served);
    }
    drop(listener);
    assert_eq!(socket_state(folder).unwrap(), SocketState::Stale);
    assert_eq!(socket_state(&folder.join("absent")).unwrap(), SocketState::Absent);
}
