//! The actions on one session that are possible now, as menu entries.
//!
//! A request is shown in full or not at all: one that is too long for three lines, or whose text is ambiguous, is
//! answered in a terminal, where its server's text is shown. Each request has its own entries, named by its id, so that
//! a click meant for one never answers another. The same goes for questions and their choices. Of several requests the
//! oldest is shown, and the next one once that is answered.

use super::details::Source;
use super::view::{COLUMNS, Effect, Item, ItemId, Kind, ROWS, Reviewed, fold};
use pilotlight_core::action::{
    Action, ActionFlag, has_open_tool, is_bridged, may_end_without_asking, offer, questions,
};
use pilotlight_core::confusable::{Unfit, fits};
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::form::{Form, FormAnswer, Kind as What};
use pilotlight_core::order::{Denial, Operation, Order, Reply, Which};
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::text::{capitalised, fit, isolated, plain, wrap};
use pilotlight_core::turn::{Call, Request, request_verb};
use pilotlight_core::verdict::Status;
use pilotlight_core::words::offer::Does;
use pilotlight_core::words::refusal::{Refusal, consent};
use unicode_width::UnicodeWidthStr;

/// Maximum number of lines for the text of a request.
pub(crate) const LINES_MAX: usize = 3;
/// Maximum number of answers next to the other actions; more go into a submenu.
const ANSWERS_MAX: usize = 4;
/// The actions that are listed in a session's menu, the best first. Ending it has a submenu of its own.
const LISTED: [Action; 8] = [
    Action::Continue,
    Action::Reconnect,
    Action::Resume,
    Action::Stop,
    Action::ShowTerminal,
    Action::Resend,
    Action::Detach,
    Action::LetAnswer,
];
/// Indents a remedy below its row.
const INDENT: &str = "     ";

/// The entries of an open request or question.
#[derive(Debug)]
pub(crate) struct RequestItems {
    /// Its text, or that it cannot be shown here.
    pub lines: Vec<Item>,
    /// The answers that can be given from here.
    pub answers: Vec<Item>,
}

/// The entries of the oldest open permission request, or else of the oldest question that can be answered from here.
pub(crate) fn request_items(source: &Source<'_>) -> Option<RequestItems> {
    let requests = &source.session.observed.facts.requests;
    if let Some(request) = requests.iter().find(|request| !request.is_consent()) {
        return Some(items_of_request(source, request, offered(source, Action::Approve).is_ok()));
    }
    if let Some(request) = requests.first() {
        let words = consent(request.is_about_us());
        return Some(RequestItems { lines: lines_of(source, request.id, wrap(words, COLUMNS)), answers: Vec::new() });
    }
    let form = questions(source.session).iter().find_map(|asking| asking.form.as_ref().ok())?;
    Some(items_of_question(source, form, offered(source, Action::Answer).is_ok()))
}

fn offered(source: &Source<'_>, action: Action) -> Result<Does, Refusal> {
    offer(action, source.session, source.row.status)
}

/// The lines of the text, if they show it in full and it reads as it is; else the reason.
fn full_text<'a>(head: &str, text: &'a str) -> Result<Vec<String>, Unfit<'a>> {
    fits(text, LINES_MAX * COLUMNS)?;
    let lines = indented(&format!("{head}: {text}"));
    if lines.len() <= LINES_MAX { Ok(lines) } else { Err(Unfit::TooLong) }
}

/// The lines that say why something is not shown.
fn unfit_lines(head: &str, unfit: Unfit<'_>) -> Vec<String> {
    indented(&format!("{head}. {}", unfit.words())).into_iter().take(LINES_MAX).collect()
}

/// Wraps text to lines of which only the first begins at the edge: no other may look like an entry of its own, which a
/// click would run.
fn indented(text: &str) -> Vec<String> {
    let wrapped = wrap(text, COLUMNS - 2).into_iter().enumerate();
    wrapped.map(|(n, line)| if n == 0 { line } else { format!("  {line}") }).collect()
}

fn lines_of(source: &Source<'_>, call: Call, lines: Vec<String>) -> Vec<Item> {
    // Enabled although they are only text: panels show disabled entries in a grey that is hard to read. A click marks
    // the session as seen.
    let line = |(n, line)| Item::action(ItemId::of(source.key, Kind::Asks(call, n)), line, Effect::Seen);
    (0..).zip(lines.into_iter().map(|line| fit(&line, COLUMNS))).map(line).collect()
}

/// The number of requests that can be answered.
fn open_requests(session: &Session) -> usize {
    session.observed.facts.requests.iter().filter(|request| !request.is_consent()).count()
}

