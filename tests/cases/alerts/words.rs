//! A popup's text and buttons.

use super::stage::{Stage, row};
use pilotlight_core::action::Action;
use pilotlight_core::alert::{Button, Detail, Settings};
use pilotlight_core::fleet::{Kind, Label, Row};
use pilotlight_core::form::Form;
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status;
use serde_json::json;

fn with(detail: Detail) -> Settings {
    Settings { detail, ..super::with_done() }
}

/// Title, body and buttons of the one popup that is open.
fn shown(stage: &Stage) -> (String, String, Vec<Button>) {
    let popup = stage.open.values().next().unwrap();
    assert_eq!(stage.open.len(), 1);
    (popup.title.clone(), popup.body.clone(), popup.buttons.clone())
}

#[test]
fn case_103_a_hostile_title_is_text_and_bounded() {
    let hostile = format!("<b>x</b> & \n\u{1b}[31m\u{202e}Approved: {}", "y".repeat(1_000_000));
    for status in [Status::Stuck, Status::NeedsPermission, Status::Failed] {
        let mut stage = Stage::new();
        stage.is("a", Status::Working).at(1).asks("a", 1, Some("ls"));
        stage.change("a", |actor| {
            let current = &mut actor.row;
            let label = Label { who: hostile.clone(), agent: None, title: Some(hostile.clone().into()) };
            *current = Row { label, because: (&*hostile).into(), ..row("a", status, current.since) };
        });
        stage.at(10);
        let (title, body, _) = shown(&stage);
        assert!(title.starts_with("<b>x</b> & [31mApproved: yyy") && title.chars().count() < 120, "{title}");
        let endings = ["… is stuck", "… wants to run", "… failed"];
        assert!(
            endings.iter().any(|ending| title.ends_with(ending)),
            "a long name does not hide what happened: {title}"
        );
        for text in [&title, &body] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 240), "{text}");
        }
        assert_eq!(title.lines().count(), 1);
    }
}

#[test]
fn case_103_a_request_not_shown_in_full_cannot_be_approved() {
    let long = "x".repeat(241);
    let spacing = "Its spaces and line breaks cannot be shown here";
    let unseen = "It may not be what it looks like: it contains a character that cannot be seen";
    for (what, why) in [
        ("", spacing),
        (" ls", spacing),
        ("ls\nrm -rf /", spacing),
        ("a  b", spacing),
        ("x\t", spacing),
        ("ls\u{202e}", unseen),
        ("ls\u{1b}[8m", unseen),
        ("l\u{200d}s", unseen),
        (
            "ls\u{a0}-l",
            "It may not be what it looks like: it contains a character that only looks like a space (U+00A0)",
        ),
        ("gıt", "It may not be what it looks like: it contains what can be mistaken for something else (U+0131)"),
        (&long, "Too long to show here"),
    ] {
        let mut stage = Stage::new();
        stage.asks("a", 1, Some(what)).at(10);
        let (_, body, buttons) = shown(&stage);
        assert_eq!(buttons, [Button::Review, Button::Act(Action::ShowTerminal), Button::Mute], "{what:?}");
        assert!(body.starts_with(why) && body.ends_with(": Review… shows all of it\nSession a"), "{what:?}: {body}");
    }
    for what in ["ls", "cat a && echo '<b>' > b", &long[1..], "écrire «ça»"] {
        let mut stage = Stage::new();
        stage.asks("a", 1, Some(what)).at(10);
        let (_, body, buttons) = shown(&stage);
        assert_eq!(
            buttons,
            [Button::Act(Action::Approve), Button::Act(Action::Deny), Button::Act(Action::ShowTerminal), Button::Mute],
            "{what:?}"
        );
        assert_eq!(body, format!("{what}\nSession a"));
    }
}

#[test]
fn case_114_text_that_reads_as_something_else_must_be_reviewed() {
    for (what, first) in [
        ("git commit -m \"Исправлено\"", Button::Act(Action::Approve)),
        ("cat 報告.txt", Button::Act(Action::Approve)),
        ("rm -rf /tмp", Button::Review),
        ("rm -rf /тмр", Button::Review),
        ("mv א ב", Button::Review),
        ("echo א; rm 1 2 ב", Button::Review),
    ] {
        let mut stage = Stage::new();
        stage.asks("a", 1, Some(what)).at(10);
        let (_, body, buttons) = shown(&stage);
        assert_eq!(buttons[0], first, "{what}");
        assert_eq!(body.contains(what), first == Button::Act(Action::Approve), "{body}");
    }
}

/// Two sessions with the same long title and the same command.
#[test]
fn case_111_a_popup_names_the_folder_first_then_the_whole_request_then_the_title() {
    let mut stage = Stage::new();
    let title = "Write the migration of the billing tables to the new schema, and its tests";
    for who in ["billing-api", "billing-web"] {
        stage.asks(who, 1, Some("make deploy")).change(who, |actor| {
            actor.row.label = Label { who: who.into(), agent: None, title: Some(title.into()) };
        });
    }
    stage.at(10);
    for who in ["billing-api", "billing-web"] {
        let popup = stage.popup(who).unwrap();
        assert_eq!((popup.title, popup.body), (format!("{who} wants to run"), format!("make deploy\n{title}")));
    }
}

