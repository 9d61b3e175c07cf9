//! What the tray knows about a session beyond its log: for commands, which read only the log and lay this over it.

use super::form::Form;
use super::question::Question;
use super::reception::Finding;
use super::session::{Bridge, ServerState, Session};
use super::time::Time;
use super::verdict::{Answer, Asking, Reception, Sample};
use serde::{Deserialize, Serialize};

/// What the tray knows about a session beyond its log, from its server, its bridge and its processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Overlay {
    /// The session's full id.
    pub id: Box<str>,
    /// The real path of the Copilot home that it is in.
    pub home: Box<str>,
    /// The last progress in its log when this was collected, in milliseconds of the wall clock. `None` before the first
    /// prompt.
    progress: Option<i64>,
    /// Whether it has active work, according to the server that we are attached to.
    works: Option<bool>,
    /// Its server's answer to a probe, without attaching: whether it has active work, and the number of open requests.
    answer: Option<(bool, usize)>,
    /// Its server is being probed.
    #[serde(rename = "asking")]
    probing: bool,
    /// The last CPU sample: whether its tool's process was busy, and the time in milliseconds of the wall clock.
    #[serde(default)]
    busy: Option<(bool, i64)>,
    /// What was found out about whether it receives an answer.
    #[serde(default)]
    reception: Option<SentReception>,
    /// That is being found out.
    #[serde(default)]
    looking: bool,
    /// What the bridge to its terminal may do.
    #[serde(default)]
    bridge: Option<Bridge>,
    /// The Copilot release that the bridge runs in.
    #[serde(default)]
    release: Option<Box<str>>,
    /// The bridge's version differs from ours.
    #[serde(default)]
    old_bridge: bool,
    /// The request that a command wanted to approve.
    #[serde(default)]
    wanted: Option<Box<str>>,
    /// Whether its bridge or server reports that it approves everything.
    #[serde(default)]
    approves_all: Option<bool>,
    /// When a command last approved a request, in milliseconds of the wall clock.
    #[serde(default)]
    approved_by_command: Option<i64>,
    /// We are attached to it.
    attached: bool,
    /// The process id of the server of our own that it runs in.
    hosted: Option<u32>,
    questions: Vec<SentQuestion>,
}

/// What was found out about whether it receives an answer. Times are in milliseconds of the wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SentReception {
    finding: Finding,
    at: i64,
    last: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SentQuestion {
    /// When it was asked, in milliseconds of the wall clock.
    since: i64,
    text: String,
    choices: Vec<String>,
    form: Result<Form, Box<str>>,
}

impl Overlay {
    /// Collects what is known about a session in the home with this real path. `None` if nothing is.
    pub fn of(home: &str, session: &Session) -> Option<Self> {
        let vitals = &session.vitals;
        let attached = session.control.server.is_attached();
        let hosted = match session.control.server {
            ServerState::Hosted(pid) => Some(pid),
            _ => None,
        };
        let answer = session.answer().map(|answer| (answer.active, answer.requests));
        let bridge = session.control.bridge;
        let reception = vitals.reception(&session.observed.facts).map(|reception| SentReception {
            finding: reception.finding,
            at: reception.at.wall.0,
            last: reception.last.map(|last| last.wall.0),
        });
        let is_asked = answer.is_some() || vitals.probing || reception.is_some() || vitals.looking;
        let (wanted, approved) = (&session.control.wanted, session.control.approved_by_command);
        let approves_all = session.reported_approvals();
        let is_known =
            attached || bridge.is_some() || wanted.is_some() || approved.is_some() || approves_all == Some(true);
        if !is_known && !is_asked && vitals.busy.is_none() {
            return None;
        }
        let question = |Asking { question, since, form }: &Asking| SentQuestion {
            since: since.0,
            text: question.text.to_string(),
            choices: question.choices.iter().map(ToString::to_string).collect(),
            form: form.clone(),
        };
        Some(Self {
            id: session.id.clone(),
            home: home.into(),
            progress: session.observed.facts.progress.map(|progress| progress.wall.0),
            works: vitals.has_active_work,
            answer,
            probing: vitals.probing,
            busy: vitals.busy.map(|sample| (sample.busy, sample.at.wall.0)),
            reception,
            looking: vitals.looking,
            bridge,
            release: session.control.release.clone(),
            old_bridge: session.control.old_bridge,
            wanted: wanted.clone(),
            approves_all,
            approved_by_command: approved.map(|at| at.0),
            attached,
            hosted,
            questions: vitals.questions.iter().map(question).collect(),
        })
    }

