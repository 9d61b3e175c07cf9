//! The headline: how many sessions need the user, and what the first one needs. A click on it leads there.

use super::names::Names;
use crate::tray::actions;
use crate::tray::details::Source;
use crate::tray::view::{COLUMNS, Effect};
use pilotlight_core::alert::Detail;
use pilotlight_core::fleet::{Row, Session, Summary};
use pilotlight_core::text::{COMMAND_MAX, fit, isolated, plain};
use pilotlight_core::turn::request_verb;
use pilotlight_core::verdict::Status;
use unicode_width::UnicodeWidthStr;

/// Between the parts of the headline.
const SEPARATOR: &str = " · ";
/// Maximum width of what the first session needs in the tooltip, in columns: Windows limits a tooltip to 127 characters.
const TOOLTIP_COLUMNS: usize = 72;

/// What is said of all sessions at once.
pub(super) struct Headline {
    pub(super) text: String,
    /// The tooltip of the icon. It has all counts, as the menu shows the sessions that they count.
    pub(super) tooltip: String,
    /// What a click on it does.
    pub(super) effect: Effect,
}

impl Headline {
    /// The headline for these sessions, sorted; `detail` says whether the tooltip may say what a session needs.
    pub(super) fn of(sources: &[Source<'_>], summary: &Summary, names: &Names<'_>, detail: Detail) -> Self {
        let all = summary.to_string();
        let counts = summary.counts();
        let first = sources.first().filter(|source| source.row.needs_you());
        let (Some(Source { row, session, .. }), Some((need, others))) = (first, counts.split_first()) else {
            return Self { text: all.clone(), tooltip: all, effect: Effect::LiveTable };
        };
        let who = names.in_action(&row.label, names.least(&row.label));
        let needs = needs(row, session);
        let first = |columns: usize| {
            let left = columns.saturating_sub(who.width() + 1);
            format!("{} {}", isolated(&who), isolated(&fit(&needs, left)))
        };
        let text = format!("{need}{SEPARATOR}{}", first(COLUMNS - need.width() - SEPARATOR.width()));
        let mut tooltip = vec![need.clone()];
        if detail == Detail::Full {
            tooltip.push(first(TOOLTIP_COLUMNS));
        }
        tooltip.extend_from_slice(others);
        Self { text, tooltip: tooltip.join(SEPARATOR), effect: actions::looking_at(row, session) }
    }
}

/// What a session needs, to follow its name. Nothing here changes with time alone.
pub(crate) fn needs(row: &Row, session: &Session) -> String {
    match row.status {
        Status::NeedsPermission => {
            let request = session.observed.facts.requests.iter().find(|request| !request.is_consent());
            if request.is_some_and(|request| request.is_probable) {
                return row.because.reason.to_string();
            }
            match request.map(|request| (request_verb(&request.kind), request.asks.as_deref())) {
                Some((Some(verb), Some(what))) => format!("wants {verb} {}", plain(what, COMMAND_MAX)),
                Some((Some(verb), None)) => format!("wants {verb}"),
                // What only its log or its agent says.
                _ => match row.request_text() {
                    Some(text) => format!("asks for permission: {text}"),
                    None => "asks for permission".into(),
                },
            }
        }
        Status::NeedsInput => match row.question.as_ref().filter(|_| session.control.under_way.is_none()) {
            Some(question) => format!("asks {}", plain(&format!("“{}”", question.text), COMMAND_MAX)),
            None => "waits for your answer".into(),
        },
        Status::PermissionLost => "lost its permissions".into(),
        Status::Stuck => "is stuck".into(),
        Status::Crashed => "crashed".into(),
        Status::Failed | Status::Quiet | Status::Finishing | Status::Working | Status::Idle | Status::Ended => {
            "failed".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::time::Moment;
    use pilotlight_core::words::reason::Reason;

    #[test]
    fn case_669_the_headline_says_the_command_that_only_the_log_tells() {
        let session = Session::default();
        let words = |text: Option<&str>| {
            let because = Reason::AsksPermission { kind: "Bash".into(), text: text.map(Into::into) }.into();
            let row = session.row(Moment::default(), &Limits::default()).0;
            needs(&Row { status: Status::NeedsPermission, because, ..row }, &session)
        };
        assert_eq!(words(Some("rm -rf build")), "asks for permission: rm -rf build");
        assert_eq!(words(None), "asks for permission");
    }
}
