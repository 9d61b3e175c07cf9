//! `pilotlight report`: what an agent's own hook says of its session.
//!
//! An agent waits for its hook, reads what it prints, and takes exit code 2 for a veto. So this reads no settings, waits
//! for no tray, prints nothing, and fails with 1, whatever is wrong.

use super::command_line;
use super::report::exit_code;
use anyhow::{Context as _, Error};
use clap::ValueEnum;
use clap::error::ContextKind;
use pilotlight_agents::reported::{Report, State, agent_name, caller, homes, put, session_id};
use pilotlight_core::scan::Scan;
use pilotlight_core::time::Time;
use pilotlight_system::clock::wall_nanoseconds;
use pilotlight_system::deadline::run_within;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{PathBuf, absolute};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most bytes of standard input that are looked at for the session's id.
const INPUT_MAX: usize = 1 << 20;
/// How long to wait for standard input. Agents write it at once.
const PATIENCE: Duration = Duration::from_secs(1);
/// The names under which agents give their hooks the session's id.
const ID_NAMES: [&[u8]; 5] = [b"session_id", b"sessionId", b"sessionID", b"conversation_id", b"conversationId"];
/// The longest value that is taken from standard input, in characters.
const VALUE_MAX: usize = 4096;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The agent's name: up to 32 lower-case letters, digits and hyphens
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// The session's id; '-' reads it from the JSON that most agents give their hooks on standard input
    #[arg(long, value_name = "ID")]
    session: String,
    /// What the session is doing
    #[arg(long, value_name = "STATE")]
    state: Does,
    /// Why, in a few words
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<OsString>,
    /// The folder that the session works in. Default: the folder that the hook runs in
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The session's title, kept until another one is reported
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Does {
    /// The session works
    Working,
    /// It waits for your permission or answer
    Blocked,
    /// It is done, and waits for your next prompt
    Idle,
    /// It is over
    Ended,
}

/// Whether this command line asks for `report`, however wrong the rest of it is.
pub(super) fn is_asked_for(words: impl IntoIterator<Item = OsString>) -> bool {
    let matches = command_line().ignore_errors(true).try_get_matches_from(words);
    matches.is_ok_and(|matches| matches.subcommand_name() == Some("report"))
}

