//! Window managers that start nothing by desktop entries: what they start stands in a file of their own, which is the
//! user's to edit. Pilotlight says which line to add, and sees whether it is there.

use super::arguments;
use super::state::{StartLine, State};
use anyhow::Context;
use pilotlight_system::deadline::run_within;
use pilotlight_system::state_file;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// What systemd starts in a graphical session: what desktop entries name, and units such as ours.
const TARGETS: [&str; 2] = ["xdg-desktop-autostart.target", "graphical-session.target"];
/// How long systemd may take to say whether it has started a target.
const SYSTEMD_TIMEOUT: Duration = Duration::from_secs(1);

/// A window manager, by the name in `XDG_CURRENT_DESKTOP`.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    name: &'static str,
    /// Set for its programs, where it sets no `XDG_CURRENT_DESKTOP` of its own.
    variable: &'static str,
    /// What it reads at its start, below the user's settings folder.
    file: &'static str,
    /// What stands before the command there, and after it.
    around: [&'static str; 2],
}

/// From the manuals: sway(5), i3's user guide, Hyprland's wiki, river(1), bspwm(1), labwc(1). The last three run a script.
static KNOWN: [Known; 6] = [
    Known { name: "sway", variable: "SWAYSOCK", file: "sway/config", around: ["exec ", ""] },
    Known { name: "i3", variable: "I3SOCK", file: "i3/config", around: ["exec --no-startup-id ", ""] },
    Known {
        name: "Hyprland",
        variable: "HYPRLAND_INSTANCE_SIGNATURE",
        file: "hypr/hyprland.conf",
        around: ["exec-once = ", ""],
    },
    Known { name: "river", variable: "", file: "river/init", around: ["", " &"] },
    Known { name: "bspwm", variable: "BSPWM_SOCKET", file: "bspwm/bspwmrc", around: ["", " &"] },
    Known { name: "labwc", variable: "LABWC_PID", file: "labwc/autostart", around: ["", " &"] },
];

/// The window manager that this program runs under, if it reads no desktop entries.
#[derive(Debug)]
pub(super) struct WindowManager {
    known: &'static Known,
    /// The file that it reads at its start.
    file: PathBuf,
    /// Whether systemd has started each of [`TARGETS`]. It is asked only where that matters.
    targets: OnceLock<[bool; 2]>,
}

impl WindowManager {
    /// Finds it. `None` on a desktop.
    pub(super) fn find(desktops: &str, is_set: impl Fn(&str) -> bool, settings: &Path) -> Option<Self> {
        let known = known(desktops, is_set)?;
        Some(Self { known, file: settings.join(known.file), targets: OnceLock::new() })
    }

    /// Whether it starts this program. `unit_is_enabled`: our systemd unit is. `None` where systemd starts what the desktop
    /// entries name.
    ///
    /// # Errors
    /// Why no line can have it start this program.
    pub(super) fn read(
        &self,
        program: &Path,
        homes: &[PathBuf],
        unit_is_enabled: bool,
    ) -> anyhow::Result<Option<State>> {
        let on = |by: String| Ok(Some(State { can_change: false, ..State::on() }.because(by)));
        let text = state_file::read(&self.file);
        if text.lines().any(|line| starts(line, program)) {
            return on(format!("by {}", self.file.display()));
        }
        let [starts_entries, is_graphical] = *self.targets.get_or_init(|| are_active(TARGETS));
        if starts_entries {
            return Ok(None);
        }
        if unit_is_enabled && is_graphical {
            return on("by its systemd unit".into());
        }
        let program = program.to_str().context("the path of this program is not valid UTF-8")?;
        let command = shlex::try_join([program].into_iter().chain(arguments(homes)?))?;
        let [before, after] = self.known.around;
        let line = StartLine {
            of: self.known.name,
            text: format!("{before}{command}{after}"),
            file: self.file.display().to_string(),
        };
        Ok(Some(State { line: Some(line), ..State::off() }))
    }

