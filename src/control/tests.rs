//! The socket itself, with orders that go nowhere. Who may ask is tested beside [`caller`](super::caller), and with the real
//! program in `tests/control/`.

use super::*;
use crate::core::order::{Ask, Step};
use crate::system::paths;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

/// A tray that takes orders and leaves it to the test to answer them, on a thread of its own.
struct Tray {
    scratch: TempDir,
    given: Receiver<Given>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Tray {
    fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    fn start_in(scratch: TempDir) -> Self {
        let (orders, given) = channel();
        let (end, ended) = oneshot::channel();
        let folder = scratch.path().to_owned();
        let (ready, is_ready) = channel();
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let orders = move |it| drop(orders.send(it));
                let served = serve(&folder, Judge::default(), orders).unwrap();
                ready.send(()).unwrap();
                let _ = ended.await;
                drop(served);
            });
        });
        is_ready.recv().unwrap();
        Self { scratch, given, end: Some(end), thread: Some(thread) }
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

/// What the tray answers to these bytes, up to the end of the connection.
fn answer_to(mut stream: UnixStream, bytes: &[u8]) -> String {
    let _ = stream.write_all(bytes); // it may be refused before it is written
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer); // what was left unread resets the connection behind the answer
    String::from_utf8(answer).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn stop(id: &str) -> Order {
    Order::new(id, Ask::Stop)
}

fn line(order: &Order) -> Vec<u8> {
    let mut line = serde_json::to_vec(order).unwrap();
    line.push(b'\n');
    line
}

fn done(words: &str) -> Report {
    Report::End(Outcome::Done(words.into()))
}

