//! When the commands of the settings are run, and what they are told.

use super::stage::{Stage, row};
use pilotlight_core::alert::{Detail, Kinds, Pause, Settings, Trigger, Triggers, told};
use pilotlight_core::fleet::{BackgroundView, RequestView, SubAgentView};
use pilotlight_core::question::Question;
use pilotlight_core::time::{Span, Time};
use pilotlight_core::verdict::Status;

/// A stage on which a command is run for these triggers, by these rules.
fn stage(names: &[&str], rules: &Settings) -> Stage {
    let (mut stage, mut triggers) = (Stage::with(rules.clone()), Triggers::default());
    let wanted: Vec<_> = Trigger::all().filter(|trigger| names.contains(&trigger.name())).collect();
    assert_eq!(wanted.len(), names.len());
    triggers.configure(wanted, rules);
    stage.triggers = Some(triggers);
    stage.update();
    stage
}

/// What was told since the last time.
fn told_now(stage: &mut Stage) -> Vec<(i64, String, &'static str)> {
    std::mem::take(&mut stage.told)
}

fn at(ms: i64, id: &str, name: &'static str) -> (i64, String, &'static str) {
    (ms, id.into(), name)
}

#[test]
fn every_occasion_has_a_name_of_its_own_and_the_usual_ones_are_those_of_popups() {
    let names: std::collections::BTreeSet<_> = Trigger::all().map(Trigger::name).collect();
    assert_eq!(names.len(), Status::ALL.len() + 1);
    let usual: Vec<_> = Trigger::usual().into_iter().map(Trigger::name).collect();
    assert_eq!(usual, ["needs-permission", "needs-input", "permission-lost", "stuck", "crashed", "failed"]);
}

/// Whether or not there are popups.
#[test]
fn case_304_a_cause_is_told_once_when_its_popup_is_due() {
    let none = Kinds { needs_permission: false, failed: false, ..Kinds::default() };
    for kinds in [none, Kinds::default()] {
        let mut stage = stage(&["needs-permission", "failed"], &Settings { kinds, ..Settings::default() });
        stage.is("a", Status::Working).asks("a", 1, None).at(2);
        assert_eq!(told_now(&mut stage), [], "it may be given at once");
        stage.at(1200);
        assert_eq!(told_now(&mut stage), [at(3_000, "a", "needs-permission")], "and not told again");
        stage.asks("a", 2, None).at(1210);
        assert_eq!(told_now(&mut stage), [at(1_203_000, "a", "needs-permission")], "another request");
        stage.is("b", Status::Failed).at(1220).is("b", Status::Working).at(1230).is("b", Status::Failed).at(1300);
        assert_eq!(told_now(&mut stage), [at(1_211_000, "b", "failed")], "the cooldown holds");
        stage.is("c", Status::Crashed).at(1310);
        assert_eq!(told_now(&mut stage), [], "nobody asked for it");
    }
}

#[test]
fn case_304_each_of_many_is_told_by_itself() {
    let mut stage = stage(&["failed", "done"], &Settings::default());
    let ids = ["a", "b", "c", "d", "e"];
    stage.are(&ids, Status::Working).at(5).are(&ids, Status::Failed).at(10);
    assert_eq!(told_now(&mut stage), ids.map(|id| at(6_000, id, "failed")));
    stage.completes("a", Span::minutes(2)).change("a", |actor| actor.row.unseen = true).at(20);
    assert_eq!(told_now(&mut stage), [at(11_000, "a", "done")]);
}

/// The agent's own notification reaches who sits there; a command may reach who does not.
#[test]
fn case_304_a_command_is_told_of_what_the_agent_itself_notifies() {
    let mut stage = stage(&["done"], &Settings::default());
    stage.is("a", Status::Working).change("a", |actor| actor.cli_notifies = true).at(5);
    stage.completes("a", Span::minutes(2)).change("a", |actor| actor.row.unseen = true).at(20);
    assert_eq!(told_now(&mut stage), [at(6_000, "a", "done")]);
}

#[test]
fn case_304_what_silences_popups_silences_commands() {
    let quiet_hours = Some((22 * 60, 23 * 60));
    let rules = Settings { quiet_hours, ..Settings::default() };
    for silence in ["mute", "folder", "pause", "hours"] {
        let mut stage = stage(&["failed", "working"], &rules);
        stage.is("a", Status::Idle).at(5);
        match silence {
            "mute" => stage.alerts.quiet.mute_session("a"),
            "folder" => stage.alerts.quiet.mute_folder("/code"),
            "pause" => stage.alerts.quiet.pause(Pause::UntilResumed),
            _ => stage.minute = 22 * 60,
        }
        stage.is("a", Status::Working).at(10).is("a", Status::Failed).at(20);
        assert_eq!(told_now(&mut stage), [], "{silence}");
        stage.alerts.quiet = pilotlight_core::alert::Quiet::default();
        stage.minute = 12 * 60;
        stage.at(400).is("a", Status::Working).at(410);
        assert_eq!(told_now(&mut stage), [at(401_000, "a", "working")], "{silence}: nothing is made up for");
    }
}

