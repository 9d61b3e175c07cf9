//! The hosts that the user's ssh config names, with the files that it includes.

use pilotlight_system::plain_file::{self, Links, OpenError};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// How much of a file is read, in bytes.
const FILE_MAX: u64 = 1 << 20;
/// How many files are read, and how deep they include each other: as deep as OpenSSH goes.
const FILES_MAX: usize = 64;
const DEPTH_MAX: usize = 16;

/// What the ssh config names.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The names that stand for one host each, in order.
    pub(super) hosts: Vec<String>,
    /// What was not read: a line each, for the user.
    pub(super) missing: Vec<String>,
}

/// Reads `config` in this folder.
pub(super) fn hosts(folder: &Path) -> Known {
    let (hosts, missing) = (Vec::new(), Vec::new());
    let mut reading = ConfigReader { folder, files: 0, block: Vec::new(), hosts, dropped: BTreeSet::new(), missing };
    reading.file(&folder.join("config"), 0);
    let ConfigReader { hosts, dropped, missing, .. } = reading;
    let mut seen = BTreeSet::new();
    let hosts = hosts.into_iter().filter(|host| !dropped.contains(host) && seen.insert(host.clone())).collect();
    Known { hosts, missing }
}

struct ConfigReader<'a> {
    folder: &'a Path,
    files: usize,
    /// The hosts of the block that is being read.
    block: Vec<String>,
    hosts: Vec<String>,
    /// Those that serve Git alone.
    dropped: BTreeSet<String>,
    missing: Vec<String>,
}

impl ConfigReader<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        self.files += 1;
        if self.files > FILES_MAX {
            if self.files == FILES_MAX + 1 {
                self.missing
                    .push(format!("the ssh config includes more than {FILES_MAX} files: the others are not read"));
            }
            return;
        }
        let mut text = Vec::new();
        let read = plain_file::open(path, Links::Followed)
            .and_then(|(file, _)| file.take(FILE_MAX + 1).read_to_end(&mut text).map_err(Into::into));
        match read {
            Ok(read) if read as u64 > FILE_MAX => {
                text.truncate(usize::try_from(FILE_MAX).unwrap_or(usize::MAX));
                let most = FILE_MAX >> 20;
                self.missing.push(format!("{} is larger than {most} MiB: the rest is not read", path.display()));
            }
            Ok(_) => {}
            // As for OpenSSH.
            Err(OpenError::Io(error)) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => {
                return self
                    .missing
                    .push(format!("{} cannot be read, so its hosts are not listed: {error}", path.display()));
            }
        }
        for line in String::from_utf8_lossy(&text).lines() {
            let (keyword, arguments) = words(line);
            match &*keyword.to_ascii_lowercase() {
                "host" => {
                    // One that is excluded is a pattern, too.
                    let is_one = |name: &String| !name.contains(['*', '?', '!']);
                    self.block = arguments.into_iter().filter(is_one).collect();
                    self.hosts.extend(self.block.iter().cloned());
                }
                "match" => self.block.clear(),
                "user" if arguments.first().is_some_and(|user| user == "git") => {
                    self.dropped.extend(self.block.drain(..));
                }
                "include" => {
                    for pattern in arguments {
                        // What an included file says of hosts ends with it.
                        let block = self.block.clone();
                        self.matching(&pattern).iter().for_each(|path| self.file(path, depth + 1));
                        self.block = block;
                    }
                }
                _ => {}
            }
        }
    }

    /// The files that an `Include` means. Only a file's name may have wildcards, as nearly always.
    fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let path = match pattern.strip_prefix("~/").zip(self.folder.parent()) {
            Some((below, home)) => home.join(below),
            None => self.folder.join(pattern),
        };
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return Vec::new();
        };
        if !name.contains(['*', '?']) {
            return vec![path.clone()];
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(10 * FILES_MAX);
        let matches = |entry: &std::fs::DirEntry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|file| !file.starts_with('.') && is_match(name.as_bytes(), file.as_bytes()))
        };
        let mut found: Vec<_> = entries.filter(matches).map(|entry| entry.path()).collect();
        found.sort();
        found
    }
}

/// Whether a name matches a pattern with `*` and `?`. Takes at most the product of their lengths.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// The keyword of a line and its arguments, which may be in quotes. `Keyword=argument` is a form of it.
fn words(line: &str) -> (&str, Vec<String>) {
    let line = line.trim();
    let end = line.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    if keyword.starts_with('#') {
        return ("", Vec::new());
    }
    let rest = rest.trim_start();
    let (mut rest, mut words) = (rest.strip_prefix('=').unwrap_or(rest).trim_start(), Vec::new());
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    (keyword, words)
}
