//! Requests and questions: they are shown in the submenu, and answered there only if shown in full.

use super::*;
use crate::tray::view::Reviewed;
use pilotlight_core::form::{Form, FormAnswer};
use pilotlight_core::order::{Denial, Reply, Which};
use pilotlight_core::question::Question;
use pilotlight_core::verdict::Asking;

#[test]
fn a_submenu_shows_the_request_and_the_possible_actions() {
    let mut world = World::all(&["a"], Status::Working);
    world.ask("a", 1, "rm -rf build && cargo build --release --all-targets");
    world.update().unwrap();
    let row = world.menu.shown.as_ref().unwrap().items[2].clone();
    let words: Vec<_> = row.children().iter().map(text).collect();
    let expected = [
        "Wants to run: rm -rf build && cargo build",
        "  --release --all-targets",
        "",
        "Approve once",
        "Deny",
        "Reconnect",
        "Show its terminal",
        "Why",
        "More",
    ];
    assert_eq!(words, expected);
    let Item::Action { effect: Effect::Seen, .. } = &row.children()[0] else { panic!("{row:#?}") };
    let why: Vec<_> = row.children()[7].children().iter().map(text).collect();
    assert_eq!(why[0], "needs-permission: is needs-permission");
    assert_eq!(why.last().unwrap(), "What cannot be done now");
    let refused: Vec<_> = row.children()[7].children().last().unwrap().children().iter().map(text).collect();
    assert_eq!(refused[..2], ["Answer: it asks nothing that Pilotlight can", "  see"]);
}

#[test]
fn case_107b_an_item_answers_only_the_request_that_it_shows() {
    let mut world = World::new();
    world.add("a", Status::Working);
    world.ask("a", 1, "make");
    world.update().unwrap();
    let approve = |request| Kind::Approve(Call::from_number(request));
    let asks = |id: &str, text: &str| Operation::Approve(Which::Shown { id: id.into(), text: text.into() });
    let order = Order { who: "a".into(), ..Order::new("a", asks("request-1", "make")) };
    assert_eq!(world.effect("a", approve(1)), Some(&Effect::Act(Box::new(order))));
    // The first is answered elsewhere and another one opens: a click in flight was for the first.
    world.answered("a");
    world.ask("a", 2, "rm -r .");
    world.after(Span::seconds(1)).unwrap();
    assert_eq!(world.effect("a", approve(1)), None);
    assert!(world.effect("a", approve(2)).is_some());
    world.answered("a");
    world.after(Span::seconds(5)).unwrap();
    assert_eq!(world.effect("a", approve(2)), None);
}

#[test]
fn of_several_requests_the_oldest_is_shown() {
    let mut world = World::all(&["a"], Status::Working);
    world.ask("a", 1, "make");
    world.ask("a", 2, "rm -r .");
    world.update().unwrap();
    let approve = |request| Kind::Approve(Call::from_number(request));
    assert!(world.effect("a", approve(1)).is_some() && world.effect("a", approve(2)).is_none());
    assert_eq!(text(&world.menu.shown.as_ref().unwrap().items[2].children()[0]), "Wants to run (1 of 2): make");
}

#[test]
fn a_request_not_shown_in_full_offers_only_its_details() {
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
        assert_eq!(world.effect(name, Kind::Approve(Call::from_number(7))), None, "{name}");
        let details =
            Effect::Review { what: Reviewed::Permission, id: name.into(), host: None, request: "request-7".into() };
        assert_eq!(world.effect(name, Kind::Details(Call::from_number(7))), Some(&details));
    }
}

#[test]
fn case_745_always_is_an_item_of_its_own_with_the_rules_that_it_adds() {
    let mut world = World::all(&["a", "b"], Status::Working);
    let rules = "every command (.claude/settings.local.json)";
    world.ask_over_bridge("a", 1, "make", Some(rules));
    world.ask_over_bridge("b", 2, "make", None);
    world.update().unwrap();
    let call = Call::from_number(1);
    let which = Which::Shown { id: "request-1".into(), text: "make".into() };
    let operation = |kind| match world.effect("a", kind) {
        Some(Effect::Act(order)) => order.operation.clone(),
        effect => panic!("{effect:?}"),
    };
    assert_eq!(operation(Kind::Always(call)), Operation::Always { which: which.clone(), rules: rules.into() });
    let denial = Denial { note: None, stop: true };
    assert_eq!(operation(Kind::DenyAndStop(call)), Operation::DenyWith { which, denial });
    let note = Effect::Review { what: Reviewed::Denial, id: "a".into(), host: None, request: "request-1".into() };
    assert_eq!(world.effect("a", Kind::DenyWithNote(call)), Some(&note));
    let shown = format!("{:?}", world.menu.shown.as_ref().unwrap().items);
    assert!(shown.contains("Also allowed from now on: every command"), "{shown}");
    assert_eq!(world.effect("b", Kind::Always(Call::from_number(2))), None);
}

