//! Open permission requests, and what they make of a session.

use super::{Candidate, Judge, Status, candidate};
use crate::time::Moment;
use crate::turn::{Request, Turn};
use crate::words::reason::{Note, Reason};

impl<'a> Judge<'a> {
    /// The requests that are open, with this turn open.
    pub(super) fn requests(&self, turn: Option<&Turn>) -> Vec<&'a Request> {
        // A lapsed turn takes its requests with it, except those of background sub-agents.
        let lapsed = self.facts.turn.is_some() && turn.is_none();
        // Who knows what is open says whether a probable one is.
        let is_denied = self.answer().is_some_and(|answer| answer.requests == 0);
        let is_open = |request: &&Request| {
            !(request.is_probable && is_denied) && self.former.is_none() && (!lapsed || self.is_of_background(request))
        };
        self.facts.requests.iter().filter(is_open).collect()
    }

    /// `needs-permission`, if a request is open.
    pub(super) fn asks_permission(&self, requests: &[&Request]) -> Option<Candidate> {
        // Requests that can be answered from here come first. Copilot's questions about an extension have a wording of
        // their own.
        let first = requests.iter().find(|request| !request.is_consent()).or(requests.first());
        if let Some(first) = first.filter(|request| request.is_consent()) {
            return Some(candidate(
                Status::NeedsPermission,
                first.at.wall,
                Reason::Consent { about_us: first.is_about_us() },
            ));
        }
        if let Some(first) = first {
            let asks =
                if first.is_probable && self.liveness.answer(self.facts).is_none_or(|answer| answer.requests == 0) {
                    Reason::ProbablyAsks { command: first.command.clone() }
                } else {
                    // Its service knows what is asked, in whole, and its log at least the command.
                    let text = first.asks.clone().or_else(|| first.command.clone().filter(|_| first.is_probable));
                    Reason::AsksPermission { kind: first.kind.clone(), text }
                };
            let open = requests.len();
            let name = first.sub_agent.as_deref().and_then(|id| self.facts.sub_agent_name(id));
            let by = name.map(|name| Note::BySubAgent { name: name.into() });
            let asks = asks.and(by.into_iter().chain((open > 1).then_some(Note::Requests { open })));
            return Some(candidate(Status::NeedsPermission, first.at.wall, asks));
        }
        let answer = self.answer().filter(|answer| answer.requests > 0)?;
        let asks = Reason::ServerHasRequests { open: answer.requests };
        Some(candidate(Status::NeedsPermission, answer.progress, asks))
    }

    fn is_of_background(&self, request: &Request) -> bool {
        let mut background = self.facts.background_sub_agents(Moment::default(), self.limits);
        request.sub_agent.is_some() && background.any(|sub_agent| Some(&sub_agent.id) == request.sub_agent.as_ref())
    }
}
