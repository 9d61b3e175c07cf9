//! What is on another machine, and the program that is copied there: one shell there, over one connection, which says what
//! it finds and then does one thing, or nothing (`there.sh`).
//!
//! What it says is bounded in size and time, and never shown but as plain text.

use super::command::{Leader, Orphan, Way};
use super::stderr::{self, StderrTail};
use super::why;
use crate::control::pipe::lines::{AnyHello, FromHost, SCHEMA};
use pilotlight_core::text::plain;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

const SCRIPT: &str = include_str!("there.sh");
/// The first line of what the script says.
const MARK: &str = "pilotlight-there";
/// What makes a POSIX shell of whatever shell reads the input there, and has it say so: what starts with a shell may have taken
/// the place of the one that was asked for, or reads lines of the input, for which some blank ones come first. All shells
/// understand it, and nothing follows before it was said: a shell may read ahead.
const TAKE_OVER: &str = "\n\n\necho pilotlight-shell; exec sh\n";
/// What it says.
const SHELL: &str = "pilotlight-shell";
/// A line of it: the home has a name that does not fit into one.
const ODD_HOME: &str = "odd-home";
/// How long a machine may take to say what is there.
const LOOK_WITHIN: Duration = Duration::from_secs(30);
/// How long it may take for each piece that is copied, and for each answer.
const PIECE_WITHIN: Duration = Duration::from_secs(30);
/// How long a program that was copied may take to run there.
const CHECK_WITHIN: Duration = Duration::from_secs(60);
/// How long a shell may take to clean up, and to end.
const END_WITHIN: Duration = Duration::from_secs(3);
/// How much is sent at a time, in bytes.
const PIECE: usize = 64 << 10;
/// What a shell of Windows says of `sh`.
const NO_COMMAND: &str = "is not recognized";
/// Maximum length of a line, and of all lines, in bytes.
const LINE_MAX: usize = 4 << 10;
const LINES_MAX: usize = 64 << 10;
/// How much may be printed by what starts with a shell, before it is one, in bytes.
const NOISE_MAX: usize = 64 << 10;
/// Maximum length of what is quoted, in characters.
const QUOTED_MAX: usize = 160;

/// What is on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteInfo {
    /// Its system and architecture, as this program names its own.
    pub system: Box<str>,
    pub architecture: Box<str>,
    /// The user's home there.
    pub home: String,
    /// Each Pilotlight that was found, in the order of preference.
    pub programs: Vec<RemoteProgram>,
    /// Whether something that is not Pilotlight has the place for a program.
    pub is_taken: bool,
    /// By which it is known again under another name.
    pub machine: Option<Box<str>>,
    /// Which of the folders that a program makes for itself are not there, as the script names them.
    pub absent: Vec<Box<str>>,
}

/// What the program there is used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// It has put its bridge into an agent.
    pub has_bridge: bool,
    /// A process that runs from it: its id and its command line.
    pub process: Option<Box<str>>,
}

/// A Pilotlight on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteProgram {
    pub path: String,
    pub version: Box<str>,
    /// Whether it and this one understand each other.
    pub is_understood: bool,
}

/// A shell on another machine that waits for one order. Dropping it ends it.
#[derive(Debug)]
pub struct RemoteShell {
    child: Leader,
    /// Closed once nothing more is sent.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    said: usize,
    /// It has said more than is read.
    is_flooding: bool,
    /// A shell has answered.
    is_shell: bool,
    /// The beginning of a line that is skipped.
    noise: Vec<u8>,
    stderr: StderrTail,
    reading: JoinHandle<()>,
    way: Way,
    /// [`PIECE_WITHIN`].
    patience: Duration,
}

impl Drop for RemoteShell {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// What became of a program that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    Now,
    Before,
    /// It is another one by now, and was left alone.
    Changed,
}

