//! Changes to a config that leave everything else in it as it is, comments included. What a change made of the file is read
//! again, and it counts only if it says exactly what was meant.

use super::form::Form;
use super::values::{Config, HostSetting, Reach};
use super::{host, parse};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// A host as it is written.
pub fn host_entry(host: &HostSetting) -> String {
    host::entry(host)
}

/// A part of a host that cannot be as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongPart {
    Name,
    Ssh,
    Program,
    /// With what is wrong with it.
    Command(String),
}

/// What is wrong with a host, if anything is.
pub fn wrong_host(host: &HostSetting) -> Option<WrongPart> {
    let entry = host_entry(host);
    let is_command = matches!(host.reach, Reach::Command(_));
    let any = || if is_command { WrongPart::Command("they cannot be written".into()) } else { WrongPart::Ssh };
    let Ok(document) = DeTable::parse(&entry) else { return Some(any()) };
    let Some(table) = tables(document.get_ref()).next() else { return Some(any()) };
    fn wrong<T>(table: &DeTable<'_>, key: &str, form: &Form<T>) -> Option<String> {
        table.get(key).and_then(|value| (form.read)(value).err()).map(|wrong| wrong.what)
    }
    wrong(table, "name", &host::NAME)
        .map(|_| WrongPart::Name)
        .or_else(|| wrong(table, "ssh", &host::SSH).map(|_| WrongPart::Ssh))
        .or_else(|| wrong(table, "program", &host::PROGRAM).map(|_| WrongPart::Program))
        .or_else(|| wrong(table, "command", &host::COMMAND).map(WrongPart::Command))
        .or_else(|| (parse(&entry, Path::new(".")).0.hosts != [host.clone()]).then(any))
}

/// Whether a text that may be wrong has a host of this name. `None`: it is not known, since the text is not TOML.
pub fn names_host(text: &str, name: &str) -> Option<bool> {
    let document = DeTable::parse(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()?;
    let named =
        tables(document.get_ref()).filter_map(|host| host.get("name")?.get_ref().as_str()).any(|one| one == name);
    Some(named)
}

/// The hosts of a text that may be wrong.
fn tables<'a, 'i>(document: &'a DeTable<'i>) -> impl Iterator<Item = &'a DeTable<'i>> {
    let hosts = document.get(host::TABLE).and_then(|hosts| hosts.get_ref().as_array());
    hosts.into_iter().flatten().filter_map(|host| host.get_ref().as_table())
}

/// The text with one host more. `None` if that cannot be added to it.
pub fn with_host(text: &str, host: &HostSetting) -> Option<String> {
    let line_end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    let blank = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
    let added = format!("{text}{line_end}{blank}{}", host_entry(host));
    changes_hosts(text, &added, |hosts| hosts.push(host.clone())).then_some(added)
}

/// The text without the host of this name, if it has one of its own head. Comments before the head stay.
pub fn without_host(text: &str, name: &str) -> Option<String> {
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let document = DeTable::parse(&text[mark..]).ok()?;
    let DeValue::Array(hosts) = document.get_ref().get(host::TABLE)?.get_ref() else { return None };
    let named = hosts.iter().find(|host| {
        let name_of = host.get_ref().as_table().and_then(|table| table.get("name")?.get_ref().as_str());
        name_of == Some(name)
    })?;
    let start = mark + named.span().start;
    let start = text[..start].rfind('\n').map_or(mark, |end| end + 1);
    // To the next head, but for what stands right before that: it belongs there.
    let mut lines = text[start..].split_inclusive('\n').skip(1);
    let head = text[start..].split_inclusive('\n').next()?.len();
    let (mut end, mut at) = (start + head, start + head);
    for line in lines.by_ref().take_while(|line| !line.trim_start().starts_with('[')) {
        at += line.len();
        if !line.trim_start().starts_with('#') && !line.trim().is_empty() {
            end = at;
        }
    }
    // One of the blank lines around it goes, too.
    let rest = &text[end..];
    let before = &text[..start];
    let rest =
        if before.ends_with("\n\n") || before.len() == mark { rest.trim_start_matches(['\n', '\r']) } else { rest };
    let removed = format!("{before}{rest}");
    changes_hosts(text, &removed, |hosts| hosts.retain(|host| host.name != name)).then_some(removed)
}

/// Whether a text was changed in its hosts alone, and so.
fn changes_hosts(before: &str, after: &str, change: impl FnOnce(&mut Vec<HostSetting>)) -> bool {
    let read = |text: &str| parse(text, Path::new("."));
    let (mut wanted, problems) = read(before);
    change(&mut wanted.hosts);
    let (config, problems_after): (Config, _) = read(after);
    config == wanted && problems_after.len() == problems.len()
}
