//! `pilotlight setup`: writes the files that a package installs besides the program (completions, desktop entry,
//! systemd unit), for users who built it themselves. Everything goes into the user's data folder; the user's settings
//! are not touched.
//!
//! All changes are listed first. A file is only written if it is missing, and only updated or removed if it is as we
//! wrote it: [`file`] decides.

mod file;

use super::ask::{CANNOT_ASK, confirm};
use super::fold::{on_stdout, on_stdout_from};
use super::pages;
use super::report::{LINE_MAX, REFUSED, say};
use crate::tray::autostart::Login;
use anyhow::Context as _;
use clap_complete::Shell;
use file::{CommentStyle, File, State};
use pilotlight_agents::bridge::installers;
use pilotlight_core::text::{counted, plain};
use pilotlight_system::paths;
use pilotlight_system::paths::own_program;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const UNIT: &str = "systemd/user/pilotlight.service";
/// The folder to add to zsh's `fpath`, which has no user folder by default.
const ZSH_FOLDER: &str = "zsh/site-functions";
/// The shells, each with its program and the place of its completions.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash", "bash-completion/completions/pilotlight"),
    (Shell::Zsh, "zsh", "zsh/site-functions/_pilotlight"),
    (Shell::Fish, "fish", "fish/vendor_completions.d/pilotlight.fish"),
];

/// Arguments of `setup`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Remove what `setup` wrote, except files that were changed since
    #[arg(long)]
    remove: bool,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
}

