//! The script of the demo: a table of sessions, and of what each does when. The stage and the tests read it.
//!
//! The first thing that it shows is a session that asks for a permission. Fifty-five seconds in, every status is on show
//! at once. The script takes two minutes and then repeats.

use pilotlight_core::time::Span;

/// A scripted session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    /// Its title. It says that this is a demo, wherever it is shown.
    pub title: &'static str,
    /// The name of its working folder.
    pub folder: &'static str,
    /// Its git branch.
    pub branch: &'static str,
    /// What its client calls itself: `github/cli`, or `sdk`.
    pub client: &'static str,
}

/// A [`Role`], by its index in [`CAST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// Works steadily.
    Login,
    /// Waits for permissions.
    Packages,
    /// Asks the user.
    Colours,
    /// Falls silent after its tools.
    Database,
    /// Takes its time to finish.
    Notes,
    /// Loses its permissions.
    Cleanup,
    /// Crashes.
    Photos,
    /// Fails.
    Manual,
    /// Is never prompted.
    Logs,
    /// Ends early.
    Icon,
    /// Thinks for a long time.
    Stars,
}

impl Who {
    /// In the order of [`CAST`].
    pub(super) const ALL: [Self; CAST.len()] = [
        Self::Login,
        Self::Packages,
        Self::Colours,
        Self::Database,
        Self::Notes,
        Self::Cleanup,
        Self::Photos,
        Self::Manual,
        Self::Logs,
        Self::Icon,
        Self::Stars,
    ];
}

impl Role {
    /// Whether a program runs it, over a server.
    pub(super) fn has_server(&self) -> bool {
        self.client == SDK
    }
}

/// What the client of a program's session calls itself.
const SDK: &str = "sdk";

const fn role(title: &'static str, folder: &'static str, branch: &'static str) -> Role {
    Role { title, folder, branch, client: "github/cli" }
}

/// Every scripted session, in the order of [`Who`].
pub(crate) const CAST: [Role; 11] = [
    role("Demo: Fix the login page", "website", "login"),
    role("Demo: Update the packages", "website", "main"),
    role("Demo: Choose the colours", "paint-shop", "main"),
    role("Demo: Migrate the database", "shop", "postgres"),
    role("Demo: Write the release notes", "shop", "main"),
    Role { client: SDK, ..role("Demo: Nightly clean-up", "archive", "main") },
    role("Demo: Sort the photos", "archive", "photos"),
    role("Demo: Translate the manual", "manual", "french"),
    role("Demo: Read the logs", "server", "main"),
    role("Demo: Draw the icon", "paint-shop", "icon"),
    role("Demo: Count the stars", "observatory", "main"),
];

