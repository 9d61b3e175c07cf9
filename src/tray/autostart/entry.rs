//! A desktop entry that is started at login, according to the Desktop Entry Specification 1.5 and the Autostart
//! Specification. Reads it, and changes it without losing what others wrote into it.

use std::path::{Path, PathBuf};

const GROUP: &str = "[Desktop Entry]";
/// Reserved characters: an argument that contains one must be quoted.
const RESERVED: &[char] =
    &[' ', '\t', '\n', '"', '\'', '\\', '>', '<', '~', '|', '&', ';', '$', '*', '?', '#', '(', ')', '`'];
/// The keys that decide whether and what is started. Turning the start on or off changes these and no others.
const SWITCHES: [&str; 6] = ["Hidden", "X-GNOME-Autostart-enabled", "OnlyShowIn", "NotShowIn", "TryExec", "Exec"];

/// What an entry starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryStatus {
    /// Starts this program.
    Starts(PathBuf),
    /// Would start this program, which does not exist.
    Missing(PathBuf),
    /// Starts nothing, for this reason.
    Inactive(&'static str),
}

/// Reads an entry as a desktop with these names (`XDG_CURRENT_DESKTOP`, separated by colons) does. `find` locates a
/// program.
pub(super) fn read(text: &str, desktops: &str, find: impl Fn(&Path) -> Option<PathBuf>) -> EntryStatus {
    let is = |key: &str, word: &str| value(text, key).is_some_and(|value| value.eq_ignore_ascii_case(word));
    let lists = |key: &str| -> Option<bool> {
        let list = value(text, key)?;
        let listed = |desktop: &str| list.split(';').any(|one| one == desktop);
        Some(desktops.split(':').any(|desktop| !desktop.is_empty() && listed(desktop)))
    };
    if !text.lines().any(|line| line.trim_end() == GROUP) {
        return EntryStatus::Inactive("its file is no desktop entry");
    }
    if is("Hidden", "true") {
        return EntryStatus::Inactive("its entry is hidden");
    }
    if is("X-GNOME-Autostart-enabled", "false") {
        return EntryStatus::Inactive("switched off in its entry");
    }
    if lists("OnlyShowIn") == Some(false) || lists("NotShowIn") == Some(true) {
        return EntryStatus::Inactive("its entry is for other desktops");
    }
    let try_exec = value(text, "TryExec").map(|program| PathBuf::from(unescaped(program)));
    if let Some(missing) = try_exec.filter(|program| find(program).is_none()) {
        return EntryStatus::Missing(missing);
    }
    let Some(program) = value(text, "Exec").and_then(|exec| first_word(&unescaped(exec))) else {
        return EntryStatus::Inactive("its entry names no program");
    };
    find(Path::new(&program)).map_or_else(|| EntryStatus::Missing(program.into()), EntryStatus::Starts)
}

/// Returns the entry that starts `program` with these arguments: a new one, or the existing one with nothing else
/// changed.
pub(super) fn turned_on(existing: Option<&str>, program: &str, arguments: &[&str]) -> String {
    // Another command line for this program was written on purpose, so it is kept.
    let kept = existing.and_then(|text| value(text, "Exec"));
    let kept = kept.filter(|exec| first_word(&unescaped(exec)).as_deref() == Some(program));
    let words = || std::iter::once(&program).chain(arguments).map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let exec = kept.map_or_else(words, str::to_owned);
    // Desktops silently skip an entry whose `TryExec` is missing, as after the package was removed.
    let try_exec = escaped(program);
    match existing.filter(|text| text.lines().any(|line| line.trim_end() == GROUP)) {
        Some(text) => with(text, &[("TryExec", &try_exec), ("Exec", &exec)]),
        None => format!(
            "{GROUP}\nType=Application\nName=Pilotlight\nComment=Shows what every session of your coding agents does\n\
             Icon=pilotlight\nTerminal=false\nTryExec={try_exec}\nExec={exec}\n"
        ),
    }
}

/// The packaged entry for the applications menu, adapted to a program at this path.
#[cfg(target_os = "linux")]
pub(crate) fn entry_for(packaged: &str, program: &str) -> String {
    turned_on(Some(packaged), program, &["tray"])
}

/// The packaged systemd unit, adapted to a program at this path. Without the manual page, which only packages install.
/// `None` for a path that systemd does not accept.
#[cfg(target_os = "linux")]
pub(crate) fn unit_for(packaged: &str, program: &str) -> Option<String> {
    const START: &str = "ExecStart=";
    if program.contains(|c: char| "\"'\\".contains(c) || c.is_control()) {
        return None;
    }
    let start = format!("{START}\"{}\" tray", program.replace('%', "%%"));
    let lines = packaged.lines().filter(|line| !line.starts_with("Documentation=man:"));
    let lines = lines.map(|line| if line.starts_with(START) { start.as_str() } else { line });
    Some(lines.flat_map(|line| [line, "\n"]).collect())
}

