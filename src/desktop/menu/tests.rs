//! The rules of places, one after the other, with no desktop and no clock.

use super::*;
use crate::act::{Reply, Which};
use crate::core::alert::{Detail, Pause};
use crate::core::asked::Question;
use crate::core::fleet::{About, Label, Session};
use crate::core::form::{Form, With};
use crate::core::turn::{Call, Request};
use crate::core::verdict::Asking;
use crate::desktop::view::Effect;
use std::path::Path;

/// Sessions that a test writes down.
struct World {
    sessions: Vec<(Key, Session, Row)>,
    menu: Menu,
    now: Moment,
}

impl World {
    fn new() -> Self {
        let menu = Menu::new(Limits::default(), List::default(), Some("/home/dev".into()), false);
        Self { sessions: Vec::new(), menu, now: Moment::of(Time(1_700_000_000_000)) }
    }

    fn add(&mut self, name: &str, status: Status) {
        let created = Some(Time(i64::try_from(self.sessions.len()).unwrap()));
        let mut session = Session {
            id: name.into(),
            about: About { created, cwd: Some("/home/dev/x".into()), ..About::default() },
            has_log: true,
            ..Session::default()
        };
        session.facts.progress = Some(self.now);
        let label = Label { who: name.into(), title: None };
        let row = Row { name: name.into(), label, ..session.row(self.now, &Limits::default()).0 };
        self.sessions.push(((0, name.into()), session, row));
        self.set(name, status);
    }

    fn set(&mut self, name: &str, status: Status) {
        let now = self.now.wall;
        let (_, _, row) = self.sessions.iter_mut().find(|(key, ..)| &*key.1 == name).unwrap();
        *row = Row { status, since: now, last_progress: Some(now), because: format!("is {status}"), ..row.clone() };
    }

    fn remove(&mut self, name: &str) {
        self.sessions.retain(|(key, ..)| &*key.1 != name);
    }

    fn after(&mut self, span: Span) -> Option<MenuView> {
        self.now = self.now.plus(span);
        let path = Path::new("/nowhere");
        let sources = self.sessions.iter().map(|(key, session, row)| Source { key, row, session, path });
        self.menu.update(sources, self.now)
    }

    fn update(&mut self) -> Option<MenuView> {
        self.after(Span(1))
    }

    /// The rows as they stand: a name, with a minus where it is disabled.
    fn places(&self) -> Vec<String> {
        names(&self.menu.shown.as_ref().unwrap().items)
    }

    fn recent(&self) -> Vec<String> {
        let items = &self.menu.shown.as_ref().unwrap().items;
        let recent = items.iter().find(|item| item.id() == Some(&ItemId::own(Kind::Recent))).unwrap();
        names(recent.children())
    }
}

fn names(items: &[Item]) -> Vec<String> {
    let row = |item: &Item| match item {
        Item::Submenu { id: ItemId { session: Some((_, id)), kind: Kind::Row }, enabled, .. } => {
            Some(format!("{}{id}", if *enabled { "" } else { "-" }))
        }
        _ => None,
    };
    items.iter().filter_map(row).collect()
}

fn text(item: &Item) -> &str {
    match item {
        Item::Text(text) | Item::Action { text, .. } | Item::Check { text, .. } | Item::Submenu { text, .. } => text,
        Item::Separator => "",
    }
}

#[test]
fn what_needs_the_user_is_first_when_the_menu_is_laid_out_and_then_the_oldest() {
    let mut world = World::new();
    for (name, status) in [
        ("a", Status::Idle),
        ("b", Status::NeedsInput),
        ("c", Status::Working),
        ("d", Status::Ended),
        ("e", Status::NeedsPermission),
    ] {
        world.add(name, status);
    }
    world.update().unwrap();
    assert_eq!((world.places(), world.recent()), (["b", "e", "a", "c"].map(String::from).into(), vec!["d".into()]));
}

#[test]
fn rows_keep_their_places_whatever_becomes_of_their_sessions() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.add(name, Status::Working);
    }
    let before = world.update().unwrap();
    world.set("c", Status::NeedsPermission);
    world.set("a", Status::Ended);
    world.remove("b");
    let after = world.after(Span::seconds(30)).unwrap();
    assert_eq!(world.places(), ["-a", "-b", "c"]);
    assert!(after.has_shape_of(&before), "not even what is in the submenus");
    assert!(text(&after.items[3]).contains("gone"), "{:?}", after.items[3]);
    world.set("a", Status::Working);
    world.update().unwrap();
    assert_eq!(world.places(), ["a", "-b", "c"], "it was resumed");
    world.add("d", Status::Idle);
    world.update().unwrap();
    assert_eq!(world.places(), ["c", "a", "d"]);
}

