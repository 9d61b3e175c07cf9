//! What can be done with one session now, as entries of the menu.
//!
//! A request is shown whole, or not at all: what is too long for three lines, or would read otherwise than it is, is answered in
//! a terminal, where it is shown by its server. Each request has entries of its own, named by its id, so that a click meant for
//! one never answers another; so have questions and their choices. Of several the oldest is shown, the next when that is
//! answered.

use super::details::Source;
use super::view::{COLUMNS, Effect, Item, ItemId, Kind, ROWS, fold};
use crate::core::action::{ALSO_IF_IT_WAITS, Action, Offer, is_bridged, may_end_unasked, offers, questions};
use crate::core::fleet::Session;
use crate::core::form::{Form, Kind as What, With};
use crate::core::gist::Gist;
use crate::core::misread::reads_as_it_is;
use crate::core::order::{Ask, Order, Reply, Which};
use crate::core::text::{fit, plain, wrap};
use crate::core::turn::{Call, Request, wants};
use crate::core::verdict::Status;
use unicode_width::UnicodeWidthStr;

/// What is asked is shown on so many lines at most.
pub(crate) const LINES: usize = 3;
/// So many answers to a question stand beside the other actions; more of them in a submenu.
const ANSWERS: usize = 4;
/// Sets off what puts a session right from the rows of sessions.
const INDENT: &str = "     ";

/// What a session asks, and the answers that can be given from here.
#[derive(Debug)]
pub(crate) struct Asked {
    /// What it asks, or that it cannot be shown here.
    pub lines: Vec<Item>,
    /// The answers.
    pub answers: Vec<Item>,
}

/// The oldest permission request that is open, else the oldest question that can be answered from here.
pub(crate) fn asked(source: &Source<'_>) -> Option<Asked> {
    let offers = offers(source.session, source.row.status);
    let requests = &source.session.facts.requests;
    if let Some(request) = requests.iter().find(|request| !request.is_consent()) {
        return Some(of_request(source, request, of(&offers, Action::Approve).is_ok()));
    }
    if let Some((request, words)) = requests.first().and_then(|request| Some((request, request.consent_words()?))) {
        return Some(Asked { lines: lines_of(source, request.id, wrap(words, COLUMNS)), answers: Vec::new() });
    }
    let form = questions(source.session).iter().find_map(|asking| asking.form.as_ref().ok())?;
    Some(of_question(source, form, of(&offers, Action::Answer).is_ok()))
}

fn of(offers: &[Offer; 13], action: Action) -> &Result<String, String> {
    &offers.iter().find(|offer| offer.action == action).unwrap_or(&offers[0]).what
}

/// The lines of what is asked, where that is seen whole on them and reads as it is.
fn whole(head: &str, text: &str) -> Option<Vec<String>> {
    let lines = wrap(&format!("{head}: {text}"), COLUMNS);
    (reads_as_it_is(text, LINES * COLUMNS) && lines.len() <= LINES).then_some(lines)
}

fn lines_of(source: &Source<'_>, call: Call, lines: Vec<String>) -> Vec<Item> {
    // Enabled, though they only say something: a panel shows what is disabled in a grey that is hard to read. Whoever clicks
    // one has looked.
    let line = |(n, line)| Item::action(ItemId::of(source.key, Kind::Asks(call, n)), line, Effect::Seen);
    (0..).zip(lines.into_iter().map(|line| fit(&line, COLUMNS))).map(line).collect()
}

/// How many can be answered at all.
fn open_requests(session: &Session) -> usize {
    session.facts.requests.iter().filter(|request| !request.is_consent()).count()
}

fn of_request(source: &Source<'_>, request: &Request, can_answer: bool) -> Asked {
    let id = |kind| ItemId::of(source.key, kind);
    let act = |ask| Effect::Act(Box::new(Order::new(&source.row.id, ask).to(&source.row.label)));
    let (call, open) = (request.id, open_requests(source.session));
    let kind = plain(&request.kind, 20);
    let head = wants(&kind).map_or_else(|| kind.to_string(), |what| format!("Wants {what}"));
    let head = if open > 1 { format!("{head} (1 of {open})") } else { head };
    let text = request.asks.as_deref();
    let Some((text, lines)) = text.and_then(|text| Some((text, whole(&head, text)?))) else {
        let review = Effect::Details { id: source.row.id.clone(), request: request.request.clone() };
        let review = Item::action(id(Kind::Details(call)), "Review in a terminal…", review);
        let lines = lines_of(source, call, vec![format!("{head}: does not fit here")]);
        return Asked { lines, answers: if can_answer { vec![review] } else { Vec::new() } };
    };
    let which = || Which::Shown { id: request.request.to_string(), text: text.to_owned() };
    let answers = vec![
        Item::action(id(Kind::Approve(call)), Action::Approve.label(), act(Ask::Approve(which()))),
        Item::action(id(Kind::Deny(call)), Action::Deny.label(), act(Ask::Deny(which()))),
    ];
    Asked { lines: lines_of(source, call, lines), answers: if can_answer { answers } else { Vec::new() } }
}

