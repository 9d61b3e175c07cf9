//! The text of a bug report: what a maintainer needs, and a stranger may read. It is put together of words of ours, numbers
//! and times, and is always shown before it goes anywhere.

use super::redact::Reader;
#[cfg(target_os = "linux")]
use super::redact::{desktops, version};
use super::{Examined, Ground};
use crate::config::changed;
use crate::core::fleet::Kind;
use crate::core::text::counted;
use crate::core::verdict::Status;
use crate::system::clock::Clock;
use crate::system::log;
#[cfg(target_os = "linux")]
use crate::system::state_file;
use std::fmt::Write;
use std::path::Path;

/// So many of the last lines of our log are in it.
const LINES: usize = 60;
/// The first line.
const HEAD: &str = "Pilotlight diagnostics. No names, paths, prompts, commands, titles or tokens are in it: what is not known to be \
                    harmless is left out, marked with an ellipsis.";

/// The report on what was found.
pub(crate) fn report(ground: &Ground, examined: &Examined) -> String {
    let now = Clock::start().now();
    let mut out = format!("{HEAD}\nMade {}\n\n", now.wall);
    platform(&mut out);
    out.push_str("\nChecks\n");
    for finding in &examined.findings {
        let _ = writeln!(out, "  {:<8} {:<14} {}", finding.level.word(), finding.check, finding.redacted);
    }
    let _ = writeln!(out, "\nSessions: {}", examined.sessions.len());
    for status in Status::ALL {
        let of_status: Vec<_> = examined
            .sessions
            .iter()
            .filter(|session| session.is_listed() && session.row(now, &ground.config.limits).0.status == status)
            .collect();
        if of_status.is_empty() {
            continue;
        }
        let of_kind = |kind| of_status.iter().filter(|session| session.about.kind == kind).count();
        let (terminal, sdk) = (of_kind(Kind::Terminal), of_kind(Kind::Sdk));
        let _ = writeln!(out, "  {status:<17}{} ({terminal} in terminals, {sdk} over the SDK)", of_status.len());
    }
    settings(&mut out, ground);
    own_log(&mut out, ground.state_folder.as_deref());
    out
}

fn platform(out: &mut String) {
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let _ = writeln!(
        out,
        "Pilotlight {}, {} on {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS
    );
    #[cfg(target_os = "linux")]
    {
        let release = state_file::read(Path::new("/etc/os-release"));
        let field = |key: &str| {
            let line = release.lines().find_map(|line| line.strip_prefix(key))?;
            let value = line.trim_matches('"');
            let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
            (plain && value.len() <= 24).then(|| value.to_owned())
        };
        let name = |value: Option<String>| value.unwrap_or_else(|| "?".into());
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let _ =
            writeln!(out, "System: {} {}, kernel {}", name(field("ID=")), name(field("VERSION_ID=")), version(&kernel));
        let session = match env("XDG_SESSION_TYPE").as_str() {
            "x11" => "X11",
            "wayland" => "Wayland",
            "tty" => "a console",
            "" => "not told",
            _ => "another",
        };
        let shown = |name: &str| if env(name).is_empty() { "no" } else { "yes" };
        let _ = writeln!(
            out,
            "Desktop: {}; session: {session}; X display: {}; Wayland display: {}",
            desktops(&env("XDG_CURRENT_DESKTOP")),
            shown("DISPLAY"),
            shown("WAYLAND_DISPLAY")
        );
    }
    let locale = [env("LC_ALL"), env("LC_CTYPE"), env("LANG")].into_iter().find(|value| !value.is_empty());
    let unicode = locale.is_some_and(|value| value.to_lowercase().replace('-', "").contains("utf8"));
    let _ = writeln!(out, "Text is UTF-8: {}", if unicode { "yes" } else { "not told" });
}

fn settings(out: &mut String, ground: &Ground) {
    let changed = changed(&ground.config);
    let _ = writeln!(out, "\nSettings that are not the defaults: {}", changed.len());
    for (name, value) in changed {
        let _ = writeln!(out, "  {name} = {}", value.as_deref().unwrap_or("…"));
    }
}

fn own_log(out: &mut String, state_folder: Option<&Path>) {
    let lines = state_folder.map(|folder| log::last_lines(&folder.join(log::FILE), LINES)).unwrap_or_default();
    let mut reader = Reader::default();
    let told: Vec<_> = lines.iter().filter_map(|line| reader.line(line)).collect();
    let _ = writeln!(out, "\nThe log's last {}", counted(told.len(), "line"));
    for line in told {
        let _ = writeln!(out, "  {line}");
    }
}
