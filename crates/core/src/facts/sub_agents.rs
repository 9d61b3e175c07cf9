//! Sub-agents, which may outlive the turn, and permission requests, which sub-agents make too.

use super::{ANSWERED, Facts, OPEN_MAX, SubAgentLog};
use crate::event::{Besides, Body, ToolResult};
use crate::limits::Limits;
use crate::scan::Text;
use crate::text::{NAME_MAX, plain};
use crate::time::Moment;
use crate::turn::{ASKS_MAX, COMMAND_MAX, Call, Request, SubAgent, path_words, tool_words, whole_command};

impl Facts {
    /// Sets the sub-agents that have logs of their own. What they write is progress of their session.
    pub fn set_sub_agents<'a>(&mut self, sub_agents: impl Iterator<Item = SubAgentLog<'a>>) {
        self.sub_agents.clear();
        for SubAgentLog { id, name, facts, is_done } in sub_agents {
            let Some(last) = facts.progress else { continue };
            match facts.turn.as_ref().filter(|_| !is_done) {
                Some(turn) if self.sub_agents.len() < OPEN_MAX => {
                    let tools = turn.tools.iter().map(|tool| tool.call).collect();
                    let does = turn.tools.last().map(|tool| tool_words(&tool.name, tool.command.as_deref()));
                    let name = name.map(|name| plain(name, NAME_MAX)).filter(|name| !name.is_empty());
                    let new = SubAgent::new(plain(id, NAME_MAX), turn.opened);
                    self.sub_agents.push(SubAgent { last, tools, does, name, ..new });
                }
                Some(_) => {}
                None if self.rested.is_none_or(|rested| rested.awake < last.awake) => self.rested = Some(last),
                None => {}
            }
            if self.progress.is_none_or(|own| own.awake < last.awake) {
                (self.progress, self.last_written) = (Some(last), facts.last_written.by_sub_agent());
            }
        }
    }

    /// Folds a sub-agent's event. It can ask for permission and be denied, but neither opens nor closes the turn.
    pub(super) fn fold_sub_agent(&mut self, id: Text<'_>, (body, besides): (&Body<'_>, &Besides<'_>), at: Moment) {
        let id = plain(&id.read(NAME_MAX), NAME_MAX);
        if matches!(body, Body::SubAgentDone) {
            let before = self.sub_agents.len();
            self.sub_agents.retain(|sub_agent| sub_agent.id != id);
            if before != self.sub_agents.len() {
                self.rested = Some(at);
            }
            self.requests.retain(|request| request.sub_agent.as_ref() != Some(&id));
            return;
        }
        let known = self.sub_agents.iter().position(|sub_agent| sub_agent.id == id);
        // An ended sub-agent may be given more work, but trailing events do not revive it. If the log is cut, its start
        // may not have been read.
        let begins = matches!(body, Body::SubAgentStart { .. } | Body::Prompt { .. } | Body::RoundStart) || !self.whole;
        if known.is_none() && begins && self.sub_agents.len() < OPEN_MAX {
            self.sub_agents.push(SubAgent::new(id.clone(), at));
        }
        if let Some(sub_agent) = self.sub_agents.iter_mut().find(|sub_agent| sub_agent.id == id) {
            sub_agent.last = at;
            if let Some(info) = besides.sub_agent {
                let name = plain(&info.name.read(NAME_MAX), NAME_MAX);
                sub_agent.name = Some(name).filter(|name| !name.is_empty());
            }
            match *body {
                Body::SubAgentStart { call } => sub_agent.call = call.map(Call::new),
                // Its model was given the results of them all.
                Body::RoundStart | Body::Prompt { joins: false, .. } => {
                    let ended = std::mem::take(&mut sub_agent.tools);
                    sub_agent.does = None;
                    self.requests.retain(|request| request.call.is_none_or(|call| !ended.contains(&call)));
                }
                Body::ToolStart { call, name, command, .. } => {
                    let call = Call::new(call);
                    let name = plain(&name.map_or("tool".into(), |name| name.read(NAME_MAX)), NAME_MAX);
                    let command = command.map(|command| plain(&command.read(COMMAND_MAX), COMMAND_MAX));
                    sub_agent.does = Some(tool_words(&name, command.as_deref()));
                    if sub_agent.tools.len() < OPEN_MAX && !sub_agent.tools.contains(&call) {
                        sub_agent.tools.push(call);
                    }
                }
                Body::ToolDone { call, .. } => {
                    sub_agent.tools.retain(|&open| open != Call::new(call));
                    sub_agent.does = sub_agent.does.take().filter(|_| !sub_agent.tools.is_empty());
                }
                _ => {}
            }
        }
        match body {
            Body::PermissionAsked { .. } | Body::PermissionDone { .. } => self.fold_permission(body, Some(id), at),
            // The tool that started the sub-agent already counts as run.
            Body::ToolDone { call, result, .. } => {
                if result.has_run() {
                    self.last_ran = Some(at);
                }
                self.requests.retain(|request| request.call != Some(Call::new(*call)));
                self.denials.push(at, *result == ToolResult::Unasked);
            }
            _ => {}
        }
    }

    pub(super) fn fold_permission(&mut self, body: &Body<'_>, sub_agent: Option<Box<str>>, at: Moment) {
        match *body {
            Body::PermissionAsked {
                request,
                call,
                kind,
                asks,
                ref paths,
                access,
                command,
                by_hook: false,
                managed,
            } => {
                let id = Call::new(request);
                if self.requests.len() < OPEN_MAX && !self.requests.iter().any(|open| open.id == id) {
                    let kind = plain(&kind.map_or("tool".into(), |kind| kind.read(NAME_MAX)), NAME_MAX);
                    let command = command.map(|command| whole_command(&command.read(COMMAND_MAX + 1)));
                    let asks = asks.map(|asks| asks.read(ASKS_MAX + 1)).map(|asks| match &*kind {
                        "path" => {
                            let access = access.map(|access| access.read(NAME_MAX));
                            path_words(&asks, access.as_deref(), command.as_deref()).into()
                        }
                        _ => asks,
                    });
                    let asks = asks.filter(|asks| asks.chars().count() <= ASKS_MAX);
                    self.requests.push(Request {
                        id,
                        request: plain(&request.read(NAME_MAX), NAME_MAX),
                        call: call.map(Call::new),
                        kind,
                        asks: asks.map(Into::into),
                        paths: whole_paths(paths),
                        command,
                        sub_agent,
                        is_managed: managed,
                        is_probable: false,
                        over_bridge: None,
                        at,
                    });
                }
            }
            Body::PermissionDone { request, call, unasked, approved } => {
                let id = Call::new(request);
                if self.answered.len() == ANSWERED {
                    self.answered.pop_front();
                }
                self.answered.push_back((id, approved));
                let asked =
                    self.requests.iter().position(|open| open.id == id).map(|index| self.requests.remove(index));
                let call = call.map(Call::new).or(asked.and_then(|request| request.call));
                if unasked
                    && let Some(turn) = &mut self.turn
                    && let Some(tool) = turn.tools.iter_mut().find(|tool| Some(tool.call) == call)
                {
                    tool.unasked = true;
                }
            }
            _ => {}
        }
    }

    /// What the sub-agent with this id is for, or its kind.
    pub fn sub_agent_name(&self, id: &str) -> Option<&str> {
        self.sub_agents.iter().find(|sub_agent| *sub_agent.id == *id)?.name.as_deref()
    }

    /// The sub-agent that makes a request: its name, if that is known, or its id. `None`: the session itself makes it.
    pub fn asker<'a>(&'a self, request: &'a Request) -> Option<&'a str> {
        let id = request.sub_agent.as_deref()?;
        Some(self.sub_agent_name(id).unwrap_or(id))
    }

    /// The sub-agents in the foreground: those that an open tool of the turn started, and those that their tools did.
    pub(crate) fn foreground_sub_agents(&self) -> Vec<&SubAgent> {
        let mut calls: Vec<Call> = self.turn.iter().flat_map(|turn| &turn.tools).map(|tool| tool.call).collect();
        let mut found: Vec<&SubAgent> = Vec::new();
        while let Some(call) = calls.pop() {
            for sub_agent in self.sub_agents.iter().filter(|sub_agent| sub_agent.call == Some(call)) {
                if found.iter().all(|known| known.id != sub_agent.id) {
                    found.push(sub_agent);
                    calls.extend(&sub_agent.tools);
                }
            }
        }
        found
    }

    /// Whether the open turn waits for a model, its own or those of its sub-agents in the foreground: nothing else is
    /// open in it.
    pub fn waits_for_model(&self) -> bool {
        let Some(turn) = &self.turn else { return false };
        let foreground = self.foreground_sub_agents();
        let asks = |id: Option<&str>| self.requests.iter().any(|request| request.sub_agent.as_deref() == id);
        let started = |call: Call| foreground.iter().any(|sub_agent| sub_agent.call == Some(call));
        !asks(None)
            && turn.tools.iter().all(|tool| started(tool.call))
            && foreground
                .iter()
                .all(|sub_agent| !asks(Some(&sub_agent.id)) && sub_agent.tools.iter().all(|&call| started(call)))
    }

    /// The sub-agents in the background, whose tool call is over, without those silent for longer than the limit.
    pub(crate) fn background_sub_agents(&self, now: Moment, limits: &Limits) -> impl Iterator<Item = &SubAgent> {
        let foreground = self.foreground_sub_agents();
        self.sub_agents
            .iter()
            .filter(move |sub_agent| foreground.iter().all(|known| known.id != sub_agent.id))
            .filter(move |sub_agent| now.since(sub_agent.last) < limits.background_agent)
    }
}

