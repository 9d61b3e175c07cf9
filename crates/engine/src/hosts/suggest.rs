//! Machines that could be added: those that the user's own programs know of. Each of these is asked only where it is
//! installed, all at once, for at most [`WITHIN`]; no machine is connected to.
//!
//! What they print is hostile: bounded in size, and a candidate counts only if its words need no quotes in a shell.

mod ssh_config;

use super::command::{Leader, Way};
use super::stderr::{StderrTail, last_line};
use crate::config::HostSetting;
use crate::config::edit::wrong_host;
use pilotlight_system::paths;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take to say what it knows.
const WITHIN: Duration = Duration::from_secs(2);
/// How long what it complains of may take to arrive once it has ended.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(200);
/// How much of that is read, in bytes.
const PRINTED_MAX: u64 = 1 << 20;
/// How many candidates one source may have.
const EACH: usize = 100;
/// Maximum length of what is quoted, in characters.
const QUOTED_MAX: usize = 160;
/// Maximum length of a word of a command, in bytes: that of the name of a machine.
const WORD_MAX: usize = 255;
/// Maximum length of a name that is suggested: that of a host.
const NAME_MAX: usize = 24;

/// A machine that could be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub way: Way,
    /// Who knows of it.
    pub source: &'static str,
}

impl Candidate {
    /// A candidate whose name is made of what its source calls it. `None` if its words are not fit for a command line.
    fn new(called: &str, way: Way, source: &'static str) -> Option<Self> {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
        let name: String = called.chars().filter(is_plain).take(NAME_MAX).collect();
        let name = name.trim_start_matches(['-', '.']).to_owned();
        let candidate = Self { name, way, source };
        let is_fit = |word: &String| {
            let is_literal = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
            (1..=WORD_MAX).contains(&word.len()) && word.chars().all(is_literal)
        };
        let words = match &candidate.way {
            Way::Ssh(to) => std::slice::from_ref(to),
            Way::Command(words) => words,
        };
        // Of a command, what was printed is never where an option would be taken.
        let is_fit = words.iter().all(is_fit) && called.chars().next().is_some_and(|c| c != '-');
        let host = candidate.way.host(&candidate.name, "/pilotlight", "/");
        (is_fit && wrong_host(&host).is_none()).then_some(candidate)
    }

    /// The command that adds it.
    pub fn command(&self) -> String {
        match &self.way {
            Way::Ssh(to) if *to == self.name => format!("pilotlight host add {}", self.name),
            Way::Ssh(to) => format!("pilotlight host add {} --ssh {to}", self.name),
            Way::Command(words) => format!("pilotlight host add {} -- {}", self.name, words.join(" ")),
        }
    }
}

/// The machines that could be added, and what is not known of others.
#[derive(Debug, Default)]
pub struct Suggested {
    pub candidates: Vec<Candidate>,
    /// Why some may be missing: a line each, for the user.
    pub missing: Vec<String>,
}

/// What a source calls a machine, and how it is reached.
type Named = (String, Way);

/// A program that lists machines, a name a line.
struct Source {
    name: &'static str,
    words: &'static [&'static str],
    read: fn(&str) -> Vec<Named>,
}

const SOURCES: [Source; 3] = [
    Source {
        name: "docker",
        words: &["docker", "ps", "--format", "{{.Names}}"],
        read: |text| containers("docker", text),
    },
    Source {
        name: "podman",
        words: &["podman", "ps", "--format", "{{.Names}}"],
        read: |text| containers("podman", text),
    },
    Source { name: "wsl", words: &["wsl.exe", "--list", "--quiet"], read: distributions },
];

/// The candidates of all sources, without those that the settings have already. `more` are known otherwise.
pub async fn candidates(hosts: &[HostSetting], more: Vec<Candidate>) -> Suggested {
    let asked: Vec<_> = SOURCES.iter().map(|source| tokio::spawn(ask(source))).collect();
    let (mut found, mut missing) = (more, Vec::new());
    if let Some(folder) = paths::user_home().map(|home| home.join(".ssh")) {
        let read = ssh_config::hosts(&folder);
        missing.extend(read.missing);
        let named = read.hosts.into_iter().map(|host| (host.clone(), Way::Ssh(host)));
        found.extend(of("ssh config", named.collect(), &mut missing));
    }
    for (source, asked) in SOURCES.iter().zip(asked) {
        match asked.await {
            Ok(Ok(named)) => found.extend(of(source.name, named, &mut missing)),
            Ok(Err(why)) => missing.push(why),
            Err(_) => {}
        }
    }
    let (mut names, mut kept) = (BTreeSet::new(), Vec::<Candidate>::new());
    for mut candidate in found {
        let is_known = hosts.iter().any(|host| candidate.way.is_of(host) || host.name == candidate.name);
        if is_known || kept.iter().any(|one| one.way == candidate.way) {
            continue;
        }
        candidate.name = free_name(&candidate, &names);
        names.insert(candidate.name.clone());
        kept.push(candidate);
    }
    Suggested { candidates: kept, missing }
}

