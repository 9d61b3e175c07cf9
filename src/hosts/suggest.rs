//! Machines that could be added: those that the user's own programs know of. Each of these is asked only where it is
//! installed, all at once, for at most [`WITHIN`]; no machine is connected to.
//!
//! What they print is hostile: bounded in size, and a candidate counts only if its words need no quotes in a shell.

mod ssh_config;

use super::command::{Leader, Way};
use crate::config::Host;
use crate::config::edit::wrong_host;
use crate::system::paths;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take to say what it knows.
const WITHIN: Duration = Duration::from_secs(2);
/// How much of that is read, in bytes.
const PRINTED_MAX: u64 = 1 << 20;
/// How many candidates one source may have.
const EACH: usize = 100;
/// Maximum length of a word of a command, in bytes: that of the name of a machine.
const WORD_MAX: usize = 255;
/// Maximum length of a name that is suggested: that of a host.
const NAME_MAX: usize = 24;

/// A machine that could be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) way: Way,
    /// Who knows of it.
    pub(crate) source: &'static str,
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
    pub(crate) fn command(&self) -> String {
        match &self.way {
            Way::Ssh(to) if *to == self.name => format!("pilotlight host add {}", self.name),
            Way::Ssh(to) => format!("pilotlight host add {} --ssh {to}", self.name),
            Way::Command(words) => format!("pilotlight host add {} -- {}", self.name, words.join(" ")),
        }
    }
}

/// A program that knows of machines.
struct Source {
    name: &'static str,
    words: &'static [&'static str],
    read: fn(&str) -> Vec<(String, Way)>,
}

const SOURCES: [Source; 6] = [
    Source { name: "tailscale", words: &["tailscale", "status", "--json"], read: tailnet },
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
    Source { name: "gh", words: &["gh", "codespace", "list", "--json", "name,state"], read: codespaces },
    // `lxc` of LXD; Incus calls its own `incus`.
    Source {
        name: "incus",
        words: &["incus", "list", "--format", "csv", "--columns", "n", "status=running"],
        read: incus,
    },
];

/// The candidates of all sources, without those that the settings have already. `more` are known otherwise.
pub(crate) async fn candidates(hosts: &[Host], more: Vec<Candidate>) -> Vec<Candidate> {
    let asked: Vec<_> = SOURCES.iter().map(|source| tokio::spawn(ask(source))).collect();
    let mut found = more;
    if let Some(folder) = paths::user_home().map(|home| home.join(".ssh")) {
        let named = ssh_config::hosts(&folder).into_iter().map(|host| (host.clone(), Way::Ssh(host)));
        found.extend(of("ssh config", named.collect()));
    }
    for (source, asked) in SOURCES.iter().zip(asked) {
        found.extend(of(source.name, asked.await.unwrap_or_default()));
    }
    let (mut names, mut kept) = (BTreeSet::new(), Vec::<Candidate>::new());
    for mut candidate in found {
        let is_known = hosts.iter().any(|host| candidate.way.is_of(host) || host.name == candidate.name);
        if is_known || kept.iter().any(|one| one.way == candidate.way) {
            continue;
        }
        if names.contains(&candidate.name) {
            candidate.name = format!(
                "{}-{}",
                candidate.name.chars().take(12).collect::<String>(),
                candidate.source.replace(' ', "-")
            );
        }
        if names.insert(candidate.name.clone()) {
            kept.push(candidate);
        }
    }
    kept
}

fn of(source: &'static str, named: Vec<(String, Way)>) -> impl Iterator<Item = Candidate> {
    named.into_iter().filter_map(move |(name, way)| Candidate::new(&name, way, source)).take(EACH)
}

/// Asks a program. None where it is not installed, fails, or takes too long.
async fn ask(source: &'static Source) -> Vec<(String, Way)> {
    let path = std::env::var_os("PATH");
    let (name, arguments) = (Path::new(source.words[0]), &source.words[1..]);
    let Some(program) = paths::program(name, path.as_deref()) else { return Vec::new() };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Has `wsl` print UTF-8.
    command.env("WSL_UTF8", "1");
    let printed = async {
        let mut child = Leader::start(&mut command).ok()?;
        let mut printed = Vec::new();
        child.stdout.take()?.take(PRINTED_MAX).read_to_end(&mut printed).await.ok()?;
        child.wait().await.ok()?.success().then_some(printed)
    };
    let printed = timeout(WITHIN, printed).await.ok().flatten().unwrap_or_default();
    // An older `wsl` prints UTF-16.
    let text: Vec<u8> = printed.into_iter().filter(|byte| *byte != 0).collect();
    (source.read)(&String::from_utf8_lossy(&text))
}

fn names(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| line.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The words before a command, then the name, then these.
fn before(words: &[&str], name: &str, after: &[&str]) -> Way {
    let words = words.iter().chain([&name]).chain(after);
    Way::Command(words.map(|word| (*word).to_owned()).collect())
}

fn containers(program: &str, text: &str) -> Vec<(String, Way)> {
    names(text).map(|name| (name.clone(), before(&[program, "exec", "-i"], &name, &[]))).collect()
}

fn incus(text: &str) -> Vec<(String, Way)> {
    names(text).map(|name| (name.clone(), before(&["incus", "exec"], &name, &["--"]))).collect()
}

/// The distributions of WSL, but for those that Docker's desktop made for itself, and the one that this is.
fn distributions(text: &str) -> Vec<(String, Way)> {
    let own = std::env::var("WSL_DISTRO_NAME").ok();
    let is_other = |name: &String| !name.starts_with("docker-desktop") && Some(name) != own.as_ref();
    let way = |name: &str| before(&["wsl.exe", "-d"], name, &["-e"]);
    names(text).filter(is_other).map(|name| (name.clone(), way(&name))).collect()
}

/// The codespaces that run: to reach another one would start it.
fn codespaces(text: &str) -> Vec<(String, Way)> {
    #[derive(Deserialize)]
    struct Codespace {
        name: String,
        state: String,
    }
    let listed: Vec<Codespace> = serde_json::from_str(text).unwrap_or_default();
    let running = listed.into_iter().filter(|one| one.state == "Available");
    let way = |name: &str| before(&["gh", "codespace", "ssh", "-c"], name, &["--"]);
    running.map(|one| (one.name.clone(), way(&one.name))).collect()
}

/// The machines of a tailnet that are online and have a shell.
fn tailnet(text: &str) -> Vec<(String, Way)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Peer {
        #[serde(rename = "DNSName")]
        address: String,
        #[serde(rename = "OS")]
        system: String,
        #[serde(default)]
        online: bool,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Tailnet {
        peer: Option<BTreeMap<String, serde_json::Value>>,
    }
    let Ok(Tailnet { peer: Some(peers) }) = serde_json::from_str(text) else { return Vec::new() };
    let peers = peers.into_values().filter_map(|peer| serde_json::from_value::<Peer>(peer).ok());
    let reached = peers.filter(|peer| peer.online && ["linux", "macOS", "freebsd"].contains(&&*peer.system));
    let named = reached.filter_map(|peer| {
        let address = peer.address.trim_end_matches('.');
        Some((address.split('.').next()?.to_owned(), Way::Ssh(address.to_owned())))
    });
    named.collect()
}

#[cfg(test)]
mod tests;
