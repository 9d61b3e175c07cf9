//! `pilotlight config`: prints the settings with their meaning, or opens them in an editor.

use super::context::Context;
use super::report::{USAGE, say};
use crate::tray::open;
use crate::tray::open_files::make_config;
use anyhow::{Context as _, bail};
use pilotlight_core::text::counted;
use pilotlight_engine::config::{self, load};
use pilotlight_system::descriptors;
use pilotlight_system::paths;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print every setting with its meaning and current value, as a valid config.toml
    #[arg(long, conflicts_with = "edit")]
    print: bool,
    /// Open config.toml in $VISUAL or $EDITOR, else in the desktop's editor, and check it afterwards
    #[arg(long)]
    edit: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.edit {
        return edit(context);
    }
    if !arguments.print {
        let location = context.config_path.as_deref().map(|path| format!(", which are in {}", path.display()));
        let location = location.unwrap_or_default();
        say(&format!(
            "say what to do with the settings{location}: `config --print` shows them all, `config --edit` opens them"
        ));
        return Ok(ExitCode::from(USAGE));
    }
    context.report_problems();
    let mut out = io::stdout().lock();
    if let Some(path) = &context.config_path {
        writeln!(out, "# Read from {}", path.display())?;
    }
    write!(out, "{}", config::print(&context.config))?;
    Ok(if context.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) })
}

fn edit(context: &Context) -> anyhow::Result<ExitCode> {
    let path = context
        .config_path
        .as_deref()
        .context("no folder for settings is known: set HOME, or name a file with PILOTLIGHT_CONFIG")?;
    if make_config(path)? {
        say(&format!("made {} with every setting, commented out", path.display()));
    }
    if !run_editor(path)? {
        if cfg!(target_os = "linux") && !has_display() {
            bail!(
                "neither VISUAL nor EDITOR names an editor, and there is no display to open one on: set EDITOR, or edit {}",
                path.display()
            );
        }
        open::text(path).context("neither VISUAL nor EDITOR names an editor")?;
        say(&format!(
            "{} is open; a running Pilotlight applies what you save, and says where it is wrong",
            path.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let (_, problems) = load(path, None);
    if problems.is_empty() {
        writeln!(io::stdout(), "Nothing is wrong with {}.", path.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    problems.iter().for_each(|problem| say(&problem.to_string()));
    say(&format!(
        "{} in {}: `pilotlight config --edit` opens it again",
        counted(problems.len(), "problem"),
        path.display()
    ));
    Ok(ExitCode::from(USAGE))
}

/// Whether a window can be opened, by the variables that X11 and Wayland programs go by.
fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().filter_map(std::env::var_os).any(|value| !value.is_empty())
}

/// Runs the user's editor until it ends. Returns false if none is named.
fn run_editor(path: &Path) -> anyhow::Result<bool> {
    let named = ["VISUAL", "EDITOR"].into_iter().filter_map(std::env::var_os).find(|value| !value.is_empty());
    let Some(editor) = named else { return Ok(false) };
    // `code --wait` is two words. No shell is involved, so nothing in the path is interpreted.
    let words: Vec<OsString> = match editor.to_str() {
        Some(text) => text.split_whitespace().map(OsString::from).collect(),
        None => vec![editor],
    };
    let [program, arguments @ ..] = words.as_slice() else { return Ok(false) };
    let shown = program.to_string_lossy();
    let found = find(program).with_context(|| format!("$VISUAL or $EDITOR names {shown}, which is not there"))?;
    let mut command = Command::new(found);
    descriptors::restore(&mut command);
    let status =
        command.args(arguments).arg(path).status().with_context(|| format!("the editor {shown} cannot be started"))?;
    if !status.success() && !io::stdin().is_terminal() {
        bail!("the editor {shown} could not run ({status}): is there a terminal for it?");
    }
    Ok(true)
}

fn find(program: &OsStr) -> Option<std::path::PathBuf> {
    paths::program(Path::new(program), std::env::var_os("PATH").as_deref())
}
