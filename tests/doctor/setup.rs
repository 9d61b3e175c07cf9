//! `pilotlight setup`: what it writes and removes, and what it leaves alone.

use super::fixes::in_terminal;
use crate::support::executable::{copy_program, executable};
use crate::support::synthetic::User;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const UNIT: &str = "systemd/user/pilotlight.service";
const FISH: &str = "fish/vendor_completions.d/pilotlight.fish";
const ALL: [&str; 6] = [
    "applications/pilotlight.desktop",
    "icons/hicolor/scalable/apps/pilotlight.svg",
    UNIT,
    "bash-completion/completions/pilotlight",
    "zsh/site-functions/_pilotlight",
    FISH,
];

/// A user with three shells and systemd, without an installed package of ours.
struct Desk {
    user: User,
}

impl Desk {
    fn new() -> Self {
        let user = User::new();
        for program in ["bash", "zsh", "fish", "systemctl"] {
            let file = user.scratch.path().join("bin").join(program);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            executable(&file, "");
        }
        Self { user }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.user.pilotlight(arguments);
        command.env("PATH", self.user.scratch.path().join("bin"));
        command
    }

    fn setup(&self, arguments: &[&str]) -> Output {
        self.command(&[&["setup"], arguments].concat()).output().unwrap()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.data().join(path)
    }

    fn data(&self) -> PathBuf {
        self.user.scratch.path().join(".local/share")
    }

    /// Which of all files exist.
    fn existing(&self) -> Vec<&'static str> {
        ALL.into_iter().filter(|path| self.at(path).exists()).collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

/// What was not written is not said to be written.
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let desk = Desk::new();
    // Not even root can write below a link to nowhere.
    fs::create_dir_all(desk.data().parent().unwrap()).unwrap();
    symlink("/nowhere/at/all", desk.data()).unwrap();
    let failed = desk.setup(&["--yes"]);
    let said = said(&failed);
    assert!(failed.status.code() == Some(1) && !said.contains("Written."), "{said}");
    assert!(said.contains(&format!("{} cannot be written: ", desk.at(ALL[0]).display())), "{said}");
    assert!(said.contains("6 of 6 files were not written: mend that, and run this again"), "{said}");
}

#[test]
fn missing_files_are_written_and_all_are_removed_again() {
    let desk = Desk::new();
    let refused = desk.setup(&[]);
    assert_eq!((refused.status.code(), desk.existing()), (Some(4), vec![]), "there is no terminal to ask on");
    assert_eq!(said(&refused).matches("\n  write ").count(), ALL.len(), "{}", said(&refused));

    let written = desk.setup(&["--yes"]);
    assert_eq!((written.status.code(), desk.existing()), (Some(0), ALL.to_vec()), "{}", said(&written));
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_pilotlight")).unwrap();
    let entry = fs::read_to_string(desk.at(ALL[0])).unwrap();
    assert!(entry.contains(&format!("\nTryExec={}\n", program.display())), "{entry}");
    let unit = fs::read_to_string(desk.at(UNIT)).unwrap();
    assert!(unit.contains(&format!("\nExecStart=\"{}\" tray\n", program.display())), "{unit}");
    assert!(said(&written).contains(&format!("fpath=('{}'", desk.at("zsh/site-functions").display())));
    assert!(fs::read_to_string(desk.at(ALL[4])).unwrap().starts_with("#compdef pilotlight\n"));
    // The only shell that every test machine has.
    let mut bash = Command::new("bash");
    bash.args(["-c", "source \"$0\" && complete -p pilotlight"]).arg(desk.at(ALL[3]));
    assert!(bash.output().unwrap().status.success());

    let again = desk.setup(&[]);
    assert!(again.status.success() && said(&again).contains("nothing to write"), "{}", said(&again));
    // A shell may be uninstalled before its file is removed.
    fs::remove_file(desk.user.scratch.path().join("bin/zsh")).unwrap();
    let removed = desk.setup(&["--remove", "--yes"]);
    assert!(removed.status.success(), "{}", said(&removed));
    assert_eq!(files_below(&desk.data()), Vec::<PathBuf>::new());
    assert!(said(&desk.setup(&["--remove"])).contains("nothing to remove"));
}

