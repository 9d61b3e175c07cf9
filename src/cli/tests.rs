//! A made-up agent (`pilotlight_agents::sundial`) shows everywhere, and nothing knows of it.

use super::explain::{Refusals, Shows, page};
use super::observe::{Effort, Observer, Picture};
use super::table::{Style, lines};
use crate::tray::details;
use crate::tray::menu::Menu;
use crate::tray::notifier::alertable;
use pilotlight_agents::home::Home;
use pilotlight_agents::sundial::Sundial;
use pilotlight_core::alert::{Alerts, Change, Now, Quiet, Settings};
use pilotlight_core::fleet::{Row, Session, ShortIds, distinguish};
use pilotlight_core::limits::Limits;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::Status;
use pilotlight_engine::config::Config;
use pilotlight_engine::config::List;
use pilotlight_engine::last_seen::LastSeen;
use pilotlight_engine::past::Depth;
use pilotlight_engine::{Engine, Fleet, View};
use pilotlight_system::clock::Clock;
use pilotlight_system::signals::Signals;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A home with a session that runs, and one that ended long ago.
struct Fixture {
    scratch: TempDir,
    process: Child,
    began: Time,
}

impl Fixture {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let home = Self { scratch, process, began: Clock::start().now().wall };
        fs::write(home.at("sundial.toml"), "").unwrap();
        home.write(
            "2024/02/29",
            "old",
            ("Lay the stones", Time(1_709_208_000_000)),
            &[("prompt", ""), ("turn over", "")],
        );
        let old = fs::File::options().append(true).open(home.at("days/2024/02/29/old.json")).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_709_208_000)).unwrap();
        home.tell(&[("prompt", ""), ("tool", "turn the gnomon")]);
        fs::create_dir(home.at("running")).unwrap();
        fs::write(home.at("running").join(home.process.id().to_string()), "noon").unwrap();
        home
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scratch.path().join(path)
    }

    fn write(&self, day: &str, id: &str, (title, began): (&str, Time), events: &[(&str, &str)]) {
        let folder = self.at("days").join(day);
        fs::create_dir_all(&folder).unwrap();
        let event = |(n, (what, text)): (i64, &(&str, &str))| serde_json::json!({ "at": (began + Span(n)).to_string(), "what": what, "text": text });
        let events: Vec<_> = (0..).zip(events).map(event).collect();
        let file = serde_json::json!({ "title": title, "folder": "/srv/garden", "events": events });
        let whole = folder.join(format!(".{id}"));
        fs::write(&whole, file.to_string()).unwrap();
        fs::rename(whole, folder.join(format!("{id}.json"))).unwrap();
    }

    /// What happened in the session that runs.
    fn tell(&self, events: &[(&str, &str)]) {
        self.write("2026/11/25", "noon", ("Set the sundial", self.began), events);
    }

    fn homes(&self) -> [Home; 1] {
        [Home::of(&Sundial, self.scratch.path().to_owned())]
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// All sessions of these homes.
fn picture(homes: &[Home]) -> Picture {
    let (homes, config, seen) = (homes.to_vec(), Config::default(), LastSeen::default());
    let observer = Observer { homes, config, seen, only: Vec::new(), has_bridge: false, bridged_agents: Vec::new() };
    observer.observe_alone(Effort::Look, Some(Depth::Whole)).unwrap()
}

#[test]
fn a_made_up_agent_shows_in_status_and_explain() {
    let home = Fixture::new();
    let mut taken = picture(&home.homes());
    let ids = taken.ids();
    let row = |session: &Session| session.row(taken.now, &Limits::default()).0;
    let mut rows: Vec<Row> = taken.sessions.iter().map(row).collect();
    rows.sort_by(|one, other| one.id.cmp(&other.id));
    let style = Style { width: None, height: None, colour: false, unicode: true };
    let table = lines(&rows, &ShortIds::new(ids.iter().map(|id| &**id)), taken.now.wall, style).join("\n");
    assert!(table.contains("Set the sundial") && table.contains("running shadow"), "{table}");
    assert_eq!(rows.iter().map(|row| row.status).collect::<Vec<_>>(), [Status::Working, Status::Ended], "{table}");
    let noon = taken.sessions.iter().find(|session| *session.id == *"noon").unwrap();
    let page = page(
        noon,
        &rows[0].label,
        taken.now,
        &Limits::default(),
        Shows { refusals: Refusals::Explained, last_message: true },
    )
    .to_string();
    for told in ["/srv/garden", &format!("process {}, alive", home.process.id()), "a sundial only shows the time"] {
        assert!(page.contains(told), "{told}: {page}");
    }
}

#[test]
fn case_283_the_agent_is_shown_where_sessions_of_several_are() {
    let home = Fixture::new();
    let other = Home::at(home.at("other").as_path());
    fs::create_dir_all(other.path("one")).unwrap();
    let line = serde_json::json!({ "type": "user.message", "data": {}, "id": "", "timestamp": home.began.to_string() });
    fs::write(other.log("one"), format!("{line}\n")).unwrap();
    let [sundial] = home.homes();
    let shown = |homes: &[Home]| {
        let mut taken = picture(homes);
        let ids = taken.ids();
        let row = |session: &Session| session.row(taken.now, &Limits::default()).0;
        let mut rows: Vec<Row> = taken.sessions.iter().map(row).collect();
        distinguish(&mut rows);
        let style = Style { width: Some(100), height: None, colour: false, unicode: true };
        let table = lines(&rows, &ShortIds::new(ids.iter().map(|id| &**id)), taken.now.wall, style);
        let pages = taken.sessions.iter().zip(&rows).map(|(session, row)| {
            page(
                session,
                &row.label,
                taken.now,
                &Limits::default(),
                Shows { refusals: Refusals::Named, last_message: true },
            )
            .to_string()
        });
        (table, pages.collect::<String>())
    };
    let (table, pages) = shown(&[sundial.clone(), other.clone()]);
    assert!(
        table[0].contains("AGENT") && table.iter().flat_map(|row| row.lines()).all(|line| line.chars().count() <= 100),
        "{table:#?}"
    );
    for agent in ["Sundial", "Copilot"] {
        assert!(table.iter().any(|line| line.contains(agent)) && pages.contains(&format!("({agent})")), "{table:#?}");
        assert!(pages.contains(&format!("agent           {agent}\n")), "{pages}");
    }
    for alone in [sundial, other] {
        let (table, pages) = shown(&[alone]);
        let all = table.join("\n") + &pages;
        assert!(!all.contains("AGENT") && !all.contains("\nagent  ") && !all.contains("Copilot)"), "{all}");
    }
}

/// Follows the sessions as `watch`, the menu and notifications do, and makes each next thing happen in the home.
struct Watching {
    home: Fixture,
    menu: Menu,
    alerts: Alerts,
    /// The lines of `watch`, and the popups.
    lines: Vec<String>,
    popups: Vec<String>,
    history: Vec<Box<str>>,
    shown: String,
    /// How much the agent was told to do.
    told: u8,
}

impl View for Watching {
    fn show(&mut self, fleet: &Fleet, changed: &[Key], _: &[Key], now: Moment) -> ControlFlow<()> {
        let Some((key, entry)) = fleet.entries().find(|(key, _)| *key.id == *"noon") else {
            return ControlFlow::Continue(());
        };
        self.lines.extend(changed.iter().filter_map(|key| Some(serde_json::to_string(&fleet.get(key)?.row).unwrap())));
        let sources = fleet.entries().map(|(key, entry)| details::Source {
            key,
            row: &entry.row,
            session: &entry.session,
            last_progress: &entry.last_progress,
            reader: Some(&entry.reader),
        });
        if let Some(view) = self.menu.update(sources, now) {
            self.shown = format!("{:?}", view.items);
        }
        let alertable = alertable(key, &entry.row, &entry.session, None, true);
        let clock = Now { at: now, minute: 0, started: Time(0), woke: None };
        for change in self.alerts.update([alertable], &clock) {
            if let Change::Raise(popup) = change {
                self.popups.push(format!("{popup:?}"));
            }
        }
        match (self.told, entry.row.status) {
            (0, Status::Working) => {
                self.home.tell(&[
                    ("prompt", ""),
                    ("tool", "turn the gnomon"),
                    ("tool over", ""),
                    ("answer", "Which way is north?"),
                    ("turn over", ""),
                ]);
                self.told = 1;
            }
            (1, Status::NeedsInput) => {
                assert!(self.shown.contains("Set the sundial"), "{}", self.shown);
                self.home.tell(&[("prompt", ""), ("answer", "Which way is north?"), ("turn over", ""), ("prompt", "")]);
                self.told = 2;
            }
            (2, Status::Working) => self.home.process.kill().unwrap(),
            (_, Status::Crashed) => return ControlFlow::Break(()),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn wants_history(&self) -> bool {
        true
    }

    fn show_history(&mut self, sessions: &mut dyn Iterator<Item = Session>, _: Moment) -> ControlFlow<()> {
        self.history.extend(sessions.map(|session| session.id));
        ControlFlow::Continue(())
    }
}

#[tokio::test]
async fn a_made_up_agent_shows_in_watch_menu_notifications_and_history() {
    let home = Fixture::new();
    let homes = home.homes();
    let alerts = Settings { gather: Span::ZERO, start_grace: Span::ZERO, focus_delay: None, ..Settings::default() };
    let mut watching = Watching {
        home,
        menu: Menu::new(Limits::default(), List::default(), None, false),
        alerts: Alerts::new(alerts, Quiet::default()),
        lines: Vec::new(),
        popups: Vec::new(),
        history: Vec::new(),
        shown: String::new(),
        told: 0,
    };
    let engine = Engine::new(&homes, Config::default(), LastSeen::default());
    let run = engine.run(Signals::new().unwrap(), &mut watching);
    let ended = tokio::time::timeout(Duration::from_secs(30), run).await;
    let Watching { lines, popups, history, shown, .. } = watching;
    assert!(ended.is_ok(), "{lines:#?}");
    let statuses: Vec<_> = lines.iter().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect();
    let mut statuses: Vec<_> = statuses.iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect();
    statuses.dedup();
    assert_eq!(statuses, ["working", "needs-input", "working", "crashed"], "{lines:#?}");
    assert!(popups.iter().any(|popup| popup.contains("garden waits for your answer")), "{popups:#?}");
    assert!(popups.iter().any(|popup| popup.contains("garden crashed")), "{popups:#?}");
    assert!(shown.contains("Set the sundial") && shown.contains("a sundial only shows the time"), "{shown}");
    assert_eq!(history, ["old".into()], "what ended long ago is history");
}

#[test]
fn a_command_that_the_help_does_not_list_is_not_suggested() {
    let says = |word: &str| super::parse(["pilotlight", word].map(Into::into)).unwrap_err().to_string();
    assert!(says("statu").contains("'status'"), "{}", says("statu"));
    assert!(says("foo").contains("unrecognized") && !says("foo").contains("hook"), "{}", says("foo"));
}
