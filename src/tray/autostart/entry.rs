//! A desktop entry that is started at login, after the Desktop Entry Specification 1.5 and the Autostart Specification: what
//! it says, and how it is changed without losing what somebody else wrote into it.

use std::path::{Path, PathBuf};

const GROUP: &str = "[Desktop Entry]";
/// Characters that a shell would read otherwise: an argument that has one is written in quotes.
const RESERVED: &[char] =
    &[' ', '\t', '\n', '"', '\'', '\\', '>', '<', '~', '|', '&', ';', '$', '*', '?', '#', '(', ')', '`'];
/// The keys that say whether and what is started. Who turns it on or off means these; everything else is left alone.
const SWITCHES: [&str; 6] = ["Hidden", "X-GNOME-Autostart-enabled", "OnlyShowIn", "NotShowIn", "TryExec", "Exec"];

/// What an entry says of our start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// This program is started, if it is there.
    Starts(PathBuf),
    /// This program would be, but it is gone.
    Gone(PathBuf),
    /// Nothing is, and why.
    Nothing(&'static str),
}

/// What an entry says on a desktop of these names (`XDG_CURRENT_DESKTOP`, between colons). `find` looks for a program.
pub(super) fn read(text: &str, desktops: &str, find: impl Fn(&Path) -> Option<PathBuf>) -> Says {
    let is = |key: &str, word: &str| value(text, key).is_some_and(|value| value.eq_ignore_ascii_case(word));
    let lists = |key: &str| -> Option<bool> {
        let list = value(text, key)?;
        let listed = |desktop: &str| list.split(';').any(|one| one == desktop);
        Some(desktops.split(':').any(|desktop| !desktop.is_empty() && listed(desktop)))
    };
    if !text.lines().any(|line| line.trim_end() == GROUP) {
        return Says::Nothing("its file is no desktop entry");
    }
    if is("Hidden", "true") {
        return Says::Nothing("its entry is hidden");
    }
    if is("X-GNOME-Autostart-enabled", "false") {
        return Says::Nothing("switched off in its entry");
    }
    if lists("OnlyShowIn") == Some(false) || lists("NotShowIn") == Some(true) {
        return Says::Nothing("its entry is for other desktops");
    }
    let tried = value(text, "TryExec").map(|program| PathBuf::from(unescaped(program)));
    if let Some(gone) = tried.filter(|program| find(program).is_none()) {
        return Says::Gone(gone);
    }
    let Some(program) = value(text, "Exec").and_then(|exec| first_word(&unescaped(exec))) else {
        return Says::Nothing("its entry names no program");
    };
    find(Path::new(&program)).map_or_else(|| Says::Gone(program.into()), Says::Starts)
}

/// The entry that starts `program` with these arguments: a new one, or what was there with nothing else changed.
pub(super) fn turned_on(before: Option<&str>, program: &str, arguments: &[&str]) -> String {
    // Whoever wrote another command line for this program means it.
    let kept = before.and_then(|text| value(text, "Exec"));
    let kept = kept.filter(|exec| first_word(&unescaped(exec)).as_deref() == Some(program));
    let words = || std::iter::once(&program).chain(arguments).map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let exec = kept.map_or_else(words, str::to_owned);
    // A desktop skips an entry without a word where this is gone: a package may be removed.
    let tried = escaped(program);
    match before.filter(|text| text.lines().any(|line| line.trim_end() == GROUP)) {
        Some(text) => with(text, &[("TryExec", &tried), ("Exec", &exec)]),
        None => format!(
            "{GROUP}\nType=Application\nName=Pilotlight\nComment=Shows what every GitHub Copilot session does\n\
             Icon=pilotlight\nTerminal=false\nTryExec={tried}\nExec={exec}\n"
        ),
    }
}

/// The entry of the menu of programs, as a package has it, for a program at this path.
#[cfg(target_os = "linux")]
pub(crate) fn entry_for(packaged: &str, program: &str) -> String {
    turned_on(Some(packaged), program, &["tray"])
}

/// The systemd unit, as a package has it, for a program at this path: but without the manual, which only packages bring. `None`
/// for a path that systemd takes for no program's.
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

/// What becomes of an entry that must start nothing: it goes where it is as we wrote it, and no other one would count then
/// (`covers`); else it stays, hidden.
pub(super) fn turned_off(before: &str, covers: bool) -> Option<String> {
    let ours = value(before, "Exec").is_some_and(|exec| {
        let program = first_word(&unescaped(exec)).unwrap_or_default();
        let ours = turned_on(None, &program, &[]);
        // Whatever homes it was to look at.
        without_exec(&ours).eq(without_exec(before))
    });
    (covers || !ours).then(|| {
        let exec = value(before, "Exec").unwrap_or("pilotlight tray").to_owned();
        with(before, &[("Hidden", "true"), ("Exec", &exec)])
    })
}

fn without_exec(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("Exec="))
}

/// The text with these keys in its group, and without the other [`SWITCHES`].
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

/// The value of a key of the entry itself, as it is written.
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

