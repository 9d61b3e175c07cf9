//! Repairs of our own files. Each needs the user's consent, and nothing that a person wrote is lost.

use super::ours::Ours;
use anyhow::{Context, anyhow, bail};
use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::bridge::Installer;
use pilotlight_core::text::plain;
use pilotlight_engine::config::{self, Config};
use pilotlight_system::paths;
use pilotlight_system::plain_file;
use pilotlight_system::state_file;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// How often a config is read while its wrong lines are commented out: each may uncover the next.
const ROUNDS: usize = 200;
const COMMENT: &str = "# ";
/// How many lines of a config a question shows, and how many characters of each.
const SHOWN: usize = 8;
const SHOWN_OF_EACH: usize = 60;

/// A repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    /// Turns the wrong lines of the config into comments.
    ConfigLines(PathBuf),
    /// Moves a broken file of ours aside.
    Aside(PathBuf, Ours),
    /// Removes the control socket of a dead tray.
    Socket(PathBuf),
    /// Writes this program's files of the bridge of this agent.
    Bridge(&'static dyn Adapter),
}

impl Fix {
    /// The question to the user.
    pub(crate) fn question(&self) -> String {
        match self {
            Self::ConfigLines(path) => {
                let lines = repaired(path).map_or("the wrong lines".to_owned(), |(text, lines)| listed(&text, &lines));
                format!("Turn {lines} of {} into comments, and keep a copy of it as it is?", path.display())
            }
            Self::Aside(path, _) => format!("Move {} aside?", path.display()),
            Self::Socket(path) => format!("Remove {}, where nothing listens?", path.display()),
            Self::Bridge(agent) => {
                let folder = installer(*agent).map(|installer| installer.folder().display().to_string());
                format!("Write the bridge of this program into {}?", folder.as_deref().unwrap_or("its folder"))
            }
        }
    }

    /// Repairs it. Returns what was done, for the user.
    ///
    /// # Errors
    /// If it cannot be repaired; nothing has changed then.
    pub(crate) fn apply(&self) -> anyhow::Result<String> {
        match self {
            Self::ConfigLines(path) => comment_out(path),
            Self::Aside(path, ours) => {
                // It may have been repaired since it was checked.
                if !ours.is_broken(path) {
                    bail!("nothing is wrong with {} any more: nothing was done", path.display());
                }
                let aside = free_name(path, "broken")?;
                fs::rename(path, &aside).with_context(|| format!("{} cannot be moved", path.display()))?;
                Ok(format!("moved to {}", aside.display()))
            }
            Self::Socket(path) => remove_socket(path),
            Self::Bridge(agent) => {
                installer(*agent).context("there is no folder to put the bridge into: set HOME")?.write()?;
                Ok("the bridge is this program's: sessions that are started from now on have it".into())
            }
        }
    }
}

fn installer(agent: &'static dyn Adapter) -> Option<Box<dyn Installer>> {
    agent.installer(&paths::project()?)
}

/// A free name next to `path`: `config.toml.before-fix`, `config.toml.before-fix-2`.
fn free_name(path: &Path, suffix: &str) -> anyhow::Result<PathBuf> {
    let name = path.file_name().context("it has no name")?.to_string_lossy().into_owned();
    let candidates = (1..1000).map(|n| match n {
        1 => format!("{name}.{suffix}"),
        n => format!("{name}.{suffix}-{n}"),
    });
    let mut paths = candidates.map(|name| path.with_file_name(name));
    paths
        .find(|path| fs::symlink_metadata(path).is_err())
        .with_context(|| format!("there are too many copies of {} already", path.display()))
}

#[cfg(unix)]
fn remove_socket(path: &Path) -> anyhow::Result<String> {
    use std::os::unix::fs::FileTypeExt;
    // A tray that has just started may listen there now.
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    let error = std::os::unix::net::UnixStream::connect(path).err().map(|error| error.kind());
    if !is_socket || error != Some(std::io::ErrorKind::ConnectionRefused) {
        bail!("{} is not what it was a moment ago: nothing was done", path.display());
    }
    fs::remove_file(path).with_context(|| format!("{} cannot be removed", path.display()))?;
    Ok("removed".into())
}

#[cfg(not(unix))]
fn remove_socket(path: &Path) -> anyhow::Result<String> {
    bail!("there are no such sockets here: {}", path.display())
}

fn comment_out(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    // The target of a link is replaced, not the link.
    let real = path.canonicalize().with_context(|| format!("{shown} cannot be read"))?;
    let text = config::read(path).map_err(|why| anyhow!("{shown} {why}"))?;
    let Some((repaired, lines)) = commented(&text, path) else {
        bail!("the trouble with {shown} is not in single lines: `pilotlight config --edit` opens it");
    };
    let copy = free_name(path, "before-fix")?;
    keep_copy(&text, path, &copy).with_context(|| format!("no copy of {shown} can be kept, so nothing was changed"))?;
    state_file::replace(&real, repaired.as_bytes()).with_context(|| format!("{shown} cannot be written"))?;
    let lines: Vec<_> = lines.iter().map(usize::to_string).collect();
    Ok(format!("line {} is a comment now; as it was: {}", lines.join(", "), copy.display()))
}

