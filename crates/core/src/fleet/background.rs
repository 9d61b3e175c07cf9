//! What works behind a session, as it is shown: how much of it, and its sub-agents one by one.

use super::row::Background;
use crate::limits::Limits;
use crate::session::Session;
use crate::time::{Moment, Span, Time};
use crate::turn::SubAgent;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// What works behind a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackgroundView {
    /// Sub-agents that work while no turn waits for them.
    pub agents: usize,
    /// Running shells.
    pub shells: usize,
    /// All sub-agents at work, also those that the turn waits for.
    pub list: Vec<SubAgentView>,
}

/// A sub-agent at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgentView {
    /// What it is for, or its kind, or its id.
    pub name: Box<str>,
    /// The tool that it has open, and what that works on.
    pub does: Option<Box<str>>,
    /// When it began, as far as that was read.
    pub since: Time,
    /// Its last sign of life.
    pub last: Time,
}

impl SubAgentView {
    /// The most that are told of one session.
    pub(crate) const MOST: usize = 50;

    fn of(sub_agent: &SubAgent) -> Self {
        let SubAgent { id, name, does, began, last, .. } = sub_agent;
        let name = name.as_ref().unwrap_or(id).clone();
        Self { name, does: does.clone(), since: began.wall, last: last.wall }
    }

    /// All of it on one line: `Fix the build: bash: npm test, for 4 min, last activity 20 s ago`.
    pub fn words(&self, now: Time) -> String {
        let does = self.does.as_deref().map(|does| format!(": {does}")).unwrap_or_default();
        let age = |at: Time| (now - at).max(Span::ZERO);
        format!("{}{does}, for {}, last activity {} ago", self.name, age(self.since), age(self.last))
    }
}

impl BackgroundView {
    pub(super) fn of(Background { agents, shells }: Background, list: Vec<SubAgentView>) -> Self {
        Self { agents, shells, list }
    }

    /// How much there is.
    pub const fn counts(&self) -> Background {
        Background { agents: self.agents, shells: self.shells }
    }

    /// The same without what changes while they work.
    pub(super) fn without_progress(&self) -> Self {
        let still = |it: &SubAgentView| SubAgentView { does: None, last: it.since, ..it.clone() };
        Self { list: self.list.iter().map(still).collect(), ..self.clone() }
    }
}

impl Session {
    /// What works behind it. Nothing does once its process is gone.
    pub(super) fn background_shown(&self, verdict: &Verdict, now: Moment, limits: &Limits) -> BackgroundView {
        let facts = &self.observed.facts;
        if verdict.status.is_over() || facts.sub_agents.is_empty() {
            return BackgroundView::of(verdict.background, Vec::new());
        }
        let foreground = facts.foreground_sub_agents();
        let mut working: Vec<&SubAgent> =
            foreground.into_iter().chain(facts.background_sub_agents(now, limits)).collect();
        working.sort_by_key(|sub_agent| (sub_agent.began.awake, &sub_agent.id));
        working.truncate(SubAgentView::MOST);
        BackgroundView::of(verdict.background, working.into_iter().map(SubAgentView::of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::known::sub_agents;

    #[test]
    fn case_767_a_sub_agent_is_one_line_and_of_many_some_are_told() {
        let start = Time(1_700_000_000_000);
        let (began, last) = (Moment::of(start), Moment::of(start + Span::seconds(100)));
        let sub_agent = SubAgent { last, ..SubAgent::new("a1".into(), began) };
        let now = start + Span::minutes(4);
        assert_eq!(SubAgentView::of(&sub_agent).words(now), "a1, for 4 min, last activity 140 s ago");
        let named = SubAgent { name: Some("Fix it".into()), does: Some("bash: make".into()), ..sub_agent };
        let view = SubAgentView::of(&named);
        assert_eq!(view.words(now), "Fix it: bash: make, for 4 min, last activity 140 s ago");
        assert_eq!(view.words(start), "Fix it: bash: make, for 0 s, last activity 0 s ago", "a clock was set back");
        let many = vec![view; 23];
        assert_eq!((sub_agents(&many, now, 20).len(), &*sub_agents(&many, now, 20)[20]), (21, "3 more"));
        assert_eq!(sub_agents(&many[..20], now, 20).len(), 20);
    }
}
