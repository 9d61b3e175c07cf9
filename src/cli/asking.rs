//! The session that is meant where none is named: the one that asks.

use super::context::Context;
use super::hosts::{Known, Which, known};
use super::observe::{Effort, Picture, observe};
use super::pick::{Named, NotFound, Picked, complete, enumerated, pick, with_id};
use super::report::{USAGE, say};
use clap_complete::ArgValueCompleter;
use pilotlight_core::fleet::{Row, Session, ShortIds, distinguish};
use pilotlight_core::text::counted;
use pilotlight_core::time::Moment;
use pilotlight_core::verdict::Status;
use pilotlight_engine::past::Depth;
use std::process::ExitCode;

/// The argument that names a session, or leaves it to the sessions which is meant.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct MaybeNamed {
    /// The session's id, the beginning of its id, its folder or its title. Default: the session that asks you something; if
    /// several do, they are listed, and you must name one
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete))]
    pub(super) id: Option<String>,
    /// The session's machine, by its name in the settings. Without this option, sessions of this machine come first
    #[arg(long, value_name = "HOST")]
    pub(super) host: Option<String>,
}

/// What a session must ask to be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// A permission.
    Permission,
    /// An answer.
    Answer,
    /// Either; if none does, it must need the user for another reason.
    Anything,
}

impl Asks {
    fn is_by(self, row: &Row) -> bool {
        let permission = self != Self::Answer && row.status == Status::NeedsPermission;
        permission || self != Self::Permission && row.status == Status::NeedsInput
    }

    /// What one does, and what several do.
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Permission => ["asks for a permission", "ask for a permission"],
            Self::Answer => ["asks you something", "ask you something"],
            Self::Anything => ["needs you", "need you"],
        }
    }
}

impl MaybeNamed {
    /// The session that is named.
    pub(super) fn of(named: &Named) -> Self {
        Self { id: Some(named.id.clone()), host: named.host.clone() }
    }

    /// Finds the session. `depth` says how much is read of those that are over, if one is named.
    ///
    /// # Errors
    /// The exit code, if no session or several are meant. The user has been told then.
    pub(super) fn pick(&self, context: &Context, asks: Asks, depth: Depth, effort: Effort) -> Result<Picked, ExitCode> {
        if let Some(id) = &self.id {
            return pick(context, &Named { id: id.clone(), host: self.host.clone() }, depth, effort);
        }
        let mut candidates = candidates(context, self.host.as_deref(), effort)?;
        let rows: Vec<&Row> = candidates.rows.iter().collect();
        let meant = meant(&rows, asks);
        let [one, two] = asks.words();
        let chosen = match &*meant {
            [only] => *only,
            [] => {
                say(&format!("no session {one} now; `pilotlight status` lists all sessions"));
                return Err(ExitCode::from(USAGE));
            }
            several => {
                let ids = ShortIds::new(rows.iter().map(|row| &*row.id));
                let listed = several.iter().map(|n| with_id(rows[*n], &ids)).collect();
                let (count, listed) = (counted(several.len(), "session"), enumerated(listed, ", "));
                say(&format!("{count} {two}: {listed}. Name one by its id, folder or title"));
                return Err(ExitCode::from(USAGE));
            }
        };
        let (session, row) = (candidates.sessions.remove(chosen), candidates.rows.remove(chosen));
        Ok(Picked { session, label: row.label, now: candidates.now })
    }
}

/// Which of these are meant.
fn meant(rows: &[&Row], asks: Asks) -> Vec<usize> {
    let which = |fits: &dyn Fn(&Row) -> bool| -> Vec<usize> {
        rows.iter().enumerate().filter(|(_, row)| row.reached && fits(row)).map(|(n, _)| n).collect()
    };
    let asking = which(&|row| asks.is_by(row));
    if asking.is_empty() && asks == Asks::Anything { which(&Row::needs_you) } else { asking }
}

/// The sessions that may be meant, each with its row.
pub(super) struct Candidates {
    pub(super) sessions: Vec<Session>,
    pub(super) rows: Vec<Row>,
    pub(super) now: Moment,
}

/// The sessions here and on other machines, or those of the machine that is named. Says which machines are not reached.
///
/// # Errors
/// The exit code, if they cannot be read. The user has been told then.
pub(super) fn candidates(context: &Context, host: Option<&str>, effort: Effort) -> Result<Candidates, ExitCode> {
    context.report_problems();
    if context.has_no_home() && context.hosts().next().is_none() {
        context.unreadable_homes().iter().for_each(|problem| say(problem));
        return Err(NotFound::NoHome.code());
    }
    if let Some(host) = host.filter(|host| !context.hosts().any(|known| known.name == **host)) {
        say(&format!("no machine in the settings is called {host:?}"));
        return Err(NotFound::Unclear.code());
    }
    let Picture { mut sessions, now, .. } = observe(context, effort, None).map_err(|error| {
        say(&format!("{error:#}"));
        NotFound::Failed.code()
    })?;
    sessions.retain(|session| host.is_none() && session.is_listed());
    let known = known(context, host, Which::Recent, now);
    known.iter().filter_map(Known::not_reached).for_each(|trouble| say(&trouble));
    sessions.extend(known.into_iter().flat_map(|known| known.sessions));
    let mut rows: Vec<Row> = sessions.iter().map(|session| session.row(now, &context.config.limits).0).collect();
    distinguish(&mut rows);
    Ok(Candidates { sessions, rows, now })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::limits::Limits;

    #[test]
    fn case_763_only_what_asks_is_meant_and_else_what_needs_you() {
        let row = |status| {
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            Row { status, ..row }
        };
        let all = |statuses: &[Status]| statuses.iter().map(|status| row(*status)).collect::<Vec<_>>();
        let of = |statuses: &[Status], asks| meant(&all(statuses).iter().collect::<Vec<_>>(), asks);
        let both = [Status::Idle, Status::NeedsInput, Status::NeedsPermission, Status::Stuck];
        assert_eq!(of(&both, Asks::Permission), [2]);
        assert_eq!(of(&both, Asks::Answer), [1]);
        assert_eq!(of(&both, Asks::Anything), [1, 2]);
        assert_eq!(of(&[Status::Working, Status::Stuck], Asks::Anything), [1]);
        assert_eq!(of(&[Status::Working, Status::Stuck], Asks::Permission), [0usize; 0]);
        let away = Row { reached: false, ..row(Status::NeedsPermission) };
        assert_eq!(meant(&[&away], Asks::Permission), [0usize; 0], "it may have been answered since");
    }
}