/// What the session's agent says that it asks for, where that is no request that can be answered from here: all of it, or why it is
/// not shown. In at most `max` lines.
pub(crate) fn told_request(row: &Row, max: usize) -> Option<Vec<String>> {
    let (kind, text) = row.because.reason.asks_permission()?;
    let head = format!("Asks for {}", plain(kind, 20));
    let lines =
        full_text(&head, text?).and_then(|lines| if lines.len() <= max { Ok(lines) } else { Err(Unfit::TooLong) });
    Some(lines.unwrap_or_else(|unfit| unfit_lines(&head, unfit).into_iter().take(max).collect()))
}

fn items_of_request(source: &Source<'_>, request: &Request, can_answer: bool) -> RequestItems {
    let id = |kind| ItemId::of(source.key, kind);
    let act = |operation| {
        Effect::Act(Box::new(
            Order::new(&source.row.id, operation).at(source.row.host.as_deref()).to(&source.row.label),
        ))
    };
    let (call, open) = (request.id, open_requests(source.session));
    let kind = plain(&request.kind, 20);
    let head = request_verb(&kind).map_or_else(|| kind.to_string(), |what| format!("Wants {what}"));
    let head = if open > 1 { format!("{head} (1 of {open})") } else { head };
    let is_held = request.over_bridge.as_ref().is_some_and(|options| options.is_held);
    let head = if is_held { format!("Not yet shown in the terminal. {head}") } else { head };
    let shown = request.asks.as_deref().map(|text| full_text(&head, text).map(|lines| (text, lines)));
    let Some(Ok((text, lines))) = shown else {
        let review = Effect::review(Reviewed::Permission, source.row, &request.request);
        let review = Item::action(id(Kind::Details(call)), "Review in a terminal…", review);
        let lines = match request.is_probable {
            true => {
                indented(&capitalised(&source.row.because.reason.to_string())).into_iter().take(LINES_MAX).collect()
            }
            false => match shown {
                Some(Err(unfit)) => unfit_lines(&head, unfit),
                _ => vec![format!("{head}: does not fit here")],
            },
        };
        let lines = lines_of(source, call, lines);
        return RequestItems { lines, answers: if can_answer { vec![review] } else { Vec::new() } };
    };
    let which = || Which::Shown { id: request.request.to_string(), text: text.to_owned() };
    let mut answers = vec![
        Item::action(id(Kind::Approve(call)), Action::Approve.label(), act(Operation::Approve(which()))),
        Item::action(id(Kind::Deny(call)), Action::Deny.label(), act(Operation::Deny(which()))),
    ];
    if let Some(options) = &request.over_bridge {
        let note = Effect::review(Reviewed::Denial, source.row, &request.request);
        let stop = Operation::DenyWith { which: which(), denial: Denial { note: None, stop: true } };
        answers.push(Item::action(id(Kind::DenyWithNote(call)), "Deny with a note…", note));
        answers.push(Item::action(id(Kind::DenyAndStop(call)), "Deny, and stop the turn", act(stop)));
        // Never beside Approve: what it allows is to be read first.
        answers.extend(options.always.as_deref().map(|rules| {
            let lines = indented(&format!("Also allowed from now on: {rules}")).into_iter().map(Item::text);
            let always = Operation::Always { which: which(), rules: rules.into() };
            let yes = Item::action(id(Kind::Always(call)), "Approve, and allow that", act(always));
            Item::submenu(id(Kind::Rules(call)), "Always allow…", lines.chain([yes]).collect())
        }));
    }
    RequestItems { lines: lines_of(source, call, lines), answers: if can_answer { answers } else { Vec::new() } }
}