/// Copies a text into a new file, with the permissions of the file that it is from.
fn keep_copy(text: &str, from: &Path, copy: &Path) -> std::io::Result<()> {
    let mut file = plain_file::create(copy)?;
    file.set_permissions(fs::metadata(from)?.permissions())?;
    file.write_all(text.as_bytes())
}

/// Whether everything that is wrong with a config can be commented out.
pub(super) fn can_comment_out(path: &Path) -> bool {
    repaired(path).is_some()
}

fn repaired(path: &Path) -> Option<(String, Vec<usize>)> {
    commented(&config::read(path).ok()?, path)
}

/// The lines that a repaired text turned into comments, each as it was.
fn listed(text: &str, lines: &[usize]) -> String {
    let line = |number: &usize| {
        let line = text.lines().nth(number - 1).unwrap_or_default();
        format!("line {number} `{}`", plain(line.strip_prefix(COMMENT).unwrap_or(line), SHOWN_OF_EACH))
    };
    let mut listed: Vec<_> = lines.iter().take(SHOWN).map(line).collect();
    if lines.len() > SHOWN {
        listed.push(format!("{} more", lines.len() - SHOWN));
    }
    listed.join(", ")
}

/// The text with everything that is wrong turned into comments, and the numbers of those lines. `None` if that does not
/// help, or if something right would be lost.
fn commented(text: &str, path: &Path) -> Option<(String, Vec<usize>)> {
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let mut lines: Vec<String> = text[mark.len()..].split_inclusive('\n').map(str::to_owned).collect();
    let mut done = Vec::new();
    for _ in 0..ROUNDS {
        let joined = lines.concat();
        let (config, problems) = config::parse(&joined, path);
        if problems.is_empty() {
            done.sort_unstable();
            return (!done.is_empty()).then(|| (format!("{mark}{joined}"), done));
        }
        let line = problems.iter().find_map(|problem| problem.at)?.line - 1;
        let document = DeTable::parse(&joined).ok();
        let wrong = match &document {
            Some(document) => wrong_entry(&joined, document.get_ref(), line)?,
            None => wrong_line(&lines, line)?,
        };
        let before = done.len();
        for number in wrong.filter(|&number| is_entry(&lines[number])).collect::<Vec<_>>() {
            lines[number].insert_str(0, COMMENT);
            done.push(number + 1);
        }
        let is_lossy = document.is_some() && !keeps(&config, &lines.concat(), path);
        if is_lossy || done.len() == before {
            return None;
        }
    }
    None
}

/// The lines, from 0, of the entry that a wrong line belongs to: a key with its whole value, or the head of a table
/// with its content, which would otherwise fall to the table before it.
fn wrong_entry(text: &str, document: &DeTable<'_>, wrong: usize) -> Option<Range<usize>> {
    let mut spans = Vec::new();
    gather(document, text, &mut spans);
    let ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end).collect();
    let line_of = |offset: usize| ends.partition_point(|end| *end < offset);
    let values: Vec<_> = spans.iter().map(|span| line_of(span.start)..line_of(span.end - 1) + 1).collect();
    if let Some(value) = values.iter().find(|value| value.contains(&wrong)) {
        return Some(value.clone());
    }
    let in_value = |number| values.iter().any(|value| value.contains(&number));
    let heads = text.lines().enumerate().filter(|&(number, line)| is_head(line) && !in_value(number));
    let mut heads = heads.map(|(number, _)| number).skip_while(|number| *number < wrong);
    let head = heads.next().filter(|head| *head == wrong)?;
    Some(head..heads.next().unwrap_or(text.lines().count()))
}

/// The bytes of each key with its value, except for tables that have a head or exist only as parts of keys.
fn gather(table: &DeTable<'_>, text: &str, spans: &mut Vec<Range<usize>>) {
    // A table that is a value is in braces.
    let is_apart = |value: &Spanned<DeValue<'_>>| {
        value.get_ref().is_table() && text.get(value.span()).is_some_and(|text| !text.starts_with('{'))
    };
    for (key, value) in table {
        match value.get_ref() {
            DeValue::Table(table) if is_apart(value) => gather(table, text, spans),
            DeValue::Array(items) if items.first().is_some_and(is_apart) => {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.for_each(|table| gather(table, text, spans));
            }
            _ => spans.push(key.span().start..value.span().end),
        }
    }
}

/// The line, from 0, at which a text stops being TOML, if it can be commented out alone: no value continues on it or
/// below it, and it is not the head of entries, which would fall to the table before it.
fn wrong_line(lines: &[String], at: usize) -> Option<Range<usize>> {
    let line = lines.get(at)?;
    let count = |mark: char| line.matches(mark).count();
    let is_open =
        count('[') != count(']') || count('{') != count('}') || line.contains("\"\"\"") || line.contains("'''");
    let mut below = lines[at + 1..].iter().take_while(|line| !is_head(line));
    let has_entries = is_head(line) && below.any(|line| is_entry(line));
    (is_toml(&lines[..at].concat()) && !is_open && !has_entries).then_some(at..at + 1)
}

