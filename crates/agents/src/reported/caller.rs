//! The process that a report is from, with which its session ends.
//!
//! An agent starts a hook as `sh -c '...'`, or as a script, which is gone a moment later. So what only carries the hook is
//! passed over: shells that run a command or a script, programs that start another one, and interpreters that began just
//! now, as a hook does. The nearest ancestor that is none of these lives on: the agent, or the shell in which a person
//! types.

use super::record::Process;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::process::{PidStatus, ancestors, arguments, executable, read};
use std::ffi::OsString;

/// Shells.
const SHELLS: [&str; 16] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "mksh",
    "fish",
    "ash",
    "tcsh",
    "csh",
    "nu",
    "elvish",
    "xonsh",
    "pwsh",
    "powershell",
    "cmd",
];
/// Programs that start another one, and wait for it.
const STARTERS: [&str; 14] = [
    "env", "timeout", "nohup", "setsid", "nice", "ionice", "stdbuf", "time", "xargs", "flock", "sudo", "doas",
    "direnv", "mise",
];
/// Programs that run scripts: hooks, and agents, too.
const INTERPRETERS: [&str; 8] = ["node", "nodejs", "bun", "deno", "python", "ruby", "perl", "php"];
/// Programs that have many names, and are known by the one that they were called by.
const MANY_NAMED: [&str; 3] = ["busybox", "toybox", "coreutils"];
/// Whoever takes over processes whose parent has ended.
const HEIRS: [&str; 3] = ["systemd", "init", "launchd"];
/// A hook that is a script has run for less than this when it reports. Agents take longer to start.
const JUST_NOW: Span = Span::seconds(2);

/// What is known of an ancestor.
struct Ancestor {
    /// The file name of its program, in small letters.
    name: String,
    arguments: Vec<OsString>,
    age: Span,
}

/// The nearest ancestor of this process that lives on. `None` if it is not known, because a process between it and this
/// one has ended. `now` is the wall clock.
pub fn caller(now: Time) -> Option<Process> {
    for pid in ancestors(std::process::id()) {
        match Ancestor::read(pid, now) {
            Some(it) if it.is_passing() => {}
            Some(it) if it.is_heir() => return None,
            _ if pid == 1 => return None,
            _ => return Process::of(pid),
        }
    }
    None
}

impl Ancestor {
    /// `None` if it cannot be read.
    fn read(pid: u32, now: Time) -> Option<Self> {
        let PidStatus::Process { started, .. } = read(pid, now) else { return None };
        let arguments = arguments(pid).unwrap_or_default();
        let file = executable(pid)?;
        let name = |path: &std::path::Path| path.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let called = arguments.first().map(|called| name(std::path::Path::new(called)));
        let name = Some(name(&file)).filter(|name| !MANY_NAMED.contains(&&**name)).or(called)?;
        Some(Self { name, arguments, age: started.map_or(JUST_NOW, |started| now - started) })
    }

    /// Whether it is gone as soon as the hook is.
    fn is_passing(&self) -> bool {
        let name = self.name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
        if SHELLS.contains(&name) {
            return self.runs_something();
        }
        STARTERS.contains(&name) || INTERPRETERS.contains(&name) && self.age < JUST_NOW
    }

    /// Whether a shell was started to run a command or a script, rather than for a person.
    fn runs_something(&self) -> bool {
        let mut words = self.arguments.iter().skip(1).map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            match &*word {
                "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O" => drop(words.next()),
                "-command" | "-Command" | "-File" | "-file" | "/c" | "/C" | "/k" | "/K" => return true,
                _ if word.starts_with("--") => {}
                _ if word.starts_with(['-', '+']) && self.name != "pwsh" && self.name != "powershell" => {
                    if word.contains('c') {
                        return true;
                    }
                }
                _ if word.starts_with(['-', '+', '/']) && cfg!(windows) => {}
                _ => return true,
            }
        }
        false
    }

    fn is_heir(&self) -> bool {
        HEIRS.contains(&&*self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(line: &str, age: Span) -> bool {
        let arguments: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let name = line.split(' ').next().unwrap().trim_start_matches('-').to_owned();
        Ancestor { name, arguments, age }.is_passing()
    }

    #[test]
    fn case_272_what_carries_a_hook_is_passed_over_and_what_lives_on_is_not() {
        let old = Span::minutes(5);
        for carries in [
            "sh -c pilotlight",
            "bash -lc pilotlight",
            "zsh -o nonomatch -ic x",
            "dash /home/me/.gemini/hooks/report.sh",
            "fish --command=x /x",
            "bash -e hook.sh",
            "env PATH=/x pilotlight",
            "timeout 5 pilotlight",
            "cmd /d /s /c x",
        ] {
            assert!(passes(carries, old), "{carries}");
        }
        for lives in
            ["bash", "-bash", "zsh -i -l", "bash --init-file /x/integration.sh -i", "opencode", "node", "codex"]
        {
            assert!(!passes(lives, old), "{lives}");
        }
        assert!(passes("python3.12 hook.py", Span(150)) && passes("node hook.js", Span(1999)));
        assert!(!passes("node /usr/bin/gemini", Span::seconds(2)) && !passes("claude", Span(5)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn case_272_the_caller_of_this_test_lives_on() {
        let now = pilotlight_system::clock::Clock::start().now().wall;
        let caller = caller(now);
        // Whatever runs the tests: a shell with a script, cargo, a person.
        assert!(caller.is_none_or(|caller| Process::of(caller.pid) == Some(caller)), "{caller:?}");
    }
}