#[test]
fn case_304_what_was_so_before_the_start_or_while_the_machine_slept_is_no_news() {
    let mut stage = stage(&["failed", "idle"], &Settings::default());
    for (id, status) in [("a", Status::Failed), ("b", Status::Idle)] {
        let row = row(id, status, stage.moment().wall - Span::hours(1));
        stage.is(id, Status::Working);
        // As if it had been found like this.
        stage.disappears(id).triggers.as_mut().unwrap().forget();
        stage.change(id, |actor| actor.row = row);
    }
    stage.at(100);
    assert_eq!(told_now(&mut stage), []);
    stage.is("a", Status::Working).at(200).wakes().is("a", Status::Idle).at(250);
    assert_eq!(told_now(&mut stage), [], "the machine wakes up");
    stage.at(300);
    assert_eq!(told_now(&mut stage), [at(261_000, "a", "idle")]);
}

#[test]
fn case_304_what_a_session_was_long_before_it_is_found_is_no_news() {
    let mut stage = stage(&["idle"], &Settings::default());
    let found = row("a", Status::Idle, stage.moment().wall - Span::hours(1));
    stage.change("a", |actor| actor.row = found).at(100);
    assert_eq!(told_now(&mut stage), []);
}

/// It is forgotten while no command is set.
#[test]
fn case_304_what_is_so_when_everything_was_forgotten_is_no_news() {
    let mut stage = stage(&["idle", "working"], &Settings::default());
    stage.is("a", Status::Working).at(10).is("a", Status::Idle);
    assert_eq!(told_now(&mut stage), [at(1_000, "a", "working")]);
    stage.triggers.as_mut().unwrap().forget();
    stage.at(100);
    assert_eq!(told_now(&mut stage), [], "it was about to be told");
    stage.is("a", Status::Working).at(200);
    assert_eq!(told_now(&mut stage), [at(101_000, "a", "working")], "what is wanted is not forgotten");
}

#[test]
fn case_305_other_statuses_are_told_once_they_last() {
    let mut stage = stage(&["working", "idle", "ended"], &Settings::default());
    stage.is("a", Status::Working).at(10).is("a", Status::Finishing).at(10.5).is("a", Status::Working).at(20);
    assert_eq!(told_now(&mut stage), [at(1_000, "a", "working")]);
    stage.is("a", Status::Idle).at(30).is("a", Status::Working).at(40).is("a", Status::Idle).at(50);
    let told = [at(21_000, "a", "idle"), at(31_000, "a", "working"), at(41_000, "a", "idle")];
    assert_eq!(told_now(&mut stage), told, "no cooldown");
    stage.is("a", Status::Ended).at(60);
    assert_eq!(told_now(&mut stage), [at(51_000, "a", "ended")]);
    stage.disappears("a").at(70);
    assert_eq!(told_now(&mut stage), []);
}

#[test]
fn case_305_a_light_that_was_lit_goes_out_whatever_is_silenced_since() {
    let rules = Settings { quiet_hours: Some((22 * 60, 7 * 60)), ..Settings::default() };
    let mut stage = stage(&["needs-input", "working", "idle"], &rules);
    stage.is("a", Status::Idle).at(5).is("a", Status::NeedsInput).at(10);
    assert_eq!(told_now(&mut stage), [at(1_000, "a", "idle"), at(6_000, "a", "needs-input")]);
    stage.minute = 23 * 60;
    stage.alerts.quiet.mute_session("a");
    stage.is("a", Status::Working).at(20).is("a", Status::Idle).at(30);
    assert_eq!(told_now(&mut stage), [at(11_000, "a", "working")], "and no more than that");
}

#[test]
fn case_306_a_command_is_told_no_more_than_a_popup_may_show() {
    let asks = row("36535f61-5c7b", Status::NeedsPermission, Time(0));
    let request = RequestView {
        id: "r".into(),
        kind: "shell".into(),
        text: Some("rm -rf secret".into()),
        paths: vec!["/secret".into()],
        reads_plain: true,
        by: None,
    };
    let question = Question { id: None, text: "secret?".into(), choices: vec!["secret".into()] };
    let at = Time(1_700_000_000_000);
    let sub_agent = SubAgentView { name: "secret".into(), does: Some("bash: secret".into()), since: at, last: at };
    let asks = pilotlight_core::fleet::Row {
        name: "secret-title".into(),
        branch: Some("secret-branch".into()),
        because: "asks \"secret?\"".into(),
        request: Some(request),
        question: Some(question),
        background: BackgroundView { list: vec![sub_agent], ..asks.background },
        ..asks
    };
    let json = |detail| serde_json::to_value(told(&asks, detail)).unwrap();
    assert_eq!(json(Detail::Full), serde_json::to_value(&asks).unwrap());
    let title = json(Detail::Title);
    assert_eq!((title["name"].as_str(), title["because"].as_str()), (Some("secret-title"), Some("needs-permission")));
    assert!(title["request"]["id"] == "r" && title["request"]["text"].is_null() && title["question"].is_null());
    assert_eq!(title["background"]["list"], serde_json::json!([]));
    let none = json(Detail::None);
    assert_eq!((&none["name"], &none["label"]), (&"36535f61".into(), &"36535f61".into()));
    assert!(!none.to_string().contains("secret") && none["cwd"].is_null(), "{none}");
    let same = |key: &str| none[key] == title[key] && !none[key].is_null();
    assert!(["id", "status", "since", "kind", "actions"].into_iter().all(same));
}
