//! The text of a bug report: what a maintainer needs and a stranger may read. It consists of fixed words, numbers and
//! times, and is always shown to the user before it goes anywhere.

use super::check::CheckContext;
use super::finding::Finding;
use super::redact::Redactor;
#[cfg(target_os = "linux")]
use super::redact::{desktops, version};
use pilotlight_core::fleet::Kind;
use pilotlight_core::text::counted;
use pilotlight_core::verdict::Status;
use pilotlight_engine::config::redacted;
use pilotlight_system::clock::Clock;
use pilotlight_system::log;
#[cfg(target_os = "linux")]
use pilotlight_system::state_file;
use std::path::Path;

/// How many of the last lines of our log are included.
const LINES: usize = 60;
const HEAD: &str = "Pilotlight diagnostics. No names, paths, prompts, commands, titles or tokens are in it. An ellipsis stands for \
                    anything that might be private.";

/// The report on the results of the checks.
pub(crate) fn report(context: &CheckContext, findings: &[Finding]) -> String {
    let now = Clock::start().now();
    let mut out = format!("{HEAD}\nMade {}\n\n{}\nChecks\n", now.wall, platform());
    for finding in findings {
        out += &format!("  {:<8} {:<14} {}\n", finding.level.word(), finding.check, finding.redacted);
    }
    out += &format!("\nSessions: {}\n", context.sessions.len());
    for status in Status::ALL {
        let listed = context.sessions.iter().filter(|session| session.is_listed());
        let with_status = listed.filter(|session| session.row(now, &context.config.limits).0.status == status);
        let kinds: Vec<_> = with_status.map(|session| session.observed.about.kind).collect();
        let of_kind = |kind| kinds.iter().filter(|one| **one == kind).count();
        if !kinds.is_empty() {
            let (all, terminal, sdk) = (kinds.len(), of_kind(Kind::Terminal), of_kind(Kind::Sdk));
            out += &format!("  {status:<17}{all} ({terminal} in terminals, {sdk} over the SDK)\n");
        }
    }
    let settings = redacted(&context.config);
    out += &format!("\nSettings that are not the defaults: {}\n", settings.len());
    for setting in settings {
        out += &format!("  {setting}\n");
    }
    out + &own_log(context.state_folder.as_deref())
}

/// The system, the desktop and the encoding.
fn platform() -> String {
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "only Linux has more to say"))]
    let mut out = format!("Pilotlight {}, {arch} on {os}\n", env!("CARGO_PKG_VERSION"));
    #[cfg(target_os = "linux")]
    {
        let release = state_file::read(Path::new("/etc/os-release"));
        let field = |key: &str| {
            let value = release.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim_matches('"');
            let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
            if is_plain && (1..=24).contains(&value.len()) { value } else { "?" }
        };
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        out += &format!("System: {} {}, kernel {}\n", field("ID="), field("VERSION_ID="), version(&kernel));
        let desktops = desktops(&env("XDG_CURRENT_DESKTOP"));
        let session = match env("XDG_SESSION_TYPE").as_str() {
            "x11" => "X11",
            "wayland" => "Wayland",
            "tty" => "a console",
            "" => "unknown",
            _ => "another",
        };
        let is_set = |name: &str| if env(name).is_empty() { "no" } else { "yes" };
        let (x11, wayland) = (is_set("DISPLAY"), is_set("WAYLAND_DISPLAY"));
        out += &format!("Desktop: {desktops}; session: {session}; X display: {x11}; Wayland display: {wayland}\n");
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(env).into_iter().find(|value| !value.is_empty());
    let is_utf8 = locale.is_some_and(|value| value.to_lowercase().replace('-', "").contains("utf8"));
    out + "Text is UTF-8: " + if is_utf8 { "yes\n" } else { "unknown\n" }
}

fn own_log(state_folder: Option<&Path>) -> String {
    let lines = state_folder.map(|folder| log::last_lines(&folder.join(log::FILE), LINES)).unwrap_or_default();
    let mut redactor = Redactor::default();
    let redacted: Vec<_> = lines.iter().filter_map(|line| redactor.line(line)).collect();
    let head = format!("\nThe log's last {}\n", counted(redacted.len(), "line"));
    redacted.iter().fold(head, |out, line| format!("{out}  {line}\n"))
}