fn items_of_question(source: &Source<'_>, form: &Form, can_answer: bool) -> RequestItems {
    let id = |kind| ItemId::of(source.key, kind);
    let call = Call::from_number(form.mark());
    let answer = |kind, text: String, with| {
        let reply = Reply::Give { request: form.request.to_string(), shown: form.mark(), with: Box::new(with) };
        let order =
            Order::new(&source.row.id, Operation::Answer(reply)).at(source.row.host.as_deref()).to(&source.row.label);
        Item::action(id(kind), text, Effect::Act(Box::new(order)))
    };
    let in_terminal = |text: &str| {
        let answer = Effect::review(Reviewed::Question, source.row, &form.request);
        Item::action(id(Kind::Answer(call)), text, answer)
    };
    let choices: Vec<_> = form.choices.iter().map(|choice| format!("Answer “{}”", choice.words)).collect();
    let fit = choices.len() < ROWS - 1
        && form
            .choices
            .iter()
            .zip(&choices)
            .all(|(choice, words)| words.width() <= COLUMNS && fits(&choice.words, COLUMNS).is_ok());
    let shown = full_text("Asks", &form.text);
    let Some(lines) = shown.clone().ok().filter(|_| fit) else {
        let lines = match shown {
            Err(unfit) => unfit_lines("Asks you something", unfit),
            Ok(_) => vec!["Asks you something that does not fit here".into()],
        };
        let lines = lines_of(source, call, lines);
        return RequestItems {
            lines,
            answers: if can_answer { vec![in_terminal("Answer in a terminal…")] } else { Vec::new() },
        };
    };
    let lines = lines_of(source, call, lines);
    if !can_answer {
        return RequestItems { lines, answers: Vec::new() };
    }
    let choices = (0..).zip(choices).enumerate();
    let choice = |(index, (n, words))| answer(Kind::Choice(call, n), words, FormAnswer::Choice(index));
    let mut answers: Vec<_> = choices.map(choice).collect();
    if form.takes_text {
        answers.push(in_terminal("Answer in your own words…"));
    } else if form.is_filled_in() {
        answers.push(in_terminal("Fill in its form…"));
    }
    if form.can_be_declined() && form.kind != What::Plan {
        answers.push(answer(Kind::Decline(call), "Decline to answer".into(), FormAnswer::Decline));
    }
    if answers.len() > ANSWERS_MAX {
        answers = vec![Item::submenu(id(Kind::Answers(call)), "Answer", answers)];
    }
    RequestItems { lines, answers }
}

/// The actions other than answers, with their labels, the best first.
fn labelled(source: &Source<'_>) -> [(Action, &'static str); LISTED.len()] {
    let stops_if_waiting = || offered(source, Action::Stop) == Ok(Does::Stops { even_if_waiting: true });
    LISTED.map(|action| {
        let label = match action {
            Action::Continue if is_bridged(source.session) => "Continue",
            Action::Reconnect if offered(source, Action::Continue).is_ok() => "Reconnect only",
            Action::Stop if stops_if_waiting() => "Stop the turn, even if it only waits for you",
            _ => action.menu_label(),
        };
        (action, label)
    })
}

/// An item for an action. `None` for one that needs a request or question.
fn item(source: &Source<'_>, kind: Kind, name: &str, action: Action) -> Option<Item> {
    let row = source.row;
    let order = Order::new(&row.id, action.spec().operation.clone()?)
        .at(row.host.as_deref())
        .on(source.session.observed.facts.turn_id.as_deref())
        .to(&row.label);
    // What is offered because of a silence must not end an answer. An entry of the session's own menu does what it says.
    let order = if kind == Kind::Remedy { order.unless_receiving() } else { order };
    Some(Item::action(ItemId::of(source.key, kind), name, Effect::Act(Box::new(order))))
}

/// The possible actions other than answers, the best first.
pub(crate) fn actions(source: &Source<'_>) -> Vec<Item> {
    // To reconnect a terminal session that has no owner means to resume it.
    let resume = offered(source, Action::Resume);
    let is_same = resume.is_ok() && offered(source, Action::Reconnect) == resume;
    let works = |action| offered(source, action).is_ok() && !(is_same && action == Action::Reconnect);
    let works = labelled(source).into_iter().filter(|(action, _)| works(*action));
    let item = |(action, name)| item(source, Kind::Act(action), name, action);
    let mut items: Vec<_> = works.filter_map(item).collect();
    if may_end(source).is_ok() {
        let ways = [Action::End, Action::ForceQuit].into_iter().filter(|action| offered(source, *action).is_ok());
        let ways = ways.map(|action| (action, action.label())).filter_map(item);
        let what =
            if has_open_tool(source.session) { "This kills its tool; you can resume it" } else { "You can resume it" };
        let ways = std::iter::once(Item::text(what)).chain(ways).collect();
        items.push(Item::submenu(ItemId::of(source.key, Kind::Ending), "End this session…", ways));
    }
    items
}

fn may_end(source: &Source<'_>) -> Result<(), Refusal> {
    offered(source, Action::End).and_then(|_| may_end_without_asking(source.session))
}

