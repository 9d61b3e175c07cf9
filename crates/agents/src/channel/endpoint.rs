//! Where a server can be reached, and the secret to present there.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server's secret. Its `Debug` hides it, so that no log or message prints it by mistake.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Box<str>);

/// A server's address, and the token to present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A loopback address.
    pub address: SocketAddr,
    /// `None` if it requires none, or none is known.
    pub token: Option<Token>,
}

/// A server from the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSetting {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its token is, `None` for a server without one.
    pub token: Option<TokenSource>,
}

/// Where a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// In this file, possibly surrounded by white space.
    File(PathBuf),
    /// In this variable of our environment.
    Env(String),
}

impl Token {
    /// The longest token, in bytes.
    pub(crate) const LENGTH_MAX: usize = 4096;

    /// Creates a token. Returns `None` if the text is empty, longer than [`Token::LENGTH_MAX`], or has control
    /// characters.
    pub fn new(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.len() <= Self::LENGTH_MAX && !text.chars().any(char::is_control);
        fits.then(|| Self(text.into()))
    }

    /// The secret itself, for the server alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
