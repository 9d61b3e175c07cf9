//! Sessions made up for the tests of the menu.

use super::*;
use pilotlight_agents;
use pilotlight_core::session::{HomeId, Key, Observed};
use pilotlight_core::words::reason::Because;

/// Sessions made up by a test.
pub(super) struct World {
    pub(super) sessions: Vec<(Key, Session, Row)>,
    pub(super) menu: Menu,
    pub(super) now: Moment,
    pub(super) last_progress: LastProgress,
}

impl World {
    pub(super) fn new() -> Self {
        let menu = Menu::new(Limits::default(), List::default(), Some("/home/dev".into()), false);
        let last_progress = LastProgress::default();
        Self { sessions: Vec::new(), menu, now: Moment::of(Time(1_700_000_000_000)), last_progress }
    }

    pub(super) fn add(&mut self, name: &str, status: Status) {
        let created = Some(Time(i64::try_from(self.sessions.len()).unwrap()));
        let mut session = Session {
            id: name.into(),
            observed: Observed {
                about: About { created, cwd: Some("/home/dev/x".into()), ..About::default() },
                has_log: true,
                ..Observed::default()
            },
            ..Session::default()
        };
        session.observed.facts.progress = Some(self.now);
        let label = Label { who: name.into(), agent: None, title: None };
        let row = Row { name: name.into(), label, ..session.row(self.now, &Limits::default()).0 };
        self.sessions.push((Key::new(HomeId::default(), name), session, row));
        self.set(name, status);
    }

    pub(super) fn all(names: &[&str], status: Status) -> Self {
        let mut world = Self::new();
        names.iter().for_each(|name| world.add(name, status));
        world
    }

    pub(super) fn session(&mut self, name: &str) -> &mut Session {
        &mut self.sessions.iter_mut().find(|(key, ..)| &*key.id == name).unwrap().1
    }

    pub(super) fn row(&mut self, name: &str) -> &mut Row {
        &mut self.sessions.iter_mut().find(|(key, ..)| &*key.id == name).unwrap().2
    }

    pub(super) fn set(&mut self, name: &str, status: Status) {
        let now = self.now.wall;
        let row = self.row(name);
        let because = Because::from(&*format!("is {status}"));
        let short_reason = ShortReason::of(&because);
        *row = Row { status, since: now, last_progress: Some(now), because, short_reason, ..row.clone() };
    }

    pub(super) fn after(&mut self, span: Span) -> Option<Arc<MenuView>> {
        self.now = self.now.plus(span);
        let home = pilotlight_agents::home::Home::at(Path::new("/nowhere"));
        let readers: Vec<_> = self.sessions.iter().map(|(key, ..)| home.reader(&key.id)).collect();
        let last_progress = &self.last_progress;
        let sources = self.sessions.iter().zip(&readers);
        let sources = sources.map(|((key, session, row), reader)| Source {
            key,
            row,
            session,
            last_progress,
            reader: key.host.is_none().then_some(reader),
        });
        self.menu.update(sources, self.now)
    }

    pub(super) fn update(&mut self) -> Option<Arc<MenuView>> {
        self.after(Span(1))
    }

    /// The texts of the entries; those of separators are empty.
    pub(super) fn entries(&self) -> Vec<String> {
        let items = &self.menu.shown.as_ref().unwrap().items;
        items.iter().map(|item| item.words().map(|text| text.at(self.now)).unwrap_or_default()).collect()
    }

    pub(super) fn submenu(&self, kind: Kind) -> &[Item] {
        let id = ItemId::own(kind);
        let items = &self.menu.shown.as_ref().unwrap().items;
        items.iter().find(|item| item.id() == Some(&id)).unwrap_or_else(|| panic!("no {kind:?}: {items:#?}")).children()
    }

    pub(super) fn effect(&self, name: &str, kind: Kind) -> Option<&Effect> {
        self.menu.shown.as_ref().unwrap().effect_of(&ItemId::of(&Key::new(HomeId::default(), name), kind))
    }

    /// Lets a session request permission over a server that can be reached.
    pub(super) fn ask(&mut self, name: &str, request: u64, command: &str) {
        let now = self.now;
        let (_, session, _) = self.sessions.iter_mut().find(|(key, ..)| &*key.id == name).unwrap();
        session.observed.owner = Owner::Alive { pid: 1, started: None };
        session.control.server = ServerState::Listening;
        session.observed.facts.requests.push(Request {
            id: Call::from_number(request),
            request: format!("request-{request}").into(),
            call: None,
            kind: "shell".into(),
            asks: Some(command.into()),
            paths: Vec::new(),
            command: None,
            sub_agent: None,
            is_managed: false,
            is_probable: false,
            over_bridge: None,
            at: now,
        });
        self.set(name, Status::NeedsPermission);
    }

    /// Lets a session of Claude Code request permission over its bridge, and suggest these rules.
    pub(super) fn ask_over_bridge(&mut self, name: &str, request: u64, command: &str, rules: Option<&str>) {
        self.ask(name, request, command);
        let (_, session, _) = self.sessions.iter_mut().find(|(key, ..)| &*key.id == name).unwrap();
        session.observed.allows = Allows::Process;
        (session.control.server, session.control.bridge) =
            (ServerState::NotListening, Some(pilotlight_core::action::Bridge::Elevated));
        let options = pilotlight_core::turn::AnswerOptions { always: rules.map(Into::into), is_held: false };
        session.observed.facts.requests.last_mut().unwrap().over_bridge = Some(options);
    }

    pub(super) fn answered(&mut self, name: &str) {
        let (_, session, _) = self.sessions.iter_mut().find(|(key, ..)| &*key.id == name).unwrap();
        session.observed.facts.requests.clear();
        self.set(name, Status::Working);
    }
}

/// The names of the sessions with these rows; a remedy is `+`.
pub(super) fn names(items: &[Item]) -> Vec<String> {
    let name = |item: &Item| match item.id() {
        Some(ItemId { session: Some(Key { id, .. }), kind: Kind::Row }) => Some(id.to_string()),
        Some(ItemId { session: Some(_), kind: Kind::Remedy }) => Some("+".into()),
        _ => None,
    };
    items.iter().filter_map(name).collect()
}

pub(super) fn text(item: &Item) -> String {
    item.words().map(|text| text.at(Moment::of(Time(1_700_000_000_000)))).unwrap_or_default()
}