/// Paths, or none if one of them is too long.
fn whole_paths(paths: &[Text<'_>]) -> Vec<Box<str>> {
    let whole = |path: &Text<'_>| -> Option<Box<str>> {
        Some(path.read(ASKS_MAX + 1)).filter(|path| path.chars().count() <= ASKS_MAX).map(Into::into)
    };
    paths.iter().map(whole).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::facts::LastWritten;
    use crate::time::Time;
    use crate::turn::COMMAND_TOO_LONG;

    const PROMPT: Body<'_> = Body::Prompt { joins: false, continuation: false, autopilot: None };
    const OVER: Body<'_> = Body::Answer { asks: false, model: None };

    fn at(seconds: i64) -> Moment {
        Moment::of(Time(1_763_700_000_000 + seconds * 1000))
    }

    fn facts(events: &[(i64, Body<'_>)]) -> Facts {
        let mut facts = Facts::default();
        for (seconds, body) in events {
            let at = at(*seconds);
            facts.fold(&Event::of(b"x", at.wall, body.clone()), at, &Limits::default());
        }
        facts
    }

    /// The session's facts, with sub-agents that have logs of their own.
    fn with(sub_agents: &[(&str, &Facts, bool)]) -> Facts {
        let mut facts = facts(&[(0, PROMPT), (10, Body::RoundStart)]);
        facts.set_sub_agents(sub_agents.iter().map(|&(id, facts, is_done)| SubAgentLog {
            id,
            name: None,
            facts,
            is_done,
        }));
        facts
    }

    #[test]
    fn sub_agents_with_logs_of_their_own_work_until_their_turn_is_over() {
        let works = facts(&[(5, PROMPT), (20, Body::RoundStart)]);
        let (over, later) = (facts(&[(5, PROMPT), (30, OVER)]), facts(&[(5, PROMPT), (40, OVER)]));
        let ids = |facts: &Facts| {
            facts.sub_agents.iter().map(|sub_agent| (sub_agent.id.to_string(), sub_agent.last)).collect::<Vec<_>>()
        };
        let all =
            with(&[("a", &works, false), ("b", &later, false), ("c", &over, false), ("d", &Facts::default(), false)]);
        assert_eq!(ids(&all), [("a".to_owned(), at(20))]);
        // The latest one to rest, and the latest one that wrote, are noted, in whatever order they come.
        assert_eq!((all.rested, all.progress), (Some(at(40)), Some(at(40))));
        // One that is said to have ended has ended, whatever its log says.
        let done = with(&[("a", &works, true)]);
        assert_eq!((ids(&done), done.rested, done.progress), (vec![], Some(at(20)), Some(at(20))));
        // What a sub-agent wrote earlier than its session is no progress of it.
        let before = facts(&[(5, PROMPT)]);
        assert_eq!(with(&[("a", &before, false)]).progress, Some(at(10)));
    }

    #[test]
    fn no_more_sub_agents_are_kept_than_there_may_be() {
        let works = facts(&[(5, PROMPT)]);
        let many: Vec<_> = (0..=OPEN_MAX).map(|_| ("a", &works, false)).collect();
        let kept = with(&many);
        assert_eq!((kept.sub_agents.len(), kept.rested), (OPEN_MAX, None));
    }

    #[test]
    fn what_a_sub_agent_wrote_last_is_noted_as_its_own() {
        let alone = facts(&[(0, PROMPT), (10, Body::RoundStart)]).last_written;
        let wrote = |seconds| with(&[("a", &facts(&[(seconds, PROMPT)]), false)]).last_written;
        let LastWritten::Event { kind, by_sub_agent: false } = alone else { panic!("{alone:?}") };
        let by_sub_agent = LastWritten::Event { kind, by_sub_agent: true };
        assert_eq!((wrote(10), wrote(11)), (alone, by_sub_agent), "of one moment, its session's counts");
        // Whichever comes last in the list.
        let (over, later) = (facts(&[(5, PROMPT), (30, OVER)]), facts(&[(5, PROMPT), (40, OVER)]));
        assert_eq!(with(&[("c", &over, false), ("b", &later, false)]).rested, Some(at(40)));
    }

    /// Folds events of sub-agents: when, of which, and what.
    fn by_sub_agents(events: &[(i64, &str, Body<'_>)]) -> Facts {
        let mut facts = facts(&[(0, PROMPT)]);
        for (seconds, sub_agent, body) in events {
            let (at, sub_agent) = (at(*seconds), Some(Text(sub_agent.as_bytes())));
            let event = Event { sub_agent, ..Event::of(b"x", at.wall, body.clone()) };
            facts.fold(&event, at, &Limits::default());
        }
        facts
    }

    fn asked<'a>(request: &'a str, call: &'a str, command: Option<&'a str>) -> Body<'a> {
        Body::PermissionAsked {
            request: Text(request.as_bytes()),
            call: Some(Text(call.as_bytes())),
            kind: Some(Text(b"path")),
            asks: Some(Text(b"/tmp")),
            paths: Vec::new(),
            access: None,
            command: command.map(|command| Text(command.as_bytes())),
            by_hook: false,
            managed: false,
        }
    }

    #[test]
    fn a_sub_agent_that_ends_takes_only_what_is_its_own() {
        let start = Body::SubAgentStart { call: None };
        let facts = by_sub_agents(&[
            (1, "a", start.clone()),
            (2, "b", start),
            (3, "a", asked("r1", "t1", None)),
            (4, "b", asked("r2", "t2", None)),
            (5, "a", Body::SubAgentDone),
        ]);
        let sub_agents: Vec<_> = facts.sub_agents.iter().map(|sub_agent| &*sub_agent.id).collect();
        let requests: Vec<_> = facts.requests.iter().map(|request| &*request.request).collect();
        assert_eq!((sub_agents, requests, facts.rested), (vec!["b"], vec!["r2"], Some(at(5))));
    }

    #[test]
    fn a_tool_of_a_sub_agent_that_is_done_waits_for_nothing() {
        let done = |result| Body::ToolDone { call: Text(b"t1"), result, by_user: false, shell: None, ended: None };
        for (result, last_ran, denied) in
            [(ToolResult::Success, Some(at(5)), 0), (ToolResult::Denied, None, 0), (ToolResult::Unasked, None, 1)]
        {
            let facts = by_sub_agents(&[
                (1, "a", Body::SubAgentStart { call: None }),
                (3, "a", asked("r1", "t1", None)),
                (4, "a", asked("r2", "t2", None)),
                (5, "a", done(result)),
            ]);
            let requests: Vec<_> = facts.requests.iter().map(|request| &*request.request).collect();
            assert_eq!(
                (requests, facts.last_ran, facts.denials.after(None)),
                (vec!["r2"], last_ran, denied),
                "{result:?}"
            );
            assert_eq!(facts.denials.of(), 1);
        }
    }

    #[test]
    fn a_command_is_kept_whole_or_said_to_be_too_long() {
        let kept = |length: usize| {
            let command = "x".repeat(length);
            by_sub_agents(&[(1, "a", asked("r1", "t1", Some(&command)))]).requests[0].command.clone().unwrap()
        };
        assert_eq!(kept(COMMAND_MAX).len(), COMMAND_MAX);
        assert_eq!(&*kept(COMMAND_MAX + 1), COMMAND_TOO_LONG);
    }
}
