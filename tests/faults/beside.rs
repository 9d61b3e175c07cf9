//! The faults that other tests try on one session, with a second session: as long as the fault lasts, that one is
//! reported at once, and the program exits on SIGTERM.

use super::floods::{LATE, Pulse, assert_exits, beat_while};
use super::refused::SessionReport;
use crate::support::synthetic::{Folder, User, Watch};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// How many times the other session changes its status.
const BEATS: u32 = 20;

/// Case 139: one home is replaced by another again and again. The other session is in a second home.
#[test]
fn case_139_a_home_that_is_replaced_again_and_again_delays_nothing() {
    let user = User::new();
    let other = user.session(1);
    let homes = ["home", "away", "between"].map(|name| user.scratch.path().join(name));
    let moved: Vec<_> = homes[..2]
        .iter()
        .zip(2..)
        .map(|(home, n)| {
            let (session, sessions) = (user.session(n), home.join("session-state"));
            fs::create_dir_all(&sessions).unwrap();
            let path = sessions.join(&session.id);
            fs::rename(&session.path, &path).unwrap();
            session.moved(path)
        })
        .collect();
    let _owners = [other.owner(&user), moved[0].owner(&user), moved[1].owner(&user)];
    moved.iter().for_each(Folder::prompt);
    let both = [user.home(), homes[0].clone()].map(|home| home.display().to_string());
    let watch = Watch::start(user.pilotlight(&["watch", "--json", "--home", &both[0], "--home", &both[1]]));
    watch.wait_status(&moved[0], "working");
    let swap = || {
        for (from, to) in [(0, 2), (1, 0), (2, 1)] {
            fs::rename(&homes[from], &homes[to]).unwrap();
        }
    };
    let mut swaps = 0;
    let worst = beat_while(&Pulse { session: &other, watch: &watch }, BEATS, |_| {
        swap();
        swaps += 1;
    });
    println!("with a home that was replaced {swaps} times: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    let (present, gone) = if swaps % 2 == 0 { (&moved[0], &moved[1]) } else { (&moved[1], &moved[0]) };
    watch.wait_status(present, "working");
    watch.wait_row(gone, "gone", |row| row["removed"] == true);
    assert_exits(watch);
}

/// Case 140: a log is rewritten in place, with the same length and the same end.
#[test]
fn case_140_a_log_that_is_rewritten_in_place_is_read_again_and_delays_nothing() {
    let (user, other, _owner, watch) = User::working(1);
    let session = user.session(2);
    let _its_owner = session.owner(&user);
    session.prompt();
    session.answer();
    session.log_event("session.info", r#"{"message":"the end of it stays as it is, and is longer than a mark"}"#);
    watch.wait_status(&session, "idle");
    let answered = fs::read_to_string(session.log()).unwrap();
    let without = |text: &str, kind: &str| {
        let space = " ".repeat(kind.len() - "assistant.intent".len());
        text.replacen(&format!(r#""{kind}","data""#), &format!(r#""assistant.intent",{space}"data""#), 1)
    };
    let unanswered = without(&without(&answered, "assistant.message"), "assistant.turn_end");
    assert!(unanswered.len() == answered.len() && unanswered != answered, "{unanswered}");
    let log = File::options().write(true).open(session.log()).unwrap();
    let rewrite = |text: &str| log.write_all_at(text.as_bytes(), 0).unwrap();
    for _ in 0..5 {
        for (text, status) in [(&unanswered, "working"), (&answered, "idle")] {
            rewrite(text);
            watch.wait_status(&session, status);
            assert_eq!(user.status_and_reason(&session).0, status);
        }
    }
    let texts = [&unanswered, &answered];
    let worst = beat_while(&Pulse { session: &other, watch: &watch }, BEATS, |n| rewrite(texts[n as usize % 2]));
    println!("with a log that is rewritten all the time: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    rewrite(&unanswered);
    watch.wait_status(&session, "working");
    assert_exits(watch);
}

/// Case 141: a prompt that is dated two hours in the future, in a file that was last written ninety minutes ago.
#[test]
fn case_141_a_prompt_of_the_future_is_as_old_as_its_file() {
    let (user, other, _owner, watch) = User::working(1);
    let session = user.session(2);
    let _its_owner = session.owner(&user);
    let mut prompt: serde_json::Value =
        serde_json::from_str(&session.line(Duration::ZERO, "user.message", r#"{"content":"do it"}"#)).unwrap();
    let ahead = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    prompt["timestamp"] = format!("{ahead:.3}").into();
    session.append(format!("{prompt}\n"));
    let log = File::options().append(true).open(session.log()).unwrap();
    log.set_modified(log.metadata().unwrap().modified().unwrap() - Duration::from_secs(90 * 60)).unwrap();
    watch.wait_status(&session, "stuck");
    assert_eq!(user.status_and_reason(&session).0, "stuck");
    let worst = Pulse { session: &other, watch: &watch }.beat(BEATS);
    println!("with a prompt of the future: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    assert_eq!(watch.status(&session).as_deref(), Some("stuck"));
    assert_exits(watch);
}

/// Case 142: the system refuses all further threads while the program runs.
#[test]
fn case_142_a_running_program_needs_no_further_threads() {
    let Some(report) = SessionReport::new() else { return };
    let other = report.user.session(2);
    let _owner = other.owner(&report.user);
    other.prompt();
    let watch = Watch::start(report.command(&["watch", "--json"]));
    watch.wait_status(&other, "working");
    report.forbid_threads(watch.pid());
    let worst = Pulse { session: &other, watch: &watch }.beat(BEATS);
    println!("without further threads: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    assert_exits(watch);
}

/// Case 144: blank titles and titles that reverse the following text, rewritten all the time.
#[test]
fn case_144_invisible_titles_delay_nothing() {
    let (user, other, _owner, watch) = User::working(1);
    let session = user.session(2);
    let _its_owner = session.owner(&user);
    let titles = ["\u{3164}", "\u{202e}eltit", "\u{9b}31m", "\u{2066}\u{200b}\u{feff}", &"\u{301}".repeat(10_000)];
    let rename = |n: u32| {
        let title = titles[n as usize % titles.len()];
        session.workspace(&format!("id: {}\ncwd: /home/dev/project {n}\nname: \"{title}\"\n", session.id));
    };
    let worst = beat_while(&Pulse { session: &other, watch: &watch }, BEATS, rename);
    println!("with invisible titles: reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    session.workspace(&format!("id: {}\ncwd: /home/dev/project\nname: \"\u{3164}\"\n", session.id));
    session.prompt();
    assert_eq!(watch.wait_status(&session, "working")["name"], "project");
    assert_exits(watch);
}