#[test]
fn a_request_that_cannot_be_answered_from_here_is_shown_without_answers() {
    let mut stage = Stage::new();
    stage.asks("a", 1, None).change("a", |actor| actor.request = Some((1, Some("make".into()), false))).at(10);
    let (_, body, buttons) = shown(&stage);
    assert_eq!(body, "make\nAnswer it where it runs\nSession a");
    assert_eq!(buttons, [Button::Act(Action::ShowTerminal), Button::Mute], "its terminal first");
    let mut stage = Stage::new();
    stage.asks("a", 1, None).change("a", |actor| actor.row.actions.clear()).at(10);
    assert_eq!(shown(&stage).2, [Button::Details, Button::Mute]);
}

#[test]
fn a_popup_says_no_more_than_the_user_allows() {
    let text = |detail| {
        let mut stage = Stage::with(with(detail));
        stage.asks("a", 1, Some("make")).at(10);
        shown(&stage)
    };
    let (title, body, _) = text(Detail::Full);
    assert_eq!((&*title, &*body), ("a wants to run", "make\nSession a"));
    let review = vec![Button::Review, Button::Act(Action::ShowTerminal), Button::Mute];
    assert_eq!(text(Detail::Title), ("a wants to run".into(), "Session a".into(), review.clone()));
    assert_eq!(text(Detail::None), ("An agent session needs you".into(), String::new(), review));
}

/// As before sharing the screen.
#[test]
fn reducing_the_detail_applies_to_open_popups() {
    let mut stage = Stage::new();
    stage.is("b", Status::Failed).asks("a", 1, Some("make")).at(10);
    let (asked, failed) = (stage.popup("a").unwrap(), stage.popup("b").unwrap());
    stage.alerts.settings.detail = Detail::None;
    stage.update();
    for (id, popup) in [("a", &asked), ("b", &failed)] {
        let now = stage.popup(id).unwrap();
        assert_eq!((&*now.title, &*now.body, now.sound), ("An agent session needs you", "", false));
        assert_ne!(now.id, popup.id, "raised again: a popup that can answer is never changed in place");
    }
    stage.update();
    assert_eq!((stage.raised.len(), stage.replaced), (4, 0), "once");
    stage.alerts.settings.detail = Detail::Full;
    stage.update();
    assert_eq!(stage.popup("a").unwrap().buttons, asked.buttons);
    assert_eq!(stage.popup("b").unwrap().title, failed.title);
}

#[test]
fn a_summary_says_no_more_than_the_user_allows() {
    let text = |detail| {
        let mut stage = Stage::with(with(detail));
        stage.are(&["a", "b", "c", "d"], Status::Working).at(60);
        stage.are(&["a", "b"], Status::Failed).completes("c", Span::minutes(1)).completes("d", Span::minutes(1)).at(90);
        let (title, body, buttons) = shown(&stage);
        assert_eq!(buttons, [Button::Details]);
        (title, body)
    };
    let title = "2 agent sessions need you, 2 are done".to_owned();
    let names = "Failed: a · Session a\nFailed: b · Session b\nDone: c · Session c\nDone: d · Session d".to_owned();
    assert_eq!(text(Detail::Full), (title.clone(), names.clone()));
    assert_eq!(text(Detail::Title), (title.clone(), names));
    assert_eq!(text(Detail::None), (title, String::new()));
}

#[test]
fn a_long_summary_names_some_and_counts_the_rest() {
    let mut stage = Stage::new();
    let ids: Vec<_> = (10..60).map(|n| n.to_string()).collect();
    stage.are(&ids.iter().map(String::as_str).collect::<Vec<_>>(), Status::Failed).at(5);
    let (title, body, _) = shown(&stage);
    assert_eq!(title, "50 agent sessions need you");
    assert_eq!((body.lines().count(), body.lines().last()), (6, Some("and 45 more")));
}

#[test]
fn a_popup_offers_the_next_steps_that_are_possible() {
    use Action::{Continue, Reconnect, Resume, ShowTerminal, Stop};
    use Button::{Act, Details, Mute};
    let all = vec![Reconnect, Stop, Resume, ShowTerminal];
    for (status, actions, buttons) in [
        (Status::Stuck, all.clone(), vec![Act(Reconnect), Act(Stop), Act(ShowTerminal), Mute]),
        (Status::Stuck, vec![ShowTerminal], vec![Act(ShowTerminal), Mute]),
        (Status::Stuck, vec![Stop], vec![Act(Stop), Mute]),
        (Status::Stuck, vec![], vec![Details, Mute]),
        (Status::PermissionLost, all.clone(), vec![Act(Resume), Act(ShowTerminal), Mute]),
        (Status::PermissionLost, vec![Resume], vec![Act(Resume), Mute]),
        (Status::PermissionLost, vec![Continue, Reconnect], vec![Act(Continue), Act(Reconnect), Mute]),
        (Status::NeedsInput, vec![Continue, ShowTerminal], vec![Act(Continue), Act(ShowTerminal), Mute]),
        (Status::Crashed, vec![Resume], vec![Act(Resume), Mute]),
        (Status::NeedsInput, all.clone(), vec![Act(ShowTerminal), Mute]),
        (Status::Failed, vec![Resume], vec![Act(Resume), Mute]),
    ] {
        let mut stage = Stage::new();
        stage.change("a", |actor| actor.row.actions.clone_from(&actions)).is("a", status).at(10);
        assert_eq!(shown(&stage).2, buttons, "{status}, {actions:?}");
    }
}