/// Returns the entry changed to start nothing: hidden, or `None` to delete it. It is deleted if it is as we wrote it
/// and does not override another entry (`overrides`).
pub(super) fn turned_off(existing: &str, overrides: bool) -> Option<String> {
    let ours = value(existing, "Exec").is_some_and(|exec| {
        let program = first_word(&unescaped(exec)).unwrap_or_default();
        let ours = turned_on(None, &program, &[]);
        // `Exec` may name any homes.
        without_exec(&ours).eq(without_exec(existing))
    });
    (overrides || !ours).then(|| {
        let exec = value(existing, "Exec").unwrap_or("pilotlight tray").to_owned();
        with(existing, &[("Hidden", "true"), ("Exec", &exec)])
    })
}

fn without_exec(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("Exec="))
}

/// The text with these keys in the entry's group, and without the other [`SWITCHES`].
fn with(text: &str, keys: &[(&str, &str)]) -> String {
    let (mut out, mut ours, mut written) = (String::new(), false, false);
    for line in text.lines() {
        let starts_group = line.starts_with('[');
        if starts_group {
            ours = line.trim_end() == GROUP;
        }
        if ours && !starts_group && line.split_once('=').is_some_and(|(key, _)| SWITCHES.contains(&key.trim_end())) {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if ours && starts_group && !std::mem::replace(&mut written, true) {
            keys.iter().for_each(|(key, value)| out.push_str(&format!("{key}={value}\n")));
        }
    }
    out
}

/// The raw value of a key in the entry's group.
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut ours = false;
    text.lines().find_map(|line| {
        if line.starts_with('[') {
            ours = line.trim_end() == GROUP;
        }
        let (name, value) = line.split_once('=').filter(|_| ours)?;
        (name.trim_end() == key).then(|| value.trim())
    })
}

/// Decodes the escape sequences of a value.
fn unescaped(value: &str) -> String {
    let (mut out, mut chars) = (String::new(), value.chars());
    while let Some(c) = chars.next() {
        let decoded = match (c, chars.clone().next()) {
            ('\\', Some('s')) => ' ',
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some('\\')) => '\\',
            _ => {
                out.push(c);
                continue;
            }
        };
        chars.next();
        out.push(decoded);
    }
    out
}

/// The program of a command line, unquoted. Skips a leading `env` with its variables.
fn first_word(exec: &str) -> Option<String> {
    let words = words(exec);
    let is_variable = |word: &&String| word.contains('=') && !word.starts_with('/');
    let mut rest = words.iter();
    let first = rest.next()?;
    let is_env = Path::new(first).file_name().is_some_and(|name| name == "env");
    let found = if is_env { rest.find(|word| !is_variable(word)) } else { Some(first) };
    found.filter(|word| !word.is_empty()).cloned()
}

