//! A session that plays a situation, and what Pilotlight shows of it over time.

use super::outlook::Outlook;
use crate::support::freeze::freeze;
use crate::support::home::Folder;
use crate::support::model::Model;
use crate::support::pilotlight::Pilot;
use crate::support::process::{parent, signal};
use crate::support::server::Session;
use crate::support::stream::Play;
use crate::support::terminal::Terminal;
use crate::support::{COPILOT, wait, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// How often the tray is asked, and how often a command looks for itself.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_ALONE: Duration = Duration::from_secs(7);
/// The tray's rescan comes once a minute.
const RESCAN: Duration = Duration::from_secs(70);

/// Where a session runs.
#[allow(clippy::large_enum_variant, reason = "there are a few of them")]
pub(super) enum Place {
    Terminal(Terminal),
    /// A session of the server with this pid.
    Session(Session, u32),
}

/// One session, its own model, and what was shown of it.
pub(super) struct Scene {
    pub(super) place: Place,
    pub(super) model: Model,
    /// The name of its play.
    pub(super) play: &'static str,
    prompted: Instant,
    pub(super) sights: Vec<Sight>,
}

/// What one view showed since a moment.
#[derive(Debug)]
pub(super) struct Sight {
    /// Since the prompt.
    pub(super) at: Duration,
    pub(super) view: View,
    pub(super) status: String,
    pub(super) because: String,
}

/// Who looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// The running tray.
    Tray,
    /// A command without a tray, which looks once.
    Alone,
}

impl Scene {
    pub(super) fn new(place: Place, model: Model, play: &'static str) -> Self {
        Self { place, model, play, prompted: Instant::now(), sights: Vec::new() }
    }

    pub(super) fn folder(&self) -> &Folder {
        match &self.place {
            Place::Terminal(terminal) => &terminal.folder,
            Place::Session(session, _) => &session.folder,
        }
    }

    /// The pid of the process that owns it.
    pub(super) fn owner(&self) -> u32 {
        match self.place {
            Place::Terminal(ref terminal) => terminal.pid(),
            Place::Session(_, pid) => pid,
        }
    }

    /// Stops the process that owns it.
    pub(super) fn stop(&self) {
        // tmux would let its program go on.
        self.tmux().into_iter().chain([self.owner()]).for_each(freeze);
    }

    /// Lets it go on.
    pub(super) fn resume(&self) {
        [self.owner()].into_iter().chain(self.tmux()).for_each(|pid| signal(pid, Signal::CONT));
    }

    /// The pid of its terminal's server.
    fn tmux(&self) -> Option<u32> {
        matches!(self.place, Place::Terminal(_)).then(|| parent(self.owner())).flatten()
    }

    pub(super) fn id(&self) -> String {
        self.folder().id()
    }

    /// Sends a prompt.
    pub(super) fn prompt(&self, prompt: &str) {
        match &self.place {
            Place::Terminal(terminal) => terminal.enter(prompt),
            Place::Session(session, _) => session.send(prompt),
        }
    }

    /// Sends the prompt that begins the play, and waits until the model is asked.
    pub(super) fn begin(&mut self) {
        self.prompt(&format!("SCRIPT:{} Paint the fence", self.play));
        self.model.wait_requested(self.play, 0);
        self.prompted = Instant::now();
    }

    /// Ends the play, and waits until the turn has ended. Returns what is wrong with its answer, if it is not whole.
    pub(super) fn finish(&self) -> Option<String> {
        self.model.finish();
        let dump = || self.folder().dump();
        wait_until(COPILOT, "the turn ends", dump, || {
            let last = self.folder().events().into_iter().rfind(|event| event["agentId"].is_null())?;
            matches!(last["type"].as_str(), Some("assistant.turn_end" | "session.error")).then_some(())
        });
        self.broken_answer()
    }

    /// Why the play's answer is not in the log as the model gave it, if it is not.
    fn broken_answer(&self) -> Option<String> {
        let events = self.folder().events();
        if let Some(end) = events.iter().find(|event| event["type"] == "abort" || event["type"] == "session.error") {
            return Some(end.to_string());
        }
        let is_answer = |event: &&Value| event["type"] == "assistant.message" && event["agentId"].is_null();
        let answers: Vec<_> = events.iter().filter(is_answer).map(|event| event["data"]["content"].clone()).collect();
        let given = self.model.text(self.play);
        let arrived = answers.iter().any(|answer| answer.as_str().is_some_and(|answer| answer.trim() == given.trim()));
        (!given.is_empty() && !arrived).then(|| format!("{given:?} has not arrived: {answers:?}"))
    }

    /// Notes what a view shows now, unless it has only another number in it than before.
    fn note(&mut self, view: View, row: &Value) {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let (status, because) = (text("status"), text("because"));
        let last = self.sights.iter().rfind(|sight| sight.view == view);
        if last.is_none_or(|last| last.status != status || without_numbers(&last.because) != without_numbers(&because))
        {
            self.sights.push(Sight { at: self.prompted.elapsed(), view, status, because });
        }
    }

    /// What the tray showed last.
    pub(super) fn last(&self) -> Option<&Sight> {
        self.sights.iter().rfind(|sight| sight.view == View::Tray)
    }

    /// What was shown, for a person to read.
    pub(super) fn story(&self) -> String {
        let mut story = String::new();
        for sight in &self.sights {
            let who = if sight.view == View::Tray { "tray" } else { "alone" };
            let at = sight.at.as_secs();
            writeln!(story, "  {at:>4} s  {who:<5}  {:<16}  {}", sight.status, sight.because).unwrap();
        }
        story
    }
}

/// Watches these sessions for at least this long, as the running tray shows them, and as a command sees them that looks
/// alone. Then, until it `is_over`, for at most a rescan longer.
pub(super) fn watch(
    pilot: &Pilot,
    scenes: &mut [(Scene, Outlook)],
    lasting: Duration,
    is_over: impl Fn(&[(Scene, Outlook)]) -> bool,
) {
    let start = Instant::now();
    let (mut tray, mut alone) = (None::<Instant>, None::<Instant>);
    let is_due = |last: &mut Option<Instant>, every: Duration| {
        let due = last.is_none_or(|last| last.elapsed() >= every);
        if due {
            *last = Some(Instant::now());
        }
        due
    };
    wait(lasting + RESCAN, || {
        if is_due(&mut tray, LOOK) {
            note(scenes, View::Tray, &pilot.rows_in_tray());
        }
        if is_due(&mut alone, LOOK_ALONE) {
            note(scenes, View::Alone, &pilot.rows());
        }
        (start.elapsed() >= lasting && is_over(scenes)).then_some(())
    });
}

fn note(scenes: &mut [(Scene, Outlook)], view: View, rows: &[Value]) {
    for (scene, _) in scenes {
        let id = scene.id();
        if let Some(row) = rows.iter().find(|row| row["id"] == *id) {
            scene.note(view, row);
        }
    }
}

/// A reason without its numbers and units, which only grow.
fn without_numbers(because: &str) -> String {
    let is_number = |word: &&str| {
        word.chars().any(|c| c.is_ascii_digit()) || matches!(word.trim_end_matches(','), "s" | "min" | "B" | "KB")
    };
    because.split(' ').filter(|word| !is_number(word)).collect::<Vec<_>>().join(" ")
}

/// A model that knows these plays.
pub(super) fn model(plays: &[(&str, Play)], resets: bool) -> Model {
    let model = Model::at(std::net::Ipv4Addr::LOCALHOST.into(), resets);
    for (name, play) in plays {
        model.play(name, play.clone());
    }
    model
}
