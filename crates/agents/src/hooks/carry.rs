//! Answers what hooks ask, whichever agent has started them. An answer is given over the connection that the request came by.
//! The session's user may have answered in the terminal at the same moment: the first one wins, and the agent says which.

use super::listener::Hook;
use super::memory::{Memory, Share};
use crate::channel::action_context::ActionContext;
use crate::channel::answering::{begin_answer, choose};
use crate::channel::failure::Failure;
use crate::channel::order::Prompt;
use crate::channel::request::Request;
use crate::channel::{self, Channel, Listener, open_request};
use crate::control::BridgeReport;
use crate::copilot::server::reply::{Ready, STILL_OPEN, ready};
use async_trait::async_trait;
use pilotlight_core::action;
use pilotlight_core::form::Form;
use pilotlight_core::order::{self, Decision, Step, Which};
use pilotlight_core::question::Question;
use pilotlight_core::session::{About, LetGo};
use pilotlight_core::stream_probe::Word;
use pilotlight_core::text::counted;
use pilotlight_core::time::Moment;
use pilotlight_core::turn;
use pilotlight_core::verdict::Asking;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Why an answer came too late.
pub(crate) const TERMINAL_FIRST: &str = "it was answered in the terminal first: nothing was done";
/// Shown for a question of an unknown form.
const UNREADABLE: &str = "something that Pilotlight cannot read";

/// What a hook of an agent asks.
#[async_trait]
pub(crate) trait Asks: Clone + Debug + Send + Sync + 'static {
    /// What is said of the first denial where it denies all that its session asks with it.
    const DENIES_OTHERS: Option<&'static str> = None;

    /// The request, to be answered by this id. `None` if it asks a question.
    fn request(&self, id: &str) -> Option<Request>;

    /// The same as it is kept in the facts of its session. `at`: when it was asked.
    fn open_request(&self, id: &str, at: Moment) -> Option<turn::Request>;

    /// The question that it asks its user, as it is shown, and its form, to be answered by this id. `None` if it is a request
    /// for permission.
    fn question(&self, id: &str) -> Option<(Option<Question>, Result<Form, &'static str>)>;

    /// What the hook prints to answer its request like this.
    ///
    /// # Errors
    /// Why it is not answered.
    fn output(&self, decision: &Decision) -> Result<Value, &'static str>;

    /// What the hook prints to answer its question with this result of its form. `None` if that is of another form.
    fn reply(&self, result: &Value) -> Option<Value>;

    /// Whether it has more parts than are shown: then nothing of it was read.
    fn is_too_much(&self) -> bool;

    /// Drops what only its request or question is made of, once that was made. From then on it makes answers alone.
    fn release(&mut self);

    /// About how much memory is left for its answers, in bytes.
    fn kept(&self) -> usize;

    /// Has the hook print this, and finds out whether that decided.
    ///
    /// # Errors
    /// The terminal was first, or it is not known who decided.
    async fn answer(hook: &OpenHook<Self>, context: &ActionContext, output: Value) -> Result<(), Failure>;
}

/// A hook that asks.
#[derive(Clone, Debug)]
pub(crate) struct OpenHook<A> {
    /// The id to answer it by.
    pub(crate) request: Box<str>,
    pub(crate) hook: Hook<A>,
    /// When it came.
    pub(crate) at: Moment,
    /// It was answered by us.
    pub(crate) is_answered: Arc<AtomicBool>,
    subject: Arc<Subject>,
}

/// What a hook asks, as it is shown. Made once: it may be large, and is looked at whenever something changes.
#[derive(Debug)]
struct Subject {
    request: Option<Request>,
    /// The same as the facts of its session have it.
    in_facts: Option<turn::Request>,
    form: Option<Result<Form, &'static str>>,
    asking: Option<Asking>,
    _share: Share,
}

impl<A: Asks> OpenHook<A> {
    /// A hook that has come now, to be answered by this id. It takes its share of the memory for all that wait.
    ///
    /// # Errors
    /// There is not as much left, or it cannot be shown.
    pub(crate) fn new(request: Box<str>, mut hook: Hook<A>, at: Moment, memory: &Memory) -> Result<Self, LetGo> {
        let asked = &mut hook.asked;
        if asked.is_too_much() {
            return Err(LetGo::TooMuch);
        }
        let (mut whole, in_facts) = (asked.request(&request), asked.open_request(&request, at));
        let (shown, form) = asked.question(&request).unzip();
        let asking = shown.zip(form.as_ref()).map(|(shown, form)| asking(shown, form, at));
        asked.release();
        if let Some(whole) = &mut whole {
            whole.text.shrink_to_fit();
        }
        let size = asked.kept() + whole.as_ref().map_or(0, Request::size) + form.as_ref().map_or(0, form_size);
        let Some(share) = memory.take(size) else {
            drop((whole, in_facts, form, asking));
            return Err(Memory::refused(size));
        };
        let subject = Arc::new(Subject { request: whole, in_facts, form, asking, _share: share });
        Ok(Self { request, hook, at, is_answered: Arc::default(), subject })
    }
}

/// A question, as its user is asked it.
fn asking(shown: Option<Question>, form: &Result<Form, &'static str>, at: Moment) -> Asking {
    let question = shown.unwrap_or_else(|| Question { id: None, text: UNREADABLE.into(), choices: Vec::new() });
    let question = match form {
        Ok(form) => question.answered_by(&form.request, form.choices.iter().map(|choice| &*choice.words)),
        Err(_) => question,
    };
    Asking { question, since: at.wall, form: form.clone().map_err(Into::into) }
}