/// An act of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Its process starts, unless it is running.
    Enter,
    /// The user prompts: a turn opens.
    Prompt(&'static str),
    /// A tool starts: its name, and its command or path.
    Tool(&'static str, &'static str),
    /// A tool starts that asks the user this, with these answers to choose from.
    Ask(&'static str, &'static [&'static str]),
    /// The user has answered it.
    Answered,
    /// The open tool succeeds.
    Done,
    /// The open tool needs a permission for this command.
    Wants(&'static str),
    /// The permission is granted.
    Allowed,
    /// The user refuses it. That ends the turn.
    Refused,
    /// The user stops the turn.
    Abort,
    /// The open tool is denied, because nobody could be asked.
    Denied,
    /// The last message of a turn.
    Answer(&'static str),
    /// The end of a turn.
    End,
    /// The turn ends in an error.
    Fail(&'static str),
    /// The session is shut down, and its process ends.
    ShutDown,
    /// Its process is killed.
    Crash,
}

/// One line of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    /// Seconds from the start.
    pub at: u32,
    pub who: Who,
    pub act: Act,
}

/// The length of the script, in seconds.
pub const LENGTH: u32 = 120;

/// The script, in chronological order.
pub(crate) const SCRIPT: &[Beat] = &{
    use Act::{Allowed, Answer, Answered, Ask, Crash, Denied, Done, End, Enter, Fail, Prompt, ShutDown, Tool, Wants};
    use Who::{Cleanup, Colours, Database, Icon, Login, Logs, Manual, Notes, Packages, Photos, Stars};
    [
        on(0, Login, Enter),
        on(0, Packages, Enter),
        on(0, Colours, Enter),
        on(0, Database, Enter),
        on(0, Notes, Enter),
        on(0, Cleanup, Enter),
        on(0, Photos, Enter),
        on(0, Manual, Enter),
        on(0, Logs, Enter),
        on(0, Icon, Enter),
        on(0, Stars, Enter),
        on(0, Packages, Prompt("Update the packages, and run the tests.")),
        on(1, Packages, Tool("bash", "npm update")),
        on(1, Packages, Wants("npm update")),
        on(1, Login, Prompt("The login page forgets who I am. Find out why, and fix it.")),
        on(1, Icon, Prompt("Draw an icon of a flame.")),
        on(2, Photos, Prompt("Sort the photos by year.")),
        on(3, Login, Tool("view", "src/login.ts")),
        on(3, Cleanup, Prompt("Delete what is older than a month.")),
        on(4, Manual, Prompt("Translate the manual into French.")),
        on(4, Database, Prompt("Move the shop to PostgreSQL.")),
        on(5, Cleanup, Tool("bash", "find . -mtime +30 -delete")),
        on(5, Icon, Tool("create", "icon.svg")),
        on(6, Login, Done),
        on(6, Database, Tool("bash", "pg_dump --schema-only shop")),
        on(7, Login, Tool("bash", "npm test -- login")),
        on(8, Icon, Done),
        on(9, Icon, Answer("The icon is drawn.")),
        on(9, Icon, End),
        on(9, Photos, Tool("bash", "exiftool -r -d %Y photos")),
        on(10, Database, Done),
        on(11, Cleanup, Denied),
        on(12, Icon, ShutDown),
        on(13, Cleanup, Tool("bash", "rm -r old")),
        on(14, Colours, Prompt("Paint the shop window.")),
        on(15, Colours, Ask("Warm colours or cold ones?", &["Warm", "Cold"])),
        on(16, Notes, Prompt("Write the release notes from the commits.")),
        on(17, Cleanup, Denied),
        on(18, Cleanup, Tool("bash", "mv old /tmp")),
        on(19, Login, Done),
        on(20, Manual, Fail("the model answered with status 500")),
        on(21, Cleanup, Denied),
        on(22, Login, Tool("edit", "src/session.ts")),
        on(23, Cleanup, Answer("I may not change anything here.")),
        on(23, Cleanup, End),
        on(24, Notes, Tool("bash", "git log --oneline v1.0..")),
        on(25, Photos, Crash),
        on(28, Notes, Done),
        on(30, Stars, Prompt("Count the stars in the picture.")),
        on(32, Login, Done),
        on(33, Login, Tool("bash", "npm test -- login")),
        on(40, Notes, Tool("create", "NOTES.md")),
        on(42, Notes, Done),
        on(44, Login, Done),
        on(46, Login, Tool("bash", "npm run lint")),
        on(52, Notes, Answer("The notes are in NOTES.md.")),
        on(60, Notes, End),
        on(61, Login, Done),
        on(62, Stars, Tool("bash", "python3 count.py sky.png")),
        on(63, Login, Tool("bash", "npm test")),
        on(66, Stars, Done),
        on(68, Packages, Allowed),
        on(70, Colours, Answered),
        on(70, Colours, Done),
        on(72, Stars, Answer("There are 4,711 stars in it.")),
        on(72, Stars, End),
        on(74, Packages, Done),
        on(76, Packages, Tool("bash", "npm test")),
        on(78, Colours, Tool("edit", "window.css")),
        on(80, Login, Done),
        on(82, Colours, Done),
        on(86, Packages, Done),
        on(88, Login, Tool("bash", "git commit -am 'Remember who is logged in'")),
        on(90, Login, Wants("git commit -am 'Remember who is logged in'")),
        on(92, Packages, Answer("Everything is up to date, and the tests pass.")),
        on(92, Packages, End),
        on(95, Colours, Answer("The window is painted. Shall I paint the door as well?")),
        on(95, Colours, End),
        on(100, Database, Tool("bash", "psql -f schema.sql shop")),
        on(104, Login, Allowed),
        on(106, Login, Done),
        on(108, Database, Done),
        on(110, Login, Answer("The page remembers who you are.")),
        on(112, Database, Answer("The shop runs on PostgreSQL.")),
        on(112, Database, End),
        on(116, Login, End),
    ]
};

/// How a session goes on after the user has acted on it: each act with the seconds until it comes. From then on it leaves
/// the script, until that repeats.
pub(crate) type Aftermath = &'static [(u32, Act)];

/// After its request was approved.
pub(crate) const APPROVED: Aftermath =
    &[(0, Act::Allowed), (4, Act::Done), (6, Act::Answer("Done, as you allowed it.")), (6, Act::End)];
/// After its request was denied.
pub(crate) const DENIED: Aftermath = &[(0, Act::Refused)];
/// After its question was answered.
pub(crate) const ANSWERED: Aftermath = &[
    (0, Act::Answered),
    (0, Act::Done),
    (1, Act::Tool("edit", "window.css")),
    (6, Act::Done),
    (8, Act::Answer("The window is painted as you said.")),
    (8, Act::End),
];
/// After its turn was stopped.
pub(crate) const STOPPED: Aftermath = &[(0, Act::Abort)];

/// After it was sent a prompt.
pub(crate) const fn prompted(who: Who) -> Aftermath {
    match who {
        Who::Cleanup => &[(2, Act::Tool("bash", "rm -r old")), (2, Act::Wants("rm -r old"))],
        _ => &[
            (2, Act::Tool("bash", "git status")),
            (6, Act::Done),
            (8, Act::Answer("I went on where I had stopped.")),
            (8, Act::End),
        ],
    }
}

/// The id of a session of a demo: a UUID like Copilot's ids, but easy to type, the same at every start, and never a real
/// session's. Those of the cast come first.
pub(crate) fn id_of(index: usize) -> String {
    format!("de{:02}0000-0000-4000-8000-{0:012}", index + 1)
}

const fn on(at: u32, who: Who, act: Act) -> Beat {
    Beat { at, who, act }
}

/// The script, repeated endlessly at `speed` times the usual pace: each beat with its time from the start.
pub(crate) fn beats(speed: u32) -> impl Iterator<Item = (Span, Beat)> {
    let speed = i64::from(speed.max(1));
    (0i64..).flat_map(move |repetition| {
        let due = move |beat: &Beat| (repetition * i64::from(LENGTH) + i64::from(beat.at)) * 1000 / speed;
        SCRIPT.iter().map(move |beat| (Span(due(beat)), *beat))
    })
}
