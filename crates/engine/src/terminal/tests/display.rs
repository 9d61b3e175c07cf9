//! A test with real terminals on a real display, which `tests/visible/terminal.sh` provides.

use super::*;
use crate::terminal::known::{Display, KNOWN};

/// Set by the script that provides the display.
const ENABLED: &str = "PILOTLIGHT_TEST_DISPLAY";

/// Each installed known terminal, in a folder with a hostile name, with each word that is safe for it.
#[test]
#[ignore = "wants a display: tests/visible/terminal.sh"]
fn real_terminals_pass_safe_words_on_unchanged() {
    if std::env::var_os(ENABLED).is_none() {
        return;
    }
    let path = std::env::var_os("PATH").unwrap();
    let mut tried = Vec::new();
    for known in KNOWN {
        let on_path = paths::program(Path::new(known.name), Some(&path));
        if on_path.is_none() || matches!(known.display, Display::Wayland | Display::Unknown) {
            continue;
        }
        let scene = Scene::new();
        let program = scene.recorder("copilot", "sleep 2").into_os_string();
        let command: Vec<OsString> = std::iter::once(program).chain(os(HOSTILE)).collect();
        let is_safe = |word: &OsString| {
            known::words(Some(known), &os(&["t"]), Path::new("/"), std::slice::from_ref(word)).is_ok()
        };
        let command: Vec<OsString> = command.into_iter().filter(is_safe).collect();
        let mut terminals = Terminals::new(Some(vec![known.name.to_owned()]));
        terminals.environment.home = Some(scene.home());
        let env = [("COPILOT_HOME".into(), "/a=b".into())];
        let opened = terminals.open(&command, Some(&scene.folder()), &env);
        opened.unwrap_or_else(|why| panic!("{}: {why}", known.name));
        let (folder, words) = scene.recorded();
        assert_eq!(folder, scene.folder(), "{}", known.name);
        assert_eq!(os(&words.iter().map(String::as_str).collect::<Vec<_>>()), command[1..], "{}", known.name);
        scene.assert_unharmed();
        tried.push(format!("{} ({} words)", known.name, words.len()));
    }
    assert!(!tried.is_empty(), "no terminal is installed");
    println!("tried: {}", tried.join(", "));
}
