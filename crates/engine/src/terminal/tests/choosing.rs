//! Tests of the choice of a terminal.

use super::*;
use std::os::unix::fs::symlink;

/// The name and the program of the terminal that is chosen.
fn chosen(scene: &Scene, change: impl FnOnce(&mut Terminals)) -> Result<(String, PathBuf), String> {
    let mut terminals = scene.terminals(&[]);
    change(&mut terminals);
    scene.program("copilot", "");
    let Launch { name, method: Method::Run(words) } = terminals.launch(&os(&["copilot"]), &scene.home(), &[])?;
    Ok((name, words[0].clone().into()))
}

fn name(scene: &Scene, change: impl FnOnce(&mut Terminals)) -> String {
    chosen(scene, change).map_or_else(|why| why, |(name, _)| name)
}

#[test]
fn case_153_without_a_terminal_the_error_says_what_to_install() {
    let error = name(&Scene::new(), |_| ());
    assert_eq!(
        error,
        "no terminal was found: install one (xterm will do), or name yours in the setting actions.terminal"
    );
}

#[test]
fn the_settings_come_first_then_the_variable_then_the_desktop() {
    let scene = Scene::new();
    for program in ["footclient", "st", "wt"] {
        scene.program(program, "");
    }
    assert!(chosen(&scene, |_| ()).is_err(), "these are only used if they are named");
    for program in ["xterm", "urxvt", "kitty", "xfce4-terminal", "foot"] {
        scene.program(program, "");
    }
    let of = |variable: Option<&str>, desktop: Option<&str>, setting: &[&str]| {
        name(&scene, |terminals| {
            terminals.setting = setting.iter().map(|&word| word.to_owned()).collect();
            terminals.environment.terminal = variable.map(OsString::from);
            terminals.environment.desktop = desktop.map(OsString::from);
        })
    };
    assert_eq!(of(Some("urxvt"), Some("XFCE"), &["st"]), "st");
    assert_eq!(of(Some("urxvt"), Some("XFCE"), &[]), "urxvt");
    assert_eq!(of(Some("absent"), Some("XFCE"), &[]), "xfce4-terminal");
    assert_eq!(
        of(Some("absent"), Some("XFCE"), &["absent"]),
        "the terminal in the settings, absent (actions.terminal), was not found"
    );
    assert_eq!(of(None, Some("ubuntu:GNOME"), &[]), "kitty", "none of GNOME's is installed");
    assert_eq!(of(None, None, &[]), "kitty");
    let (_, program) =
        chosen(&scene, |terminals| terminals.environment.terminal = Some("urxvt -bg black".into())).unwrap();
    assert_eq!(program, scene.bin().join("urxvt"));
    assert_eq!(of(Some("bin/st"), None, &[]), "kitty", "a relative path is ignored");
}

#[test]
fn a_terminal_for_another_display_is_skipped() {
    let scene = Scene::new();
    for program in ["foot", "urxvt"] {
        scene.program(program, "");
    }
    let of = |x11, wayland| {
        name(&scene, |terminals| (terminals.environment.x11, terminals.environment.wayland) = (x11, wayland))
    };
    assert_eq!((of(true, false), of(false, true), of(true, true)), ("urxvt".into(), "foot".into(), "foot".into()));
}

#[test]
fn debians_alternative_is_resolved() {
    let scene = Scene::new();
    let (alternative, chain) = (scene.bin().join("x-terminal-emulator"), scene.scratch.path().join("alternative"));
    symlink(&chain, &alternative).unwrap();
    let leads_to = |target: &str| {
        let _ = fs::remove_file(&chain);
        symlink(scene.program(target, ""), &chain).unwrap();
        let found = chosen(&scene, |_| ()).unwrap();
        fs::remove_file(scene.bin().join(target)).unwrap();
        found
    };
    assert_eq!(leads_to("st"), ("st".into(), scene.bin().join("st")));
    assert_eq!(leads_to("my-own"), ("x-terminal-emulator".into(), alternative.clone()));
    assert_eq!(leads_to("odd.wrapper"), ("x-terminal-emulator".into(), alternative.clone()));
    scene.program("gnome-terminal", "");
    assert_eq!(leads_to("gnome-terminal.wrapper"), ("gnome-terminal".into(), scene.bin().join("gnome-terminal")));
}

#[test]
fn the_desktops_settings_come_before_the_terminals_it_ships() {
    let scene = Scene::new();
    let config = scene.home().join(".config");
    fs::create_dir_all(config.join("xfce4")).unwrap();
    for program in ["konsole", "xfce4-terminal", "alacritty", "kitty"] {
        scene.program(program, "");
    }
    let of = |desktop: &str| name(&scene, |terminals| terminals.environment.desktop = Some(desktop.into()));
    assert_eq!((of("KDE"), of("XFCE")), ("konsole".into(), "xfce4-terminal".into()));
    fs::write(config.join("kdeglobals"), "[General]\nX=1\nTerminalApplication=alacritty\n").unwrap();
    fs::write(config.join("xfce4/helpers.rc"), "WebBrowser=x\nTerminalEmulator = kitty\n").unwrap();
    assert_eq!((of("KDE"), of("XFCE")), ("alacritty".into(), "kitty".into()));
    for nonsense in ["TerminalApplication=$(touch pwned)", "TerminalApplication", "TerminalApplication=", "\0", "=\n=="]
    {
        fs::write(config.join("kdeglobals"), nonsense).unwrap();
        assert_eq!(of("KDE"), "konsole");
    }
}