impl RemoteInfo {
    /// Takes in a line, and returns whether more follow.
    fn take(&mut self, line: &str) -> bool {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "system" => self.system = system(value),
            "machine" => self.architecture = architecture(value),
            "home" => self.home = value.to_owned(),
            "program" => self.programs.push(RemoteProgram { path: value.to_owned(), ..RemoteProgram::default() }),
            "version" => {
                let version = plain(value.strip_prefix("pilotlight ").unwrap_or(value), QUOTED_MAX);
                self.programs.last_mut().into_iter().for_each(|found| found.version = version.clone());
            }
            "hello" => {
                if let Ok(FromHost::Pilotlight(hello)) = serde_json::from_str(value) {
                    self.machine = hello.machine;
                }
                let hello = serde_json::from_str::<AnyHello>(value).ok();
                let is_understood = hello.is_some_and(|hello| hello.pilotlight.schema == SCHEMA);
                self.programs.last_mut().into_iter().for_each(|found| found.is_understood = is_understood);
            }
            "absent" => self.absent = value.split(' ').filter(|name| !name.is_empty()).map(Into::into).collect(),
            "taken" => self.is_taken = true,
            _ => {}
        }
        key != "ready"
    }

    /// The program that can be used as it is.
    pub fn usable(&self) -> Option<&RemoteProgram> {
        self.programs.iter().find(|found| found.is_understood)
    }

    /// Whether a program of this system and architecture may run there.
    pub fn is_like_here(&self) -> bool {
        *self.system == *std::env::consts::OS && *self.architecture == *std::env::consts::ARCH
    }

    /// Where a program is copied to.
    pub fn own_path(&self) -> String {
        format!("{}/.local/bin/pilotlight", self.home)
    }
}

/// The name of a system as this program's own would be, from what `uname -s` prints.
fn system(printed: &str) -> Box<str> {
    match printed {
        "Darwin" => "macos".into(),
        other => plain(other, 20).to_lowercase().into(),
    }
}

/// The name of an architecture, from what `uname -m` prints.
fn architecture(printed: &str) -> Box<str> {
    match printed {
        "amd64" => "x86_64".into(),
        "arm64" => "aarch64".into(),
        other => plain(other, 20),
    }
}

impl RemoteShell {
    /// Connects, and looks what is there.
    ///
    /// # Errors
    /// Why that was not possible, in words for the user.
    pub async fn start(way: Way) -> Result<(Self, RemoteInfo), String> {
        let mut shell = Self::connect(way)?;
        let deadline = Instant::now() + LOOK_WITHIN;
        let looked = timeout_at(deadline, shell.look()).await;
        match looked {
            Ok(Ok(info)) => Ok((shell, info)),
            Ok(Err(why)) => Err(why),
            Err(_) if shell.is_shell => Err(shell.unanswered()),
            Err(_) => Err(shell.silent()),
        }
    }

    fn connect(way: Way) -> Result<Self, String> {
        // Ctrl-C is for this program, which then has the shell clean up.
        let (child, (to, from, said)) = Leader::piped(&way.words(&["sh"]), Orphan::TidiesUp)?;
        let stderr = StderrTail::default();
        let reading = tokio::spawn(stderr.clone().read(said));
        let from = BufReader::new(from);
        Ok(Self {
            child,
            to: Some(to),
            from,
            said: 0,
            is_flooding: false,
            is_shell: false,
            noise: Vec::new(),
            stderr,
            reading,
            way,
            patience: PIECE_WITHIN,
        })
    }

    async fn look(&mut self) -> Result<RemoteInfo, String> {
        // A connection that fails shows in what is read.
        let _ = self.send(TAKE_OVER.as_bytes()).await;
        if !self.skip_to(SHELL).await {
            return Err(self.no_shell().await);
        }
        self.is_shell = true;
        let _ = self.send(SCRIPT.as_bytes()).await;
        if !self.skip_to(MARK).await {
            return Err(self.no_shell().await);
        }
        self.said = 0;
        let mut info = RemoteInfo::default();
        while let Some(line) = self.line().await {
            if line == ODD_HOME {
                return Err("the name of the user's home there has a line break, which no setting can name".into());
            }
            if !info.take(&line) {
                return if info.home.starts_with('/') { Ok(info) } else { Err("the user has no home there".into()) };
            }
        }
        Err(self.no_shell().await)
    }