#[test]
fn a_row_that_is_over_is_tidied_away_after_a_minute() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.add("b", Status::Working);
    world.update();
    world.set("a", Status::Ended);
    world.update();
    let at = world.menu.wake_at().unwrap();
    assert_eq!(at, world.now.awake + TIDY_AFTER);
    world.after(TIDY_AFTER).unwrap();
    assert_eq!((world.places(), world.recent()), (vec!["b".into()], vec!["a".into()]));
    world.set("a", Status::Working);
    world.after(SHAPE_REST).unwrap();
    assert_eq!((world.places(), world.recent().len()), (vec!["a".into(), "b".into()], 0), "resumed");
}

#[test]
fn the_first_change_of_shape_is_shown_at_once_and_further_ones_once_a_second() {
    let mut world = World::new();
    world.add("a", Status::Idle);
    world.update().unwrap();
    let begun = world.now;
    world.after(Span::seconds(5));
    world.add("b", Status::Idle);
    world.update().unwrap();
    assert_eq!(world.places(), ["a", "b"], "at once");
    let shaped = world.now.awake;
    for n in 0..20 {
        world.add(&format!("n{n}"), Status::Working);
        // Their number is words, and is told at once; their rows wait.
        assert!(world.after(Span(10)).is_some());
        assert_eq!(world.places(), ["a", "b"]);
        assert_eq!(world.menu.wake_at(), Some(shaped + SHAPE_REST));
    }
    world.after(shaped + SHAPE_REST - world.now.awake).unwrap();
    assert_eq!(world.places().len(), 22);
    assert!(world.now.since(begun) < Span::seconds(7));
}

#[test]
fn nothing_is_sent_when_nothing_is_new_and_ages_at_most_once_a_minute() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.add("b", Status::Working);
    world.update().unwrap();
    assert_eq!(world.update(), None);
    // Progress alone says nothing.
    world.sessions[0].2.last_progress = Some(world.now.wall + Span(5));
    assert_eq!(world.after(Span::seconds(59)), None);
    let mut updates = 0;
    for _ in 0..600 {
        updates += u32::from(world.after(Span::seconds(1)).is_some());
    }
    // 1, 2, 5 and 10 minutes, for two rows of which one is a blink younger.
    assert!((4..=8).contains(&updates), "{updates}");
}

#[test]
fn ages_wake_nobody_and_go_along_with_the_look_once_a_minute() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.update().unwrap();
    assert_eq!(world.menu.wake_at(), None);
    // The look around comes a blink sooner or later.
    for (wait, age) in [(60_010, "1 min"), (59_995, "2 min"), (180_000, "5 min")] {
        let view = world.after(Span(wait)).unwrap();
        assert!(text(&view.items[2]).contains(&format!(" · {age} · ")), "{:?}", view.items[2]);
        assert_eq!(world.menu.wake_at(), None);
    }
}

#[test]
fn an_age_is_told_within_a_minute_whatever_else_was_told_since() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.add("b", Status::Working);
    world.update().unwrap();
    world.after(Span::seconds(55));
    world.set("b", Status::Stuck);
    world.update().unwrap();
    let view = world.after(Span::seconds(5)).expect("the look around comes five seconds later");
    assert!(text(&view.items[2]).contains(" · 1 min · "), "{:?}", view.items[2]);
}

#[test]
fn the_summary_the_tooltip_and_the_icon_say_the_same() {
    let mut world = World::new();
    let view = world.update().unwrap();
    assert_eq!((text(&view.items[0]), &*view.tooltip), ("No session is open", "no session is open"));
    world.add("a", Status::Stuck);
    world.add("b", Status::NeedsInput);
    world.add("c", Status::Working);
    world.sessions[2].2.unseen = true;
    let view = world.after(Span::seconds(2)).unwrap();
    assert_eq!(text(&view.items[0]), "2 need you, 1 working; 1 not looked at yet");
    assert_eq!(view.tooltip, "2 need you, 1 working");
    assert_eq!(view.icon, Icon { unseen: true, ..Icon::of(icon::State::NeedsYou) });
}