fn is_head(line: &str) -> bool {
    line.trim_start().starts_with('[')
}

fn is_toml(text: &str) -> bool {
    DeTable::parse(text).is_ok()
}

fn is_entry(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// Whether every setting of `before` that is not the default holds in this text too.
fn keeps(before: &Config, text: &str, path: &Path) -> bool {
    let (now, _) = config::parse(text, path);
    let settings = config::changed(&now);
    is_toml(text)
        && config::changed(before).iter().all(|setting| settings.contains(setting))
        && before.servers.iter().all(|server| now.servers.contains(server))
        && before.on_change.iter().all(|command| now.on_change.contains(command))
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
    fn the_content_of_a_wrong_table_is_commented_out_with_it() {
        let (text, lines) = fixed("[limits]\n[limts]\nfresh-stuck = \"90s\"\n\n[list]\nended-most = 3\n").unwrap();
        assert_eq!((text.contains("# fresh-stuck"), lines), (true, vec![2, 3]));
        assert!(text.ends_with("[list]\nended-most = 3\n"));
    }

    #[test]
    fn a_value_of_several_lines_is_commented_out_as_a_whole() {
        let homes = "homes = [\"/a\",\n 5]\n[limits]\nfresh-stuck = \"90s\"\n";
        assert_eq!(fixed(homes).unwrap().0, homes.replace("homes", "# homes").replace(" 5", "#  5"));
        let names = "[owners]\nnames = [\n  [\"a\"],\n\n  \"b\"\n]\n[actions]\nauto-reconnect = true\n";
        let (text, lines) = fixed(names).unwrap();
        assert_eq!(lines, [2, 3, 5, 6]);
        assert!(text.ends_with("#   \"b\"\n# ]\n[actions]\nauto-reconnect = true\n"), "{text}");
        let wrong_table = "[limts]\nx = [\n[1],\n[2]]\n[list]\nended-most = 3\n";
        assert_eq!(fixed(wrong_table).unwrap().1, [1, 2, 3, 4]);
        assert_eq!(fixed("[[server]]\naddress = \"127.0.0.1:9\"\n[[server]]\ntoken-env = \"X\"\n").unwrap().1, [3, 4]);
        assert_eq!(fixed("[limits]\nfresh-stuck = \"90s\"\nfresh-stuck = \"80s\"\n").unwrap().1, [3], "twice");
    }

    #[test]
    fn nothing_is_done_where_something_right_would_be_lost() {
        for text in [
            "limits = { fresh-qiet = \"1s\", fresh-stuck = \"90s\" }\n",
            "homes = [\"/a\",\n[limits]\nfresh-stuck = \"90s\"\n",
            "homes = [\"/a\"\n[limits]\nfresh-stuck = \"90s\"\n",
            "[limits\nfresh-stuck = \"90s\"\n",
            "[limits]\nfresh-stuck = \"90s\"\n[limits]\nquiet = \"9s\"\n",
            "bogus = \"\"\"\n[actions]\nauto-reconnect = true\n",
            "[owners]\nnames = [ =\n[\"limits\"]\n]\n[limits]\nfresh-stuck = \"90s\"\n",
            "[owners]\nnames = [ =\n[\"a\"]\n]\nnames = [\"b\"]\n",
            "[owners]\nnames = [ =\n  \"b\"\n]\n[actions]\nauto-reconnect = true\n",
            "[limits]\n[list\nended-most = 3\n",
        ] {
            assert_eq!(fixed(text), None, "{text}");
        }
    }

    #[test]
    fn line_ends_and_the_byte_order_mark_stay() {
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
        assert!(question.starts_with("Turn line 1 `bogus = [`, line 2 `1]` of "), "{question}");
        fs::write(&path, "bogus = 1\n".to_owned() + &(0..9).map(|n| format!("b{n} = 1\n")).collect::<String>())
            .unwrap();
        assert!(Fix::ConfigLines(path).question().contains(", 2 more of "));
    }

    /// Opening a FIFO would wait for a writer forever.
    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_plain_config_is_opened() {
        use rustix::fs::{CWD, FileType, Mode};
        let scratch = tempfile::tempdir().unwrap();
        let fifo = scratch.path().join("config.toml");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(!can_comment_out(&fifo));
        assert!(!can_comment_out(Path::new("/dev/zero")));
        let error = Fix::ConfigLines(fifo.clone()).apply().unwrap_err().to_string();
        assert_eq!(error, format!("{} is a pipe or a device, not a file", fifo.display()));
    }

    #[test]
    fn a_file_that_was_repaired_meanwhile_is_not_moved() {
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
    fn a_socket_with_a_listener_is_not_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(Fix::Socket(path.clone()).apply().is_err() && path.exists());
        drop(listener);
        assert!(Fix::Socket(path.clone()).apply().is_ok() && !path.exists());
        fs::write(&path, "").unwrap();
        assert!(Fix::Socket(path.clone()).apply().is_err() && path.exists(), "not a socket");
    }
}