    /// Copies a program there, which is checked before it gets its name. Calls `progress` with the number of bytes that are
    /// sent. Returns the sum by which it is known again.
    ///
    /// # Errors
    /// Why it is not there, in words for the user. Nothing was changed then.
    pub async fn copy(&mut self, program: &[u8], mut progress: impl FnMut(usize)) -> Result<String, String> {
        let order = format!("copy {} {SCHEMA}\n", program.len());
        let patience = self.patience;
        let asked = async {
            let _ = self.send(order.as_bytes()).await; // what is read says why
            self.line().await
        };
        match timeout(patience, asked).await {
            Ok(Some(line)) if line == "send" => {}
            Ok(other) => return Err(self.refused(other).await),
            Err(_) => return Err(format!("{}; nothing was changed", self.unanswered())),
        }
        for (nth, piece) in program.chunks(PIECE).enumerate() {
            match timeout(self.patience, self.send(piece)).await {
                Ok(Ok(())) => progress(nth * PIECE + piece.len()),
                // It says why.
                Ok(Err(_)) => break,
                Err(_) => {
                    return Err(format!("it took nothing for {} s; nothing was changed", self.patience.as_secs()));
                }
            }
        }
        self.to = None;
        let mut sum = None;
        let deadline = Instant::now() + CHECK_WITHIN;
        loop {
            let Ok(line) = timeout_at(deadline, self.line()).await else {
                let within = CHECK_WITHIN.as_secs();
                return Err(format!("it did not say within {within} s whether the program runs there"));
            };
            match (line, &sum) {
                (Some(line), _) if line.starts_with("sum ") => sum = Some(line["sum ".len()..].to_owned()),
                (Some(line), Some(sum)) if line.starts_with("done ") => return Ok(sum.clone()),
                (other, _) => return Err(self.refused(other).await),
            }
        }
    }

    /// Sends nothing more, and waits until what was begun is undone.
    pub async fn give_up(&mut self) {
        self.to = None;
        let _ = timeout(END_WITHIN, self.child.wait()).await; // else its end undoes it
        if !self.reading.is_finished() {
            let _ = timeout(END_WITHIN, &mut self.reading).await; // else what was read has to do
        }
    }