/// What to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Renew,
    Remove,
    /// It is up to date.
    Keep,
    /// It is not touched, for this reason.
    Leave(&'static str),
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if cfg!(windows) {
        say(
            "there is nothing to write on Windows: the installer makes the entries, and a line in your profile completes \
             commands (`pilotlight completions powershell` prints what it runs)",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let data = data_folder().context("there is no folder to write into: set HOME or XDG_DATA_HOME")?;
    let program = own_program().context("the system does not say where this program is")?;
    let packaged = package_of(&program, &data);
    let login = Login::find(&[]);
    let path = std::env::var_os("PATH");
    // When removing, files of shells that are no longer installed count too.
    let is_installed = |name: &str| arguments.remove || paths::program(Path::new(name), path.as_deref()).is_some();
    let files = files(&program, &data, is_installed)?;
    let steps = files.iter().map(|file| (file, step(file, arguments.remove, &login)));
    let steps: Vec<_> = steps.filter(|(file, _)| !arguments.remove || file.state() != State::Missing).collect();
    if let Some(share) = packaged.filter(|_| !arguments.remove) {
        let any = files.iter().any(|file| matches!(file.state(), State::Current | State::Outdated));
        let older =
            if any { "; `pilotlight setup --remove` removes what an earlier setup wrote for you alone" } else { "" };
        say(&format!("{} came with a package, which has all of this in {}{older}", program.display(), share.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let listed = list(&program, &steps);
    let count = steps.iter().filter(|(_, step)| !matches!(step, Step::Keep | Step::Leave(_))).count();
    let verb = if arguments.remove { "Remove" } else { "Write" };
    if count == 0 {
        writeln!(io::stdout(), "There is nothing to {}.", verb.to_lowercase())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.yes {
        listed?; // a list that could not be shown cannot be confirmed
        if !is_confirmed(&format!("{verb} {}?", counted(count, "file"))) {
            return Ok(ExitCode::from(REFUSED));
        }
    }
    let mut failed = 0;
    for (file, step) in &steps {
        if let Err(error) = carry_out(file, *step) {
            say(&format!("{error:#}"));
            failed += 1;
        }
    }
    if failed > 0 {
        let verb = if arguments.remove { "removed" } else { "written" };
        say(&format!("{failed} of {} were not {verb}: mend that, and run this again", counted(count, "file")));
        return Ok(ExitCode::FAILURE);
    }
    let notes = if arguments.remove { after_removing(&login) } else { after_writing(&data, &files) };
    notes.iter().try_for_each(|line| writeln!(io::stdout(), "{}", on_stdout(&plain(line, LINE_MAX))))?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the user, who is told if nothing is changed.
fn is_confirmed(question: &str) -> bool {
    let answer = confirm(question);
    match answer {
        Some(true) => {}
        Some(false) => say("nothing was changed"),
        None => say(&format!("{CANNOT_ASK}, so nothing was changed: add `--yes` if you agree")),
    }
    answer == Some(true)
}

/// The user's data folder. Shells use it on macOS, too.
fn data_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(paths::user_home()?.join(".local/share")))
}

/// The `share` folder of the package that installed this program, if one did.
fn package_of(program: &Path, data: &Path) -> Option<PathBuf> {
    const MARKERS: [&str; 3] =
        ["applications/pilotlight.desktop", "bash-completion/completions/pilotlight", "zsh/site-functions/_pilotlight"];
    let share = program.parent()?.parent()?.join("share");
    (share != data && MARKERS.iter().any(|file| share.join(file).is_file())).then_some(share)
}

/// The files to write, given which programs are installed.
fn files(program: &Path, data: &Path, is_installed: impl Fn(&str) -> bool) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    #[cfg(target_os = "linux")]
    {
        use crate::tray::autostart::{entry_for, unit_for};
        let program =
            program.to_str().context("the path of this program is not valid UTF-8, which these files need")?;
        let entry = entry_for(include_str!("../../packaging/linux/pilotlight.desktop"), program);
        files.push(File::new(
            data,
            "applications/pilotlight.desktop",
            "the menu of programs",
            CommentStyle::Hash,
            &entry,
        ));
        let icon = include_str!("../../assets/icon/pilotlight.svg");
        files.push(File::new(data, "icons/hicolor/scalable/apps/pilotlight.svg", "its icon", CommentStyle::Xml, icon));
        let unit = unit_for(include_str!("../../packaging/linux/pilotlight.service"), program);
        if let Some(unit) = unit.filter(|_| is_installed("systemctl")) {
            files.push(File::new(data, UNIT, "systemd unit; `setup` does not enable it", CommentStyle::Hash, &unit));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = program;
    for (shell, name, path) in SHELLS.into_iter().filter(|(_, name, _)| is_installed(name)) {
        let script = String::from_utf8(pages::script(shell)).context("the completions are not valid UTF-8")?;
        let what = match name {
            "bash" => "completions for bash",
            "zsh" => "completions for zsh",
            _ => "completions for fish",
        };
        files.push(File::new(data, path, what, CommentStyle::Hash, &script));
    }
    Ok(files)
}

fn step(file: &File, remove: bool, login: &Login) -> Step {
    match (file.state(), remove) {
        (State::Theirs(why), _) => Step::Leave(why),
        (State::Missing, false) => Step::Write,
        (State::Outdated, false) => Step::Renew,
        (State::Missing, true) | (State::Current, false) => Step::Keep,
        (State::Current | State::Outdated, true) => {
            if file.path.ends_with(UNIT) && is_enabled(login) {
                return Step::Leave("it is enabled: `systemctl --user disable --now pilotlight` first");
            }
            Step::Remove
        }
    }
}

#[cfg(target_os = "linux")]
fn is_enabled(login: &Login) -> bool {
    login.unit_is_enabled()
}

#[cfg(not(target_os = "linux"))]
fn is_enabled(_login: &Login) -> bool {
    false
}

/// The column of the paths in the list of changes.
const PATH_COLUMN: usize = 10;

/// Prints the changes.
fn list(program: &Path, steps: &[(&File, Step)]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "For {}:", plain(&program.display().to_string(), LINE_MAX))?;
    for (file, step) in steps {
        let (word, note) = match step {
            Step::Write => ("write", file.what),
            Step::Renew => ("renew", file.what),
            Step::Remove => ("remove", file.what),
            Step::Keep => ("keep", "up to date"),
            Step::Leave(why) => ("leave", *why),
        };
        let line = format!("  {word:<7} {}  ({note})", plain(&file.path.display().to_string(), LINE_MAX));
        writeln!(out, "{}", on_stdout_from(&line, PATH_COLUMN))?;
    }
    writeln!(out)
}

fn carry_out(file: &File, step: Step) -> anyhow::Result<()> {
    match step {
        Step::Write | Step::Renew => file.write(),
        Step::Remove => file.remove(),
        Step::Keep | Step::Leave(_) => Ok(()),
    }
}

/// Notes for the user on what remains to be done.
fn after_writing(data: &Path, files: &[File]) -> Vec<String> {
    let has = |path: &str| files.iter().any(|file| file.path.ends_with(path));
    let mut lines = vec!["Written. `pilotlight setup --remove` removes all of it.".to_owned()];
    if has("_pilotlight") {
        let folder = data.join(ZSH_FOLDER);
        lines.push(format!(
            "zsh looks there once ~/.zshrc has this line before `compinit`: fpath=('{}' $fpath)",
            folder.display()
        ));
    }
    if has(UNIT) {
        lines.push(
            "To start at login, either tick that in the menu or run `systemctl --user enable --now pilotlight`."
                .to_owned(),
        );
    }
    lines
}

fn after_removing(login: &Login) -> Vec<String> {
    let mut lines = vec!["Removed.".to_owned()];
    if login.state().on {
        lines.push("Pilotlight still starts at login: its menu has the switch.".to_owned());
    }
    let installers = paths::project().map(|project| installers(&project)).unwrap_or_default();
    for installer in installers.iter().filter(|installer| installer.is_installed()) {
        let agent = installer.adapter().agent();
        lines.push(format!(
            "The bridge to terminals is still installed in {agent}: `pilotlight bridge remove` removes it."
        ));
    }
    lines
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_for_installed_programs_only() {
        let data = Path::new("/home/u/.local/share");
        let names = |installed: &[&str]| {
            let program = Path::new("/home/u/.cargo/bin/pilotlight");
            let files = files(program, data, |name| installed.contains(&name)).unwrap();
            files.iter().map(|file| file.path.strip_prefix(data).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        let always = ["applications/pilotlight.desktop", "icons/hicolor/scalable/apps/pilotlight.svg"];
        assert_eq!(names(&[]), always);
        assert_eq!(names(&["fish"])[2..], ["fish/vendor_completions.d/pilotlight.fish"]);
        assert_eq!(names(&["bash", "zsh", "fish", "systemctl"]).len(), 6);
    }

    #[test]
    fn a_packaged_program_is_recognized_by_the_packages_files() {
        let scratch = tempfile::tempdir().unwrap();
        let (program, share) = (scratch.path().join("bin/pilotlight"), scratch.path().join("share"));
        let package = |data: &Path| package_of(&program, data);
        assert_eq!(package(Path::new("/home/u/.local/share")), None);
        fs::create_dir_all(share.join("applications")).unwrap();
        fs::write(share.join("applications/pilotlight.desktop"), "").unwrap();
        assert_eq!(package(Path::new("/home/u/.local/share")), Some(share.clone()));
        assert_eq!(package(&share), None, "setup itself wrote this, for a program in ~/.local/bin");
    }
}
