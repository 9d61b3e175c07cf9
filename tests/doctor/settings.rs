//! Settings in an editor, and settings that change while the program runs. Their effect on the tray is tested in
//! tests/desktop.

use crate::support::executable::executable;
use crate::support::synthetic::{User, Watch};
use crate::support::{SOON, wait_until};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

/// An editor that runs this script on the file.
fn editor(user: &User, script: &str) -> String {
    let program = user.scratch.path().join("an editor").with_file_name("editor");
    executable(&program, &format!("#!/bin/sh\n{script}\n"));
    program.to_str().unwrap().to_owned()
}

#[test]
fn case_238_the_file_is_created_from_the_reference_and_checked_after_editing() {
    let user = User::new();
    let config = user.scratch.path().join(".config/pilotlight/config.toml");
    let edit = |script: &str| {
        let mut command = user.pilotlight(&["config", "--edit"]);
        let output = command.env("EDITOR", format!("{} --wait", editor(&user, script))).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = edit("test \"$1\" = --wait && test -s \"$2\"");
    assert!(code == Some(0) && said.contains("with every setting") && said.contains("Nothing is wrong"), "{said}");
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.contains("\n# fresh-stuck = \"2m\"\n") && text.contains("\n[limits]\n"), "{text}");
    let (code, said) = edit("printf '[limits]\\nfresh-qiet = 1\\n' >\"$2\"");
    assert_eq!(code, Some(2));
    assert!(said.contains("config.toml:2:1: unknown key `limits.fresh-qiet`, did you mean `fresh-quiet`?"), "{said}");
    let (code, said) = edit("printf '[limits]\\nfresh-quiet = 1\\n' >\"$2\"");
    assert!(code == Some(0) && !said.contains("with every setting"), "{said}");
    // No shell interprets the path.
    let output = user.pilotlight(&["config", "--edit"]).env("VISUAL", "/nowhere/editor; true").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/editor;"));
    let bare = || {
        let mut command = user.pilotlight(&["config", "--edit"]);
        for name in ["VISUAL", "EDITOR", "DISPLAY", "WAYLAND_DISPLAY"] {
            command.env_remove(name);
        }
        command
    };
    let output = bare().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("no display to open one on: set EDITOR"), "{said}");
    // Case 238: a file where a folder has to be.
    let file = user.scratch.path().join("no-folder");
    fs::write(&file, "").unwrap();
    let output = bare().env("PILOTLIGHT_CONFIG", file.join("config.toml")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!(
        "cannot write {}: {} is not a folder: move it away",
        file.join("config.toml").display(),
        file.display()
    );
    assert!(
        output.status.code() == Some(1) && said.contains(&expected) && said.contains("PILOTLIGHT_CONFIG"),
        "{said}"
    );
    for wrong in [&["config"][..], &["config", "--edit", "--print"]] {
        assert_eq!(user.run(wrong).status.code(), Some(2));
    }
}

/// `watch --json` with this config, and a function that waits for text on its standard error.
fn watch(user: &User, config: &Path) -> (Watch, impl Fn(&str) + use<>) {
    let said = user.scratch.path().join("stderr");
    let mut command = user.pilotlight(&["watch", "--json"]);
    command.env("PILOTLIGHT_CONFIG", config).stderr(Stdio::from(fs::File::create(&said).unwrap()));
    let watch = Watch::start(command);
    let says = move |what: &str| {
        let read = || fs::read_to_string(&said).unwrap();
        wait_until(SOON, &format!("it says {what:?}"), read, || read().contains(what).then_some(()));
    };
    (watch, says)
}

#[test]
fn added_homes_are_watched_and_removed_ones_are_not() {
    let (user, other) = (User::new(), User::new());
    let (mine, theirs) = (user.session(1), other.session(2));
    let (_one, _two) = (mine.owner(&user), theirs.owner(&other));
    mine.prompt();
    theirs.prompt();
    // The config is in the parent folder of the home.
    let config = user.scratch.path().join("config.toml");
    let (watch, _) = watch(&user, &config);
    watch.wait_status(&mine, "working");
    for _ in 0..2 {
        fs::write(&config, format!("homes = [{:?}]\n", other.home())).unwrap();
        watch.wait_status(&theirs, "working");
        theirs.answer();
        watch.wait_status(&theirs, "idle");
        theirs.prompt();
        watch.wait_status(&theirs, "working");
        fs::remove_file(&config).unwrap();
        watch.wait_row(&theirs, "it is gone", |row| row["removed"] == true);
    }
    mine.answer();
    watch.wait_status(&mine, "idle");
    mine.prompt();
    watch.wait_status(&mine, "working");
}

#[test]
fn a_broken_file_keeps_the_last_good_settings_and_says_where_it_is_wrong() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let real = user.scratch.path().join("dotfiles.toml");
    fs::write(&real, "").unwrap();
    let folder = user.scratch.path().join("settings");
    fs::create_dir(&folder).unwrap();
    // A link, as in a dotfiles repository: changes of its target count too.
    let config = folder.join("config.toml");
    symlink(&real, &config).unwrap();
    let (watch, says) = watch(&user, &config);
    watch.wait_status(&session, "working");
    fs::write(
        &real,
        "[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\nthinking-quiet = \"1s\"\nthinking-stuck = \"2s\"\n",
    )
    .unwrap();
    watch.wait_status(&session, "stuck");
    fs::write(&real, "[limits]\nfresh-quiet = \"1h\"\nfresh-stuck = soon\n").unwrap();
    says("config.toml:3:15: not TOML");
    says("The previous settings stay in force.");
    session.log_event("assistant.turn_start", "{}");
    watch.wait_status(&session, "working");
    watch.wait_status(&session, "stuck");
    // Editors replace the file by another.
    let new = folder.join("new.toml");
    fs::write(&new, "[limits]\nfresh-quiet = \"1h\"\nfresh-stuck = \"2h\"\n[owners]\nnames = [\"x\"]\n").unwrap();
    fs::rename(&new, &config).unwrap();
    watch.wait_status(&session, "working");
    says("owners.names takes effect when");
}