    /// What the program there is used for, if it is still the one with this sum. Processes of a connection that is just ending are waited for.
    ///
    /// # Errors
    /// Why that is not known, in words for the user.
    pub async fn uses(&mut self, sum: &str) -> Result<Uses, String> {
        let patience = self.patience;
        let told = async {
            let _ = self.send(format!("state {sum}\n").as_bytes()).await; // what is read says why
            let mut uses = Uses::default();
            loop {
                match self.line().await.as_deref() {
                    Some("ready") => return Ok(uses),
                    Some("bridge") => uses.has_bridge = true,
                    Some(line) => match line.strip_prefix("used ") {
                        Some(process) => uses.process = Some(plain(process.trim(), QUOTED_MAX)),
                        None => return Err(self.refused(Some(line.to_owned())).await),
                    },
                    None => return Err(self.refused(None).await),
                }
            }
        };
        let told = timeout(patience, told).await;
        told.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Has the program there take its bridges out of the agents.
    ///
    /// # Errors
    /// Why it is still there, in words for the user.
    pub async fn remove_bridge(&mut self) -> Result<(), String> {
        let removed = async {
            let _ = self.send(b"unbridge\n").await; // what is read says why
            self.line().await
        };
        match timeout(CHECK_WITHIN, removed).await {
            Ok(Some(line)) if line == "unbridged" => Ok(()),
            Ok(other) => Err(self.refused(other).await),
            Err(_) => Err(self.unanswered()),
        }
    }

    /// Removes the program that was copied, if it still has this sum, and what was made for it.
    ///
    /// # Errors
    /// Why it may still be there, in words for the user.
    pub async fn remove(&mut self, sum: &str, made: &[Box<str>]) -> Result<Removed, String> {
        let patience = self.patience;
        let removed = async {
            let _ = self.send(format!("remove {sum} {}\n", made.join(" ")).as_bytes()).await; // what is read says why
            self.to = None;
            self.line().await
        };
        let Ok(told) = timeout(patience, removed).await else { return Err(self.unanswered()) };
        match told.as_deref() {
            Some("removed") => Ok(Removed::Now),
            Some("gone") => Ok(Removed::Before),
            Some("failed changed") => Ok(Removed::Changed),
            other => Err(self.refused(other.map(str::to_owned)).await),
        }
    }

    /// That no shell answers.
    fn silent(&self) -> String {
        let by_hand = "if it works by hand, a startup file of the shell there, such as `.bashrc`, reads what is meant for the shell";
        format!("no shell answered there within {} s; {by_hand}", LOOK_WITHIN.as_secs())
    }

    fn unanswered(&self) -> String {
        format!("its shell was reached, and did not answer within {} s", self.patience.as_secs())
    }

    /// Skips what a shell prints when it starts, up to a line of this script's own, which may come right behind some of that.
    /// Returns whether it came. Cancel-safe.
    async fn skip_to(&mut self, mark: &str) -> bool {
        let is_mark = |noise: &[u8]| noise.strip_suffix(b"\r").unwrap_or(noise).ends_with(mark.as_bytes());
        loop {
            let held = match self.from.fill_buf().await {
                Ok([]) | Err(_) => return false,
                Ok(held) => held,
            };
            let end = memchr::memchr(b'\n', held);
            let taken = end.unwrap_or(held.len());
            self.noise.extend_from_slice(&held[..taken]);
            self.from.consume(taken + usize::from(end.is_some()));
            self.said += taken;
            if self.said > NOISE_MAX {
                self.is_flooding = true;
                return false;
            }
            if end.is_some() && is_mark(&std::mem::take(&mut self.noise)) {
                return true;
            }
            // Of a long line, only its end matters.
            let surplus = self.noise.len().saturating_sub(LINE_MAX);
            self.noise.drain(..surplus);
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let Some(to) = &mut self.to else { return Ok(()) };
        to.write_all(bytes).await?;
        to.flush().await
    }

    /// The next line; `None` if there is none, or it says too much.
    async fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let room = LINE_MAX.min(LINES_MAX - self.said);
        (&mut self.from).take(room as u64).read_until(b'\n', &mut line).await.ok()?;
        self.said += line.len();
        self.is_flooding |= line.len() >= room && !line.ends_with(b"\n");
        let line = line.strip_suffix(b"\n")?;
        Some(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned())
    }

    /// Why the script does not run.
    async fn no_shell(&mut self) -> String {
        if self.is_flooding {
            return flooding();
        }
        self.give_up().await;
        let code = self.child.try_wait().ok().flatten().and_then(|status| status.code());
        if let Some(why) = why::unreached(self.way.is_ssh(), code, &self.stderr.text()) {
            return why;
        }
        // Of a command, the code is its own, unless it passes on that no shell was found.
        if let (Way::Command(_), Some(code)) = (&self.way, code)
            && !why::NOT_FOUND.contains(&code)
            && !self.stderr.text().contains(NO_COMMAND)
        {
            let shown = plain(&self.way.to_string(), QUOTED_MAX);
            return format!("`{shown} sh` ended with exit code {code}{}", self.last_words());
        }
        let what = "no POSIX shell (`sh`) answers there, as on Windows or in an empty image; if Pilotlight is installed there, docs/hosts.md says what to write into the settings";
        format!("{what}{}", self.last_words())
    }

    /// Why an order was not carried out.
    async fn refused(&mut self, said: Option<String>) -> String {
        let said = said.unwrap_or_default();
        let quoted = |text: &str| plain(text, QUOTED_MAX);
        let mut words = said.splitn(3, ' ');
        let (_, what, rest) = (words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // What it complains of may still be on its way.
        self.give_up().await;
        match what {
            "taken" => "~/.local/bin/pilotlight there is something else, or a link, and was left alone".into(),
            "folder" => format!("~/.local/bin there cannot be written{}; nothing was changed", self.last_words()),
            "remove" => format!("it cannot be removed there{}", self.last_words()),
            "write" => format!("it cannot be written there{}; nothing was changed", self.last_words()),
            "bridge" => format!("the bridge could not be removed there: {}", quoted(&said["failed bridge".len()..])),
            "cut" => "it did not arrive whole; nothing was changed".into(),
            "run" => format!("it does not run there, or is not Pilotlight: {}; nothing was changed", quoted(rest)),
            "mute" => {
                let said = match quoted(rest) {
                    nothing if nothing.is_empty() => "it said nothing".into(),
                    said => format!("it said: {said}"),
                };
                format!(
                    "it runs there, but `serve --stdio` does not answer as Pilotlight does ({said}); nothing was changed"
                )
            }
            "version" => {
                let (here, there) = (env!("CARGO_PKG_VERSION"), quoted(rest.trim_start_matches("pilotlight ")));
                format!("its Pilotlight {there} and your {here} do not understand each other; nothing was changed")
            }
            _ if self.is_flooding => flooding(),
            _ => format!("the connection ended{}", self.last_words()),
        }
    }

    /// The last line of what it complained of, after a colon.
    fn last_words(&self) -> String {
        let last = stderr::last_line(&self.stderr.text(), QUOTED_MAX);
        last.map(|line| format!(": {line}")).unwrap_or_default()
    }
}

fn flooding() -> String {
    let (line, noise) = (LINE_MAX >> 10, NOISE_MAX >> 10);
    format!("a startup file there prints too much: more than {noise} KiB, or a line of more than {line} KiB")
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