    /// Applies it to a session read from disk. Parts that later events may have outdated are left out.
    pub fn apply(self, session: &mut Session) {
        match self.hosted {
            Some(pid) => session.control.server = ServerState::Hosted(pid),
            None if self.attached => session.control.server = ServerState::Attached,
            None => {}
        }
        (session.control.bridge, session.control.release) = (self.bridge, self.release);
        session.control.old_bridge = self.old_bridge;
        session.control.wanted = self.wanted;
        session.control.approves_all = self.approves_all;
        let approved = &mut session.control.approved_by_command;
        *approved = self.approved_by_command.map(Time).max(*approved);
        // All else is about a turn.
        let Some(progress) = session.observed.facts.progress else { return };
        let vitals = &mut session.vitals;
        // "Working" may predate the last event; "not working" must not.
        let is_fresh = self.progress.is_some_and(|known| progress.wall.0 <= known);
        vitals.has_active_work = self.works.filter(|works| *works || is_fresh);
        vitals.probing = self.probing && is_fresh;
        let moment = |at| progress.plus(Time(at) - progress.wall);
        vitals.busy = self.busy.map(|(busy, at)| Sample { busy, at: moment(at) });
        vitals.looking = self.looking && is_fresh;
        vitals.reception = self.reception.filter(|_| is_fresh).map(|SentReception { finding, at, last }| Reception {
            progress: progress.wall,
            at: moment(at),
            finding,
            last: last.map(moment),
        });
        vitals.answer = self.answer.filter(|_| is_fresh).map(|(active, requests)| Answer {
            progress: progress.wall,
            active,
            requests,
        });
        let asking = |SentQuestion { since, text, choices, form }: SentQuestion| Asking {
            question: Question {
                id: form.as_ref().ok().map(|form| form.request.clone()),
                text: text.into(),
                choices: choices.into_iter().map(Into::into).collect(),
            },
            since: Time(since),
            form,
        };
        vitals.questions = self.questions.into_iter().map(asking).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Observed;
    use crate::time::{Moment, Span};

    const HOME: &str = "/home/dev/.copilot";
    const AT: Moment = Moment::of(Time(1_700_000_000_000));

    /// A session as its log shows it, with its last event at this time.
    fn in_log(progress: Moment) -> Session {
        let mut session = Session {
            id: "a".into(),
            observed: Observed { has_log: true, ..Observed::default() },
            ..Session::default()
        };
        session.observed.facts.progress = Some(progress);
        session
    }

    fn with(change: impl FnOnce(&mut Session)) -> Session {
        let mut session = in_log(AT);
        change(&mut session);
        session
    }

    fn reception(finding: Finding) -> Option<Reception> {
        let last = Some(AT.plus(Span::seconds(57)));
        Some(Reception { progress: AT.wall, at: AT.plus(Span::seconds(60)), finding, last })
    }

    fn answer(active: bool) -> Option<Answer> {
        Some(Answer { progress: AT.wall, active, requests: 2 })
    }

    /// Everything that the tray can know.
    fn known() -> Session {
        with(|session| {
            let question = |id: Option<&str>, text: &str| Question {
                id: id.map(Into::into),
                text: text.into(),
                choices: vec!["red".into(), "blue".into()],
            };
            let data = serde_json::json!({"requestId": "r", "question": "Which?", "choices": ["red", "blue"]});
            let form = Form::read("user_input.requested", &data).map_err(Into::into);
            session.control.server = ServerState::Attached;
            session.control.bridge = Some(Bridge::Elevated);
            session.control.release = Some("1.2.3".into());
            session.control.old_bridge = true;
            session.control.wanted = Some("r".into());
            session.control.approves_all = Some(true);
            session.control.approved_by_command = Some(AT.wall);
            session.vitals.has_active_work = Some(true);
            session.vitals.probing = true;
            session.vitals.busy = Some(Sample { busy: true, at: AT.plus(Span::seconds(9)) });
            session.vitals.reception = reception(Finding::Receiving { bytes: Some(2280), within: Span::seconds(10) });
            session.vitals.looking = true;
            session.vitals.answer = answer(true);
            session.vitals.questions = vec![
                Asking { question: question(Some("r"), "Which?"), since: AT.wall, form },
                Asking {
                    question: question(None, "How?"),
                    since: AT.wall + Span(7),
                    form: Err("it is made up".into()),
                },
            ];
        })
    }

    /// What a command that has read the log up to `progress` knows after the tray has reported.
    fn reported(session: &Session, progress: Moment) -> Option<Session> {
        let sent = serde_json::to_string(&Overlay::of(HOME, session)?).unwrap();
        let overlay: Overlay = serde_json::from_str(&sent).unwrap();
        assert_eq!((&*overlay.id, &*overlay.home), ("a", HOME));
        let mut read = in_log(progress);
        overlay.apply(&mut read);
        Some(read)
    }

    /// They are what a tray and a command of different versions agree on.
    #[test]
    fn a_command_of_another_version_finds_the_names_it_knows() {
        let told = serde_json::to_value(Overlay::of(HOME, &known())).unwrap();
        let names = |value: &serde_json::Value| {
            let mut names: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            names.sort_unstable();
            names.join(" ")
        };
        assert_eq!(
            names(&told),
            "answer approved-by-command approves-all asking attached bridge busy home hosted id looking old-bridge progress \
             questions reception release wanted works"
        );
        assert_eq!(names(&told["reception"]), "at finding last");
        assert_eq!(names(&told["questions"][0]), "choices form since text");
    }

    #[test]
    fn a_command_knows_what_the_tray_knows() {
        assert_eq!(reported(&known(), AT), Some(known()));
        for server in [ServerState::Attached, ServerState::Hosted(4711)] {
            let attached = with(|session| session.control.server = server.clone());
            assert_eq!(reported(&attached, AT).map(|read| read.control.server), Some(server));
        }
    }

    /// Its log begins with the first prompt.
    #[test]
    fn case_195_a_bridge_is_reported_before_the_first_prompt() {
        let mut session = Session { id: "a".into(), ..Session::default() };
        session.control.bridge = Some(Bridge::Joined);
        let sent = serde_json::to_string(&Overlay::of(HOME, &session)).unwrap();
        let overlay: Option<Overlay> = serde_json::from_str(&sent).unwrap();
        let mut read = Session { id: "a".into(), ..Session::default() };
        overlay.unwrap().apply(&mut read);
        assert_eq!(read, session);
        // If the first prompt came meanwhile, nothing is known of its turn.
        let mut working = in_log(AT);
        session.vitals.has_active_work = Some(false);
        Overlay::of(HOME, &session).unwrap().apply(&mut working);
        assert_eq!((working.control.bridge, working.vitals.has_active_work), (Some(Bridge::Joined), None));
    }

    #[test]
    fn a_session_is_reported_if_anything_is_known_of_it() {
        assert_eq!(Overlay::of(HOME, &in_log(AT)), None);
        let changes: [fn(&mut Session); 9] = [
            |session| session.control.server = ServerState::Hosted(4711),
            |session| session.control.bridge = Some(Bridge::Watches),
            |session| session.control.wanted = Some("r".into()),
            |session| session.control.approved_by_command = Some(AT.wall),
            |session| session.vitals.answer = answer(false),
            |session| session.vitals.probing = true,
            |session| session.vitals.looking = true,
            |session| session.vitals.reception = reception(Finding::Silent { may_not_stream: false }),
            |session| session.vitals.busy = Some(Sample { busy: false, at: AT }),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let known = with(change);
            assert_eq!(reported(&known, AT), Some(known), "{index}");
        }
        let listening = with(|session| session.control.server = ServerState::Listening);
        assert_eq!(Overlay::of(HOME, &listening), None, "the command sees that itself");
    }

    /// The command may have read more of the log than the tray.
    #[test]
    fn what_later_events_may_have_outdated_is_left_out() {
        let idle = with(|session| {
            session.control.server = ServerState::Attached;
            session.vitals.has_active_work = Some(false);
            session.vitals.probing = true;
            session.vitals.looking = true;
            session.vitals.reception = reception(Finding::Kept);
            session.vitals.answer = answer(false);
        });
        for progress in [AT, Moment::of(AT.wall - Span(1))] {
            let read = reported(&idle, progress).unwrap().vitals;
            assert_eq!((read.has_active_work, read.probing), (Some(false), true));
            assert_eq!(read.answer, Some(Answer { progress: progress.wall, active: false, requests: 2 }));
        }
        let later = Moment::of(AT.wall + Span(1));
        let read = reported(&idle, later).unwrap().vitals;
        assert_eq!((read.has_active_work, read.probing, read.answer), (None, false, None));
        assert_eq!((read.looking, read.reception), (false, None));
        let read = reported(&known(), later).unwrap().vitals;
        assert_eq!((read.has_active_work, read.questions.len()), (Some(true), 2), "it began to work before");
    }
}
