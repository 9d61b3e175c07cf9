//! What can be put right without touching anything that is not ours: each only when the user has said so, and nothing is
//! thrown away that was written by a person.

use super::own::Ours;
use crate::agent::copilot::bridge::files::Files;
use crate::config::{self, Config, Position};
use crate::core::text::plain;
use crate::system::state_file;
use anyhow::{Context, bail};
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// So often a config is read again while its wrong lines are taken out: each may uncover the next.
const ROUNDS: usize = 200;
/// What turns a line into a comment.
const COMMENT: &str = "# ";
/// A question shows so many lines of a config, the rest is counted; each is cut after so many characters.
const SHOWN: usize = 8;
const SHOWN_OF_EACH: usize = 60;

/// Something that can be put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    /// Lines of the config that are wrong become comments.
    ConfigLines(PathBuf),
    /// A broken file of ours is moved aside.
    Aside(PathBuf, Ours),
    /// A control socket that a dead tray left behind is removed.
    Socket(PathBuf),
    /// What lies on our disk of the bridge to terminals becomes this program's.
    Bridge(Files),
}

impl Fix {
    /// What the user is asked.
    pub(crate) fn question(&self) -> String {
        match self {
            Self::ConfigLines(path) => {
                let lines = repaired(path).map_or("the wrong lines".to_owned(), |(text, lines)| listed(&text, &lines));
                format!("Turn {lines} of {} into comments, and keep a copy of it as it is?", path.display())
            }
            Self::Aside(path, _) => format!("Move {} aside?", path.display()),
            Self::Socket(path) => format!("Remove {}, on which nobody listens?", path.display()),
            Self::Bridge(files) => format!("Write the bridge of this program into {}?", files.marketplace.display()),
        }
    }

    /// Puts it right. Returns what was done, for the user.
    ///
    /// # Errors
    /// Where it cannot be done; everything is as it was then.
    pub(crate) fn apply(&self) -> anyhow::Result<String> {
        match self {
            Self::ConfigLines(path) => comment_out(path),
            Self::Aside(path, ours) => {
                // Somebody else may have mended it since.
                if !ours.is_broken(path) {
                    bail!("nothing is wrong with {} any more: nothing was done", path.display());
                }
                let aside = free_name(path, "broken")?;
                fs::rename(path, &aside).with_context(|| format!("{} cannot be moved", path.display()))?;
                Ok(format!("moved to {}", aside.display()))
            }
            Self::Socket(path) => remove_socket(path),
            Self::Bridge(files) => {
                files.write()?;
                Ok("the bridge is this program's: sessions that are started from now on have it".into())
            }
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
        bail!("the trouble with {shown} is not in single lines: `pilotlight config --edit` opens it");
    };
    let copy = free_name(path, "before-fix")?;
    fs::copy(path, &copy).with_context(|| format!("no copy of {shown} can be kept, so nothing was changed"))?;
    // A link to a file elsewhere stays a link.
    let real = path.canonicalize().with_context(|| format!("{shown} is gone"))?;
    state_file::replace(&real, repaired.as_bytes()).with_context(|| format!("{shown} cannot be written"))?;
    let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
    Ok(format!("line {} is a comment now; as it was: {}", lines.join(", "), copy.display()))
}

/// Whether what is wrong with a config can be turned into comments.
pub(super) fn can_comment_out(path: &Path) -> bool {
    repaired(path).is_some()
}

fn repaired(path: &Path) -> Option<(String, Vec<usize>)> {
    commented(&fs::read_to_string(path).ok()?, path)
}

/// The lines of a repaired text that are comments now, each as it was.
fn listed(text: &str, lines: &[usize]) -> String {
    let line = |number: &usize| {
        let line = text.lines().nth(number - 1).unwrap_or_default();
        format!("line {number} `{}`", plain(line.strip_prefix(COMMENT).unwrap_or(line), SHOWN_OF_EACH))
    };
    let mut listed: Vec<_> = lines.iter().take(SHOWN).map(line).collect();
    if let more @ 1.. = lines.len().saturating_sub(SHOWN) {
        listed.push(format!("{more} more"));
    }
    listed.join(", ")
}

/// The text with all that is wrong turned into comments, and which lines these are, from 1. `None` where that does not help,
/// or where something that is right would go with it.
fn commented(text: &str, path: &Path) -> Option<(String, Vec<usize>)> {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let (mut done, mut torn) = (Vec::new(), false);
    for _ in 0..ROUNDS {
        let joined = lines.concat();
        let (held, problems) = config::parse(&joined, path);
        if problems.is_empty() {
            done.sort_unstable();
            return (!done.is_empty()).then(|| (format!("{mark}{joined}"), done));
        }
        let at = problems.iter().find_map(|problem| problem.at)?;
        let document = DeTable::parse(&joined).ok();
        let wrong = match &document {
            Some(document) => wrong_entry(&lines, document.get_ref(), at, torn)?,
            None => {
                torn |= !is_toml(lines.get(at.line - 1)?);
                wrong_line(&lines, at.line - 1, torn)?
            }
        };
        let before = done.len();
        for number in wrong.filter(|&number| is_live(&lines[number])).collect::<Vec<_>>() {
            lines[number].insert_str(0, COMMENT);
            done.push(number + 1);
        }
        let lost = document.is_some() && !keeps(&held, &lines.concat(), path);
        if lost || done.len() == before {
            return None;
        }
    }
    None
}

/// The lines, from 0, of the entry of a document in which something is wrong: a key with the whole of its value, or the head
/// of a table with all that stands in it, which would belong to the table before it otherwise.
///
/// What stands below a line that was `torn` out may have been the rest of a value: what looks like a table there may be none.
fn wrong_entry(lines: &[String], document: &DeTable<'_>, at: Position, torn: bool) -> Option<Range<usize>> {
    let mut spans = Vec::new();
    gather(document, &lines.concat(), &mut spans);
    let ends: Vec<usize> = lines
        .iter()
        .scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        })
        .collect();
    let line_of = |offset: usize| ends.partition_point(|end| *end <= offset);
    let values: Vec<_> =
        spans.iter().map(|span| line_of(span.start)..line_of(span.end.saturating_sub(1)) + 1).collect();
    let line = at.line - 1;
    if let Some(value) = values.iter().find(|value| value.contains(&line)) {
        return Some(value.clone());
    }
    let is_head = |number: &usize| {
        lines[*number].trim_start().starts_with('[') && !values.iter().any(|value| value.contains(number))
    };
    if line >= lines.len() || !is_head(&line) {
        return None;
    }
    let end = (line + 1..lines.len()).find(is_head).unwrap_or(lines.len());
    let alone = !lines[line + 1..end].iter().any(|line| is_live(line));
    (alone || !torn).then_some(line..end)
}