/// Lets an attached session ask a question. Returns its mark.
fn pose(world: &mut World, name: &str, request: &str, question: &str, choices: &[&str], free: bool) -> u64 {
    let asked =
        serde_json::json!({"requestId": request, "question": question, "choices": choices, "allowFreeform": free});
    let form = Form::read("user_input.requested", &asked).unwrap();
    let mark = form.mark();
    let question = Question { id: None, text: question.into(), choices: Vec::new() };
    let (_, session, _) = world.sessions.iter_mut().find(|(key, ..)| &*key.id == name).unwrap();
    session.control.server = ServerState::Attached;
    session.liveness.has_active_work = Some(true);
    session.liveness.questions = vec![Asking { question, since: Time(0), form: Ok(form) }];
    mark
}

#[test]
fn a_choice_answers_only_the_question_that_it_was_shown_with() {
    let mut world = World::new();
    world.add("a", Status::NeedsInput);
    let mark = pose(&mut world, "a", "r1", "Which <color>?", &["red", "blue"], true);
    let choice = |mark, n| Kind::Choice(Call::from_number(mark), n);
    let first = world.update().unwrap();
    let reply = |request: &str, shown, n| {
        let reply = Reply::Give { request: request.into(), shown, with: FormAnswer::Choice(n).into() };
        Some(Effect::Act(Box::new(Order { who: "a".into(), ..Order::new("a", Operation::Answer(reply)) })))
    };
    assert_eq!(world.effect("a", choice(mark, 1)).cloned(), reply("r1", mark, 1));
    assert_eq!(world.effect("a", choice(mark, 2)), None);
    let answer = Effect::Review { what: Reviewed::Question, id: "a".into(), host: None, request: "r1".into() };
    assert_eq!(world.effect("a", Kind::Answer(Call::from_number(mark))), Some(&answer), "in the user's own words");
    // A new question has different entries, even with the same text.
    let other = pose(&mut world, "a", "r2", "Which <color>?", &["red", "blue"], true);
    assert_ne!(mark, other);
    assert!(!world.after(Span::seconds(1)).unwrap().has_shape_of(&first));
    assert_eq!(world.effect("a", choice(mark, 1)), None);
    assert_eq!(world.effect("a", choice(other, 1)).cloned(), reply("r2", other, 1));
    world.sessions[0].1.liveness.questions.clear();
    world.after(Span::seconds(5)).unwrap();
    assert_eq!(world.effect("a", choice(other, 1)), None);
}

#[test]
fn a_question_not_shown_in_full_is_only_answered_in_a_terminal() {
    let long = "x".repeat(200);
    let many: Vec<_> = (0..9).map(|n| n.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (question, choices) in [
        (&*long, &["red"][..]),
        ("two\nlines", &["red"]),
        ("Which?", &["red", &long[..40]]),
        ("Which?", &["r\u{435}d"]),
        ("Which?", &["red", ""]),
        ("Which?", &many),
    ] {
        let mut world = World::new();
        world.add("a", Status::NeedsInput);
        let call = Call::from_number(pose(&mut world, "a", "r1", question, choices, true));
        world.update().unwrap();
        for n in 0..9 {
            assert_eq!(world.effect("a", Kind::Choice(call, n)), None, "{question:?}, {choices:?}");
        }
        assert!(
            matches!(world.effect("a", Kind::Answer(call)), Some(Effect::Review { what: Reviewed::Question, .. })),
            "{question:?}"
        );
    }
    let mut world = World::new();
    world.add("a", Status::NeedsInput);
    let call = Call::from_number(pose(&mut world, "a", "r1", "Which?", &many[..7], false));
    world.update().unwrap();
    assert!(world.effect("a", Kind::Choice(call, 6)).is_some());
    assert_eq!(world.effect("a", Kind::Answer(call)), None, "it accepts no free text");
}