/// What is wrong with a command line that asks for `report`, in one line: agents show their users what a hook says.
pub(super) fn usage(error: &clap::Error) -> String {
    let about = |kinds: &[ContextKind]| {
        let told = kinds.iter().filter_map(|kind| error.get(*kind)).map(ToString::to_string);
        told.filter(|told| !told.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let what = about(&[ContextKind::InvalidArg, ContextKind::InvalidSubcommand, ContextKind::InvalidValue]);
    let may_be = about(&[ContextKind::ValidValue]);
    let kind = error.kind().as_str().unwrap_or("the command line is wrong");
    let what = if what.is_empty() { what } else { format!(": {what}") };
    let may_be = if may_be.is_empty() { may_be } else { format!("; it may be {may_be}") };
    format!("{kind}{what}{may_be}. `pilotlight report --help` says more")
}

/// Reports what was given at `began`, in nanoseconds since 1970.
pub(super) fn run(arguments: &Arguments, began: i64) -> ExitCode {
    exit_code(report(arguments, began).map(|()| ExitCode::SUCCESS))
}

fn report(arguments: &Arguments, began: i64) -> anyhow::Result<()> {
    let agent = agent_name(&arguments.agent).map_err(Error::msg)?;
    let given = match &*arguments.session {
        "-" => Given::read(io::stdin())?,
        id => Given { session: Some(session_id(id).map_err(Error::msg)?), cwd: None },
    };
    let text = |text: &OsStr| -> Box<str> { text.to_string_lossy().into() };
    let report = Report {
        agent,
        session: given.session.context("standard input has no session's id in its JSON: name it with --session ID")?,
        state: match arguments.state {
            Does::Working => State::Working,
            Does::Blocked => State::Blocked,
            Does::Idle => State::Idle,
            Does::Ended => State::Ended,
        },
        reason: arguments.reason.as_deref().map(text),
        title: arguments.title.as_deref().map(text),
        cwd: arguments.cwd.as_ref().map(|cwd| text(absolute(cwd).as_deref().unwrap_or(cwd).as_os_str())).or(given.cwd),
        here: std::env::current_dir().ok().map(|here| text(here.as_os_str())),
        at: began,
        process: caller(Time(began / 1_000_000)),
    };
    put(&homes(), &report, wall_nanoseconds)
}

/// What an agent gives its hook on standard input.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given {
    session: Option<Box<str>>,
    cwd: Option<Box<str>>,
}

impl Given {
    /// Reads it to its end, which is dropped where it is long: an agent whose hook does not read may fail.
    fn read(mut input: impl Read + Send + 'static) -> anyhow::Result<Self> {
        let read = Arc::<Mutex<Vec<u8>>>::default();
        let into = Arc::clone(&read);
        let work = move || {
            let mut buffer = [0; 16 << 10];
            while let Ok(n @ 1..) = input.read(&mut buffer) {
                let mut read = into.lock().unwrap_or_else(PoisonError::into_inner);
                let room = INPUT_MAX.saturating_sub(read.len()).min(n);
                read.extend_from_slice(&buffer[..room]);
            }
        };
        // What is there by then may be enough: some agents do not close it.
        let _ = run_within("input", PATIENCE, work).context("the system refuses a thread")?;
        let read = read.lock().unwrap_or_else(PoisonError::into_inner);
        Self::parse(&read)
    }

    fn parse(json: &[u8]) -> anyhow::Result<Self> {
        let mut given = Self::default();
        let mut session = None;
        // A text that is cut off, or broken further on, may have said it before.
        let _ = Scan::new(json).object(|key, value| {
            let is_id = ID_NAMES.contains(&key);
            if !is_id && key != b"cwd" {
                return value.skip();
            }
            let text = value.text()?.map(|text| Box::<str>::from(text.read(VALUE_MAX)));
            let place = if is_id { &mut session } else { &mut given.cwd };
            *place = place.take().or(text);
            Ok(())
        });
        given.session = session.map(|id| session_id(&id)).transpose().map_err(Error::msg)?;
        Ok(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn case_273_the_id_is_taken_from_the_json_that_agents_give_their_hooks() {
        let given = |json: &str| Given::parse(json.as_bytes()).unwrap();
        let of = |session: &str, cwd: Option<&str>| Given { session: Some(session.into()), cwd: cwd.map(Into::into) };
        let hook = r#"{"session_id":"0c6b","transcript_path":"/x","cwd":"/srv/a\"b","hook_event_name":"Stop"}"#;
        assert_eq!(given(hook), of("0c6b", Some("/srv/a\"b")));
        assert_eq!(given(r#"{"tool":{"session_id":"inner"},"conversation_id":"c-1"}"#), of("c-1", None));
        for name in ["sessionId", "sessionID", "conversationId"] {
            assert_eq!(given(&format!(r#"{{ "{name}" : "s" }}"#)), of("s", None));
        }
        for nothing in ["", "{", "[]", "null", "\"session_id\"", r#"{"session_id":7}"#, "\u{0}"] {
            assert_eq!(given(nothing).session, None, "{nothing}");
        }
        for hostile in [r#"{"session_id":"../../x"}"#, r#"{"session_id":"a\u001b[2J"}"#, r#"{"session_id":""}"#] {
            assert!(Given::parse(hostile.as_bytes()).is_err(), "{hostile}");
        }
    }

    #[test]
    fn case_273_standard_input_is_bounded_in_size_and_time_and_read_to_its_end() {
        let long = format!(r#"{{"session_id":"s","response":"{}"}}"#, "x".repeat(5 << 20));
        assert_eq!(Given::read(Cursor::new(long)).unwrap().session.as_deref(), Some("s"));
        let late = format!(r#"{{"response":"{}","session_id":"s"}}"#, "x".repeat(5 << 20));
        assert_eq!(Given::read(Cursor::new(late)).unwrap().session, None);
        // One that is never closed.
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, br#"{"session_id":"s"}"#).unwrap();
        assert_eq!(Given::read(reader).unwrap().session.as_deref(), Some("s"));
    }

    #[test]
    fn case_273_a_report_is_recognised_however_wrong_it_is() {
        let asked = |line: &str| is_asked_for(line.split(' ').map(Into::into));
        assert!(asked("pilotlight report --agent") && asked("pilotlight --home x report --bogus"));
        assert!(asked("pilotlight report --agent A --session / --state dead"));
        assert!(!asked("pilotlight status report") && !asked("pilotlight --bogus"));
    }
}
