//! Another machine that is a container: a `[[host]]` whose command runs `serve` in namespaces of its own.

use super::hosts::{child_of, has_ended, name_hosts, serves};
use super::trays::Tray;
use crate::support::executable::copy_program;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

/// The words that run `serve` as this user in a container.
fn contained(words: &[&str], user: &User) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).chain(serves(user)).collect()
}

/// Whether this system lets us make such a container.
fn is_possible(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A process there has another number here, and the same number there is another process.
#[test]
fn case_455_the_sessions_of_a_container_are_those_that_are_in_it() {
    let unshare = ["unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "--kill-child"];
    let bwrap = ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-all", "--die-with-parent"];
    for words in [&unshare[..], &bwrap] {
        if !is_possible(words) {
            continue;
        }
        let (near, remote) = (User::new(), User::new());
        let session = remote.session(1);
        let program = remote.scratch.path().join("copilot");
        copy_program("/bin/sleep", &program);
        let (program, folder) = (program.display(), session.path.display());
        // As Copilot does, it holds the session before it says so.
        let holds =
            format!("exec 9>{folder}/inuse.$$.hold && flock 9 && echo $$ >{folder}/inuse.$$.lock; exec {program} 3600");
        let owns = format!("sh -c '{holds}' & exec \"$@\"");
        let inside = [words, &["sh", "-c", &owns, "sh"]].concat();
        name_hosts(&near, &[("box", contained(&inside, &remote))]);
        session.prompt();
        let watch = near.watch();
        let works =
            |row: &Value| row["host"] == "box" && row["status"] == "working" && row["owner"]["state"] == "alive";
        let row = watch.wait_row(&session, "at work", works);
        assert_eq!(row["label"], "project @box · Session 1");
        let pid = row["owner"]["pid"].as_u64().unwrap();
        assert!(pid < 20 && row["owner"]["state"] == "alive", "its number there: {row}");
        let (ran, child) = (near.run(&["resume", "--here", &session.id]), child_of(watch.pid()));
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(
            ran.status.code() == Some(4) && said.contains("resume it on box: it cannot be resumed from here"),
            "{said}"
        );
        session.asks_permission("r1");
        watch.wait_status(&session, "needs-permission");
        assert_eq!(watch.end(Signal::TERM), Some(0));
        wait_until(SOON, "the container ends", || child.to_string(), || has_ended(child).then_some(()));
    }
}

/// Its hook names a process that no other container has: only the tray's own connection leads to that one.
#[test]
fn case_476_what_a_hook_in_a_container_reports_is_in_every_list() {
    let unshare = ["unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "--kill-child"];
    if !is_possible(&unshare) {
        return;
    }
    let (near, remote) = (User::new(), User::new());
    // The agent lives in the first container alone: one that is made later has other processes.
    let home = remote.scratch.path().display();
    copy_program("/bin/bash", remote.scratch.path().join("aider"));
    let program = env!("CARGO_BIN_EXE_pilotlight");
    let agent = format!("sh -c '{program} report --agent aider --session s1 --state working'; sleep 3600; :");
    let script = format!(
        "[ -e {home}/once ] || {{ touch {home}/once; HOME={home} {home}/aider -c \"{agent}\" & }}; exec \"$@\""
    );
    name_hosts(&near, &[("box", contained(&[&unshare[..], &["sh", "-c", &script, "sh"]].concat(), &remote))]);
    let _tray = Tray::start(&near);
    let ids = |args: &[&str]| near.rows(args).iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    wait_until(SOON, "the tray knows it", String::new, || (ids(&[]) == ["s1"]).then_some(()));
    assert_eq!(ids(&["--all"]), ["s1"]);
    let picker = near.run(&["resume"]);
    let listed = String::from_utf8_lossy(&picker.stdout).into_owned();
    assert!(listed.contains("@box"), "{listed}");
}
