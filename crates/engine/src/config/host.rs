//! `[[host]]`: other machines whose sessions are shown, a table each.
//!
//! Anything wrong with one drops the whole host: with another address or another command, something else would be reached
//! than is meant.

use std::collections::BTreeSet;

use toml::de::DeTable;

use super::form::{Form, SWITCH, Value, Wrong, command, quoted, text, texts};
use super::problem::Problems;
use super::tables;
use super::values::{HostSetting, Reach};

/// The name of the table.
pub(super) const TABLE: &str = "host";
/// How it is written.
pub(super) const HEAD: &str = "[[host]]";
/// The keys of a host, each with its form.
pub(super) const KEYS: [(&str, &str); 5] = [
    ("name", NAME.text),
    ("ssh", SSH.text),
    ("program", PROGRAM.text),
    ("last-message", "true or false: whether to show how the last messages of its sessions begin. Left out: false"),
    ("command", COMMAND.text),
];
/// The program on the other machine, unless it is named.
const PROGRAM_THERE: &str = "pilotlight";

/// Maximum length of a name, in characters: it follows each of its sessions.
const NAME_MAX: usize = 24;

pub(super) const NAME: Form<String> = Form {
    text: "a name of up to 24 letters, digits, \"-\", \"_\" and \".\", under which its sessions are shown",
    read: |value| match plain(value, "-_.", NAME_MAX, "this is not one")? {
        name if name.chars().all(|c| c == '.') => Err(Wrong::new(value, "this has nothing but dots")),
        name => Ok(name),
    },
    show: |name| quoted(name),
};

/// What `ssh` is told to connect to. Nothing that it would take for an option, and nothing a shell would take apart.
pub(super) const SSH: Form<String> = Form {
    text: "a host as `ssh` takes it: a name of your ssh config, or \"user@address\". Left out: its name",
    read: |value| plain(value, "-_.@:%[]/", usize::MAX, "this is not one"),
    show: |host| quoted(host),
};

/// It is passed through a shell there, which expands a leading `~`.
pub(super) const PROGRAM: Form<String> = Form {
    text: "the path of Pilotlight on that machine, such as \"~/.local/bin/pilotlight\". Left out: \"pilotlight\" on its PATH",
    read: |value| plain(value, "-_./+~", usize::MAX, "this is not one that needs no quotes in a shell"),
    show: |program| quoted(program),
};

pub(super) const COMMAND: Form<Vec<String>> = Form {
    text: "the words that run `pilotlight serve --stdio` there, in place of `ssh`, such as \
           [\"docker\", \"exec\", \"-i\", \"box\", \"pilotlight\", \"serve\", \"--stdio\"]",
    read: command,
    show: |words| texts(words.iter().cloned()),
};

/// Text of letters, digits and these signs, which begins like no option.
fn plain(value: &Value<'_>, signs: &str, max: usize, wrong: &'static str) -> Result<String, Wrong> {
    let text = text(value)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    if text.is_empty() || text.len() > max || text.starts_with('-') || !text.chars().all(is_plain) {
        return Err(Wrong::new(value, wrong));
    }
    Ok(text.to_owned())
}

/// Reads all hosts. A wrong one is reported and left out.
pub(super) fn read(key: usize, value: &Value<'_>, report: &mut Problems<'_>) -> Vec<HostSetting> {
    let (mut hosts, mut names) = (Vec::new(), BTreeSet::new());
    for (at, table) in tables::read(TABLE, HEAD, key, value, report) {
        match read_one(at, table, report) {
            Ok(host) if names.insert(host.name.clone()) => hosts.push(host),
            Ok(host) => {
                let what = format!("there is a machine called {} already", host.name);
                report.add(Some(at), what, "This one is ignored");
            }
            Err(wrong) => report.add(Some(wrong.at), wrong.what, "This machine is ignored"),
        }
    }
    hosts
}

fn read_one(at: usize, table: &DeTable<'_>, report: &mut Problems<'_>) -> Result<HostSetting, Wrong> {
    tables::report_unknown(TABLE, &KEYS, table, report);
    let name = tables::value(TABLE, table, "name", &NAME)?;
    let name = name.ok_or_else(|| Wrong { at, what: "a machine needs a `name`".into() })?;
    let ssh = tables::value(TABLE, table, "ssh", &SSH)?;
    let program = tables::value(TABLE, table, "program", &PROGRAM)?;
    let last_message = tables::value(TABLE, table, "last-message", &SWITCH)?;
    let command = tables::value(TABLE, table, "command", &COMMAND)?;
    let reach = match command {
        Some(_) if ssh.is_some() => {
            return Err(Wrong { at, what: "`ssh` and `command` both say how it is reached".into() });
        }
        Some(_) if program.is_some() => {
            return Err(Wrong { at, what: "`command` names the program itself: leave `program` out".into() });
        }
        Some(_) if last_message.is_some() => {
            let what = "instead of `last-message`, add \"--messages\" to the end of `command`";
            return Err(Wrong { at, what: what.into() });
        }
        Some(words) => Reach::Command(words),
        None => Reach::Ssh {
            to: ssh.unwrap_or_else(|| name.clone()),
            program: program.unwrap_or_else(|| PROGRAM_THERE.to_owned()),
            last_message: last_message.unwrap_or_default(),
        },
    };
    Ok(HostSetting { name, reach })
}

/// The hosts as TOML, after an explanation of the keys.
pub(super) fn print(hosts: &[HostSetting]) -> String {
    let mut out = format!("\n# Other machines whose sessions are shown here, a table each:\n# {HEAD}\n");
    out += &tables::explained(&KEYS);
    out += "# Pilotlight must be installed there in a compatible version. Default: none\n";
    hosts.iter().for_each(|host| out += &format!("\n{}", entry(host)));
    out
}

/// A host as it is written, without keys that have their defaults.
pub(super) fn entry(HostSetting { name, reach }: &HostSetting) -> String {
    let mut out = format!("{HEAD}\nname = {}\n", (NAME.show)(name));
    match reach {
        Reach::Ssh { to, program, last_message } => {
            if to != name {
                out += &format!("ssh = {}\n", (SSH.show)(to));
            }
            if program != PROGRAM_THERE {
                out += &format!("program = {}\n", (PROGRAM.show)(program));
            }
            if *last_message {
                out += "last-message = true\n";
            }
        }
        Reach::Command(words) => out += &format!("command = {}\n", (COMMAND.show)(words)),
    }
    out
}
