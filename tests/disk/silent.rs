//! Case 179: a file system that stops answering, under one session, a home, or already at the start. Whatever touches it
//! waits in the kernel, so what is on it is left alone, and everything else goes on.

use crate::support::fuse::{self, Frozen};
use crate::support::running_time::running_time;
use crate::support::synthetic::{Folder, Owner, User, Watch};
use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;

/// How long the other sessions' news may take on a busy machine: less than the time until the silence is said.
const NEWS: Duration = Duration::from_millis(1500);

const SILENT: &str = "its file system (FUSE) does not answer";

fn is_silent(row: &serde_json::Value) -> bool {
    row["because"].as_str().is_some_and(|because| because.starts_with(SILENT)) && row["status"] == "quiet"
}

/// Changes a session often, and waits until each change is reported.
fn assert_news_arrive(watch: &Watch, session: &Folder) {
    for _ in 0..20 {
        for (change, status) in [(Folder::answer as fn(&Folder), "idle"), (Folder::prompt, "working")] {
            let start = running_time();
            change(session);
            watch.wait_status(session, status);
            let took = running_time() - start;
            assert!(took < NEWS, "{took:.1?}");
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Case 179: under the folder of one session.
#[test]
fn case_179_one_session_whose_file_system_stops_answering_keeps_no_other_waiting() {
    if !fuse::is_possible() {
        return;
    }
    let user = User::new();
    let (silent, other) = (user.session(1), user.session(2));
    let _owners = [silent.owner(&user), other.owner(&user)];
    silent.prompt();
    other.prompt();
    let watch = fuse::watch(&user, &silent.path);
    watch.wait_status(&silent, "working");
    watch.wait_status(&other, "working");
    for _ in 0..2 {
        let frozen = Frozen::of(&watch);
        assert_news_arrive(&watch, &other);
        let row = watch.wait_row(&silent, "silent", is_silent);
        assert!(row["because"].as_str().unwrap().contains("; before that: working, "), "{row}");
        let actions = row["actions"].as_array().unwrap();
        assert!(actions.iter().all(|action| action == "show-terminal"), "{row}");
        assert_news_arrive(&watch, &other);

        let status = fuse::pilotlight_beside(&watch, &user, &["status"]);
        assert!(text(&status.stdout).contains("does not answer"), "{status:?}");
        let explain = fuse::pilotlight_beside(&watch, &user, &["explain", &silent.id]);
        assert!(text(&explain.stdout).contains(SILENT), "{explain:?}");
        let doctor = text(&fuse::pilotlight_beside(&watch, &user, &["doctor"]).stdout);
        assert!(doctor.contains("the log of session 00000001 is not read: its file system (FUSE)"), "{doctor}");

        drop(frozen);
        watch.wait_status(&silent, "working");
    }
    // Written beneath, as everything here.
    silent.answer();
    watch.wait_status(&silent, "idle");
    let _frozen = Frozen::of(&watch);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Two homes, each with a session at work. Fields drop from the top.
struct TwoHomes {
    _owners: [Owner; 2],
    silent: Folder,
    other: Folder,
    user: User,
    elsewhere: User,
}

impl TwoHomes {
    fn new() -> Self {
        let (user, elsewhere) = (User::new(), User::new());
        let (silent, other) = (user.session(1), elsewhere.session(2));
        let owners = [silent.owner(&user), other.owner(&elsewhere)];
        silent.prompt();
        other.prompt();
        Self { _owners: owners, silent, other, user, elsewhere }
    }

    /// Runs a test with two homes, if file systems can be stopped here.
    fn on(test: impl FnOnce(&Self, [&Path; 2])) {
        if fuse::is_possible() {
            let two = Self::new();
            test(&two, [&two.user.home(), &two.elsewhere.home()]);
        }
    }
}

/// Case 179: under a whole home.
#[test]
fn case_179_a_home_whose_file_system_stops_answering_keeps_no_other_waiting() {
    TwoHomes::on(|TwoHomes { silent, other, user, .. }, homes| {
        let watch = fuse::watch_homes(user, homes[0], &homes);
        watch.wait_status(silent, "working");
        watch.wait_status(other, "working");
        let frozen = Frozen::of(&watch);
        assert_news_arrive(&watch, other);
        watch.wait_row(silent, "silent", is_silent);
        assert_news_arrive(&watch, other);
        drop(frozen);
        watch.wait_status(silent, "working");
        silent.answer();
        watch.wait_status(silent, "idle");
        let _frozen = Frozen::of(&watch);
        assert_eq!(watch.end(Signal::TERM), Some(0));
    });
}

/// Case 179: before the program starts.
#[test]
fn case_179_a_home_that_does_not_answer_at_the_start_is_taken_up_when_it_does() {
    TwoHomes::on(|TwoHomes { silent, other, user, .. }, homes| {
        let (watch, frozen) = fuse::watch_frozen(user, homes[0], &homes);
        watch.wait_status(other, "working");
        assert_news_arrive(&watch, other);
        assert_eq!(watch.status(silent), None);

        let [one, two] = homes.map(|home| home.to_str().unwrap());
        let status = fuse::pilotlight_beside(&watch, user, &["status", "--home", one, "--home", two]);
        assert!(text(&status.stdout).contains("Session 2"), "{status:?}");
        assert!(text(&status.stderr).contains("does not answer"), "{status:?}");
        let explain = fuse::pilotlight_beside(&watch, user, &["explain", &silent.id, "--home", one]);
        assert!(text(&explain.stderr).contains("does not answer"), "{explain:?}");
        let doctor = text(&fuse::pilotlight_beside(&watch, user, &["doctor", "--home", one]).stdout);
        assert!(doctor.contains("its file system (FUSE at"), "{doctor}");

        drop(frozen);
        watch.wait_status(silent, "working");
        assert_eq!(watch.end(Signal::TERM), Some(0));
    });
}
