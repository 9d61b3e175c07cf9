//! Tests of command lines: of each terminal, of a resumed session, and those that the user is to type.

use super::*;
use crate::terminal::known::{KNOWN, Known};
use crate::terminal::{macos, windows};
use pilotlight_core::text::plain;
use std::os::unix::ffi::OsStringExt;

const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";

fn command_line(setting: &str, command: &[&str]) -> String {
    let words = os(&setting.split(' ').collect::<Vec<_>>());
    let known = Known::of(Path::new(&words[0]).file_name().unwrap());
    let command = os(command);
    let line = known::words(known, &words, Path::new("/f"), &command).unwrap();
    line.join(OsStr::new(" ")).into_string().unwrap()
}

#[test]
fn each_terminal_gets_its_own_command_line() {
    for (setting, expected) in [
        ("xterm", "xterm -e c a"),
        ("/usr/bin/xterm", "/usr/bin/xterm -e c a"),
        ("xterm -e", "xterm -e c a"),
        ("xterm -fs 12", "xterm -fs 12 -e c a"),
        ("xterm -e nice", "xterm -e nice c a"),
        ("xterm -hold {command}", "xterm -hold c a"),
        ("kitty", "kitty --directory=/f c a"),
        ("kitty --hold", "kitty --directory=/f --hold c a"),
        ("kitty -d {folder}", "kitty -d /f c a"),
        ("kitty {command} {folder}", "kitty c a /f"),
        ("wezterm", "wezterm start --cwd /f -- c a"),
        ("wezterm start", "wezterm start --cwd /f -- c a"),
        ("wezterm start --always-new-process", "wezterm start --cwd /f --always-new-process -- c a"),
        ("alacritty", "alacritty --working-directory /f -e c a"),
        ("gnome-terminal", "gnome-terminal --working-directory=/f -- c a"),
        ("gnome-terminal --maximize --", "gnome-terminal --working-directory=/f --maximize -- c a"),
        ("xfce4-terminal", "xfce4-terminal --working-directory=/f -x c a"),
        ("mate-terminal", "mate-terminal --working-directory=/f -x c a"),
        ("konsole", "konsole --workdir /f -e c a"),
        ("foot", "foot --working-directory=/f c a"),
        ("ghostty", "ghostty --working-directory=/f -e c a"),
        ("urxvt", "urxvt -cd /f -e c a"),
        ("st", "st -e c a"),
        ("xdg-terminal-exec", "xdg-terminal-exec c a"),
        ("x-terminal-emulator", "x-terminal-emulator -e c a"),
        ("wt", "wt -d . c a"),
        ("other", "other -e c a"),
        ("other --", "other -- c a"),
        ("tmux new-window -c {folder} {command}", "tmux new-window -c /f c a"),
    ] {
        assert_eq!(command_line(setting, &["c", "a"]), expected, "{setting}");
    }
}

/// Placeholders are not expanded in the command, nor in the name of the folder.
#[test]
fn only_the_users_words_are_placeholders() {
    let command = os(&["c", "{folder}", "{command}"]);
    for setting in [&["xterm"][..], &["xterm", "-hold", "{command}"]] {
        let words =
            known::words(Known::of(OsStr::new("xterm")), &os(setting), Path::new("{command}"), &command).unwrap();
        assert_eq!(words[words.len() - 3..], command);
    }
    let words =
        known::words(Known::of(OsStr::new("kitty")), &os(&["kitty"]), Path::new("/{command}"), &command).unwrap();
    assert_eq!(words, os(&["kitty", "--directory=/{command}", "c", "{folder}", "{command}"]));
}

#[test]
fn no_terminal_is_listed_twice() {
    for known in KNOWN {
        assert!(std::ptr::eq(Known::of(OsStr::new(known.name)).unwrap(), known), "{}", known.name);
    }
}

/// Even a shell takes the words of this command literally.
#[test]
fn every_terminal_can_resume_a_session() {
    let command = os(&["/usr/local/bin/copilot", &format!("--resume={ID}")]);
    for known in KNOWN {
        assert!(known::words(Some(known), &os(&[known.name]), Path::new("/a b"), &command).is_ok(), "{}", known.name);
    }
}

#[test]
fn the_line_to_type_runs_the_command_in_a_shell() {
    let scene = Scene::new();
    let program = scene.recorder("copilot", "printf %s \"$COPILOT_HOME\" >home");
    let printable = HOSTILE.iter().copied().filter(|word| plain(word, 100) == (*word).into() && !word.is_empty());
    let words: Vec<&str> = printable.collect();
    assert!(words.len() > 12);
    let command: Vec<OsString> = std::iter::once(program.into_os_string()).chain(os(&words)).collect();
    let folder = scene.home().join("a b;$(touch pwned)'");
    fs::create_dir(&folder).unwrap();
    let line = shell_line(&command, Some(&folder), &[("COPILOT_HOME".into(), "/a 'b';c".into())]);
    let status = Command::new("sh").args(["-c", &line]).current_dir(scene.home()).status().unwrap();
    assert!(status.success(), "{line}");
    assert_eq!(scene.recorded(), (folder.clone(), words.iter().map(|&word| word.to_owned()).collect()));
    assert_eq!(fs::read_to_string(folder.join("home")).unwrap(), "/a 'b';c");
    scene.assert_unharmed();
}

#[test]
fn a_folder_that_cannot_be_typed_is_left_out() {
    let odd = OsString::from_vec(b"/\xff".to_vec());
    for folder in [OsStr::new("/a\nb"), OsStr::new("/a\u{202e}b"), OsStr::new("/a\u{1b}[2J"), &odd] {
        assert_eq!(shell_line(&os(&["copilot"]), Some(Path::new(folder)), &[]), "cd … && copilot");
    }
}

#[test]
fn the_macos_script_passes_every_word_on_unchanged() {
    let scene = Scene::new();
    let program = scene.recorder("copilot", "");
    let mut command = vec![program.into_os_string()];
    command.extend(os(HOSTILE));
    let script = macos::write_script(&macos::script(&command, &scene.folder())).unwrap();
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(Command::new("sh").arg(&script).current_dir(scene.home()).status().unwrap().success());
    assert!(!script.exists(), "it removes itself");
    assert_eq!(scene.recorded(), (scene.folder(), HOSTILE.iter().map(|&word| word.to_owned()).collect()));
    scene.assert_unharmed();
    let elsewhere = macos::write_script(&macos::script(&command, Path::new("/absent"))).unwrap();
    assert!(!Command::new("sh").arg(&elsewhere).output().unwrap().status.success(), "not in another folder");
}

/// By the rules of `CommandLineToArgvW`.
#[test]
fn a_windows_command_line_is_quoted() {
    let quoted = |words: &[&str]| {
        let mut line = Vec::new();
        for word in words {
            windows::quote(word.encode_utf16(), &mut line);
        }
        String::from_utf16(&line).unwrap()
    };
    assert_eq!(quoted(&[r"C:\a b\copilot.exe", "--resume=1"]), r#""C:\a b\copilot.exe" "--resume=1""#);
    assert_eq!(quoted(&["", r#"a"b"#, r"\", r#"a\"b\\"#, r"a\\b"]), r#""" "a\"b" "\\" "a\\\"b\\\\" "a\\b""#);
}