/// A value as it is meant: what stands behind a backslash may be a space, a line break or a backslash.
fn unescaped(value: &str) -> String {
    let (mut out, mut chars) = (String::new(), value.chars());
    while let Some(c) = chars.next() {
        let meant = match (c, chars.clone().next()) {
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
        out.push(meant);
    }
    out
}

/// The program that a command line names, without its quotes. `env` with settings before it is looked through.
fn first_word(exec: &str) -> Option<String> {
    let words = words(exec);
    let is_setting = |word: &&String| word.contains('=') && !word.starts_with('/');
    let mut rest = words.iter();
    let first = rest.next()?;
    let is_env = Path::new(first).file_name().is_some_and(|name| name == "env");
    let found = if is_env { rest.find(|word| !is_setting(word)) } else { Some(first) };
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

/// An argument as a command line of an entry has it.
fn quoted(argument: &str) -> String {
    let mut out = argument.replace('%', "%%");
    if out.contains(RESERVED) {
        let inner: String =
            out.chars().flat_map(|c| ['\\'].into_iter().filter(move |_| "\"`$\\".contains(c)).chain([c])).collect();
        out = format!("\"{inner}\"");
    }
    escaped(&out)
}

/// A value as it is written.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> Says {
        read(text, "XFCE:GTK", |path| (!path.starts_with("/gone")).then(|| path.to_owned()))
    }

    #[test]
    fn what_is_written_is_read_back() {
        for program in
            ["/usr/bin/pilotlight", "/a b/c", "/100%/$HOME", r#"/q"uo`te\back"#, "/tab\tnew\nline", "/é;#(x)&"]
        {
            let text = turned_on(None, program, &["tray"]);
            assert_eq!(says(&text), Says::Starts(program.into()), "{text}");
            assert_eq!(turned_off(&text, false), None, "as we wrote it: {text}");
            let hidden = turned_off(&text, true).unwrap();
            assert_eq!(says(&hidden), Says::Nothing("its entry is hidden"), "{hidden}");
            assert_eq!(says(&turned_on(Some(&hidden), program, &["tray"])), Says::Starts(program.into()));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_package_has_is_written_for_a_program_elsewhere() {
        let entry = entry_for(include_str!("../../../packaging/linux/pilotlight.desktop"), "/a b/pilotlight");
        assert_eq!(says(&entry), Says::Starts("/a b/pilotlight".into()));
        assert!(entry.contains("\nTryExec=/a b/pilotlight\nExec=\"/a b/pilotlight\" tray\n"), "{entry}");
        assert!(entry.contains("\nCategories=Development;\n") && entry.matches("Exec=").count() == 2, "{entry}");
        let unit = |program| unit_for(include_str!("../../../packaging/linux/pilotlight.service"), program);
        assert_eq!(unit("/a\"b/pilotlight"), None);
        let unit = unit("/100% x/pilotlight").unwrap();
        assert!(unit.contains("\nExecStart=\"/100%% x/pilotlight\" tray\nRestart=on-failure\n"), "{unit}");
        assert!(unit.contains("KillMode=process\n") && !unit.contains("/usr/bin") && !unit.contains("man:"), "{unit}");
    }

    #[test]
    fn what_somebody_else_wrote_stays() {
        let text = "# mine\n[Desktop Entry]\nType=Application\nName=Light\nExec=env A=b /opt/pilotlight --home /x tray\n\
                    X-GNOME-Autostart-Delay=20\n\n[Desktop Action x]\nExec=true\nHidden=true\n";
        assert_eq!(says(text), Says::Starts("/opt/pilotlight".into()));
        let off = turned_off(text, false).unwrap();
        assert_eq!(says(&off), Says::Nothing("its entry is hidden"));
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
        assert_eq!(says(&on), Says::Starts("/usr/bin/pilotlight".into()));
        assert!(on.contains("X-GNOME-Autostart-Delay=20\n") && on.matches("\nExec=").count() == 2, "{on}");
    }

    #[test]
    fn each_way_to_switch_it_off_counts() {
        let with = |line: &str| format!("[Desktop Entry]\nExec=/usr/bin/pilotlight tray\n{line}\n");
        for (line, why) in [
            ("Hidden=true", "its entry is hidden"),
            ("Hidden = True ", "its entry is hidden"),
            ("X-GNOME-Autostart-enabled=false", "switched off in its entry"),
            ("OnlyShowIn=GNOME;KDE;", "its entry is for other desktops"),
            ("NotShowIn=KDE;XFCE;", "its entry is for other desktops"),
        ] {
            assert_eq!(says(&with(line)), Says::Nothing(why), "{line}");
            let on = turned_on(Some(&with(line)), "/usr/bin/pilotlight", &["tray"]);
            assert_eq!(says(&on), Says::Starts("/usr/bin/pilotlight".into()), "{on}");
        }
        for line in
            ["Hidden=false", "OnlyShowIn=XFCE;", "NotShowIn=KDE;", "TryExec=sh", "[Other]\nHidden=true", "#Hidden=true"]
        {
            assert_eq!(says(&with(line)), Says::Starts("/usr/bin/pilotlight".into()), "{line}");
        }
        let tried = with("TryExec=/gone/x");
        assert_eq!(says(&tried), Says::Gone("/gone/x".into()));
        assert_eq!(
            says(&turned_on(Some(&tried), "/usr/bin/pilotlight", &["tray"])),
            Says::Starts("/usr/bin/pilotlight".into())
        );
        assert_eq!(says("[Desktop Entry]\nExec=/gone/pilotlight\n"), Says::Gone("/gone/pilotlight".into()));
        assert_eq!(says("[Desktop Entry]\nName=x\n"), Says::Nothing("its entry names no program"));
        assert_eq!(says("Exec=/usr/bin/pilotlight\n"), Says::Nothing("its file is no desktop entry"));
        assert_eq!(says(""), Says::Nothing("its file is no desktop entry"));
    }
}
