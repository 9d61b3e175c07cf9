//! Bridges on another machine where no tray runs: of all that are connected to it, one listens for them, and only for
//! somebody who gives orders.

use super::hosts::{name_hosts, says, told_by};
use super::trays::Tray;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use pilotlight_core::order::{Operation, Order};
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A user who has the bridge, and the socket that it would connect to.
fn bridged() -> (User, PathBuf) {
    let remote = User::new();
    let state = remote.scratch.path().join(".local/state/pilotlight");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("bridge.key"), [7; 32]).unwrap();
    (remote, state.join("bridge.sock"))
}

/// A `serve` that has told of all sessions.
struct Served {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Served {
    fn start(remote: &User) -> Self {
        let mut serve = remote.pilotlight(&["serve", "--stdio"]);
        serve.env_remove("XDG_RUNTIME_DIR").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = serve.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut served = Self { child, to, from };
        served.wait_line("\"ready\"");
        served
    }

    fn wait_line(&mut self, awaited: &str) {
        assert!(self.from.any(|line| line.unwrap().starts_with(awaited)), "{awaited}");
    }

    /// Gives an order about a session that is not there, and waits for its end.
    fn order(&mut self, n: u32) {
        let order = serde_json::to_string(&Order::new("x", Operation::Stop)).unwrap();
        self.say(&format!(r#"{{"order":{{"n":{n},"order":{order}}}}}"#));
        self.wait_line(r#"{"report":"#);
    }

    fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn end(mut self) {
        drop(self.to);
        self.child.wait().unwrap();
    }
}

#[test]
fn case_479_bridges_are_listened_for_by_one_that_gives_orders_and_then_by_the_next() {
    let (remote, socket) = bridged();
    let is_listened_to = || UnixStream::connect(&socket).is_ok();
    let wait_for = |listened: bool| {
        let is_so = || (is_listened_to() == listened).then_some(());
        wait_until(SOON, &format!("listened to: {listened}"), String::new, is_so);
    };
    let (mut watches, mut acts, mut later) = (Served::start(&remote), Served::start(&remote), Served::start(&remote));
    watches.say(r#"{"ping":1}"#);
    watches.wait_line(r#"{"pong":1}"#);
    assert!(!is_listened_to(), "nobody gives orders");
    acts.say(r#""acts""#);
    wait_for(true);
    let of_acting = fs::metadata(&socket).unwrap().ino();
    later.say(r#""acts""#);
    later.order(1);
    assert_eq!(fs::metadata(&socket).unwrap().ino(), of_acting, "another is there");
    acts.end();
    wait_for(false);
    // An order is for whoever is there to carry it out.
    later.order(2);
    wait_for(true);
    later.end();
    watches.end();
}

#[test]
fn case_479_whoever_only_watches_does_not_say_that_it_acts() {
    let (near, remote) = (User::new(), User::new());
    // What each connection says, in a file of its own.
    let heard = near.scratch.path().join("heard");
    fs::create_dir(&heard).unwrap();
    let mut words = says(&near, &told_by(&remote));
    words[2] = words[2].replace("cat >/dev/null", &format!("cat >{}/$$", heard.display()));
    name_hosts(&near, &[("devbox", words)]);
    let said = || {
        let files = fs::read_dir(&heard).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        let mut said: Vec<_> = files.collect();
        said.sort_unstable();
        said
    };
    let dump = || format!("{:?}", said());
    let watch = near.watch();
    wait_until(SOON, "watch is connected", || format!("{:?}", watch.lines()), || (said().len() == 1).then_some(()));
    let _tray = Tray::start(&near);
    let acts = || said().contains(&"\"acts\"\n".to_owned()).then_some(());
    wait_until(SOON, "the tray acts", dump, acts);
    assert_eq!(said(), ["", "\"acts\"\n"]);
}