#[test]
fn the_icon_counts_those_that_need_the_user_where_that_is_set() {
    let mut world = World::new();
    world.add("stuck", Status::Stuck);
    world.add("failed", Status::Failed);
    world.add("idle", Status::Idle);
    assert_eq!(world.update().unwrap().icon, Icon::of(icon::State::Trouble), "it is not set");
    world.menu = world.menu.with_icon(Tray { count: true, high_contrast: true });
    let icon = world.update().unwrap().icon;
    assert_eq!((icon.count, icon.contrast), (2, true));
    world.sessions[1].1.seen = Some(world.now.wall);
    assert_eq!(world.update().unwrap().icon.count, 1, "what was seen to fail no longer colours it, nor counts");
}

#[test]
fn a_long_menu_is_bounded_and_what_needs_the_user_is_always_in_it() {
    let mut world = World::new();
    for n in 0..40 {
        world.add(&format!("n{n:02}"), Status::Working);
    }
    let view = world.update().unwrap();
    assert_eq!(world.places().len(), ROWS);
    assert!(view.items.iter().any(|item| text(item).starts_with("… and 10 more sessions")));
    assert_eq!(world.after(Span::seconds(2)), None, "and stays as it is");
    world.set("n39", Status::Stuck);
    world.after(Span::seconds(2)).unwrap();
    assert_eq!(world.places()[0], "n39");
}

#[test]
fn only_what_is_shown_and_enabled_can_be_clicked() {
    let mut world = World::new();
    world.add("36535f61-5c7b-4f09-a70b-2f8aed97280f", Status::Working);
    world.add("../no-id; rm -rf", Status::Working);
    let view = world.update().unwrap();
    let item = |id: &str, kind| ItemId::of(&(0, id.into()), kind);
    let (id, odd) = ("36535f61-5c7b-4f09-a70b-2f8aed97280f", "../no-id; rm -rf");
    let resume = Effect::Copy(format!("copilot --resume={id}"));
    assert_eq!(view.effect_of(&item(id, Kind::CopyResume)), Some(&resume));
    assert_eq!(view.effect_of(&item(odd, Kind::CopyResume)), None, "only an id reaches a command line");
    assert_eq!(view.effect_of(&item(id, Kind::Seen)), None, "there is nothing to mark");
    assert_eq!(view.effect_of(&item("another", Kind::CopyId)), None);
    assert_eq!(view.effect_of(&ItemId::own(Kind::Quit)), Some(&Effect::Quit));
    assert_eq!(view.effect_of(&item(id, Kind::OpenFolder)), Some(&Effect::OpenFolder("/home/dev/x".into())));
}

impl World {
    /// A session asks for a permission, over a server that can be reached.
    fn ask(&mut self, name: &str, request: u64, command: &str) {
        let now = self.now;
        let (_, session, _) = self.sessions.iter_mut().find(|(key, ..)| &*key.1 == name).unwrap();
        session.owner = Owner::Alive { pid: 1, started: None };
        session.dealings.reach = Reach::Listens;
        session.facts.requests.push(Request {
            id: Call::of_number(request),
            request: format!("request-{request}").into(),
            call: None,
            kind: "shell".into(),
            asks: Some(command.into()),
            agent: None,
            at: now,
        });
        self.set(name, Status::NeedsPermission);
    }

    fn answered(&mut self, name: &str) {
        let (_, session, _) = self.sessions.iter_mut().find(|(key, ..)| &*key.1 == name).unwrap();
        session.facts.requests.clear();
        self.set(name, Status::Working);
    }

    fn effect(&self, name: &str, kind: Kind) -> Option<&Effect> {
        self.menu.shown.as_ref().unwrap().effect_of(&ItemId::of(&(0, name.into()), kind))
    }
}

