//! What a popup says, and which buttons it carries.
//!
//! What a session wrote is text, on one line, bounded and without anything invisible; how it is escaped is for whoever shows
//! it. A popup has Approve, or a question's choices, only where it shows the request or the question whole and unaltered, as one
//! line that can be read at a glance, and reads as it is.

use super::{Alertable, Asked, Button, Cause, Detail};
use crate::core::action::Action;
use crate::core::fleet::OwnerShown;
use crate::core::misread::reads_as_it_is;
use crate::core::text::{NAME_MAX, counted, plain};
use crate::core::turn::wants;
use crate::core::verdict::Status;
use std::fmt::Write;

/// Lines of a body are at most this long, in characters; a request that is longer is not one to be approved at a glance.
const LINE: usize = 240;
/// Who it is about is cut after this many characters, so that what it does is seen behind it.
const WHO: usize = 80;
/// A question's choices are buttons where there are at most so many, each at most so many characters long.
const CHOICES: usize = 3;
const CHOICE: usize = 24;
/// A summary names so many sessions.
const NAMED: usize = 5;
/// From so many times in a row on, a session that is stuck is better left behind.
const STUCK_TOO_OFTEN: u32 = 3;

/// Title and body.
pub(super) type Words = (String, String);

/// The words on one session: who and what; then all of it, and the session's title. `again` says that it was told before,
/// `asked` what it asks, where that is shown whole.
pub(super) fn one(
    session: &Alertable<'_>,
    cause: Cause,
    stuck: u32,
    again: bool,
    asked: Option<&Asked>,
    detail: Detail,
) -> Words {
    if detail == Detail::None {
        let title = if cause == Cause::Done { "A Copilot session is done" } else { "A Copilot session needs you" };
        return (title.to_owned(), String::new());
    }
    let label = &session.row.label;
    let title = format!("{} {}", plain(&label.who, WHO), does(session, cause, again));
    let mut lines = Vec::new();
    if detail == Detail::Full {
        lines.extend(match cause {
            Cause::NeedsPermission => asks(session, asked),
            // In its own words, where they are known.
            Cause::NeedsInput => asked.map(|asked| asked.text.clone()).or_else(|| {
                let question = session.row.question.as_ref()?;
                Some(plain(&question.text, LINE).into())
            }),
            _ => None,
        });
        if lines.is_empty() {
            lines.push(capitalised(&plain(&session.row.because, LINE)));
        }
    }
    if cause == Cause::Stuck && stuck >= STUCK_TOO_OFTEN {
        lines.push(format!("Stuck {stuck} times in a row: start a new session"));
    }
    lines.extend(label.title.as_deref().map(|title| plain(title, NAME_MAX).into_string()));
    (title, lines.join("\n"))
}

