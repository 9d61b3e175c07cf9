//! Which processes run Claude Code, and with which home.

use crate::fingerprint::Fingerprint;
use crate::program_file::is_node;
#[cfg(target_os = "linux")]
use crate::runners::{self, Runner};
use crate::runners::{Role, identity, is_itself};
use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_system::process::{self, PidStatus};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The agent's display name.
pub(super) const DISPLAY_NAME: &str = "Claude Code";
/// What it is recognised by. Observed: 2.1.330.
pub(super) const FINGERPRINT: Fingerprint = Fingerprint {
    program: "claude",
    releases: Some("claude/versions"),
    package: "@anthropic-ai/claude-code",
    marks: &["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"],
    content: Some(b"/claude-code.d.ts"),
};
/// Its home, in that of its user.
pub(super) const HOME: &str = ".claude";
/// What names another home.
pub(super) const HOME_VARIABLE: &str = "CLAUDE_CONFIG_DIR";

/// Whether a process runs Claude Code with this home. A file in a copy of its home is of another time: it may run another
/// session by now.
pub(super) fn runs_it(pid: u32, home: &Path) -> bool {
    FINGERPRINT.is_run_by(pid) && home_of(pid).is_none_or(|its| is_same_folder(&its, home))
}

/// A process that may run any session whose log was written since it started: its own file cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct MayRun {
    pub(super) pid: u32,
    /// When it started, at the earliest, by the wall clock.
    pub(super) since: Time,
}

/// Those of these processes that run Claude Code with this home. `now` is the wall clock.
pub(super) fn may_run(home: &Path, pids: &[u32], now: Time) -> impl Iterator<Item = MayRun> {
    let running = pids.iter().filter(|pid| runs_it(**pid, home));
    running.filter_map(move |&pid| match process::read(pid, now) {
        PidStatus::Process { started, .. } => {
            Some(MayRun { pid, since: started.map_or(Time(0), |at| at - process::SLACK) })
        }
        PidStatus::Absent | PidStatus::Hidden => None,
    })
}

/// The home of a process, by its environment. `None` if that does not tell.
#[cfg(target_os = "linux")]
fn home_of(pid: u32) -> Option<PathBuf> {
    let variables = process::variables(pid, &[HOME_VARIABLE, "HOME"])?;
    runners::home_in(&variables, HOME_VARIABLE, HOME).filter(|home| home.is_absolute())
}

/// The home of a process: the system does not tell.
#[cfg(not(target_os = "linux"))]
const fn home_of(_: u32) -> Option<PathBuf> {
    None
}

/// The commands of it that run no session of their own, but for those that end at once. Observed: 2.1.332.
const HELPERS: [&str; 12] = [
    "agents",
    "attach",
    "bg-pty-host",
    "bg-spare",
    "daemon",
    "gateway",
    "install",
    "logs",
    "mcp",
    "plugin",
    "update",
    "upgrade",
];
/// The options by which its command line names the session that it runs.
const NAMES: [&str; 3] = ["--resume", "-r", "--session-id"];
/// The options by which it goes on with a session that it does not name: the last one of its folder, or one of a list.
const CONTINUES: [&str; 4] = ["--continue", "-c", "--resume", "-r"];
/// The tools that are the same program, by the names that it starts them by. Observed: 2.1.332.
const TOOLS: [&str; 5] = ["rg", "bfs", "ugrep", "find", "grep"];
/// The options of what its supervisor starts: what they run is named in a file alone.
const SUPERVISED: [&str; 2] = ["--bg-pty-host", "--bg-spare"];

/// What a process is by its command line. `None`: one of the tools that are the same program.
pub(crate) fn role(program: &Path, arguments: &[OsString]) -> Option<Role> {
    if !is_itself(arguments, &TOOLS) {
        return None;
    }
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    if is_node(program) {
        while words.next().is_some_and(|word| word.starts_with('-')) {} // up to its script
    }
    let words: Vec<&str> = words.collect();
    let is_helper = words.first().is_some_and(|first| HELPERS.contains(first) || SUPERVISED.contains(first));
    let is_fork = words.contains(&"--fork-session");
    let value = |(at, word): (usize, &&str)| match word.split_once('=') {
        Some((name, value)) => NAMES.contains(&name).then(|| value.to_owned()),
        None => NAMES.contains(word).then(|| words.get(at + 1).map(|next| (*next).to_owned())).flatten(),
    };
    let named = words.iter().enumerate().filter_map(value).find(|id| is_uuid(id)).filter(|_| !is_fork);
    let continues = named.is_none() && words.iter().any(|word| CONTINUES.contains(word));
    Some(Role { named: named.map(Into::into), continues, is_helper })
}

/// Completes what a process shows: the session that its own file names.
#[cfg(target_os = "linux")]
pub(crate) fn complete(runner: &mut Runner) {
    let file = runner.home.as_deref().and_then(|home| super::pid_file::read(home, process::inner_id(runner.pid)));
    runner.claims =
        file.filter(|file| file.is_of(runner.pid, runner.born)).map(|file| file.session).into_iter().collect();
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5e696c81-7048-4c6f-b14c-d072f82bbf2f";

    #[test]
    fn case_516_a_command_line_says_what_a_process_of_claude_code_is() {
        let role_of = |program: &str, line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            role(Path::new(program), &words)
        };
        let one =
            |named: Option<&str>, is_helper| Some(Role { named: named.map(Into::into), is_helper, ..Role::default() });
        let continues = || Some(Role { continues: true, ..Role::default() });
        for (line, is) in [
            ("claude", one(None, false)),
            ("/opt/claude -p fix", one(None, false)),
            (&format!("claude --resume {ID}"), one(Some(ID), false)),
            (&format!("claude -p --session-id={ID} go"), one(Some(ID), false)),
            (&format!("claude --resume {ID} --fork-session"), continues()),
            ("claude --resume", continues()),
            ("claude --continue", continues()),
            ("claude -c --model opus", continues()),
            ("claude --resume shop", continues()),
            ("claude daemon run --origin transient", one(None, true)),
            ("claude --bg-spare /tmp/spare", one(None, true)),
            ("claude mcp serve", one(None, true)),
            ("rg --files", None),
            ("find . -name x", None),
        ] {
            assert_eq!(role_of("/opt/claude", line), is, "{line}");
        }
        let node = format!("node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js -r {ID}");
        assert_eq!(role_of("/usr/bin/node", &node), one(Some(ID), false));
        let serves = "node --no-warnings /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js mcp serve";
        assert_eq!(role_of("/usr/bin/node", serves), one(None, true));
        assert_eq!(role_of("/home/me/.local/share/claude/versions/2.1.332", "claude"), one(None, false));
        // By a link of another name, or by one that whoever starts it makes up.
        assert_eq!(role_of("/opt/claude", &format!("cc --resume {ID}")), one(Some(ID), false));
        assert_eq!(role_of("/opt/.claude-wrapped", &format!("agent -r {ID}")), one(Some(ID), false));
    }
}
