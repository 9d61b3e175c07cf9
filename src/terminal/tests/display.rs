//! Real terminals on a real display: started by `tests/visible/terminal.sh`, which brings both.

use super::*;
use crate::terminal::known::{KNOWN, On};

/// Set by the script that brings the display.
const ASKED: &str = "PILOTLIGHT_TEST_DISPLAY";

/// Every known terminal that is here, in a folder with a hostile name, with each word that it is trusted with.
#[test]
#[ignore = "wants a display: tests/visible/terminal.sh"]
fn real_terminals_hand_on_what_they_are_trusted_with() {
    if std::env::var_os(ASKED).is_none() {
        return;
    }
    let path = std::env::var_os("PATH").unwrap();
    let mut tried = Vec::new();
    for known in KNOWN {
        let on_path = paths::program(Path::new(known.name), Some(&path));
        if on_path.is_none() || known.on == On::Wayland || known.on == On::Own {
            continue;
        }
        let scene = Scene::new();
        let program = scene.recorder("copilot", "sleep 2").into_os_string();
        let command: Vec<OsString> = std::iter::once(program).chain(os(HOSTILE)).collect();
        let is_handed_on = |word: &OsString| {
            known::words(Some(known), &os(&["t"]), Path::new("/"), std::slice::from_ref(word)).is_ok()
        };
        let command: Vec<OsString> = command.into_iter().filter(is_handed_on).collect();
        let mut terminals = Terminals::new(Some(vec![known.name.to_owned()]));
        terminals.around.home = Some(scene.home());
        let env = [("COPILOT_HOME".into(), "/a=b".into())];
        let opened = terminals.open(&command, Some(&scene.folder()), &env);
        opened.unwrap_or_else(|why| panic!("{}: {why}", known.name));
        let (folder, words) = scene.recorded();
        assert_eq!(folder, scene.folder(), "{}", known.name);
        assert_eq!(os(&words.iter().map(String::as_str).collect::<Vec<_>>()), command[1..], "{}", known.name);
        scene.is_unharmed();
        tried.push(format!("{} ({} words)", known.name, words.len()));
    }
    assert!(!tried.is_empty(), "no terminal is here");
    println!("tried: {}", tried.join(", "));
}