fn of_question(source: &Source<'_>, form: &Form, can_answer: bool) -> Asked {
    let id = |kind| ItemId::of(source.key, kind);
    let call = Call::of_number(form.mark());
    let answer = |kind, text: String, with| {
        let reply = Reply::Give { request: form.request.to_string(), shown: form.mark(), with };
        let order = Order::new(&source.row.id, Ask::Answer(reply)).to(&source.row.label);
        Item::action(id(kind), text, Effect::Act(Box::new(order)))
    };
    let elsewhere = |text: &str| {
        let effect = Effect::Answer { id: source.row.id.clone(), request: form.request.clone() };
        Item::action(id(Kind::Answer(call)), text, effect)
    };
    let choices: Vec<_> = form.choices.iter().map(|choice| format!("Answer “{}”", choice.words)).collect();
    let fit = choices.len() < ROWS - 1
        && form
            .choices
            .iter()
            .zip(&choices)
            .all(|(choice, words)| words.width() <= COLUMNS && reads_as_it_is(&choice.words, COLUMNS));
    let Some(lines) = whole("Asks", &form.text).filter(|_| fit) else {
        let lines = lines_of(source, call, vec!["Asks you something that does not fit here".into()]);
        return Asked {
            lines,
            answers: if can_answer { vec![elsewhere("Answer in a terminal…")] } else { Vec::new() },
        };
    };
    let lines = lines_of(source, call, lines);
    if !can_answer {
        return Asked { lines, answers: Vec::new() };
    }
    let choices = (0..).zip(choices).enumerate();
    let choice = |(index, (n, words))| answer(Kind::Choice(call, n), words, With::Choice(index));
    let mut answers: Vec<_> = choices.map(choice).collect();
    if form.takes_text {
        answers.push(elsewhere("Answer in your own words…"));
    } else if form.is_filled_in() {
        answers.push(elsewhere("Fill in its form…"));
    }
    if form.can_be_declined() && form.kind != What::Plan {
        answers.push(answer(Kind::Decline(call), "Decline to answer".into(), With::Decline));
    }
    if answers.len() > ANSWERS {
        answers = vec![Item::submenu(id(Kind::Answers(call)), "Answer", answers)];
    }
    Asked { lines, answers }
}