fn refused(answer: &str) -> String {
    let mut lines = answer.lines();
    let report = serde_json::from_str(lines.next().expect("an answer")).unwrap();
    let Report::End(Outcome::Refused(reason)) = report else { panic!("{report:?}") };
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
    let given = tray.given.recv().unwrap();
    assert_eq!(given.order, stop("one"));
    let reports = [Report::Step(Step::Abort, "a\nb".into()), Report::Request("x".repeat(300_000)), done("it is over")];
    for report in &reports {
        given.report(report.clone());
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
    assert_eq!(fs::read_dir(tray.scratch.path()).unwrap().count(), 1, "nothing is left beside it");
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
    // Another one takes the place over; this one's end does not take it away.
    fs::remove_file(&socket).unwrap();
    let _next = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    tray.end();
    assert!(socket.exists());
}

#[test]
fn a_folder_that_others_may_write_to_is_not_served_in() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("folder");
    paths::make_folder(&folder).unwrap();
    let serve_in = |folder: &Path| {
        let runtime = runtime();
        let _inside = runtime.enter();
        serve(folder, Judge::default(), |_| {}).map(drop)
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
fn what_is_no_order_is_refused_in_words() {
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
    broken_off.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    broken_off.read_to_string(&mut answer).unwrap();
    assert!(refused(&answer).contains("breaks off"));
    assert!(tray.given.try_recv().is_err(), "nothing of it was an order");
}

#[test]
fn an_order_of_the_greatest_length_is_taken_and_a_longer_one_is_not_sent() {
    let tray = Tray::start();
    let of_length = |length: usize| {
        let empty = line(&stop("")).len();
        stop(&"i".repeat(length - empty))
    };
    let given = std::thread::scope(|scope| {
        let stream = tray.connect();
        let answers = scope.spawn(move || answer_to(stream, &line(&of_length(ORDER_MAX))));
        let given = tray.given.recv().unwrap();
        given.report(done("taken"));
        assert!(answers.join().unwrap().contains("taken"));
        given
    });
    assert_eq!(given.order, of_length(ORDER_MAX));
    assert!(refused(&answer_to(tray.connect(), &line(&of_length(ORDER_MAX + 1)))).contains("64 KB"));
    let error = runtime().block_on(ask(tray.scratch.path(), &of_length(ORDER_MAX + 1))).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[test]
fn an_order_whose_client_vanished_is_taken_back() {
    let tray = Tray::start();
    let mut stream = tray.connect();
    stream.write_all(&line(&stop("one"))).unwrap();
    let given = tray.given.recv().unwrap();
    drop(stream);
    // The conversation is over as soon as the client is gone, and whoever carries the order out can see that.
    let closed = runtime().block_on(async { timeout(Duration::from_secs(20), given.reply.closed()).await });
    assert!(closed.is_ok(), "its place is free for others");
    assert!(given.is_abandoned());
    given.report(done("it is over"));
    // One that has gone before its order is read gives none.
    let mut stream = tray.connect();
    stream.write_all(&line(&stop("two"))).unwrap();
    drop(stream);
    let late = tray.given.recv_timeout(Duration::from_millis(300));
    assert!(late.is_err() || late.is_ok_and(|given| given.is_abandoned()));
}

#[test]
fn an_order_that_is_dropped_may_have_happened() {
    let tray = Tray::start();
    std::thread::scope(|scope| {
        let stream = tray.connect();
        let answers = scope.spawn(move || answer_to(stream, &line(&stop("one"))));
        drop(tray.given.recv().unwrap());
        let answer = answers.join().unwrap();
        assert!(answer.contains("unconfirmed") && answer.contains("did not say how it ended"), "{answer}");
    });
}

#[test]
fn a_tray_that_ends_breaks_off_in_words() {
    let mut tray = Tray::start();
    let folder = tray.scratch.path().to_owned();
    let asks = std::thread::spawn(move || {
        runtime().block_on(async { ask(&folder, &stop("one")).await.unwrap().unwrap().next().await })
    });
    let given = tray.given.recv().unwrap();
    tray.end();
    assert!(asks.join().unwrap().unwrap_err().to_string().contains("broke off"));
    given.report(done("nobody hears it"));
}

/// The last report of an answer.
fn last(answer: &str) -> Report {
    serde_json::from_str(answer.lines().last().expect("an answer")).unwrap()
}

#[test]
fn case_137_whoever_gives_an_order_is_heard_before_those_who_only_wait() {
    let tray = Tray::start();
    // As many as one process may have say nothing.
    let silent: Vec<_> = (0..OF_ONE_PROCESS).map(|_| tray.connect()).collect();
    let mut speaks = tray.connect();
    speaks.write_all(&line(&stop("speaks"))).unwrap();
    let given = tray.given.recv_timeout(PATIENCE / 2).expect("it is heard at once");
    given.report(done("heard"));
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
    let mut streams: Vec<_> = (0..OF_ONE_PROCESS).map(|_| tray.connect()).collect();
    for (n, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&line(&stop(&n.to_string()))).unwrap();
    }
    let mut given: Vec<_> = streams.iter().map(|_| tray.given.recv().unwrap()).collect();
    // All of them have given an order: nobody is sent away for one more.
    let reason = refused(&answer_to(tray.connect(), b""));
    assert!(reason.contains("as many orders as it takes at once"), "{reason}");
    given.reverse();
    for it in given {
        it.report(done(&it.order.id));
    }
    for (n, mut stream) in streams.into_iter().enumerate() {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(last(&answer), done(&n.to_string()));
    }
}

#[test]
fn room_is_made_by_who_has_the_most_and_waits_longest() {
    runtime().block_on(async {
        let mut kept = Vec::new();
        let mut tasks = JoinSet::new();
        let mut guest = |process, kept: &mut Vec<oneshot::Receiver<()>>| {
            let (dismiss, dismissed) = oneshot::channel();
            kept.push(dismissed);
            (tasks.spawn(async {}).id(), Guest { process: Some(process), dismiss })
        };
        // 15 of each process, which is one less than each may have, until nobody more is let in.
        let mut guests: Vec<_> = (0..CLIENTS_MAX).map(|n| guest(n as u32 / 15, &mut kept)).collect();
        let of = |guests: &[(task::Id, Guest)], process| {
            guests.iter().filter(|(_, guest)| guest.process == Some(process)).count()
        };
        assert!(make_room(&mut guests, Some(4), false) && guests.len() == CLIENTS_MAX - 1);
        assert_eq!((of(&guests, 0), of(&guests, 4)), (14, 4), "the first of those with the most");
        assert_eq!(kept[0].try_recv(), Ok(()));
        // One that has given its order stays.
        kept[1].close();
        guests.push(guest(1, &mut kept));
        assert!(make_room(&mut guests, Some(1), false));
        assert_eq!((of(&guests, 1), kept[15].try_recv()), (15, Ok(())), "its own, though others have none to spare");
        guests.push(guest(9, &mut kept));
        for dismissed in &mut kept {
            dismissed.close();
        }
        assert!(!make_room(&mut guests, Some(7), false) && guests.len() == CLIENTS_MAX, "all have given one");
        let mut few = vec![guest(1, &mut kept), guest(2, &mut kept)];
        assert!(make_room(&mut few, Some(3), true) && few.len() == 1, "for the descriptor that it takes");
        kept.last_mut().unwrap().close();
        assert!(make_room(&mut few, Some(3), true) && few.len() == 1, "whoever has given an order stays");
    });
}

#[test]
fn a_socket_that_takes_nobody_in_is_not_waited_for_when_it_is_only_looked_at() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    assert_eq!(probe(folder).unwrap(), Probe::Nobody);
    let listener = std::os::unix::net::UnixListener::bind(folder.join("pilotlight.sock")).unwrap();
    assert_eq!(probe(folder).unwrap(), Probe::Served);
    rustix::net::listen(&listener, 0).unwrap();
    for _ in 0..4 {
        assert_eq!(probe(folder).unwrap(), Probe::Served);
    }
    drop(listener);
    assert_eq!(probe(folder).unwrap(), Probe::LeftBehind);
    assert_eq!(probe(&folder.join("absent")).unwrap(), Probe::Nobody);
}