fn words(exec: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    let mut chars = exec.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => (quoted, any) = (!quoted, true),
            '\\' if quoted => word.extend(chars.next()),
            '%' if chars.peek() == Some(&'%') => word.extend(chars.next()),
            ' ' | '\t' if !quoted => {
                if std::mem::take(&mut any) || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

/// Quotes an argument for `Exec`.
fn quoted(argument: &str) -> String {
    let mut out = argument.replace('%', "%%");
    if out.contains(RESERVED) {
        let inner: String =
            out.chars().flat_map(|c| ['\\'].into_iter().filter(move |_| "\"`$\\".contains(c)).chain([c])).collect();
        out = format!("\"{inner}\"");
    }
    escaped(&out)
}

/// Encodes the escape sequences of a value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> EntryStatus {
        read(text, "XFCE:GTK", |path| (!path.starts_with("/gone")).then(|| path.to_owned()))
    }

    #[test]
    fn a_written_entry_is_read_back() {
        for program in
            ["/usr/bin/pilotlight", "/a b/c", "/100%/$HOME", r#"/q"uo`te\back"#, "/tab\tnew\nline", "/é;#(x)&"]
        {
            let text = turned_on(None, program, &["tray"]);
            assert_eq!(status(&text), EntryStatus::Starts(program.into()), "{text}");
            assert_eq!(turned_off(&text, false), None, "as we wrote it: {text}");
            let hidden = turned_off(&text, true).unwrap();
            assert_eq!(status(&hidden), EntryStatus::Inactive("its entry is hidden"), "{hidden}");
            assert_eq!(status(&turned_on(Some(&hidden), program, &["tray"])), EntryStatus::Starts(program.into()));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn packaged_files_are_adapted_to_another_path() {
        let entry = entry_for(include_str!("../../../packaging/linux/pilotlight.desktop"), "/a b/pilotlight");
        assert_eq!(status(&entry), EntryStatus::Starts("/a b/pilotlight".into()));
        assert!(entry.contains("\nTryExec=/a b/pilotlight\nExec=\"/a b/pilotlight\" tray\n"), "{entry}");
        assert!(entry.contains("\nCategories=Development;\n") && entry.matches("Exec=").count() == 2, "{entry}");
        let unit = |program| unit_for(include_str!("../../../packaging/linux/pilotlight.service"), program);
        assert_eq!(unit("/a\"b/pilotlight"), None);
        let unit = unit("/100% x/pilotlight").unwrap();
        assert!(unit.contains("\nExecStart=\"/100%% x/pilotlight\" tray\nRestart=on-failure\n"), "{unit}");
        assert!(unit.contains("KillMode=process\n") && !unit.contains("/usr/bin") && !unit.contains("man:"), "{unit}");
    }

    #[test]
    fn what_others_wrote_is_kept() {
        let text = "# mine\n[Desktop Entry]\nType=Application\nName=Light\nExec=env A=b /opt/pilotlight --home /x tray\n\
                    X-GNOME-Autostart-Delay=20\n\n[Desktop Action x]\nExec=true\nHidden=true\n";
        assert_eq!(status(text), EntryStatus::Starts("/opt/pilotlight".into()));
        let off = turned_off(text, false).unwrap();
        assert_eq!(status(&off), EntryStatus::Inactive("its entry is hidden"));
        for kept in [
            "# mine\n",
            "Name=Light\n",
            "X-GNOME-Autostart-Delay=20\n",
            "Exec=env A=b /opt/pilotlight --home /x tray\n",
        ] {
            assert!(off.contains(kept), "{off}");
        }
        assert!(off.ends_with("\n[Desktop Action x]\nExec=true\nHidden=true\n"), "another group: {off}");
        let on = turned_on(Some(&off), "/usr/bin/pilotlight", &["tray"]);
        assert_eq!(status(&on), EntryStatus::Starts("/usr/bin/pilotlight".into()));
        assert!(on.contains("X-GNOME-Autostart-Delay=20\n") && on.matches("\nExec=").count() == 2, "{on}");
    }

    #[test]
    fn every_way_to_switch_it_off_is_respected() {
        let with = |line: &str| format!("[Desktop Entry]\nExec=/usr/bin/pilotlight tray\n{line}\n");
        for (line, why) in [
            ("Hidden=true", "its entry is hidden"),
            ("Hidden = True ", "its entry is hidden"),
            ("X-GNOME-Autostart-enabled=false", "switched off in its entry"),
            ("OnlyShowIn=GNOME;KDE;", "its entry is for other desktops"),
            ("NotShowIn=KDE;XFCE;", "its entry is for other desktops"),
        ] {
            assert_eq!(status(&with(line)), EntryStatus::Inactive(why), "{line}");
            let on = turned_on(Some(&with(line)), "/usr/bin/pilotlight", &["tray"]);
            assert_eq!(status(&on), EntryStatus::Starts("/usr/bin/pilotlight".into()), "{on}");
        }
        for line in
            ["Hidden=false", "OnlyShowIn=XFCE;", "NotShowIn=KDE;", "TryExec=sh", "[Other]\nHidden=true", "#Hidden=true"]
        {
            assert_eq!(status(&with(line)), EntryStatus::Starts("/usr/bin/pilotlight".into()), "{line}");
        }
        let missing = with("TryExec=/gone/x");
        assert_eq!(status(&missing), EntryStatus::Missing("/gone/x".into()));
        assert_eq!(
            status(&turned_on(Some(&missing), "/usr/bin/pilotlight", &["tray"])),
            EntryStatus::Starts("/usr/bin/pilotlight".into())
        );
        assert_eq!(status("[Desktop Entry]\nExec=/gone/pilotlight\n"), EntryStatus::Missing("/gone/pilotlight".into()));
        assert_eq!(status("[Desktop Entry]\nName=x\n"), EntryStatus::Inactive("its entry names no program"));
        assert_eq!(status("Exec=/usr/bin/pilotlight\n"), EntryStatus::Inactive("its file is no desktop entry"));
        assert_eq!(status(""), EntryStatus::Inactive("its file is no desktop entry"));
    }
}