/// The popup has the word of the menu: a terminal session without an owner is resumed, there is nothing to reconnect to.
#[test]
fn case_558_a_crashed_terminal_session_is_resumed_and_one_of_a_program_reconnected() {
    for (kind, action) in [(Kind::Terminal, Action::Resume), (Kind::Sdk, Action::Reconnect)] {
        let mut stage = Stage::new();
        stage.is("a", Status::Crashed).change("a", |actor| {
            actor.row.kind = kind;
            actor.row.actions = vec![Action::Reconnect, Action::Resume];
        });
        stage.at(10);
        assert_eq!(shown(&stage).2, [Button::Act(action), Button::Mute]);
    }
}

#[test]
fn no_popup_makes_a_sound_if_sound_is_off() {
    let mut stage = Stage::with(Settings { sound: false, ..Settings::default() });
    stage.is("a", Status::Failed).is("b", Status::NeedsInput).at(700);
    assert!(stage.raised.len() >= 3 && stage.raised.iter().all(|(_, popup)| !popup.sound), "{:#?}", stage.raised);
}

/// The popup of a session whose question can be answered from here.
fn question_popup(question: &str, choices: &[&str], free: bool) -> (String, String, Vec<Button>) {
    let asked = json!({"requestId": "r", "question": question, "choices": choices, "allowFreeform": free});
    let form = Form::read("user_input.requested", &asked).unwrap();
    let mut stage = Stage::new();
    stage.is("a", Status::NeedsInput).change("a", |actor| actor.question = Some(form)).at(10);
    shown(&stage)
}

#[test]
fn a_question_with_few_short_choices_has_them_as_buttons() {
    use Action::{Answer, ShowTerminal};
    use Button::{Act, Choice, Mute};
    let (title, body, buttons) = question_popup("Which color?", &["red", "blue"], true);
    assert_eq!((&*title, &*body), ("a waits for your answer", "Which color?\nSession a"));
    assert_eq!(buttons, [Choice(0), Choice(1), Act(Answer), Act(ShowTerminal), Mute]);
    assert_eq!(
        question_popup("Which color?", &["red", "blue"], false).2,
        [Choice(0), Choice(1), Act(ShowTerminal), Mute]
    );
    let three = [Choice(0), Choice(1), Choice(2), Act(ShowTerminal), Mute];
    assert_eq!(question_popup("Which?", &["red", "blue", "green"], true).2, three);
    let long = "x".repeat(241);
    for (question, choices) in [
        ("Which?", &["a", "b", "c", "d"][..]),
        ("Which?", &["a choice that is too long", "b"]),
        ("Which?", &["<b>red</b>", "b"]),
        ("Which?", &["r\u{435}d", "b"]),
        ("Which?", &["", "b"]),
        (&*long, &["red"]),
        ("Which?\nThat one?", &["red"]),
        ("Which?", &[]),
    ] {
        let (_, body, buttons) = question_popup(question, choices, true);
        assert_eq!(buttons, [Act(Answer), Act(ShowTerminal), Mute], "{question:?}, {choices:?}");
        assert!(body.starts_with("Because of needs-input\n"), "{body:?}");
    }
}

/// The next question has a popup of its own.
#[test]
fn the_popup_of_a_question_closes_with_it() {
    let ask = |request: &str| {
        let asked = json!({"requestId": request, "question": "Which color?", "choices": ["red"]});
        Some(Form::read("user_input.requested", &asked).unwrap())
    };
    let mut stage = Stage::new();
    stage.is("a", Status::NeedsInput).change("a", |actor| actor.question = ask("r")).at(10);
    let first = stage.open.values().next().unwrap().asked.clone().unwrap();
    assert_eq!((first.request, first.choices), (ask("r").unwrap().mark(), vec!["red".to_owned()]));
    let replaced = stage.replaced;
    stage.change("a", |actor| actor.question = ask("s")).at(20);
    let second = stage.open.values().next().unwrap().asked.clone().unwrap();
    assert_eq!((second.request, stage.raised.len()), (ask("s").unwrap().mark(), 2));
    stage.change("a", |actor| actor.question = None).at(25);
    assert_eq!(stage.raised.len(), 2, "answered, but the status has not changed yet");
    stage.is("a", Status::Working).at(30);
    assert_eq!((stage.open.len(), stage.replaced), (0, replaced), "closed and raised again, never replaced");
}
