//! Faults that the other tests try on one session, with another session beside it: while they last, that one is told of at once,
//! and the program ends when it is asked to.

use super::floods::{LATE, Pulse, beat_while, ends};
use super::refused::Account;
use crate::support::made_up::{Folder, User, Watch};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// How often the other session works and rests.
const BEATS: u32 = 20;

/// Case 139: one home is renamed away and another put in its place, again and again; the other session is in a second home.
#[test]
fn case_139_a_home_that_comes_and_goes_holds_nobody_up() {
    let user = User::new();
    let other = user.session(1);
    let homes = ["home", "away", "between"].map(|name| user.scratch.path().join(name));
    let moved: Vec<_> = homes[..2]
        .iter()
        .zip(2..)
        .map(|(home, n)| {
            let (session, there) = (user.session(n), home.join("session-state"));
            fs::create_dir_all(&there).unwrap();
            let path = there.join(&session.id);
            fs::rename(&session.path, &path).unwrap();
            session.moved(path)
        })
        .collect();
    let _owners = [other.owner(&user), moved[0].owner(&user), moved[1].owner(&user)];
    moved.iter().for_each(Folder::prompt);
    let both = [user.home(), homes[0].clone()].map(|home| home.display().to_string());
    let watch = Watch::start(user.pilotlight(&["watch", "--json", "--home", &both[0], "--home", &both[1]]));
    watch.told(&moved[0], "working");
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
    println!("beside a home that was replaced {swaps} times, told within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    let (here, gone) = if swaps % 2 == 0 { (&moved[0], &moved[1]) } else { (&moved[1], &moved[0]) };
    watch.told(here, "working");
    watch.until(gone, "gone", |row| row["removed"] == true);
    ends(watch);
}

/// Case 140: a log is rewritten in place, with the length and the end that it had.
#[test]
fn case_140_a_log_that_is_rewritten_in_place_is_read_anew_and_holds_nobody_up() {
    let (user, other, _owner, watch) = User::working(1);
    let session = user.session(2);
    let _its_owner = session.owner(&user);
    session.prompt();
    session.answer();
    session.say("session.info", r#"{"message":"the end of it stays as it is, and is longer than a mark"}"#);
    watch.told(&session, "idle");
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
            watch.told(&session, status);
            assert_eq!(user.told(&session).0, status);
        }
    }
    let texts = [&unanswered, &answered];
    let worst = beat_while(&Pulse { session: &other, watch: &watch }, BEATS, |n| rewrite(texts[n as usize % 2]));
    println!("beside a log that is rewritten all the time, told within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    rewrite(&unanswered);
    watch.told(&session, "working");
    ends(watch);
}

/// Case 141: a prompt that is dated two hours ahead, in a file that nobody has touched for ninety minutes.
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
    watch.told(&session, "stuck");
    assert_eq!(user.told(&session).0, "stuck");
    let worst = Pulse { session: &other, watch: &watch }.beat(BEATS);
    println!("beside a prompt of the future, told within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    assert_eq!(watch.status(&session).as_deref(), Some("stuck"));
    ends(watch);
}

/// Case 142: the system refuses every further thread while the program runs.
#[test]
fn case_142_without_further_threads_who_runs_goes_on() {
    let Some(account) = Account::new() else { return };
    let other = account.user.session(2);
    let _owner = other.owner(&account.user);
    other.prompt();
    let watch = Watch::start(account.command(&["watch", "--json"]));
    watch.told(&other, "working");
    account.allows_no_more_threads(watch.pid());
    let worst = Pulse { session: &other, watch: &watch }.beat(BEATS);
    println!("without further threads, told within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    ends(watch);
}

/// Case 144: titles that show nothing, and such as turn around what follows them, written anew all the time.
#[test]
fn case_144_titles_that_act_unseen_hold_nobody_up() {
    let (user, other, _owner, watch) = User::working(1);
    let session = user.session(2);
    let _its_owner = session.owner(&user);
    let titles = ["\u{3164}", "\u{202e}eltit", "\u{9b}31m", "\u{2066}\u{200b}\u{feff}", &"\u{301}".repeat(10_000)];
    let rename = |n: u32| {
        let title = titles[n as usize % titles.len()];
        session.workspace(&format!("id: {}\ncwd: /home/dev/project {n}\nname: \"{title}\"\n", session.id));
    };
    let worst = beat_while(&Pulse { session: &other, watch: &watch }, BEATS, rename);
    println!("beside titles that act unseen, told within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    session.workspace(&format!("id: {}\ncwd: /home/dev/project\nname: \"\u{3164}\"\n", session.id));
    session.prompt();
    assert_eq!(watch.told(&session, "working")["name"], "project");
    ends(watch);
}
