//! What a thread probably asks in its terminal.
//!
//! The log has a call of a tool before it is allowed, and nothing says that the terminal asks about it. Of a call that
//! asks to leave the sandbox it can be supposed: the user is asked about those, and as long as they are, the owner has no
//! child that carries the call out. Codex gives each such child the call's id in its environment, so that also a daemon
//! with many threads is told apart. What remains is a supposition: a hook may be thinking about it instead.

use pilotlight_core::facts::Facts;
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::turn::{Call, OpenTool, Request};

/// How long after the call its child would be there if nobody had to be asked.
const CHILD: Span = Span::seconds(1);
/// How often, at most and at least, it is looked whether the call has been allowed: nothing tells.
const LOOKS: [Span; 2] = [Span::seconds(1), Span::seconds(10)];
/// Whether the system shows what the children of a process were started with.
const SHOWS_CHILDREN: bool = cfg!(target_os = "linux");
/// The variable with a call's id in the environment of what carries it out.
#[cfg(target_os = "linux")]
const CALL_ID: &str = "CODEX_TOOL_CALL_ID";

/// Knows which calls were allowed.
#[derive(Debug)]
pub(super) struct Asking {
    allowed: Vec<Call>,
    /// [`runs`], but in tests.
    pub(super) runs: fn(u32, &str) -> Option<bool>,
    /// When to look again.
    pub(super) again_in: Option<Span>,
}

impl Default for Asking {
    fn default() -> Self {
        Self { allowed: Vec::new(), runs, again_in: None }
    }
}

impl Asking {
    /// Begins a look at the calls of all logs of a thread.
    pub(super) fn begin(&mut self) {
        self.again_in = None;
    }

    /// The requests that are probably open for calls in these facts, of a thread that this process runs; `sub_agent` is the
    /// sub-agent whose facts they are.
    pub(super) fn requests(&mut self, facts: &Facts, pid: u32, sub_agent: Option<&str>, now: Moment) -> Vec<Request> {
        let tools = facts.turn.iter().filter(|_| facts.asks_unseen).flat_map(|turn| &turn.tools);
        let calls: Vec<_> = tools.filter_map(|tool| Some((tool, tool.asks_by.clone()?))).collect();
        self.allowed.retain(|allowed| sub_agent.is_some() || calls.iter().any(|(tool, _)| tool.call == *allowed));
        let mut found = Vec::new();
        for (tool, id) in calls {
            if !self.allowed.contains(&tool.call) && self.may_wait(tool, &id, pid, now) {
                found.push(request(tool, id, sub_agent));
            }
        }
        found
    }

    /// Whether nothing shows that a call was allowed, and it would show by now.
    fn may_wait(&mut self, tool: &OpenTool, id: &str, pid: u32, now: Moment) -> bool {
        let age = now.since(tool.at);
        if age < CHILD {
            self.look_in(CHILD - age);
            return false;
        }
        let seen = (self.runs)(pid, id);
        match seen {
            Some(true) => self.allowed.push(tool.call),
            // Of a child that has just been forked, nothing can be seen for a moment.
            Some(false) | None if SHOWS_CHILDREN => self.look_in(Span(age.0 / 8).clamp(LOOKS[0], LOOKS[1])),
            Some(false) | None => {}
        }
        seen == Some(false)
    }

    fn look_in(&mut self, span: Span) {
        self.again_in = Some(self.again_in.map_or(span, |sooner| sooner.min(span)));
    }
}

/// Whether a child of the owner carries out the call with this id. `None` if that cannot be seen.
#[cfg(target_os = "linux")]
fn runs(pid: u32, id: &str) -> Option<bool> {
    pilotlight_system::process::has_child_with(pid, CALL_ID, id)
}

/// Whether a child of the owner carries out the call with this id: the system does not show it.
#[cfg(not(target_os = "linux"))]
const fn runs(_pid: u32, _id: &str) -> Option<bool> {
    None
}

fn request(tool: &OpenTool, id: Box<str>, sub_agent: Option<&str>) -> Request {
    Request {
        id: Call::of(&id),
        request: id,
        call: Some(tool.call),
        kind: "shell".into(),
        // What will be run is the daemon's to say.
        asks: None,
        paths: Vec::new(),
        command: tool.command.clone(),
        sub_agent: sub_agent.map(Into::into),
        is_managed: false,
        is_probable: true,
        over_bridge: None,
        at: tool.at,
    }
}