/// The actions beside answers, the best first.
fn named(offers: &[Offer; 13], session: &Session) -> [(Action, &'static str); 8] {
    let reconnect = if of(offers, Action::Continue).is_ok() { "Reconnect only" } else { Action::Reconnect.label() };
    let go_on = if is_bridged(session) { "Send on" } else { Action::Continue.label() };
    let stop = match of(offers, Action::Stop) {
        Ok(does) if does.contains(ALSO_IF_IT_WAITS) => "Stop the turn, also if it only waits for you",
        _ => "Stop the turn",
    };
    [
        (Action::Continue, go_on),
        (Action::Reconnect, reconnect),
        (Action::Resume, "Resume in a terminal"),
        (Action::Stop, stop),
        (Action::ShowTerminal, "Show its terminal"),
        (Action::Resend, Action::Resend.label()),
        (Action::Detach, Action::Detach.label()),
        (Action::LetAnswer, Action::LetAnswer.label()),
    ]
}

/// An item that has something done with the session. `None` where it must be said which request or question is answered.
fn item(source: &Source<'_>, kind: Kind, name: &str, action: Action) -> Option<Item> {
    let row = source.row;
    let order = Order::new(&row.id, Ask::of(action)?).on(source.session.facts.root.as_deref()).to(&row.label);
    Some(Item::action(ItemId::of(source.key, kind), name, Effect::Act(Box::new(order))))
}

/// What can be done with it now beside answering, the best first.
pub(crate) fn actions(source: &Source<'_>) -> Vec<Item> {
    let offers = offers(source.session, source.row.status);
    // To reconnect a terminal's session that nobody runs is to resume it.
    let twice = of(&offers, Action::Resume).is_ok() && of(&offers, Action::Reconnect) == of(&offers, Action::Resume);
    let works = |action| of(&offers, action).is_ok() && !(twice && action == Action::Reconnect);
    let works = named(&offers, source.session).into_iter().filter(|(action, _)| works(*action));
    let item = |(action, name)| item(source, Kind::Act(action), name, action);
    let mut items: Vec<_> = works.filter_map(item).collect();
    if may_end(source, &offers).is_ok() {
        let ways = [Action::End, Action::ForceQuit].map(|action| (action, action.label())).into_iter().filter_map(item);
        let ways = std::iter::once(Item::text("Its tool is killed; it can be resumed")).chain(ways).collect();
        items.push(Item::submenu(ItemId::of(source.key, Kind::Ending), "End this session…", ways));
    }
    items
}

fn may_end(source: &Source<'_>, offers: &[Offer; 13]) -> Result<(), String> {
    of(offers, Action::End).clone().and_then(|_| may_end_unasked(source.session))
}

/// What cannot be done with it now, each with the reason.
pub(crate) fn refused(source: &Source<'_>) -> Vec<String> {
    let offers = offers(source.session, source.row.status);
    let refused = |action, name: &str| {
        let why = match action {
            Action::End => may_end(source, &offers).err(),
            action => of(&offers, action).clone().err(),
        };
        why.map(|why| plain(&format!("{name}: {why}"), 300).into())
    };
    let answers = [(Action::Approve, "Approve or deny"), (Action::Answer, "Answer")];
    let others = named(&offers, source.session);
    answers
        .into_iter()
        .chain(others)
        .chain([(Action::End, "End this session")])
        .filter_map(|(action, name)| refused(action, name))
        .collect()
}

/// What puts it right with one click, named for where it stands below its row. Never an approval, which wants to be read.
pub(crate) fn remedy(source: &Source<'_>) -> Option<Item> {
    let offers = offers(source.session, source.row.status);
    let works = |action| of(&offers, action).is_ok();
    let row = source.row;
    let gone_on = || {
        if works(Action::Continue) && is_bridged(source.session) {
            Some(("Send ", " on", Action::Continue))
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
    // Nothing but its own terminal can put a plain one right.
    let shown = || works(Action::ShowTerminal).then_some(("Show the terminal of ", "", Action::ShowTerminal));
    let (before, after, action) = match row.status {
        Status::PermissionLost | Status::Crashed => gone_on().or_else(shown)?,
        Status::Failed if row.ended_denied => gone_on()?,
        Status::Failed if is_bridged(source.session) && works(Action::Continue) => gone_on()?,
        Status::Stuck if !matches!(row.gist, Gist::Silent { runs_long: true, .. }) => {
            match of(&offers, Action::Stop).as_deref() {
                Ok(does) if does.contains(ALSO_IF_IT_WAITS) => ("Stop ", ", even if it waits for you", Action::Stop),
                Ok(_) => ("Stop the turn in ", "", Action::Stop),
                Err(_) => shown()?,
            }
        }
        _ => return None,
    };
    let room = COLUMNS - INDENT.width() - before.width() - after.width();
    let who = fit(&plain(&row.label.who, COLUMNS * 2), room);
    let text = format!("{INDENT}{before}{who}{after}");
    item(source, Kind::Remedy, &text, action)
}

/// "Reopen 2 sessions": those whose process went without a word, as all do when the machine does.
pub(crate) fn reopen(orders: Vec<Order>) -> Option<Item> {
    let text = match orders.len() {
        0 => return None,
        1 => "Reopen 1 session".to_owned(),
        n => format!("Reopen {n} sessions"),
    };
    Some(Item::action(ItemId::own(Kind::Reopen), text, Effect::Reopen(orders)))
}

/// The lines of a list, each on as many as it needs.
pub(crate) fn listed(source: &Source<'_>, texts: &[String], facts: u8, number: u8) -> Vec<Item> {
    let lines = texts.iter().flat_map(|text| {
        let wrapped = wrap(text, COLUMNS - 2);
        wrapped.into_iter().enumerate().map(|(n, line)| if n == 0 { line } else { format!("  {line}") })
    });
    let line = |(n, line)| Item::action(ItemId::of(source.key, Kind::Fact(n)), line, Effect::Seen);
    fold((facts..=u8::MAX).zip(lines).map(line).collect(), ROWS, Some(source.key), number)
}
