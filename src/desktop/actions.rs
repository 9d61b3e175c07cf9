//! What can be done with one session, as entries of its submenu.
//!
//! A request is shown whole, or not at all: what is too long for a line, or would read otherwise than it is, is answered in a
//! terminal, where it is shown by its server. Each request has entries of its own, named by its id, that stand until the menu
//! is laid out anew and are disabled when it is over, so that a click meant for one request never answers another. The same holds
//! for questions and their choices.

use super::details::Source;
use super::view::{Effect, Item, ItemId, Kind};
use crate::act::{Ask, Order, Reply, Which};
use crate::core::action::{ALSO_IF_IT_WAITS, Action, Offer, Reach, may_end_unasked, offers, questions};
use crate::core::form::{Choice, Form, Kind as What, With};
use crate::core::misread::reads_as_it_is;
use crate::core::text::{counted, plain};
use crate::core::turn::{Call, Request};
use crate::core::verdict::Asking;

/// Lines of a submenu are at most this long, in characters: a menu does not wrap, and grows as wide as its longest line.
const LINE: usize = 96;
/// What is asked for is shown in the menu up to this length, in characters.
const ASKED: usize = 120;
/// So many requests of one session are shown; the others when these are answered.
const REQUESTS: usize = 3;
/// So many questions are; more than one at a time is rare.
const QUESTIONS: usize = 2;
/// A choice has an entry up to this length, in characters.
const CHOICE: usize = 60;

/// So many choices of a question have an entry each.
const CHOICES: usize = 7;

/// A permission request, or a question, as it was when the menu was laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A permission request.
    Request(Wanted),
    /// A question that can be answered from here.
    Question(Posed),
}

/// A permission request as it was when the menu was laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Names its entries.
    call: Call,
    id: Box<str>,
    kind: Box<str>,
    /// What it asks for, where that fits a line and reads as it is.
    text: Option<Box<str>>,
}

/// A question as it was when the menu was laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posed {
    /// Names its entries: its mark.
    call: Call,
    id: Box<str>,
    /// What it asks and its choices, where all of that is seen whole and reads as it is.
    shown: Option<(Box<str>, Vec<Box<str>>)>,
    /// There are answers that no entry stands for: words of the user's own.
    takes_text: bool,
    can_be_declined: bool,
}

/// The open requests, then the open questions, that the menu shows.
pub fn asked(source: &Source<'_>) -> Vec<Asked> {
    let requests = source.session.facts.requests.iter().map(|request| Asked::Request(Wanted::of(request)));
    let forms = questions(source.session).iter().filter_map(|asking| asking.form.as_ref().ok());
    requests.take(REQUESTS).chain(forms.take(QUESTIONS).map(|form| Asked::Question(Posed::of(form)))).collect()
}

impl Posed {
    fn of(form: &Form) -> Self {
        let fits = |choice: &Choice| reads_as_it_is(&choice.words, CHOICE);
        let is_whole =
            form.choices.len() <= CHOICES && form.choices.iter().all(fits) && reads_as_it_is(&form.text, ASKED);
        let words = || form.choices.iter().map(|choice| choice.words.clone()).collect();
        Self {
            call: Call::of_number(form.mark()),
            id: form.request.clone(),
            shown: is_whole.then(|| (form.text.clone(), words())),
            takes_text: form.takes_text,
            can_be_declined: form.can_be_declined() && form.kind != What::Plan,
        }
    }

    fn items(&self, source: &Source<'_>, offer: &Offer) -> Vec<Item> {
        let id = |kind| ItemId::of(source.key, kind);
        let is_this = |asking: &&Asking| asking.form.as_ref().is_ok_and(|form| form.mark() == self.call.number());
        let open = questions(source.session).iter().any(|asking| is_this(&asking));
        let enabled = open && offer.what.is_ok();
        let why = if open { "" } else { " (answered)" };
        let answer = |kind, text: String, with| {
            let reply = Reply::Give { request: self.id.to_string(), shown: self.call.number(), with };
            Item::action(id(kind), text, enabled, Effect::Act(Order::new(&source.row.id, Ask::Answer(reply))))
        };
        let elsewhere = |text: &str| {
            let effect = Effect::Answer { id: source.row.id.clone(), request: self.id.clone() };
            Item::action(id(Kind::Answer(self.call)), text, enabled, effect)
        };
        let says = |text: String| Item::action(id(Kind::Asks(self.call)), text, true, Effect::Seen);
        let Some((text, choices)) = &self.shown else {
            return vec![
                says(format!("Asks you something that does not fit here{why}")),
                elsewhere("Show it whole, and answer it, in a terminal"),
            ];
        };
        let mut items = vec![says(format!("Asks: {text}{why}"))];
        for (index, (number, choice)) in (0..).zip(choices).enumerate() {
            items.push(answer(Kind::Choice(self.call, number), format!("Answer “{choice}”"), With::Choice(index)));
        }
        if self.takes_text {
            items.push(elsewhere("Answer in your own words, in a terminal"));
        }
        if self.can_be_declined {
            items.push(answer(Kind::Decline(self.call), "Decline to answer".into(), With::Decline));
        }
        items
    }
}

impl Wanted {
    fn of(request: &Request) -> Self {
        let text = request.asks.as_deref().filter(|text| reads_as_it_is(text, ASKED)).map(Into::into);
        Self { call: request.id, id: request.request.clone(), kind: request.kind.clone(), text }
    }