/// Case 107b.
#[test]
fn case_107b_an_item_answers_the_request_that_it_shows_or_none() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.ask("a", 1, "make");
    world.update().unwrap();
    let approve = |request| Kind::Approve(Call::of_number(request));
    let asks = |id: &str, text: &str| Ask::Approve(Which::Shown { id: id.into(), text: text.into() });
    assert_eq!(world.effect("a", approve(1)), Some(&Effect::Act(Order::new("a", asks("request-1", "make")))));
    // Answered elsewhere, and another one opened, while the menu stands: within the second its shape is as it was.
    world.answered("a");
    world.ask("a", 2, "rm -r .");
    let between = world.after(Span(200)).unwrap();
    assert_eq!((world.effect("a", approve(1)), world.effect("a", approve(2))), (None, None));
    let after = world.after(Span::seconds(1)).unwrap();
    assert!(!after.has_shape_of(&between), "another request is another shape");
    assert_eq!(world.effect("a", approve(1)), None);
    assert!(world.effect("a", approve(2)).is_some());
    // What is gone stays where it is, disabled, until then.
    world.answered("a");
    let answered = world.after(Span::seconds(5)).unwrap();
    assert!(answered.has_shape_of(&after) && world.effect("a", approve(2)).is_none());
}

#[test]
fn a_request_that_cannot_be_shown_whole_offers_only_its_details() {
    let mut world = World::new();
    for (name, command) in [
        ("long", "x".repeat(500)),
        ("odd", "echo \u{202e}fr- mr".into()),
        ("lines", "a\nb".into()),
        ("joined", "l\u{200d}s".into()),
        ("none", "".into()),
    ] {
        world.add(name, Status::Working);
        world.ask(name, 7, &command);
    }
    world.update().unwrap();
    for name in ["long", "odd", "lines", "joined", "none"] {
        assert_eq!(world.effect(name, Kind::Approve(Call::of_number(7))), None, "{name}");
        let details = Effect::Details { id: name.into(), request: "request-7".into() };
        assert_eq!(world.effect(name, Kind::Details(Call::of_number(7))), Some(&details));
    }
}

/// A session that is attached asks this.
fn pose(world: &mut World, name: &str, request: &str, question: &str, choices: &[&str], free: bool) -> u64 {
    let asked =
        serde_json::json!({"requestId": request, "question": question, "choices": choices, "allowFreeform": free});
    let form = Form::read("user_input.requested", &asked).unwrap();
    let mark = form.mark();
    let question = Question { text: question.into(), choices: Vec::new() };
    let (_, session, _) = world.sessions.iter_mut().find(|(key, ..)| &*key.1 == name).unwrap();
    session.dealings.reach = Reach::Attached;
    session.live.has_active_work = Some(true);
    session.live.questions = vec![Asking { question, since: Time(0), form: Ok(form) }];
    mark
}

#[test]
fn a_choice_answers_the_question_that_it_was_shown_with_and_no_other() {
    let mut world = World::new();
    world.add("a", Status::NeedsInput);
    let mark = pose(&mut world, "a", "r1", "Which <color>?", &["red", "blue"], true);
    let choice = |mark, n| Kind::Choice(Call::of_number(mark), n);
    let first = world.update().unwrap();
    let reply = |request: &str, shown, n| {
        let reply = Reply::Give { request: request.into(), shown, with: With::Choice(n) };
        Some(Effect::Act(Order::new("a", Ask::Answer(reply))))
    };
    assert_eq!(world.effect("a", choice(mark, 1)).cloned(), reply("r1", mark, 1));
    assert_eq!(world.effect("a", choice(mark, 2)), None);
    let answer = Effect::Answer { id: "a".into(), request: "r1".into() };
    assert_eq!(world.effect("a", Kind::Answer(Call::of_number(mark))), Some(&answer), "in words of one's own");
    // Another question in its place is answered by nothing before the menu is laid out anew.
    let other = pose(&mut world, "a", "r2", "Which <color>?", &["red", "blue"], true);
    assert_ne!(mark, other);
    let between = world.after(Span(200)).unwrap();
    assert!(between.has_shape_of(&first));
    assert_eq!((world.effect("a", choice(mark, 1)), world.effect("a", choice(other, 1))), (None, None));
    world.after(Span::seconds(1)).unwrap();
    assert_eq!(world.effect("a", choice(other, 1)).cloned(), reply("r2", other, 1));
    // What is over stays where it stands, disabled.
    world.sessions[0].1.live.questions.clear();
    world.after(Span::seconds(5)).unwrap();
    assert_eq!(world.effect("a", choice(other, 1)), None);
}

