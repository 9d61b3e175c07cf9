//! The keys of `[[server]]`, and the forms of their values.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::form::{Form, Wrong, as_path, quoted, text};

/// The name of the table.
pub(super) const TABLE: &str = "server";
/// How it is written.
pub(super) const HEAD: &str = "[[server]]";
/// The keys of a server, each with its form.
pub(super) const KEYS: [(&str, &str); 3] =
    [("address", ADDRESS.text), ("token-file", TOKEN_FILE.text), ("token-env", TOKEN_ENV.text)];

/// Only loopback: prompts and tokens are sent unencrypted.
pub(super) const ADDRESS: Form<SocketAddr> = Form {
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

pub(super) const TOKEN_FILE: Form<PathBuf> = Form {
    text: "the file that holds its token, absolute or beginning with ~/",
    read: |value| as_path(text(value)?).map_err(|why| Wrong::new(value, format!("this {why}"))),
    show: |path| quoted(&path.to_string_lossy()),
};

pub(super) const TOKEN_ENV: Form<String> = Form {
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
