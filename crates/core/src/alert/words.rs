//! A popup's text and buttons.
//!
//! Text written by a session becomes one bounded line without invisible characters; escaping it is up to whoever
//! displays it. A popup has Approve, or a question's choices, only if it shows the request or question whole and
//! unaltered, as one line that can be read at a glance and cannot be mistaken for another.

use super::alertable::Alertable;
use super::cause::Cause;
use super::popup::{Button, ShownRequest};
use super::settings::Detail;
use crate::action::Action;
use crate::agent::counted_sessions;
use crate::confusable::fits;
use crate::fleet::OwnerView;
use crate::session::Kind;
use crate::text::{NAME_MAX, capitalised, plain};
use crate::turn::request_verb;
use crate::verdict::Status;
use std::fmt::Write;

/// Maximum length of a body's line, in characters. A longer request should not be approved at a glance.
const LINE_MAX: usize = 240;
/// Maximum length of a label in a title, in characters, so that what the session does stays visible after it.
const WHO_MAX: usize = 80;
/// Maximum number of choices shown as buttons.
const CHOICES_MAX: usize = 3;
/// Maximum length of such a choice, in characters.
const CHOICE_MAX: usize = 24;
/// Maximum number of sessions named in a summary.
const SUMMARY_MAX: usize = 5;
/// After getting stuck this many times in a row, the advice is to start a new session.
const STUCK_TOO_OFTEN: u32 = 3;

/// Title and body.
pub(super) type Words = (String, String);

/// The text of a popup on one session: who does what, then the details and the session's title. `again`: it was
/// notified before. `asked`: its request or question, if shown whole.
pub(super) fn one(
    session: &Alertable<'_>,
    cause: Cause,
    stuck: u32,
    again: bool,
    asked: Option<&ShownRequest>,
    detail: Detail,
) -> Words {
    if detail == Detail::None {
        let does = if cause == Cause::Done { "is done" } else { "needs you" };
        return (capitalised(&format!("{} {does}", session.row.agent.a_session())), String::new());
    }
    let label = &session.row.label;
    // The agent stands at the end of the name: after the title, which has a line of its own.
    let who = if label.title.is_some() { label.who.clone() } else { label.to_string() };
    let title = format!("{} {}", plain(&who, WHO_MAX), activity(session, cause, again));
    let mut lines = Vec::new();
    if detail == Detail::Full {
        lines.extend(match cause {
            Cause::NeedsPermission => asks(session, asked),
            // Its own words, if known.
            Cause::NeedsInput => asked.map(|asked| asked.text.clone()).or_else(|| match &session.row.question {
                Some(question) => Some(plain(&question.text, LINE_MAX).into()),
                None => said(session),
            }),
            Cause::Done => said(session),
            _ => None,
        });
        if lines.is_empty() {
            lines.push(capitalised(&plain(&session.row.because.to_string(), LINE_MAX)));
        }
    }
    if cause == Cause::Stuck && stuck >= STUCK_TOO_OFTEN {
        lines.push(format!("Stuck {stuck} times in a row: start a new session"));
    }
    lines.extend(label.title.as_deref().map(|title| format!("{}{}", plain(title, NAME_MAX), label.mark())));
    (title, lines.join("\n"))
}

/// How its last message begins, which says what is done, or asked.
fn said(session: &Alertable<'_>) -> Option<String> {
    session.last_message.map(|message| plain(message, LINE_MAX).into())
}