#[test]
fn a_question_that_is_not_seen_whole_is_answered_in_a_terminal_alone() {
    let long = "x".repeat(200);
    let many: Vec<_> = (0..8).map(|n| n.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (question, choices) in [
        (&*long, &["red"][..]),
        ("two\nlines", &["red"]),
        ("Which?", &["red", &long[..61]]),
        ("Which?", &["r\u{435}d"]),
        ("Which?", &["red", ""]),
        ("Which?", &many),
    ] {
        let mut world = World::new();
        world.add("a", Status::NeedsInput);
        let call = Call::of_number(pose(&mut world, "a", "r1", question, choices, true));
        world.update().unwrap();
        for n in 0..8 {
            assert_eq!(world.effect("a", Kind::Choice(call, n)), None, "{question:?}, {choices:?}");
        }
        assert!(matches!(world.effect("a", Kind::Answer(call)), Some(Effect::Answer { .. })), "{question:?}");
    }
    let mut world = World::new();
    world.add("a", Status::NeedsInput);
    let call = Call::of_number(pose(&mut world, "a", "r1", "Which?", &many[..7], false));
    world.update().unwrap();
    assert!(world.effect("a", Kind::Choice(call, 6)).is_some());
    assert_eq!(world.effect("a", Kind::Answer(call)), None, "it takes no other words");
}

#[test]
fn what_is_muted_or_paused_says_so() {
    let mut world = World::new();
    world.add("a", Status::Working);
    let view = world.update().unwrap();
    assert!(!view.icon.paused && !view.tooltip.contains("paused") && !text(&view.items[2]).ends_with("muted"));
    let mut notices = Notices::default();
    notices.quiet.mute_session("a");
    notices.quiet.pause(Pause::UntilResumed);
    world.menu.note(&notices);
    let view = world.update().unwrap();
    assert!(view.icon.paused && view.tooltip.ends_with("; notifications are paused until resumed"), "{}", view.tooltip);
    assert!(text(&view.items[2]).ends_with(" · muted"), "{}", text(&view.items[2]));
}

/// Case 107e.
#[test]
fn case_107e_quitting_as_the_last_client_names_what_would_end_and_takes_a_second_click() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.update().unwrap();
    let quit = |view: &MenuView| view.items.last().cloned().unwrap();
    assert!(matches!(quit(world.menu.shown.as_ref().unwrap()), Item::Action { effect: Effect::Quit, .. }));
    world.sessions[0].1.dealings.reach = Reach::Hosted(7);
    let view = world.after(Span::seconds(2)).unwrap();
    let Item::Submenu { items, .. } = quit(&view) else { panic!("{:?}", quit(&view)) };
    assert_eq!(text(&items[0]), "This may end: a");
    assert!(matches!(items[1], Item::Action { effect: Effect::Quit, .. }));
}

#[test]
fn what_was_open_when_the_machine_went_down_is_reopened_together() {
    let mut world = World::new();
    let ids = ["36535f61-5c7b-4f09-a70b-2f8aed972800", "36535f61-5c7b-4f09-a70b-2f8aed972801", "not-an-id"];
    for id in ids {
        world.add(id, Status::Crashed);
        let (_, session, _) = world.sessions.last_mut().unwrap();
        session.owner = Owner::Gone { pid: 1, at: None };
    }
    world.update().unwrap();
    let orders = ids[..2].iter().map(|id| Order::new(id, Ask::Resume)).collect();
    let item = ItemId::own(Kind::Reopen);
    assert_eq!(world.menu.shown.as_ref().unwrap().effect_of(&item), Some(&Effect::Reopen(orders)));
}

/// What is shown of a session whose popup was clicked is a notification as any other.
#[test]
fn a_session_in_the_words_of_a_notification_says_no_more_than_the_user_allows() {
    let shown = |detail| {
        let mut world = World::new();
        world.add("Fix the parser", Status::Stuck);
        world.menu.note(&Notices { detail, ..Notices::default() });
        let (key, session, row) = &world.sessions[0];
        let summary = world.menu.details(&Source { key, session, row, path: Path::new("/nowhere") }, world.now);
        (summary.title, summary.body)
    };
    let (title, body) = shown(Detail::Full);
    assert!(title.ends_with("stuck: Fix the parser") && body.contains("Now: "), "{title} {body}");
    assert_eq!(shown(Detail::Title), (title, String::new()));
    assert_eq!(shown(Detail::None), ("A Copilot session needs you".into(), "The menu shows which.".into()));
}
