//! What can be put right without touching anything that is not ours: each only when the user has said so, and nothing is
//! thrown away that was written by a person.

use crate::config;
use anyhow::{Context, bail};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// So often a config is read again while its wrong lines are taken out: each may uncover the next.
const ROUNDS: usize = 200;

/// Something that can be put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Lines of the config that are wrong become comments.
    ConfigLines(PathBuf),
    /// A broken file of ours is moved aside.
    Aside(PathBuf),
    /// A control socket that a dead tray left behind is removed.
    Socket(PathBuf),
}

impl Fix {
    /// What the user is asked.
    pub fn question(&self) -> String {
        match self {
            Self::ConfigLines(path) => {
                format!("Turn the wrong lines of {} into comments, and keep a copy of it as it is?", path.display())
            }
            Self::Aside(path) => format!("Move {} aside?", path.display()),
            Self::Socket(path) => format!("Remove {}, on which nobody listens?", path.display()),
        }
    }

    /// Puts it right. Returns what was done, for the user.
    ///
    /// # Errors
    /// Where it cannot be done; everything is as it was then.
    pub fn apply(&self) -> anyhow::Result<String> {
        match self {
            Self::ConfigLines(path) => comment_out(path),
            Self::Aside(path) => {
                let aside = free_name(path, "broken")?;
                fs::rename(path, &aside).with_context(|| format!("{} cannot be moved", path.display()))?;
                Ok(format!("moved to {}", aside.display()))
            }
            Self::Socket(path) => remove_socket(path),
        }
    }
}

/// A name beside `path` that is not taken: `config.toml.before-fix`, `config.toml.before-fix-2`.
fn free_name(path: &Path, suffix: &str) -> anyhow::Result<PathBuf> {
    let name = path.file_name().context("it has no name")?.to_string_lossy().into_owned();
    let candidates = (1..1000).map(|n| match n {
        1 => format!("{name}.{suffix}"),
        n => format!("{name}.{suffix}-{n}"),
    });
    let mut free = candidates.map(|name| path.with_file_name(name)).filter(|path| fs::symlink_metadata(path).is_err());
    free.next().with_context(|| format!("there are too many copies of {} already", path.display()))
}

#[cfg(unix)]
fn remove_socket(path: &Path) -> anyhow::Result<String> {
    use std::os::unix::fs::FileTypeExt;
    // It may be another one's by now: a tray that has just started listens there.
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    let refused = std::os::unix::net::UnixStream::connect(path).err().map(|error| error.kind());
    if !is_socket || refused != Some(ErrorKind::ConnectionRefused) {
        bail!("{} is not what it was a moment ago: nothing was done", path.display());
    }
    fs::remove_file(path).with_context(|| format!("{} cannot be removed", path.display()))?;
    Ok("removed".into())
}

#[cfg(not(unix))]
fn remove_socket(path: &Path) -> anyhow::Result<String> {
    let _ = ErrorKind::NotFound;
    bail!("there are no such sockets here: {}", path.display())
}

fn comment_out(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("{shown} cannot be read"))?;
    let Some((repaired, lines)) = commented(&text, path) else {
        bail!("what is wrong with {shown} is not a matter of single lines: `pilotlight config --edit` opens it");
    };
    let copy = free_name(path, "before-fix")?;
    fs::copy(path, &copy).with_context(|| format!("no copy of {shown} can be kept, so nothing was changed"))?;
    // A link to a file elsewhere stays a link.
    let real = path.canonicalize().with_context(|| format!("{shown} is gone"))?;
    crate::kept::replace(&real, repaired.as_bytes()).with_context(|| format!("{shown} cannot be written"))?;
    let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
    Ok(format!("line {} is a comment now; as it was: {}", lines.join(", "), copy.display()))
}

/// The text with all that is wrong turned into comments, and which lines these are, from 1. `None` where that does not help.
fn commented(text: &str, path: &Path) -> Option<(String, Vec<usize>)> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut done = Vec::new();
    for _ in 0..ROUNDS {
        let joined = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let (_, problems) = config::parse(&joined, path);
        if problems.is_empty() {
            done.sort_unstable();
            return (!done.is_empty()).then_some((joined, done));
        }
        let at = problems.iter().find_map(|problem| problem.at)?.line - 1;
        let line = lines.get(at)?;
        if line.trim_start().starts_with('#') || line.trim().is_empty() {
            return None; // nothing there can be taken out
        }
        // What stands in a table whose head is wrong would belong to the table before it.
        let is_head = line.trim_start().starts_with('[');
        let to = match is_head {
            true => lines.iter().skip(at + 1).position(|line| line.trim_start().starts_with('[')).map(|n| at + 1 + n),
            false => Some(at + 1),
        };
        let end = to.unwrap_or(lines.len());
        for (number, line) in lines.iter_mut().enumerate().take(end).skip(at) {
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                *line = format!("# {line}");
                done.push(number + 1);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> Option<(String, Vec<usize>)> {
        commented(text, Path::new("config.toml"))
    }

    #[test]
    fn wrong_lines_become_comments_and_the_others_stay() {
        let (text, lines) =
            fixed("[limits]\nfresh-qiet = \"1s\"\nfresh-stuck = \"90s\"\n[list]\nended-most = -1\n").unwrap();
        assert_eq!(text, "[limits]\n# fresh-qiet = \"1s\"\nfresh-stuck = \"90s\"\n[list]\n# ended-most = -1\n");
        assert_eq!(lines, [2, 5]);
        assert_eq!(fixed("a = = 1\n[limits]\n").unwrap().1, [1]);
        assert_eq!(fixed("[limits]\n"), None, "nothing is wrong");
    }

    #[test]
    fn what_is_in_a_wrong_table_goes_with_it() {
        let (text, lines) = fixed("[limits]\n[limts]\nfresh-stuck = \"90s\"\n\n[list]\nended-most = 3\n").unwrap();
        assert_eq!((text.contains("# fresh-stuck"), lines), (true, vec![2, 3]));
        assert!(text.ends_with("[list]\nended-most = 3\n"));
    }

    #[test]
    fn a_copy_is_kept_each_time() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("config.toml");
        for n in ["", "-2"] {
            fs::write(&path, "bogus = 1\n").unwrap();
            Fix::ConfigLines(path.clone()).apply().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "# bogus = 1\n");
            let copy = scratch.path().join(format!("config.toml.before-fix{n}"));
            assert_eq!(fs::read_to_string(copy).unwrap(), "bogus = 1\n");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_on_which_somebody_listens_is_not_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(Fix::Socket(path.clone()).apply().is_err() && path.exists());
        drop(listener);
        assert!(Fix::Socket(path.clone()).apply().is_ok() && !path.exists());
        fs::write(&path, "").unwrap();
        assert!(Fix::Socket(path.clone()).apply().is_err() && path.exists(), "nor what is none");
    }
}