/// The bytes of each key with its value, but for tables that have a head or are named in the keys alone.
fn gather(table: &DeTable<'_>, text: &str, spans: &mut Vec<Range<usize>>) {
    // In a value a table is in braces.
    let stands_apart = |value: &Spanned<DeValue<'_>>| {
        value.get_ref().is_table() && text.get(value.span()).is_some_and(|text| !text.starts_with('{'))
    };
    for (key, value) in table {
        match value.get_ref() {
            DeValue::Table(table) if stands_apart(value) => gather(table, text, spans),
            DeValue::Array(items) if items.first().is_some_and(stands_apart) => {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.for_each(|table| gather(table, text, spans));
            }
            _ => spans.push(key.span().start..value.span().end),
        }
    }
}

/// The line, from 0, at which a text stops being TOML, where it can be taken out: what stands before it is whole, and so it is
/// no part of a longer value that only ends there.
fn wrong_line(lines: &[String], at: usize, torn: bool) -> Option<Range<usize>> {
    let line = lines.get(at)?;
    let is_head = line.trim_start().starts_with('[');
    // A key that is there twice is right by itself. After another line went it may have been right altogether.
    let is_right = is_toml(line) && (torn || is_head);
    let is_text = line.contains("\"\"\"") || line.contains("'''");
    // Nobody knows where what stands below a broken head belongs.
    let below = lines[at + 1..].iter().take_while(|line| !line.trim_start().starts_with('['));
    let is_of_table = is_head && below.clone().any(|line| is_live(line) && is_toml(line));
    (is_toml(&lines[..at].concat()) && !is_right && !is_text && !is_of_table).then_some(at..at + 1)
}

fn is_toml(text: &str) -> bool {
    DeTable::parse(text).is_ok()
}