    fn items(&self, source: &Source<'_>, offer: &Offer) -> Vec<Item> {
        let id = |kind| ItemId::of(source.key, kind);
        let act = |ask| Effect::Act(Order::new(&source.row.id, ask));
        let open = source.session.facts.requests.iter().any(|request| request.id == self.call);
        let why = match (&offer.what, open) {
            (_, false) => " (answered)",
            (Err(_), true) => " (answer it where it was asked)",
            (Ok(_), true) => "",
        };
        let enabled = open && offer.what.is_ok();
        let Some(text) = &self.text else {
            return vec![
                Item::action(
                    id(Kind::Asks(self.call)),
                    format!("Asks: {}{why}", plain(&self.kind, 40)),
                    true,
                    Effect::Seen,
                ),
                Item::action(
                    id(Kind::Details(self.call)),
                    "Show it whole, and answer it, in a terminal",
                    enabled,
                    Effect::Details { id: source.row.id.clone(), request: self.id.clone() },
                ),
            ];
        };
        let which = || Which::Shown { id: self.id.to_string(), text: text.to_string() };
        vec![
            Item::action(
                id(Kind::Asks(self.call)),
                format!("Asks: {}: {text}{why}", plain(&self.kind, 40)),
                true,
                Effect::Seen,
            ),
            Item::action(id(Kind::Approve(self.call)), "Approve once", enabled, act(Ask::Approve(which()))),
            Item::action(id(Kind::Deny(self.call)), "Deny", enabled, act(Ask::Deny(which()))),
        ]
    }
}

/// The entries for these requests and questions, and for every action; the latter are always the same in number and order, but
/// for the one that lets go of a session that we are attached to.
pub fn items(source: &Source<'_>, asked: &[Asked]) -> (Vec<Item>, Vec<Item>) {
    let offers = offers(source.session, source.row.status);
    let offer = |action| offers.iter().find(|offer| offer.action == action).unwrap_or(&offers[0]);
    let asked = asked.iter().flat_map(|one| match one {
        Asked::Request(request) => request.items(source, offer(Action::Approve)),
        Asked::Question(question) => question.items(source, offer(Action::Answer)),
    });
    let asked: Vec<_> = asked.collect();
    let item = |action, kind, name: &str, ask| {
        let (text, enabled) = words(name, &offer(action).what);
        let order = Order::new(&source.row.id, ask).on(source.session.facts.root.as_deref());
        Item::action(ItemId::of(source.key, kind), text, enabled, Effect::Act(order))
    };
    let ends = &offer(Action::End).what.clone().and_then(|what| may_end_unasked(source.session).map(|()| what));
    let end = Item::Submenu {
        id: ItemId::of(source.key, Kind::Ending),
        text: words("End this session…", ends).0,
        enabled: ends.is_ok(),
        items: vec![
            item(
                Action::End,
                Kind::End,
                "End it: its tool is killed, it can be resumed",
                Ask::End { confirmed: false },
            ),
            item(Action::ForceQuit, Kind::ForceQuit, "Force quit: nothing more is written down", Ask::ForceQuit),
        ],
    };
    let reconnect = if offer(Action::Continue).what.is_ok() { "Reconnect only" } else { "Reconnect" };
    let stop = match &offer(Action::Stop).what {
        Ok(does) if does.contains(ALSO_IF_IT_WAITS) => "Stop the turn, also if it only waits for you",
        _ => "Stop the turn",
    };
    let mut actions = vec![
        item(Action::Continue, Kind::Continue, "Reconnect and continue", Ask::Continue),
        item(Action::Reconnect, Kind::Reconnect, reconnect, Ask::Reconnect { resend: false }),
        item(Action::Resend, Kind::Resend, "Send the last prompt again", Ask::Reconnect { resend: true }),
        item(Action::Stop, Kind::Stop, stop, Ask::Stop),
        end,
        item(Action::Resume, Kind::Resume, "Resume in a terminal", Ask::Resume),
        item(Action::ShowTerminal, Kind::ShowTerminal, "Show its terminal", Ask::ShowTerminal),
    ];
    if source.session.dealings.reach.is_attached() {
        actions.push(item(Action::Detach, Kind::Detach, "Let go of it", Ask::Detach));
    }
    (asked, actions)
}

/// An action's words, and whether it can be used: where it cannot, the words say why.
fn words(name: &str, what: &Result<String, String>) -> (String, bool) {
    match what {
        Ok(_) => (name.into(), true),
        Err(why) => {
            let name = name.trim_end_matches('…').split(':').next().unwrap_or(name);
            (plain(&format!("{name}: no, {why}"), LINE).into(), false)
        }
    }
}

/// What our part in the session is: attached, and what came of the last thing that was done.
pub fn dealings(source: &Source<'_>) -> String {
    let dealings = &source.session.dealings;
    let reach = match &dealings.reach {
        Reach::Hosted(_) => "it runs in a server of ours",
        Reach::Attached => "attached to its server",
        Reach::Listens => "its server can be reached",
        Reach::Refused(_) => "its server refused us",
        Reach::Nowhere | Reach::Unknown => "none, it is only watched",
    };
    let doing = dealings.under_way.map(|action| format!("; {} is under way", action.name())).unwrap_or_default();
    let outcome = dealings.outcome.as_ref().map(|(_, words)| format!("; {words}")).unwrap_or_default();
    format!("Our part: {reach}{doing}{outcome}")
}

/// "Reopen what was open: 3 sessions": those whose process went without a word, as all do when the machine does.
pub fn reopen(orders: Vec<Order>) -> Item {
    let text = match orders.len() {
        0 => "Reopen what was open: nothing was left open".into(),
        n => format!("Reopen what was open: {}", counted(n, "session")),
    };
    let enabled = !orders.is_empty();
    Item::action(ItemId::own(Kind::Reopen), text, enabled, Effect::Reopen(orders))
}