    /// The folder of its file, to be watched.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.file.parent().map(Path::to_owned)
    }
}

/// Whether a line of such a file starts this program's tray: by its path, or by its name.
fn starts(line: &str, program: &Path) -> bool {
    let Some(words) = shlex::split(line.trim_start()) else { return false };
    let is_program = |word: &String| {
        let path = Path::new(word.as_str());
        path == program || path.file_name() == program.file_name()
    };
    words.windows(2).any(|pair| is_program(&pair[0]) && pair[1] == "tray")
}

fn known(desktops: &str, is_set: impl Fn(&str) -> bool) -> Option<&'static Known> {
    // A desktop that uses one of them, such as LXQt with labwc, names itself first.
    match desktops.split(':').next().filter(|first| !first.is_empty()) {
        Some(first) => KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(first)),
        None => KNOWN.iter().find(|known| !known.variable.is_empty() && is_set(known.variable)),
    }
}

/// Whether the user's systemd has started each of these. It has started none where it does not run.
fn are_active(targets: [&'static str; 2]) -> [bool; 2] {
    let ask = move || {
        let mut systemctl = Command::new("systemctl");
        systemctl.args(["--user", "is-active"]).args(targets).stdin(Stdio::null()).stderr(Stdio::null());
        systemctl.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    };
    let said = run_within("systemctl", SYSTEMD_TIMEOUT, ask).ok().flatten().unwrap_or_default();
    let mut lines = said.lines().map(|line| line == "active");
    [lines.next().unwrap_or_default(), lines.next().unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_668_a_window_manager_without_desktop_entries_is_recognised() {
        let name = |desktops: &str, variable: &str| known(desktops, |name| name == variable).map(|known| known.name);
        assert_eq!(name("sway", ""), Some("sway"));
        assert_eq!(name("sway:wlroots", ""), Some("sway"));
        assert_eq!(name("hyprland", ""), Some("Hyprland"));
        assert_eq!(name("", "SWAYSOCK"), Some("sway"), "started from a console");
        assert_eq!(name("XFCE", "I3SOCK"), None, "a desktop with another window manager");
        assert_eq!(name("LXQt:labwc:wlroots", "LABWC_PID"), None);
        assert_eq!(name("GNOME", ""), None);
        assert_eq!(name("", ""), None);
    }

    #[test]
    fn case_668_there_a_line_is_named_until_it_is_in_the_file() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("sway/config");
        let program = Path::new("/opt/pilot light/pilotlight");
        let of = |is_graphical, unit_is_enabled| {
            let targets = OnceLock::from([false, is_graphical]);
            let manager = WindowManager { known: &KNOWN[0], file: file.clone(), targets };
            manager.read(program, &["/srv/h".into()], unit_is_enabled).unwrap().unwrap()
        };
        let by_entries = WindowManager { known: &KNOWN[0], file: file.clone(), targets: OnceLock::from([true; 2]) };
        assert_eq!(by_entries.read(program, &[], true).unwrap(), None);
        let wanted = "exec '/opt/pilot light/pilotlight' tray --home /srv/h";
        let missing = of(false, false);
        assert!(!missing.on && missing.line.as_ref().is_some_and(|line| line.text == wanted), "{missing:?}");
        assert!(!of(false, true).on, "nothing starts the unit");
        assert!(of(true, true).on);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        for (line, is_on) in [
            (wanted, true),
            ("  exec pilotlight tray", true),
            ("exec_always ~/.cargo/bin/pilotlight tray", true),
            ("# exec pilotlight tray", false),
            ("exec pilotlight live", false),
            ("exec other tray", false),
        ] {
            std::fs::write(&file, format!("set $mod Mod4\n{line}\n")).unwrap();
            let state = of(false, false);
            assert_eq!((state.on, state.line.is_none()), (is_on, is_on), "{line}");
        }
    }
}
