//! What is started at login: whether it is us, and whether that still points to a program.

use super::Finding;

const CHECK: &str = "autostart";

/// On Linux, an entry of the desktop's that runs a program of our name, whoever wrote it; or a unit of systemd's.
#[cfg(target_os = "linux")]
pub(super) fn autostart() -> Vec<Finding> {
    use directories::BaseDirs;
    let Some(config) = BaseDirs::new().map(|dirs| dirs.config_dir().to_owned()) else { return Vec::new() };
    let path = std::env::var_os("PATH");
    let mut findings: Vec<_> = std::fs::read_dir(config.join("autostart"))
        .map(|entries| entries.filter_map(|entry| look(&entry.ok()?.path(), path.as_deref())).collect())
        .unwrap_or_default();
    let units = std::fs::read_dir(config.join("systemd/user")).into_iter().flatten().filter_map(Result::ok);
    let wanted = units.map(|unit| unit.path()).filter(|path| path.extension().is_some_and(|it| it == "wants"));
    if wanted.map(|folder| folder.join("pilotlight.service")).any(|unit| unit.symlink_metadata().is_ok()) {
        findings.push(Finding::ok(CHECK, "started at login by systemd").told_to_all());
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, "not started at login").told_to_all());
    }
    findings
}

/// An entry of the desktop's, if it is about us.
#[cfg(target_os = "linux")]
fn look(entry: &std::path::Path, path: Option<&std::ffi::OsStr>) -> Option<Finding> {
    use super::Fix;
    let is_plain = std::fs::symlink_metadata(entry).is_ok_and(|meta| meta.is_file());
    if !is_plain || entry.extension().is_none_or(|extension| extension != "desktop") {
        return None;
    }
    let text = crate::kept::read(entry);
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[Desktop Entry]").skip(1);
    let of_group: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with('[')).collect();
    let value = |key: &str| {
        of_group.iter().find_map(|line| Some(line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim()))
    };
    let exec = value("Exec")?;
    let program = program_of(exec);
    if std::path::Path::new(&program).file_name()? != "pilotlight" {
        return None;
    }
    let off = value("Hidden") == Some("true") || value("X-GNOME-Autostart-enabled") == Some("false");
    let shown = entry.display();
    Some(if off {
        Finding::ok(CHECK, format!("{shown} is switched off")).discreet("switched off")
    } else if crate::paths::program(std::path::Path::new(&program), path).is_some() {
        Finding::ok(CHECK, format!("started at login by {shown}")).discreet("started at login")
    } else {
        Finding::problem(
            CHECK,
            format!("{shown} starts {program}, which is not there"),
            "switch \"Start at login\" off and on again; `pilotlight doctor --fix` moves the entry aside",
        )
        .discreet("it starts a program that is not there")
        .fixed_by(Fix::Aside(entry.to_owned()))
    })
}

/// The program that an `Exec` line starts: its first word, which may be in quotes.
#[cfg(target_os = "linux")]
fn program_of(exec: &str) -> String {
    match exec.strip_prefix('"') {
        Some(quoted) => {
            let mut program = String::new();
            let mut chars = quoted.chars();
            while let Some(c) = chars.next() {
                match c {
                    '"' => break,
                    '\\' => program.extend(chars.next()),
                    c => program.push(c),
                }
            }
            program
        }
        None => exec.split_whitespace().next().unwrap_or_default().to_owned(),
    }
}

/// Elsewhere the system's own settings show it.
#[cfg(not(target_os = "linux"))]
pub(super) fn autostart() -> Vec<Finding> {
    vec![Finding::ok(CHECK, "the system's settings show what is started at login").told_to_all()]
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::{Fix, Level};
    use super::*;

    #[test]
    fn an_entry_that_points_nowhere_is_told_and_one_of_others_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let entry = |text: &str| {
            let path = scratch.path().join("x.desktop");
            std::fs::write(&path, format!("[Desktop Entry]\nType=Application\n{text}\n")).unwrap();
            look(&path, None)
        };
        let gone = entry("Exec=/nowhere/pilotlight tray").unwrap();
        assert_eq!(gone.level, Level::Problem);
        assert!(matches!(gone.fix, Some(Fix::Aside(_))) && gone.said.contains("/nowhere/pilotlight"));
        let quoted = entry(r#"Exec="/no where/pilotlight" tray"#).unwrap();
        assert!(quoted.said.contains("/no where/pilotlight,"), "{}", quoted.said);
        assert_eq!(entry("Exec=/nowhere/pilotlight\nHidden=true").unwrap().level, Level::Ok);
        assert!(entry("Exec=/usr/bin/other").is_none() && entry("Name=pilotlight").is_none());
        assert!(entry("[Desktop Action x]\nExec=/nowhere/pilotlight").is_none(), "of another group");
    }
}
