//! "Start at login": the check mark shows what the desktop would do, whoever changed the entry.

use crate::desk::bus::Bus;
use crate::desk::panel::{Entry, Panel};
use crate::desk::popups::Popups;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::{SOON, wait_until};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pilotlight");

fn file(user: &User) -> PathBuf {
    user.scratch.path().join(".config/autostart/pilotlight.desktop")
}

/// Waits until the entry has this text and check mark.
fn shows(panel: &Panel, text: &str, checked: bool) -> Entry {
    panel.wait_for(&format!("{text:?}, checked: {checked}"), |entry| {
        entry.shown() == text && entry.checked == Some(checked)
    })
}

fn write(user: &User, lines: &str) {
    let file = file(user);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("[Desktop Entry]\nType=Application\nName=Pilotlight\n{lines}\n")).unwrap();
}

#[test]
fn a_click_writes_the_entry_that_a_desktop_reads_and_another_removes_it() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    // It is disabled until the autostart entry was read.
    let off = panel.wait_for("it can be ticked", |entry| entry.label == "Start at login" && entry.enabled);
    assert!(off.checked == Some(false) && !file(&user).exists(), "nothing is written without a click");
    assert!(panel.click(off.id));
    let on = shows(&panel, "Start at login", true);
    let text = fs::read_to_string(file(&user)).unwrap();
    assert!(text.starts_with("[Desktop Entry]\nType=Application\n"), "{text}");
    // With the home that this tray watches.
    assert!(text.contains(&format!("\nExec={PROGRAM} tray --home {}\n", sessions.home().display())), "{text}");
    assert!(panel.click(on.id));
    shows(&panel, "Start at login", false);
    assert!(!file(&user).exists());
}

#[test]
fn the_check_mark_follows_edits_of_the_file_by_hand() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    shows(&panel, "Start at login", false);
    // The folder does not exist yet, and nothing else wakes the tray.
    write(&user, &format!("Exec={PROGRAM} --home /elsewhere tray"));
    shows(&panel, "Start at login", true);
    write(&user, &format!("Exec={PROGRAM} tray\nHidden=true"));
    shows(&panel, "Start at login (its entry is hidden)", false);
    write(&user, &format!("Exec={PROGRAM} tray\nX-GNOME-Autostart-enabled=false"));
    shows(&panel, "Start at login (switched off in its entry)", false);
    write(&user, "Exec=/bin/sh tray");
    let other = shows(&panel, "Start at login (its entry starts /bin/sh)", false);
    write(&user, "Exec=/no/such/program tray");
    shows(&panel, "Start at login (its program is gone)", false);
    fs::remove_file(file(&user)).unwrap();
    shows(&panel, "Start at login", false);
    // Replaced, as by an editor or a settings program. A click keeps its other keys.
    let temporary = user.scratch.path().join("temporary");
    let text = format!("[Desktop Entry]\nName=Mine\nExec={PROGRAM} tray\nHidden=true\nX-GNOME-Autostart-Delay=9\n");
    fs::write(&temporary, text).unwrap();
    fs::rename(&temporary, file(&user)).unwrap();
    let hidden = shows(&panel, "Start at login (its entry is hidden)", false);
    assert_eq!(hidden.id, other.id, "the menu kept its layout");
    assert!(panel.click(hidden.id));
    shows(&panel, "Start at login", true);
    let text = fs::read_to_string(file(&user)).unwrap();
    assert!(text.contains("Name=Mine") && text.contains("Delay=9") && !text.contains("Hidden"), "{text}");
}

#[test]
fn the_check_mark_follows_symlinks_and_systemd_units() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    // A symlink of the user's, to a file that is edited in place.
    write(&user, "Hidden=true");
    let elsewhere = user.scratch.path().join("dotfiles");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(file(&user), elsewhere.join("light")).unwrap();
    symlink(elsewhere.join("light"), file(&user)).unwrap();
    shows(&panel, "Start at login (its entry is hidden)", false);
    fs::write(elsewhere.join("light"), format!("[Desktop Entry]\nExec={PROGRAM} tray\n")).unwrap();
    shows(&panel, "Start at login", true);
    fs::remove_file(file(&user)).unwrap();
    shows(&panel, "Start at login", false);
    // A unit that is enabled, and then masked.
    let units = user.scratch.path().join(".config/systemd/user");
    fs::create_dir_all(units.join("default.target.wants")).unwrap();
    fs::write(units.join("default.target.wants/pilotlight.service"), "").unwrap();
    panel.wait_for("it names the unit", |entry| entry.shown() == "Start at login (by its systemd unit)");
    symlink("/dev/null", units.join("pilotlight.service")).unwrap();
    shows(&panel, "Start at login", false);
}

#[test]
fn a_click_that_fails_says_so_and_leaves_no_check_mark() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel, popups) = (User::new(&sessions), Panel::start(&bus), Popups::start(&bus));
    fs::write(user.scratch.path().join(".config"), "a file where the folder should be").unwrap();
    let _tray = user.start_tray(&bus);
    panel.wait_for_icon();
    popups.wait_for(1);
    let off = shows(&panel, "Start at login", false);
    assert!(panel.click(off.id));
    let popup = popups.wait_for(2);
    assert!(popup.body.contains("pilotlight.desktop"), "{popup:?}");
    wait_until(
        SOON,
        "the check mark is removed",
        || format!("{:#?}", panel.menu()),
        || {
            (panel.layout().1.find(&|entry: &Entry| entry.shown() == "Start at login")?.checked == Some(false))
                .then_some(())
        },
    );
}
