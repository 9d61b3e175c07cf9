//! The made-up agent with a log of lines, `<time> TAB <what> TAB <text>`; `sundial` has files that are written anew.

use super::*;
use crate::adapter::Adapter;
use crate::openings::OpenSessions;
use crate::profile::Profile;
use crate::tail::ReadContext;
use pilotlight_core::agent::Names;
use pilotlight_core::event::{Body, ToolResult};
use pilotlight_core::limits::Limits;
use pilotlight_core::scan::{Malformed, Text};
use pilotlight_core::time::Span;
use pilotlight_system::clock::Clock;
use pilotlight_system::watcher::{Logs, WatchPlan};
use std::collections::HashSet;
use std::io::Write;

const PROFILE: Profile = Profile {
    names: Names::new("hourglass", "Hourglass", "Hourgl."),
    home: ".hourglass",
    home_variable: "HOURGLASS_HOME",
    is_home: |home| home.join("turns").is_dir(),
    sessions: "turns",
    watch_plan: WatchPlan {
        logs: Some(Logs { folder: "hands", pid: |file| file.parse().ok(), names_session: false }),
        ..WatchPlan::files(0, |file| file.strip_suffix(".log"))
    },
    ..Profile::SHOWN
};

struct Hourglass;

impl Adapter for Hourglass {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn open(&self, home: &Home, id: &str, path: PathBuf) -> Reader {
        reader(home, id, path, Contents::Lines { log_format: &LOG_FORMAT, about }, "sand cannot be stopped")
    }

    fn log_format(&self) -> Option<&'static LogFormat> {
        Some(&LOG_FORMAT)
    }

    fn scanner(&self) -> Option<Box<dyn SessionScanner>> {
        scanner(|text| text.strip_prefix("turns "))
    }
}

static LOG_FORMAT: LogFormat = LogFormat::of(
    |log| log.split(|byte| *byte == b'\n').next().is_some_and(|line| parse(line).is_ok()),
    parse,
    |line| matches!(parse(line), Ok(Event { body: Body::Prompt { .. }, .. })),
);

fn parse(line: &[u8]) -> Result<Event<'_>, Malformed> {
    let mut parts = line.splitn(3, |byte| *byte == b'\t');
    let (Some(at), Some(what), Some(text)) = (parts.next().and_then(Time::parse), parts.next(), parts.next()) else {
        return Err(Malformed);
    };
    let body = match what {
        b"asked" => Body::prompt(),
        b"pours" => Body::tool(Text(b"sand"), Text(b"sand"), Some(Text(text))),
        b"poured" => Body::tool_done(Text(b"sand"), ToolResult::Success),
        b"said" => Body::Answer { asks: text.ends_with(b"?"), model: None },
        _ => return Err(Malformed),
    };
    Ok(Event::of(what, at, body))
}

/// Its title is its first prompt.
fn about(log: &[u8]) -> About {
    let first = log.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let title = first.rsplit(|byte| *byte == b'\t').next().filter(|title| !title.is_empty());
    About { name: title.map(|title| String::from_utf8_lossy(title).into()), ..About::default() }
}

/// A home, and what was observed of its one session.
struct World {
    home: tempfile::TempDir,
    reader: Reader,
    observed: Observed,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("turns")).unwrap();
        fs::write(home.path().join("turns/one.log"), "").unwrap();
        fs::create_dir_all(home.path().join("hands")).unwrap();
        let reader = Home::of(&Hourglass, home.path().to_owned()).reader("one");
        Self { home, reader, observed: Observed::default() }
    }

    fn home(&self) -> Home {
        Home::of(&Hourglass, self.home.path().to_owned())
    }

    fn write(&self, what: &str, text: &str) {
        let mut log = fs::File::options().append(true).open(self.home.path().join("turns/one.log")).unwrap();
        writeln!(log, "{}\t{what}\t{text}", Clock::start().now().wall).unwrap();
    }

    fn read(&mut self) {
        let now = Clock::start().now();
        let mut scanner = Hourglass.scanner().unwrap();
        let open = OpenSessions::new(scanner.advance(&[&self.home()], &[], now.wall, None).unwrap());
        let context = ReadContext { now, limits: &Limits::default(), until: None };
        let reading = Reading { context, owner_names: &[], known: &HashSet::new(), openings: &open, all: false };
        self.reader.refresh(&reading, &mut self.observed, &mut Vec::new()).unwrap();
    }
}

#[test]
fn a_log_of_lines_is_followed() {
    let mut world = World::new();
    world.write("asked", "Turn it over");
    world.write("pours", "the upper half");
    world.read();
    assert_eq!(world.observed.about.name.as_deref(), Some("Turn it over"));
    assert_eq!(world.reader.about().name.as_deref(), Some("Turn it over"));
    assert_eq!((world.observed.facts.events, &world.observed.owner), (2, &Owner::Never));
    assert!(world.observed.facts.turn.is_some() && world.observed.problem.is_none());
    world.write("poured", "");
    world.write("said", "Again?");
    world.write("nonsense", "");
    world.read();
    assert_eq!(world.observed.facts.events, 4);
    assert!(world.observed.facts.turn.is_none());
    world.reader.forget_log();
    world.read();
    assert_eq!(world.observed.facts.events, 4, "read from the start, once");
}

#[test]
fn the_process_that_names_a_session_owns_it_until_it_ends() {
    let mut world = World::new();
    world.write("asked", "");
    let pid = std::process::id();
    let hand = world.home.path().join("hands").join(pid.to_string());
    fs::write(&hand, "minutes").unwrap();
    world.read();
    assert_eq!(world.observed.owner, Owner::Never, "it names no session");
    fs::write(&hand, "turns one").unwrap();
    world.read();
    assert_eq!(world.observed.owner, Owner::Alive { pid, started: None });
    assert_eq!((world.reader.pids(), world.observed.holders.clone()), (vec![pid], vec![pid]));
    fs::remove_file(&hand).unwrap();
    world.read();
    assert_eq!(world.observed.owner, Owner::Gone { pid, at: None });
    let ended = Clock::start().now().wall;
    world.observed.owner = Owner::Alive { pid, started: None };
    world.reader.process_ended(&mut world.observed, pid, ended);
    assert_eq!(world.observed.owner, Owner::Gone { pid, at: Some(ended) });
}

#[test]
fn sessions_are_found_by_the_layout() {
    let world = World::new();
    fs::write(world.home.path().join("turns/notes.txt"), "").unwrap();
    let listing = world.home().list().unwrap();
    assert_eq!(listing.logs().get("one"), Some(&world.home.path().join("turns/one.log")));
    assert_eq!(listing.map(|id| id.to_string()).collect::<Vec<_>>(), ["one"]);
    assert!(world.home().has("one") && !world.home().has("notes"));
    let old = world.home.path().join("turns/old.log");
    fs::write(&old, "2024-02-29T00:00:00.000Z\tasked\tx\n").unwrap();
    let written = std::time::SystemTime::UNIX_EPOCH + Span::hours(1).to_std();
    fs::File::options().append(true).open(&old).unwrap().set_modified(written).unwrap();
    let mut world = World { reader: world.home().reader("old"), ..world };
    world.read();
    assert!(world.observed.unread && world.observed.facts.events == 0, "it is history");
}