#[test]
fn the_users_files_are_left_alone() {
    let desk = Desk::new();
    fs::create_dir_all(desk.at(FISH).parent().unwrap()).unwrap();
    fs::write(desk.at(FISH), "complete -c pilotlight\n").unwrap();
    assert!(desk.setup(&["--yes"]).status.success());
    assert_eq!(fs::read_to_string(desk.at(FISH)).unwrap(), "complete -c pilotlight\n");
    let older = fs::read_to_string(desk.at(UNIT)).unwrap().replace("RestartSec=5", "RestartSec=9");
    fs::write(desk.at(UNIT), &older).unwrap();
    let bash = fs::read(desk.at(ALL[3])).unwrap();
    fs::remove_file(desk.at(ALL[3])).unwrap();
    let second = desk.setup(&["--yes"]);
    assert!(said(&second).contains("it was edited since"), "{}", said(&second));
    assert_eq!(fs::read_to_string(desk.at(UNIT)).unwrap(), older);
    assert_eq!(fs::read(desk.at(ALL[3])).unwrap(), bash, "what is missing is written");
    assert!(desk.setup(&["--remove", "--yes"]).status.success());
    assert_eq!(desk.existing(), [UNIT, FISH]);
}

#[test]
fn the_files_of_a_program_that_moved_are_renewed() {
    let desk = Desk::new();
    assert!(desk.setup(&["--yes"]).status.success());
    let moved = desk.user.scratch.path().join("other place/pilotlight");
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    let built = env!("CARGO_BIN_EXE_pilotlight");
    copy_program(built, &moved);
    let base = desk.command(&[]);
    let mut command = Command::new(&moved);
    command.env_clear().envs(base.get_envs().filter_map(|(key, value)| Some((key, value?)))).args(["setup", "--yes"]);
    let renewed = command.output().unwrap();
    assert_eq!(said(&renewed).matches("\n  renew ").count(), 2, "{}", said(&renewed));
    let unit = fs::read_to_string(desk.at(UNIT)).unwrap();
    assert!(unit.contains(&format!("\nExecStart=\"{}\" tray\n", moved.canonicalize().unwrap().display())), "{unit}");
}

#[test]
fn an_enabled_unit_is_not_removed() {
    let desk = Desk::new();
    assert!(desk.setup(&["--yes"]).status.success());
    let wants = desk.user.scratch.path().join(".config/systemd/user/graphical-session.target.wants");
    fs::create_dir_all(&wants).unwrap();
    symlink(desk.at(UNIT), wants.join("pilotlight.service")).unwrap();
    let removed = desk.setup(&["--remove", "--yes"]);
    assert!(said(&removed).contains("`systemctl --user disable --now pilotlight` first"), "{}", said(&removed));
    assert_eq!(desk.existing(), [UNIT]);
    fs::remove_file(wants.join("pilotlight.service")).unwrap();
    assert!(desk.setup(&["--remove", "--yes"]).status.success());
    assert!(desk.existing().is_empty());
}

#[test]
fn it_asks_before_it_writes() {
    for (answer, code, written) in [("n", 4, 0), ("y", 0, ALL.len())] {
        let desk = Desk::new();
        let terminal = in_terminal(&desk.command(&["setup"]));
        terminal.shows("Write 6 files? [y/N]");
        assert!(desk.existing().is_empty());
        terminal.text(answer);
        terminal.press(&["Enter"]);
        terminal.shows(&format!("exited with {code}"));
        assert_eq!(desk.existing().len(), written);
    }
}

#[test]
fn a_file_that_cannot_be_written_does_not_prevent_the_others() {
    let desk = Desk::new();
    fs::create_dir_all(desk.data()).unwrap();
    fs::write(desk.at("fish"), "a file where the folder should be").unwrap();
    let output = desk.setup(&["--yes"]);
    // A path below a file cannot even be checked.
    assert!(said(&output).contains("pilotlight.fish"), "{}", said(&output));
    assert_eq!(desk.existing(), ALL[..5]);
}