/// Its name, or one made of it that none of these have.
fn free_name(candidate: &Candidate, names: &BTreeSet<String>) -> String {
    let source = candidate.source.replace(' ', "-");
    let tails = (2..).map(|n| format!("-{source}-{n}"));
    let made = std::iter::once(format!("-{source}")).chain(tails).map(|tail| {
        let room = NAME_MAX.saturating_sub(tail.len());
        format!("{}{tail}", candidate.name.chars().take(room).collect::<String>())
    });
    let mut all = std::iter::once(candidate.name.clone()).chain(made);
    all.find(|name| !names.contains(name)).unwrap_or_default()
}

/// The candidates among what a source has named: the first [`EACH`]. Says so if there are more.
fn of(source: &'static str, named: Vec<Named>, missing: &mut Vec<String>) -> Vec<Candidate> {
    let fit = named.into_iter().filter_map(|(name, way)| Candidate::new(&name, way, source));
    let mut found: Vec<_> = fit.take(EACH + 1).collect();
    if found.len() > EACH {
        found.truncate(EACH);
        missing.push(format!("{source} names more than {EACH} machines: only the first {EACH} are listed"));
    }
    found
}

/// Asks a program. None where it is not installed.
///
/// # Errors
/// That nothing is known from it, and why, in words for the user.
async fn ask(source: &'static Source) -> Result<Vec<Named>, String> {
    let path = std::env::var_os("PATH");
    let (name, arguments) = (Path::new(source.words[0]), &source.words[1..]);
    let Some(program) = paths::program(name, path.as_deref()) else { return Ok(Vec::new()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Has `wsl` print UTF-8.
    command.env("WSL_UTF8", "1");
    let nothing = |why: &str| format!("{} listed no machine: `{}` {why}", source.name, source.words.join(" "));
    let told = timeout(WITHIN, tell(&mut command)).await;
    let ProgramOutput { printed, stderr, status } = match told {
        Ok(Ok(told)) => told,
        Ok(Err(why)) => return Err(format!("{} listed no machine: {why}", source.name)),
        Err(_) => return Err(nothing(&format!("did not answer within {} s", WITHIN.as_secs()))),
    };
    if printed.len() as u64 > PRINTED_MAX {
        return Err(nothing(&format!("printed more than {} MiB", PRINTED_MAX >> 20)));
    }
    if !status.success() {
        let why = last_line(&stderr, QUOTED_MAX).map(|line| format!(": {line}")).unwrap_or_default();
        let ended = status.code().map_or("was ended".to_owned(), |code| format!("ended with exit code {code}"));
        return Err(nothing(&format!("{ended}{why}")));
    }
    // An older `wsl` prints UTF-16.
    let text: Vec<u8> = printed.into_iter().filter(|byte| *byte != 0).collect();
    Ok((source.read)(&String::from_utf8_lossy(&text)))
}

/// What a program has said.
struct ProgramOutput {
    /// At most one byte more than [`PRINTED_MAX`].
    printed: Vec<u8>,
    stderr: String,
    status: ExitStatus,
}

/// Runs it to its end, or until it has printed too much.
async fn tell(command: &mut Command) -> Result<ProgramOutput, String> {
    let mut child = Leader::start(command)?;
    let (Some(out), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("it has no pipes".into());
    };
    let stderr = StderrTail::default();
    let mut complaining = tokio::spawn(stderr.clone().read(said));
    let mut printed = Vec::new();
    let unreadable = |error| format!("what it says cannot be read: {error}");
    out.take(PRINTED_MAX + 1).read_to_end(&mut printed).await.map_err(unreadable)?;
    let has_ended = printed.len() as u64 <= PRINTED_MAX;
    let status = if has_ended { child.wait().await.map_err(unreadable)? } else { ExitStatus::default() };
    // What it complained of last may still be on its way.
    let _ = timeout(LAST_WORDS_WITHIN, &mut complaining).await;
    complaining.abort();
    Ok(ProgramOutput { printed, stderr: stderr.text(), status })
}

fn names(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| line.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The running containers, each with the command that runs another one in it.
fn containers(program: &str, text: &str) -> Vec<Named> {
    let way = |name: &str| Way::Command([program, "exec", "-i", name].map(str::to_owned).to_vec());
    names(text).map(|name| (name.clone(), way(&name))).collect()
}

/// The distributions of WSL, but for those that Docker's desktop made for itself, and the one that this is.
fn distributions(text: &str) -> Vec<Named> {
    let own = std::env::var("WSL_DISTRO_NAME").ok();
    let is_other = |name: &String| !name.starts_with("docker-desktop") && Some(name) != own.as_ref();
    let way = |name: &str| Way::Command(["wsl.exe", "-d", name, "-e"].map(str::to_owned).to_vec());
    names(text).filter(is_other).map(|name| (name.clone(), way(&name))).collect()
}

#[cfg(test)]
mod tests;