/// The words on several sessions.
pub(super) fn summary(sessions: &[(Cause, &Alertable<'_>)], detail: Detail) -> Words {
    let done = sessions.iter().filter(|(cause, _)| *cause == Cause::Done).count();
    let needs = sessions.len() - done;
    let of = |n| counted(n, "Copilot session");
    let need = if needs == 1 { "needs" } else { "need" };
    let are = if done == 1 { "is" } else { "are" };
    let title = match (needs, done) {
        (0, _) => format!("{} {are} done", of(done)),
        (_, 0) => format!("{} {need} you", of(needs)),
        _ => format!("{} {need} you, {done} {are} done", of(needs)),
    };
    let mut body = String::new();
    if detail != Detail::None {
        let mut sessions: Vec<_> = sessions.iter().collect();
        sessions.sort_by_key(|(cause, session)| (*cause, session.key));
        for (cause, session) in sessions.iter().take(NAMED) {
            let _ = writeln!(body, "{}: {}", capitalised(is(*cause)), session.row.label.cut(NAME_MAX));
        }
        if sessions.len() > NAMED {
            let _ = writeln!(body, "and {} more", sessions.len() - NAMED);
        }
        body.truncate(body.trim_end().len());
    }
    (title, body)
}

/// The request of a session that needs a permission, or the question of one that needs an answer, if a popup can show it whole and
/// it can be answered from here.
pub(super) fn asked(session: &Alertable<'_>, detail: Detail) -> Option<Asked> {
    if session.row.status == Status::NeedsInput && detail == Detail::Full {
        return posed(session);
    }
    let shows = session.row.status == Status::NeedsPermission && detail == Detail::Full;
    let request = session.request.filter(|request| request.answerable && shows)?;
    let text = request.what.filter(|what| reads_as_it_is(what, LINE))?.to_owned();
    Some(Asked { request: request.id, text, choices: Vec::new() })
}

/// The question, where all its choices fit on buttons. Some servers take a button's words for markup, or a mark for a key's.
fn posed(session: &Alertable<'_>) -> Option<Asked> {
    let posed = session.question?;
    let words = posed.form.choices.iter().map(|choice| &*choice.words);
    let fits = |words: &str| reads_as_it_is(words, CHOICE) && !words.contains(['<', '>', '&', '_']);
    let all_fit = (1..=CHOICES).contains(&posed.form.choices.len()) && words.clone().all(fits);
    (all_fit && reads_as_it_is(&posed.form.text, LINE)).then(|| Asked {
        request: posed.mark,
        text: posed.form.text.to_string(),
        choices: words.map(Into::into).collect(),
    })
}

/// The buttons of a popup on one session: the answer or the next step, the other one, its terminal; what quietens it last.
/// Where nothing can be answered from here, its terminal is the next step.
pub(super) fn buttons(session: &Alertable<'_>, cause: Cause, asked: Option<&Asked>) -> Vec<Button> {
    use Action::{Answer, Approve, Continue, Deny, Reconnect, Resume, ShowTerminal, Stop};
    use Button::{Act, Details, Mute, Review};
    let offered = |action: &Action| session.row.actions.contains(&action.name());
    let first = |of: &[Action]| of.iter().copied().find(offered).map(Act);
    let has_bridge = |owner: &OwnerShown| owner.bridge.is_some() && owner.attachable == Some(false);
    let is_bridged = session.row.owner.as_ref().is_some_and(has_bridge);
    let mut buttons: Vec<_> = match cause {
        Cause::NeedsPermission if asked.is_some() => vec![Act(Approve), Act(Deny)],
        Cause::NeedsPermission if session.request.is_some_and(|request| request.answerable) => vec![Review],
        Cause::NeedsInput if let Some(asked) = asked => choices(session, asked),
        Cause::NeedsInput if session.question.is_some() => vec![Act(Answer)],
        Cause::NeedsPermission => Vec::new(),
        // One that was reconnected and not sent on.
        Cause::NeedsInput => [first(&[Continue]), first(&[ShowTerminal, Resume])].into_iter().flatten().collect(),
        Cause::PermissionLost => [first(&[Continue]), first(&[Reconnect, Resume])].into_iter().flatten().collect(),
        Cause::Stuck => [first(&[Reconnect]), first(&[Stop])].into_iter().flatten().collect(),
        Cause::Crashed => first(&[Reconnect, Resume]).into_iter().collect(),
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

/// The choices of a question. There is room for so many: where words of one's own are an answer as well, they may stand beside two.
fn choices(session: &Alertable<'_>, asked: &Asked) -> Vec<Button> {
    let takes_text = session.question.is_some_and(|posed| posed.form.takes_text);
    let other = (takes_text && asked.choices.len() < CHOICES).then_some(Button::Act(Action::Answer));
    (0..).zip(&asked.choices).map(|(index, _)| Button::Choice(index)).chain(other).collect()
}

/// What is asked, or why that is not shown.
fn asks(session: &Alertable<'_>, asked: Option<&Asked>) -> Option<String> {
    if let Some(asked) = asked {
        return Some(asked.text.clone());
    }
    let request = session.request?;
    let what = request.what?;
    Some(match (reads_as_it_is(what, LINE), request.answerable) {
        (true, true) => what.to_owned(),
        (true, false) => format!("{what}\nAnswer it where it runs"),
        (false, true) => "Too long to show here, or not what it seems: Review… shows all of it".to_owned(),
        (false, false) => "Too long to show here, or not what it seems: look where it runs".to_owned(),
    })
}

/// What it does, behind its name.
fn does(session: &Alertable<'_>, cause: Cause, again: bool) -> String {
    let still = if again { "still " } else { "" };
    match cause {
        Cause::NeedsPermission => {
            let what = session.request.and_then(|request| wants(request.kind)).unwrap_or("a permission");
            format!("{still}wants {what}")
        }
        Cause::NeedsInput => format!("{still}waits for your answer"),
        Cause::PermissionLost if again => "is still without permissions".into(),
        Cause::PermissionLost => "lost its permissions".into(),
        Cause::Stuck => format!("is {still}stuck"),
        Cause::Crashed if again => "crashed, and was not resumed yet".into(),
        Cause::Crashed => "crashed".into(),
        Cause::Failed if again => "failed, and nothing was done since".into(),
        Cause::Failed => "failed".into(),
        Cause::Done => "is done".into(),
    }
}

/// What a session is, in a summary.
const fn is(cause: Cause) -> &'static str {
    match cause {
        Cause::NeedsPermission => "needs permission",
        Cause::NeedsInput => "needs your answer",
        Cause::PermissionLost => "without permissions",
        Cause::Stuck => "stuck",
        Cause::Crashed => "crashed",
        Cause::Failed => "failed",
        Cause::Done => "done",
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
