//! `[[server]]`: Copilot servers that the user names, a table each.
//!
//! Tokens stay out of the config, which is printed, shared and kept under version control: a server's token is in a
//! file or an environment variable that the config names. Because a user may have put a token here by mistake, no
//! problem quotes a value, except a valid address. Anything wrong with a server drops the whole server: without its
//! token, or with another address, it would only fail later.

use std::collections::BTreeSet;

use toml::de::DeTable;

use super::form::{Form, Value, Wrong, as_path, quoted, text};
use super::problem::Problems;
use super::tables;
use pilotlight_agents::channel::endpoint::{ServerSetting, TokenSource};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The name of the table.
pub(super) const TABLE: &str = "server";
/// How it is written.
pub(super) const HEAD: &str = "[[server]]";
/// The keys of a server, each with its form.
pub(super) const KEYS: [(&str, &str); 3] =
    [("address", ADDRESS.text), ("token-file", TOKEN_FILE.text), ("token-env", TOKEN_ENV.text)];

/// Only loopback: prompts and tokens are sent unencrypted.
const ADDRESS: Form<SocketAddr> = Form {
    text: "an address of this machine with its port, such as \"127.0.0.1:4321\" or \"[::1]:4321\"",
    read: |value| {
        let text = text(value)?;
        let Ok(written) = text.parse::<SocketAddr>() else {
            let is_name = text.starts_with("localhost:");
            return Err(Wrong::new(value, if is_name { "names are not looked up" } else { "this is not one" }));
        };
        let address = SocketAddr::new(written.ip().to_canonical(), written.port());
        if !address.ip().is_loopback() {
            let what = format!("{address} is not on this machine's loopback, and nothing is sent anywhere else");
            Err(Wrong::new(value, what))
        } else if address.port() == 0 {
            Err(Wrong::new(value, "0 is not a port"))
        } else {
            Ok(address)
        }
    },
    show: |address| quoted(&address.to_string()),
};

const TOKEN_FILE: Form<PathBuf> = Form {
    text: "the file that holds its token, absolute or beginning with ~/",
    read: |value| as_path(text(value)?).map_err(|why| Wrong::new(value, format!("this {why}"))),
    show: |path| quoted(&path.to_string_lossy()),
};

const TOKEN_ENV: Form<String> = Form {
    text: "the name of the environment variable that holds its token",
    read: |value| {
        let text = text(value)?;
        let is_name = text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        if text.is_empty() || !is_name || text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Wrong::new(value, "this is not one"));
        }
        Ok(text.to_owned())
    },
    show: |name| quoted(name),
};

/// Reads all servers. A wrong one is reported and left out.
pub(super) fn read(key: usize, value: &Value<'_>, report: &mut Problems<'_>) -> Vec<ServerSetting> {
    let (mut servers, mut addresses) = (Vec::new(), BTreeSet::new());
    for (at, table) in tables::read(TABLE, HEAD, key, value, report) {
        match read_one(at, table, report) {
            Ok(server) if addresses.insert(server.address) => servers.push(server),
            Ok(server) => {
                let what = format!("there is a server at {} already", server.address);
                report.add(Some(at), what, "This one is ignored");
            }
            Err(wrong) => report.add(Some(wrong.at), wrong.what, "This server is ignored"),
        }
    }
    servers
}

fn read_one(at: usize, table: &DeTable<'_>, report: &mut Problems<'_>) -> Result<ServerSetting, Wrong> {
    if let Some((key, _)) = table.get_key_value("token") {
        let what = "a token must not be in the settings: `token-file` names a file that holds it, `token-env` an environment variable";
        return Err(Wrong { at: key.span().start, what: what.into() });
    }
    tables::report_unknown(TABLE, &KEYS, table, report);
    let address = tables::value(TABLE, table, "address", &ADDRESS)?;
    let address = address.ok_or_else(|| Wrong { at, what: "a server needs an `address`".into() })?;
    let file = tables::value(TABLE, table, "token-file", &TOKEN_FILE)?.map(TokenSource::File);
    let variable = tables::value(TABLE, table, "token-env", &TOKEN_ENV)?.map(TokenSource::Env);
    if file.is_some() && variable.is_some() {
        return Err(Wrong { at, what: "`token-file` and `token-env` both say where the token is".into() });
    }
    Ok(ServerSetting { address, token: file.or(variable) })
}

/// The servers as TOML, after an explanation of the keys.
pub(super) fn print(servers: &[ServerSetting]) -> String {
    let mut out = format!("\n# Copilot servers besides those that are found automatically, a table each:\n# {HEAD}\n");
    out += &tables::explained(&KEYS);
    out += "# Leave out the last two for a server that needs no token. Default: none\n";
    for ServerSetting { address, token } in servers {
        out += &format!("\n{HEAD}\naddress = {}\n", (ADDRESS.show)(address));
        match token {
            None => {}
            Some(TokenSource::File(path)) => out += &format!("token-file = {}\n", (TOKEN_FILE.show)(path)),
            Some(TokenSource::Env(name)) => out += &format!("token-env = {}\n", (TOKEN_ENV.show)(name)),
        }
    }
    out
}