/// The text of the summary.
pub(super) fn summary(sessions: &[(Cause, &Alertable<'_>)], detail: Detail) -> Words {
    let done = sessions.iter().filter(|(cause, _)| *cause == Cause::Done).count();
    let needs = sessions.len() - done;
    let of = |done: bool| {
        let of = sessions.iter().filter(|(cause, _)| (*cause == Cause::Done) == done);
        counted_sessions(of.map(|(_, session)| &session.row.agent).collect::<Vec<_>>().into_iter())
    };
    let need = if needs == 1 { "needs" } else { "need" };
    let are = if done == 1 { "is" } else { "are" };
    let title = match (needs, done) {
        (0, _) => format!("{} {are} done", of(true)),
        (_, 0) => format!("{} {need} you", of(false)),
        _ => format!("{} {need} you, {done} {are} done", of(false)),
    };
    let mut body = String::new();
    if detail != Detail::None {
        let mut sessions: Vec<_> = sessions.iter().collect();
        sessions.sort_by_key(|(cause, session)| (*cause, session.key));
        for (cause, session) in sessions.iter().take(SUMMARY_MAX) {
            let _ = writeln!(body, "{}: {}", capitalised(state_words(*cause)), session.row.label.cut(NAME_MAX));
        }
        if sessions.len() > SUMMARY_MAX {
            let _ = writeln!(body, "and {} more", sessions.len() - SUMMARY_MAX);
        }
        body.truncate(body.trim_end().len());
    }
    (title, body)
}

/// The session's open request or question, if it can be answered from here and a popup can show it whole.
pub(super) fn asked(session: &Alertable<'_>, detail: Detail) -> Option<ShownRequest> {
    if session.row.status == Status::NeedsInput && detail == Detail::Full {
        return open_question(session);
    }
    let shows = session.row.status == Status::NeedsPermission && detail == Detail::Full;
    let request = session.request.filter(|request| request.answerable && shows)?;
    let text = request.what.filter(|what| fits(what, LINE_MAX).is_ok())?.to_owned();
    Some(ShownRequest { request: request.id, text, choices: Vec::new() })
}

/// The question, if all its choices fit on buttons. Some notification servers interpret markup in labels, or `_` as a
/// mnemonic.
fn open_question(session: &Alertable<'_>) -> Option<ShownRequest> {
    let open_question = session.question?;
    let words = open_question.form.choices.iter().map(|choice| &*choice.words);
    let is_label = |words: &str| fits(words, CHOICE_MAX).is_ok() && !words.contains(['<', '>', '&', '_']);
    let all_fit = (1..=CHOICES_MAX).contains(&open_question.form.choices.len()) && words.clone().all(is_label);
    (all_fit && fits(&open_question.form.text, LINE_MAX).is_ok()).then(|| ShownRequest {
        request: open_question.mark,
        text: open_question.form.text.to_string(),
        choices: words.map(Into::into).collect(),
    })
}

/// The buttons of a popup on one session: the answers or the next step, an alternative, its terminal, and muting last.
/// If nothing can be answered from here, its terminal is the next step.
pub(super) fn buttons(session: &Alertable<'_>, cause: Cause, asked: Option<&ShownRequest>) -> Vec<Button> {
    use Action::{Answer, Approve, Continue, Deny, Reconnect, Resume, ShowTerminal, Stop};
    use Button::{Act, Details, Mute, Review};
    let offered = |action: &Action| session.row.actions.contains(action);
    let first = |of: &[Action]| of.iter().copied().find(offered).map(Act);
    let has_bridge = |owner: &OwnerView| owner.bridge.is_some() && owner.attachable == Some(false);
    let is_bridged = session.row.owner.as_ref().is_some_and(has_bridge);
    // To reconnect a terminal session that has no owner means to resume it.
    let again = if session.row.kind == Kind::Sdk { [Reconnect, Resume] } else { [Resume, Reconnect] };
    let mut buttons: Vec<_> = match cause {
        Cause::NeedsPermission if asked.is_some() => vec![Act(Approve), Act(Deny)],
        Cause::NeedsPermission if session.request.is_some_and(|request| request.answerable) => vec![Review],
        Cause::NeedsInput if let Some(asked) = asked => choices(session, asked),
        Cause::NeedsInput if session.question.is_some() => vec![Act(Answer)],
        Cause::NeedsPermission => Vec::new(),
        // Reconnected, but not made to continue.
        Cause::NeedsInput => [first(&[Continue]), first(&[ShowTerminal, Resume])].into_iter().flatten().collect(),
        Cause::PermissionLost => [first(&[Continue]), first(&again)].into_iter().flatten().collect(),
        Cause::Stuck => [first(&[Reconnect]), first(&[Stop])].into_iter().flatten().collect(),
        Cause::Crashed => first(&again).into_iter().collect(),
        Cause::Failed if is_bridged => [first(&[Continue]), first(&[ShowTerminal])].into_iter().flatten().collect(),
        Cause::Failed | Cause::Done => first(&[ShowTerminal, Resume]).into_iter().collect(),
    };
    // In a plain terminal there is nothing to reconnect.
    if is_bridged {
        buttons.iter_mut().filter(|button| **button == Act(Continue)).for_each(|button| *button = Button::SendOn);
    }
    buttons.extend(first(&[ShowTerminal]).filter(|button| !buttons.contains(button)));
    if buttons.is_empty() {
        buttons.push(Details);
    }
    buttons.push(Mute);
    buttons
}

/// The choices of a question as buttons. If free text is accepted too, there is room for it next to two choices.
fn choices(session: &Alertable<'_>, asked: &ShownRequest) -> Vec<Button> {
    let takes_text = session.question.is_some_and(|open_question| open_question.form.takes_text);
    let other = (takes_text && asked.choices.len() < CHOICES_MAX).then_some(Button::Act(Action::Answer));
    (0..).zip(&asked.choices).map(|(index, _)| Button::Choice(index)).chain(other).collect()
}

/// The request or question, or a note on why it is not shown.
fn asks(session: &Alertable<'_>, asked: Option<&ShownRequest>) -> Option<String> {
    if let Some(asked) = asked {
        return Some(asked.text.clone());
    }
    let Some(request) = session.request else { return reported_state(session) };
    let what = request.what?;
    let there = match request.can_be_let {
        // The command that does this is named where commands are typed.
        true => format!("Answer it in its terminal. For later ones, click {} in its menu", Action::LetAnswer.label()),
        false => "Answer it where it runs".to_owned(),
    };
    Some(match (fits(what, LINE_MAX), request.answerable) {
        (Ok(()), true) => what.to_owned(),
        (Ok(()), false) => format!("{what}\n{there}"),
        (Err(unfit), true) => format!("{}: Review… shows all of it", unfit.words()),
        (Err(unfit), false) => format!("{}\n{there}", unfit.words()),
    })
}

/// What its agent says that it asks for, where no request of it can be answered from here: `Bash: rm -rf build`.
fn reported_state(session: &Alertable<'_>) -> Option<String> {
    let (kind, text) = session.row.because.reason.asks_permission()?;
    Some(plain(&format!("{kind}: {}", text?), LINE_MAX).into())
}

/// What the session does, to follow its name.
fn activity(session: &Alertable<'_>, cause: Cause, again: bool) -> String {
    let still = if again { "still " } else { "" };
    match cause {
        Cause::NeedsPermission => {
            let what = session.request.and_then(|request| request_verb(request.kind)).unwrap_or("a permission");
            match session.request {
                Some(request) if request.approval_requested => {
                    format!("{still}wants {what}, and a program tried to approve it: do you approve it?")
                }
                Some(request) if request.probable => format!("{still}probably wants {what}"),
                _ => format!("{still}wants {what}"),
            }
        }
        Cause::NeedsInput => format!("{still}waits for your answer"),
        Cause::PermissionLost if again => "lost its permissions and has not been reconnected".into(),
        Cause::PermissionLost => "lost its permissions".into(),
        Cause::Stuck => format!("is {still}stuck"),
        Cause::Crashed if again => "crashed and has not been resumed".into(),
        Cause::Crashed => "crashed".into(),
        Cause::Failed if again => "failed, and nothing has been done since".into(),
        Cause::Failed => "failed".into(),
        Cause::Done => "is done".into(),
    }
}

/// What a session does, as a heading in the summary.
const fn state_words(cause: Cause) -> &'static str {
    match cause {
        Cause::NeedsPermission => "needs permission",
        Cause::NeedsInput => "needs your answer",
        Cause::PermissionLost => "permissions lost",
        Cause::Stuck => "stuck",
        Cause::Crashed => "crashed",
        Cause::Failed => "failed",
        Cause::Done => "done",
    }
}

#[cfg(test)]
mod tests {
    use super::super::alertable::Request;
    use super::*;
    use crate::fleet::{Label, Row, Session};
    use crate::limits::Limits;
    use crate::owner::Owner;
    use crate::session::{HomeId, Key, Observed};
    use crate::time::Moment;
    use crate::words::reason::Reason;

    /// A session in a terminal that asks for nothing.
    fn unasking<'a>(key: &'a Key, row: &'a Row) -> Alertable<'a> {
        let (request, question, completed) = (None, None, None);
        Alertable {
            key,
            row,
            request,
            question,
            completed,
            last_message: None,
            cli_notifies: false,
            has_terminal: true,
        }
    }

    #[test]
    fn case_230_a_popup_offers_a_terminal_only_if_it_can_be_shown() {
        use Cause::{Crashed, Done, Failed, NeedsInput, NeedsPermission, PermissionLost, Stuck};
        let key = Key::new(HomeId::default(), "a");
        let owner = Owner::Alive { pid: 1, started: None };
        for why in [None, Some("it runs in no tmux pane")] {
            let session = Session {
                terminal: Some((1, why.map(Into::into))),
                observed: Observed { owner: owner.clone(), ..Observed::default() },
                ..Session::default()
            };
            let row = session.row(Moment::default(), &Limits::default()).0;
            let alertable = unasking(&key, &row);
            for cause in [NeedsPermission, NeedsInput, PermissionLost, Stuck, Crashed, Failed, Done] {
                let buttons = buttons(&alertable, cause, None);
                assert_eq!(
                    buttons.contains(&Button::Act(Action::ShowTerminal)),
                    why.is_none(),
                    "{cause:?} {buttons:?}"
                );
            }
        }
    }

    #[test]
    fn a_request_is_worded_by_what_is_known_of_it() {
        let words = |approval_requested: bool, probable: bool| {
            let key = Key::new(HomeId::default(), "a");
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            let request = Some(Request {
                id: 1,
                kind: "shell",
                what: None,
                probable,
                answerable: true,
                can_be_let: false,
                approval_requested,
            });
            let alertable = Alertable { request, ..unasking(&key, &row) };
            activity(&alertable, Cause::NeedsPermission, true)
        };
        assert_eq!(words(false, false), "still wants to run");
        assert_eq!(words(false, true), "still probably wants to run");
        assert_eq!(words(true, false), "still wants to run, and a program tried to approve it: do you approve it?");
    }

    /// As of Claude Code, whose permissions are given in its terminal.
    #[test]
    fn case_669_a_popup_says_the_command_that_only_the_log_tells() {
        let key = Key::new(HomeId::default(), "a");
        let row = |text: Option<&str>| {
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            let because = Reason::AsksPermission { kind: "Bash".into(), text: text.map(Into::into) }.into();
            Row { status: Status::NeedsPermission, because, ..row }
        };
        let says = |row: &Row| one(&unasking(&key, row), Cause::NeedsPermission, 0, false, None, Detail::Full).1;
        let told = row(Some("rm -rf build"));
        assert_eq!(says(&told), "Bash: rm -rf build");
        assert_eq!(told.reason(Moment::default().wall), "rm -rf build (asks for permission: Bash)");
        assert_eq!(says(&row(None)), "Asks for permission: Bash");
    }

    #[test]
    fn case_667_a_popup_names_the_agent_last() {
        let key = Key::new(HomeId::default(), "a");
        let says = |title: Option<&str>| {
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            let label = Label { who: "web-shop".into(), title: title.map(Into::into), agent: Some("Claude".into()) };
            one(&unasking(&key, &Row { label, ..row }), Cause::Done, 0, false, None, Detail::Full)
        };
        let (title, body) = says(Some("Fix the tests"));
        assert_eq!((&*title, body.ends_with("Fix the tests (Claude)")), ("web-shop is done", true));
        assert_eq!(says(None).0, "web-shop (Claude) is done");
    }

    /// The menu's entry is named as it is called there, and the reason is one, not two of which one is true.
    #[test]
    fn case_706_a_popup_says_why_it_does_not_show_a_request_and_where_to_answer_it() {
        let words = |what, answerable: bool, can_be_let: bool| {
            let key = Key::new(HomeId::default(), "a");
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            let request = Request {
                id: 1,
                kind: "shell",
                what: Some(what),
                probable: false,
                answerable,
                can_be_let,
                approval_requested: false,
            };
            asks(&Alertable { request: Some(request), ..unasking(&key, &row) }, None).unwrap()
        };
        assert_eq!(words("ls", false, false), "ls\nAnswer it where it runs");
        let there = words("ls", false, true);
        assert_eq!(
            there,
            "ls\nAnswer it in its terminal. For later ones, click Let Pilotlight answer here… in its menu"
        );
        let long = "x".repeat(LINE_MAX + 1);
        assert_eq!(words(&long, true, false), "Too long to show here: Review… shows all of it");
        assert_eq!(words(&long, false, false), "Too long to show here\nAnswer it where it runs");
        let odd = words("gıt push", true, false);
        assert!(odd.starts_with("It may not be what it looks like: ") && !odd.contains("Too long"), "{odd}");
    }

    #[test]
    fn a_summary_names_as_many_as_it_may_and_counts_the_rest() {
        let more = |sessions: usize| {
            let key = Key::new(HomeId::default(), "a");
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            let alertable = unasking(&key, &row);
            summary(&vec![(Cause::Stuck, &alertable); sessions], Detail::Full).1
        };
        assert_eq!(more(SUMMARY_MAX).lines().count(), SUMMARY_MAX);
        assert_eq!(more(SUMMARY_MAX + 1).lines().last(), Some("and 1 more"));
    }
}