/// About how much memory a form takes, in bytes: it is kept twice.
fn form_size(form: &Result<Form, &'static str>) -> usize {
    let words = |form: &Form| form.text.len() + form.choices.iter().map(|choice| choice.words.len()).sum::<usize>();
    form.as_ref().map_or(0, |form| 2 * words(form))
}

/// What the hooks of a session tell of it. `None` if none asks.
pub(crate) fn report<A: Asks>(open: &[&OpenHook<A>], about: Option<About>) -> Option<BridgeReport> {
    (!open.is_empty()).then(|| BridgeReport {
        bridge: action::Bridge::Elevated,
        release: None,
        is_other: false,
        approves_all: None,
        questions: open.iter().filter_map(|open| open.subject.asking.clone()).collect(),
        requests: open.iter().filter_map(|open| open.subject.in_facts.clone()).collect(),
        about,
    })
}

/// The hooks of one session.
#[derive(Clone, Debug)]
pub(crate) struct HookBridge<A> {
    open: Vec<OpenHook<A>>,
}

impl<A: Asks> HookBridge<A> {
    /// Over these. `None` if none asks.
    pub(crate) fn over(open: Vec<OpenHook<A>>) -> Option<Arc<dyn channel::Bridge>> {
        (!open.is_empty()).then(|| Arc::new(Self { open }) as _)
    }

    fn open(&self) -> impl Iterator<Item = &OpenHook<A>> {
        self.open.iter().filter(|open| !open.hook.handle.is_gone())
    }

    fn requests(&self) -> Vec<Request> {
        self.open().filter_map(|open| open.subject.request.clone()).collect()
    }

    fn find(&self, request: &str) -> Result<&OpenHook<A>, Failure> {
        let open = self.open().find(|open| *open.request == *request);
        open.ok_or_else(|| Failure::refusal(Step::Answer, TERMINAL_FIRST))
    }

    /// The form of the question with this id; without one, that of the first that can be answered.
    fn form(&self, request: Option<&str>) -> Result<Form, Failure> {
        let its = self.open().filter(|open| request.is_none_or(|request| *open.request == *request));
        let mut forms: Vec<_> = its.filter_map(|open| open.subject.form.clone()).collect();
        forms.sort_by_key(Result::is_err);
        let form = forms.into_iter().next().ok_or_else(|| Failure::refusal(Step::Answer, TERMINAL_FIRST))?;
        form.map_err(|why| Failure::refusal(Step::Answer, &format!("answer it where it asks: {why}")))
    }
}

#[async_trait]
impl<A: Asks> Channel for HookBridge<A> {
    async fn request(&self, _context: &ActionContext, id: &str) -> Result<Request, Failure> {
        open_request(self.requests(), id)
    }

    async fn answer(&self, context: &ActionContext, which: &Which, decision: &Decision) -> Result<String, Failure> {
        let requests = self.requests();
        let has_others = |chosen: &[Request]| requests.len() > chosen.len();
        let chosen = choose(context, requests.clone(), which)?;
        let output = |request: &Request| {
            let open = self.find(&request.id)?;
            let output = open.hook.asked.output(decision);
            Ok((open, output.map_err(|why| Failure::refusal(Step::Answer, why))?))
        };
        let outputs = chosen.iter().map(output).collect::<Result<Vec<_>, Failure>>()?;
        let done = begin_answer(context, &chosen, decision.approves()).await?;
        let others = A::DENIES_OTHERS.filter(|_| !decision.approves());
        for (n, (open, output)) in outputs.into_iter().enumerate() {
            match A::answer(open, context, output).await {
                // It was denied with the first.
                Err(_) if n > 0 && others.is_some() => open.is_answered.store(true, Ordering::Relaxed),
                answered => answered?,
            }
        }
        let more = match decision {
            Decision::Always { rules } => format!(", and from now on: {rules}"),
            Decision::Deny(denial) if denial.stop => ", and stopped its turn".to_owned(),
            Decision::Deny(denial) if denial.note.is_some() => " with a note".to_owned(),
            Decision::Approve | Decision::Deny(_) => String::new(),
        };
        let others = others.filter(|_| has_others(&chosen)).unwrap_or_default();
        Ok(format!("{done} {}{more}{others}", counted(chosen.len(), "request")))
    }

    fn takes_more(&self) -> bool {
        true
    }

    async fn reply(&self, context: &ActionContext, reply: &order::Reply) -> Result<String, Failure> {
        let Some(Ready { request, result, said, .. }) = ready(context, reply, |request| self.form(request)).await?
        else {
            return Ok(STILL_OPEN.to_owned());
        };
        let open = self.find(request)?;
        let output = open.hook.asked.reply(&result);
        let output = output.ok_or_else(|| Failure::refusal(Step::Answer, "answer it in its terminal"))?;
        A::answer(open, context, output).await?;
        Ok(said)
    }

    async fn stop(&self, _context: &ActionContext) -> Result<String, Failure> {
        Err(Failure::refusal(Step::Abort, "press Esc in its terminal"))
    }
}

#[async_trait]
impl<A: Asks> Listener for HookBridge<A> {
    async fn listen(&self, _id: &str, _window: Duration) -> Option<Word> {
        None
    }
}

#[async_trait]
impl<A: Asks> channel::Bridge for HookBridge<A> {
    async fn send_on(&self, _context: &ActionContext, _prompt: &Prompt) -> Result<(), Failure> {
        Err(Failure::refusal(Step::Resend, "send it a prompt in its terminal"))
    }

    async fn let_answer(&self, _context: &ActionContext) -> Result<String, Failure> {
        Err(Failure::refusal(Step::Answer, "you have already let Pilotlight answer in this session"))
    }
}
