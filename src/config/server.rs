//! `[[server]]`: Copilot servers that the user names, a table each.
//!
//! Tokens stay out of the config, which is printed, shown around and kept under version control: a server's token is named
//! by the file or the environment variable that holds it. What a user may have written here by mistake could be a token
//! itself, so no problem quotes any of these values but an address that is one. What is wrong with a server costs that
//! server: without its token, or with another address, it would only fail later.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::problem::{Report, shown};
use super::value::{Wrong, as_path, wrong, wrong_type};
use crate::agent::copilot::server::servers::{ServerSetting, TokenSource};

/// The name of the table.
pub(super) const TABLE: &str = "server";
/// How it is written.
pub(super) const HEAD: &str = "[[server]]";
/// The keys of a server, each with its form.
pub(super) const KEYS: [(&str, &str); 3] = [
    ("address", "an address of this machine with its port, such as \"127.0.0.1:4321\" or \"[::1]:4321\""),
    ("token-file", "the file that holds its token, absolute or beginning with ~/"),
    ("token-env", "the name of the environment variable that holds its token"),
];

/// Reads all servers. A wrong one is reported and left out.
pub(super) fn read(key: usize, value: &Spanned<DeValue<'_>>, report: &mut Report<'_>) -> Vec<ServerSetting> {
    let is_table = |item: &Spanned<DeValue<'_>>| matches!(item.get_ref(), DeValue::Table(_));
    let items = value.get_ref().as_array().filter(|items| items.iter().all(is_table));
    let Some(items) = items else {
        let kind = value.get_ref().type_str();
        let what = format!("`{TABLE}` must be tables, each written `{HEAD}`; this is of type {kind}");
        report.add(Some(key), what, "It is ignored");
        return Vec::new();
    };
    let (mut servers, mut addresses) = (Vec::new(), BTreeSet::new());
    for item in items {
        let DeValue::Table(table) = item.get_ref() else { continue };
        match read_one(item.span().start, table, report) {
            Ok(server) if addresses.insert(server.address) => servers.push(server),
            Ok(server) => {
                let what = format!("there is a server at {} already", server.address);
                report.add(Some(item.span().start), what, "This one is ignored");
            }
            Err(Wrong { at, what }) => report.add(Some(at), what, "This server is ignored"),
        }
    }
    servers
}

fn read_one(at: usize, table: &DeTable<'_>, report: &mut Report<'_>) -> Result<ServerSetting, Wrong> {
    let (mut address, mut token) = (None, None);
    for (key, value) in table {
        let source = match &**key.get_ref() {
            "address" => {
                address = Some(as_address(value)?);
                continue;
            }
            "token-file" => TokenSource::File(as_file(value)?),
            "token-env" => TokenSource::Env(as_variable(value)?),
            "token" => {
                let what = "a token must not be in the config: `token-file` names a file that holds it, `token-env` an \
                            environment variable";
                return Err(Wrong { at: key.span().start, what: what.into() });
            }
            other => {
                let hint = nearest(TABLE, other).map_or(String::new(), |key| format!(", did you mean `{key}`?"));
                let what = format!("unknown key `{TABLE}.{}`{hint}", shown(other));
                report.add(Some(key.span().start), what, "It is ignored");
                continue;
            }
        };
        if token.replace(source).is_some() {
            let what = "`token-file` and `token-env` both say where the token is".into();
            return Err(Wrong { at: key.span().start, what });
        }
    }
    let address = address.ok_or_else(|| Wrong { at, what: "a server needs an `address`".into() })?;
    Ok(ServerSetting { address, token })
}

/// Only loopback: what is sent there, prompts and tokens, is sent in the clear.
fn as_address(value: &Spanned<DeValue<'_>>) -> Result<SocketAddr, Wrong> {
    let form = |what: &str| wrong(value, format!("`{TABLE}.address` must be {}; {what}", KEYS[0].1));
    let text = value.get_ref().as_str().ok_or_else(|| named_type(0, value))?;
    let Ok(written) = text.parse::<SocketAddr>() else {
        let what = if text.starts_with("localhost:") { "names are not looked up" } else { "this is not one" };
        return Err(form(what));
    };
    let address = SocketAddr::new(written.ip().to_canonical(), written.port());
    if !address.ip().is_loopback() {
        Err(form(&format!("{address} is not on this machine's loopback, and nothing is sent anywhere else")))
    } else if address.port() == 0 {
        Err(form("0 is not a port"))
    } else {
        Ok(address)
    }
}

fn as_file(value: &Spanned<DeValue<'_>>) -> Result<PathBuf, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| named_type(1, value))?;
    as_path(text).map_err(|why| wrong(value, format!("`{TABLE}.token-file` must be {}; this {why}", KEYS[1].1)))
}

fn as_variable(value: &Spanned<DeValue<'_>>) -> Result<String, Wrong> {
    let text = value.get_ref().as_str().ok_or_else(|| named_type(2, value))?;
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if text.is_empty() || !text.chars().all(is_name) || text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong(value, format!("`{TABLE}.token-env` must be {}; this is not one", KEYS[2].1)));
    }
    Ok(text.to_owned())
}

fn named_type(key: usize, value: &Spanned<DeValue<'_>>) -> Wrong {
    let (key, form) = KEYS[key];
    let Wrong { at, what } = wrong_type(value);
    Wrong { at, what: format!("`{TABLE}.{key}` must be {form}; {what}") }
}

/// The servers as TOML writes them, after what can be said of each.
pub(super) fn print(servers: &[ServerSetting]) -> String {
    let mut out = String::from("\n# Copilot servers beside those that are found without being named, a table each:\n");
    out += &format!("# {HEAD}\n");
    for (key, form) in KEYS {
        out += &format!("# {key} takes {form}.\n");
    }
    out += "# Leave out the last two for a server that wants no token. Default: none\n";
    let text = |text: &str| toml::Value::from(text).to_string();
    for ServerSetting { address, token } in servers {
        out += &format!("\n{HEAD}\naddress = \"{address}\"\n");
        match token {
            None => {}
            Some(TokenSource::File(path)) => out += &format!("token-file = {}\n", text(&path.to_string_lossy())),
            Some(TokenSource::Env(name)) => out += &format!("token-env = {}\n", text(name)),
        }
    }
    out
}