/// The actions that are not possible now, each with the reason.
pub(crate) fn refused(source: &Source<'_>) -> Vec<String> {
    let refused = |action, name: &str| {
        let why = match action {
            Action::End => may_end(source).err(),
            action => offered(source, action).err(),
        };
        why.map(|why| plain(&format!("{name}: {why}"), 300).into())
    };
    let answers = [(Action::Approve, "Approve or deny"), (Action::Answer, "Answer")];
    let others = labelled(source);
    answers
        .into_iter()
        .chain(others)
        .chain([(Action::End, "End this session")])
        .filter_map(|(action, name)| refused(action, name))
        .collect()
}

/// The entry below a row that fixes the session with one click, if any, or else shows its terminal. Never an approval,
/// which must be read first. `name` is the session's, in at most so many columns.
pub(crate) fn remedy(source: &Source<'_>, name: impl FnOnce(usize) -> String) -> Option<Item> {
    let works = |action| offered(source, action).is_ok();
    let row = source.row;
    let continued = || {
        if works(Action::Continue) && is_bridged(source.session) {
            Some(("Continue ", "", Action::Continue))
        } else if works(Action::Continue) {
            Some(("Reconnect ", " and continue", Action::Continue))
        } else if works(Action::Resume) {
            Some(("Resume ", " in a terminal", Action::Resume))
        } else if works(Action::Reconnect) {
            Some(("Reconnect ", "", Action::Reconnect))
        } else {
            None
        }
    };
    // A plain terminal session can only be fixed in its own terminal.
    let shown = || works(Action::ShowTerminal).then_some(("Show the terminal of ", "", Action::ShowTerminal));
    let (before, after, action) = match row.status {
        Status::PermissionLost | Status::Crashed => continued().or_else(shown)?,
        Status::Failed if row.ended_denied() => continued()?,
        Status::Failed if is_bridged(source.session) && works(Action::Continue) => continued()?,
        Status::Stuck if !matches!(row.short_reason, ShortReason::Silent { runs_long: true, .. }) => {
            match offered(source, Action::Stop) {
                Ok(Does::Stops { even_if_waiting: true }) => ("Stop ", ", even if it waits", Action::Stop),
                Ok(_) => ("Stop the turn in ", "", Action::Stop),
                Err(_) => shown()?,
            }
        }
        Status::Failed | Status::Stuck | Status::NeedsPermission | Status::NeedsInput | Status::Quiet => return None,
        Status::Finishing | Status::Working | Status::Idle | Status::Ended => return None,
    };
    let room = COLUMNS - INDENT.width() - before.width() - after.width();
    let text = format!("{INDENT}{before}{}{after}", isolated(&name(room)));
    item(source, Kind::Remedy, &text, action)
}

/// Whether this entry only shows something, and mends nothing.
pub(crate) fn only_shows(item: &Item) -> bool {
    matches!(item, Item::Action { effect: Effect::Act(order), .. } if order.operation.action().is(ActionFlag::OnlyShows))
}

/// What a click on a session comes to, where it does not choose an action: its request or question in a terminal, to be
/// answered there; else its terminal; else the table of all sessions.
pub(crate) fn looking_at(row: &Row, session: &Session) -> Effect {
    let can = |action| offer(action, session, row.status).is_ok();
    if let Some(request) = session.observed.facts.requests.iter().find(|request| !request.is_consent())
        && can(Action::Approve)
    {
        return Effect::review(Reviewed::Permission, row, &request.request);
    }
    if let Some(form) = questions(session).iter().find_map(|asking| asking.form.as_ref().ok())
        && can(Action::Answer)
    {
        return Effect::review(Reviewed::Question, row, &form.request);
    }
    if can(Action::ShowTerminal) {
        return Effect::Act(Box::new(Order::new(&row.id, Operation::ShowTerminal).to(&row.label)));
    }
    Effect::LiveTable
}

/// The entry that resumes the sessions that were left open: "Reopen 2 sessions".
pub(crate) fn reopen(orders: Vec<Order>) -> Option<Item> {
    let text = match orders.len() {
        0 => return None,
        1 => "Reopen 1 session".to_owned(),
        n => format!("Reopen {n} sessions"),
    };
    Some(Item::action(ItemId::own(Kind::Reopen), text, Effect::Reopen(orders)))
}

/// A list of texts, wrapped into as many lines as they need.
pub(crate) fn text_items(source: &Source<'_>, texts: &[String], facts: u8, number: u8) -> Vec<Item> {
    let lines = texts.iter().flat_map(|text| indented(text));
    let line = |(n, line)| Item::action(ItemId::of(source.key, Kind::Fact(n)), line, Effect::Seen);
    fold((facts..=u8::MAX).zip(lines).map(line).collect(), ROWS, Some(source.key), number)
}
