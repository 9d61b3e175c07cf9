//! Commands that name no session: the one that asks is meant. And `next`, which brings the first that needs the user.

use crate::control::hosts::{name_hosts, serves};
use crate::control::trays::Tray;
use crate::support::SOON;
use crate::support::executable::executable;
use crate::support::synthetic::User;
use crate::support::tmux::Tmux;
use crate::support::wait_until;
use std::fs;

fn texts(user: &User, args: &[&str]) -> (Option<i32>, String) {
    let ran = user.run(args);
    (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
}

/// Without a tray, and beside one.
#[test]
fn case_763_without_a_name_the_one_that_asks_is_meant() {
    for has_tray in [false, true] {
        let user = User::new();
        let (a, b) = (user.session(1), user.session(2));
        let _owners = (a.owner(&user), b.owner(&user));
        a.prompt();
        b.prompt();
        let _tray = has_tray.then(|| Tray::start(&user));
        for command in ["approve", "deny", "answer", "show", "explain"] {
            let (code, said) = texts(&user, &[command]);
            assert!(code == Some(2) && said.contains("no session"), "{command}: {said}");
        }
        a.asks_permission("r1");
        let asks = || texts(&user, &["explain"]).0.filter(|code| *code == 0);
        wait_until(SOON, "it asks", String::new, asks);
        let (_, page) = texts(&user, &["explain"]);
        assert!(page.contains(&a.id) && page.contains("needs-permission"), "{page}");
        for command in ["approve", "deny"] {
            let (code, said) = texts(&user, &[command]);
            assert!(code == Some(4) && said.contains(&format!("pilotlight {command} {}", a.id)), "{said}");
            assert_eq!(texts(&user, &[command, "--yes"]).0, Some(2), "whose request that is must be said");
        }
        assert_eq!(texts(&user, &["answer"]).0, Some(2), "it asks nothing that can be answered so");
        assert_eq!(texts(&user, &["approve", ""]).0, Some(2), "an unset variable names nothing");
        b.asks_permission("r2");
        let both = || Some(texts(&user, &["approve"])).filter(|(_, said)| said.contains("2 sessions ask"));
        let (code, said) = wait_until(SOON, "both ask", String::new, both);
        assert!(code == Some(2) && said.contains("Session 1") && said.contains("Session 2"), "{said}");
        assert_eq!(texts(&user, &["explain"]).0, Some(2));
    }
}

#[test]
fn case_763_one_on_another_machine_may_be_meant() {
    let (near, remote) = (User::new(), User::new());
    name_hosts(&near, &[("devbox", serves(&remote))]);
    let (here, there) = (near.session(1), remote.session(2));
    let _owners = (here.owner(&near), there.owner(&remote));
    here.prompt();
    there.prompt();
    there.asks_permission("r1");
    let (code, page) = texts(&near, &["explain"]);
    assert!(code == Some(0) && page.contains("machine         devbox") && page.contains(&there.id), "{page}");
    assert_eq!(texts(&near, &["explain", "--host", "nowhere"]).0, Some(2));
    here.asks_permission("r2");
    let (code, said) = texts(&near, &["approve"]);
    assert!(code == Some(2) && said.contains("@devbox"), "{said}");
    let (code, page) = texts(&near, &["explain", "--host", "devbox"]);
    assert!(code == Some(0) && page.contains(&there.id), "{page}");
}

#[test]
fn case_764_next_shows_what_the_first_session_asks() {
    let user = User::new();
    assert_eq!(texts(&user, &["next"]), (Some(0), "no session needs you\n".into()));
    let (a, b) = (user.session(1), user.session(2));
    let _owners = (a.owner(&user), b.owner(&user));
    a.prompt();
    b.prompt();
    b.asks_permission("r1");
    // A key has no terminal: one is opened.
    let (opener, opened) = (user.scratch.path().join("terminal"), user.scratch.path().join("opened"));
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >{0}.new; mv {0}.new {0}\n", opened.display());
    executable(&opener, &script);
    let settings = user.scratch.path().join(".config/pilotlight");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), format!("[actions]\nterminal = [\"{}\"]\n", opener.display())).unwrap();
    assert_eq!(texts(&user, &["next"]).0, Some(0));
    let words = wait_until(SOON, "a terminal is opened", String::new, || fs::read_to_string(&opened).ok());
    assert!(words.ends_with(&format!("next\n--opened-for\n{}\n", b.id)), "{words}");
    // In a terminal, it is shown there.
    let here = Tmux::with_exit_code(&user.pilotlight(&["next"]), 120, 60);
    here.shows("asks permission");
    here.shows(&b.id);
}