fn is_live(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// Whether all that `held` and is not the default holds in this text too.
fn keeps(held: &Config, text: &str, path: &Path) -> bool {
    let (now, _) = config::parse(text, path);
    let settings = |config: &Config| config::print(&Config { servers: Vec::new(), ..config.clone() });
    let (held_text, now_text, default) = (settings(held), settings(&now), settings(&Config::default()));
    let all = held_text.lines().zip(now_text.lines()).zip(default.lines());
    is_toml(text)
        && all.into_iter().all(|((held, now), default)| held == now || held == default)
        && held.servers.iter().all(|server| now.servers.contains(server))
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
    fn a_value_of_several_lines_goes_as_a_whole_and_nothing_else_does() {
        let homes = "homes = [\"/a\",\n 5]\n[limits]\nfresh-stuck = \"90s\"\n";
        assert_eq!(fixed(homes).unwrap().0, homes.replace("homes", "# homes").replace(" 5", "#  5"));
        let names = "[owners]\nnames = [\n  [\"a\"],\n\n  \"b\"\n]\n[actions]\nauto-reconnect = true\n";
        let (text, lines) = fixed(names).unwrap();
        assert_eq!(lines, [2, 3, 5, 6]);
        assert!(text.ends_with("#   \"b\"\n# ]\n[actions]\nauto-reconnect = true\n"), "{text}");
        let torn = "[owners]\nnames = [ =\n  \"b\"\n]\n[actions]\nauto-reconnect = true\n";
        assert_eq!(fixed(torn).unwrap().1, [2, 3, 4]);
        let wrong_table = "[limts]\nx = [\n[1],\n[2]]\n[list]\nended-most = 3\n";
        assert_eq!(fixed(wrong_table).unwrap().1, [1, 2, 3, 4]);
        assert_eq!(fixed("[[server]]\naddress = \"127.0.0.1:9\"\n[[server]]\ntoken-env = \"X\"\n").unwrap().1, [3, 4]);
        assert_eq!(fixed("[limits]\nfresh-stuck = \"90s\"\nfresh-stuck = \"80s\"\n").unwrap().1, [3], "twice");
    }

    #[test]
    fn where_something_good_would_go_too_nothing_does() {
        for text in [
            "limits = { fresh-qiet = \"1s\", fresh-stuck = \"90s\" }\n",
            "homes = [\"/a\",\n[limits]\nfresh-stuck = \"90s\"\n",
            "homes = [\"/a\"\n[limits]\nfresh-stuck = \"90s\"\n",
            "[limits\nfresh-stuck = \"90s\"\n",
            "[limits]\nfresh-stuck = \"90s\"\n[limits]\nquiet = \"9s\"\n",
            "bogus = \"\"\"\n[actions]\nauto-reconnect = true\n",
            "[owners]\nnames = [ =\n[\"limits\"]\n]\n[limits]\nfresh-stuck = \"90s\"\n",
            "[owners]\nnames = [ =\n[\"a\"]\n]\nnames = [\"b\"]\n",
        ] {
            assert_eq!(fixed(text), None, "{text}");
        }
    }

    #[test]
    fn line_ends_and_the_mark_at_the_start_stay() {
        let (text, _) = fixed("\u{feff}bogus = [\r\n1]\r\n[limits]\r\n# a\r\n").unwrap();
        assert_eq!(text, "\u{feff}# bogus = [\r\n# 1]\r\n[limits]\r\n# a\r\n");
        assert_eq!(fixed("bogus = 1").unwrap().0, "# bogus = 1");
    }

    #[test]
    fn the_question_shows_the_lines() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("config.toml");
        fs::write(&path, "bogus = [\n1]\n").unwrap();
        let question = Fix::ConfigLines(path.clone()).question();
        assert!(question.starts_with("Turn line 1 `bogus = [`, line 2 `1]` of /"), "{question}");
        fs::write(&path, "bogus = 1\n".to_owned() + &(0..9).map(|n| format!("b{n} = 1\n")).collect::<String>())
            .unwrap();
        assert!(Fix::ConfigLines(path).question().contains(", 2 more of /"));
    }

    #[test]
    fn what_was_mended_meanwhile_is_not_moved() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("seen.json");
        fs::write(&path, "{").unwrap();
        let fix = Fix::Aside(path.clone(), Ours::Seen);
        fs::write(&path, "{}").unwrap();
        assert!(fix.apply().is_err() && path.exists());
        fs::write(&path, "{").unwrap();
        assert!(fix.apply().is_ok() && !path.exists());
    }

    #[test]
    fn a_copy_is_kept_each_time() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("config.toml");
        for n in ["", "-2"] {
            fs::write(&path, "bogus = 1\n").unwrap();
            #[cfg(unix)]
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            Fix::ConfigLines(path.clone()).apply().unwrap();
            #[cfg(unix)]
            assert_eq!(
                std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777,
                0o600
            );
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
