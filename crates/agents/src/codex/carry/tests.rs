use super::*;
use crate::channel::action_context::{Permit, ReportSink};
use crate::channel::failure::FailureKind;
use crate::codex::fake::{self, Daemon, Plays};
use pilotlight_core::order::{Decision, OrderReport};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

/// A session of the daemon, and what is reported of an order for it.
struct Stage {
    _home: TempDir,
    daemon: Daemon,
    socket: DaemonSocket,
    context: ActionContext,
    log_view: watch::Sender<LogView>,
    shown: Arc<Mutex<Vec<String>>>,
}

fn approval(id: u64, item: &str, command: &str) -> Value {
    let params =
        json!({"threadId": "t1", "turnId": "u", "itemId": item, "startedAtMs": 1, "command": command, "cwd": "/p"});
    json!({"method": "item/commandExecution/requestApproval", "id": id, "params": params})
}

fn resolved(id: u64) -> Value {
    json!({"method": "serverRequest/resolved", "params": {"threadId": "t1", "requestId": id}})
}

fn item(item: &str, status: &str) -> Value {
    json!({"method": "item/completed", "params": {"threadId": "t1", "item": {"id": item, "status": status}}})
}

fn waiting() -> Value {
    json!({"type": "active", "activeFlags": ["waitingOnApproval"]})
}

impl Stage {
    fn new(plays: Plays) -> Self {
        let home = fake::home(std::process::id());
        let daemon = Daemon::listen(home.path(), plays);
        let socket = DaemonSocket::of(home.path(), std::process::id(), vec!["t1".into()]).unwrap();
        let (ask, mut questions) = mpsc::unbounded_channel::<tokio::sync::oneshot::Sender<Result<(), String>>>();
        tokio::spawn(async move {
            while let Some(answer) = questions.recv().await {
                let _ = answer.send(Ok(()));
            }
        });
        let (log_view, seen) = watch::channel(LogView::default());
        let shown = Arc::new(Mutex::new(Vec::new()));
        let texts = Arc::clone(&shown);
        let reports = ReportSink::to(move |report| {
            if let OrderReport::Request(request) = report {
                texts.lock().unwrap().push(request.text);
            }
        });
        let context = ActionContext {
            id: "t1".into(),
            cwd: Some(PathBuf::from("/p")),
            owned: true,
            log_view: seen,
            probe_result: None,
            drawn_by: None,
            permit: Permit::from(ask),
            reports,
        };
        Self { _home: home, daemon, socket, context, log_view, shown }
    }

    async fn answer(&self, which: Which, approve: bool) -> Result<String, Failure> {
        let decision = if approve { Decision::Approve } else { Decision::DENY };
        self.socket.answer(&self.context, &which, &decision).await
    }

    fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().drain(..).collect()
    }
}

fn plays(asks: Vec<Value>, then: Vec<Value>) -> Plays {
    Plays { status: waiting(), asks, then, garbage: None }
}

fn shown(id: &str, text: &str) -> Which {
    Which::Shown { id: id.into(), text: text.into() }
}

#[tokio::test]
async fn case_266_one_request_is_looked_at_approved_and_denied_and_the_thread_left() {
    for (approve, decision, status) in [(true, "accept", "inProgress"), (false, "decline", "declined")] {
        let then = vec![resolved(7), item("call_1", status)];
        let mut stage = Stage::new(plays(vec![approval(7, "call_1", "touch x")], then));
        let open = stage.socket.requests(&stage.context).await.unwrap();
        assert_eq!((open.len(), &*open[0].id, open[0].decisive().as_deref()), (1, "call_1", Some("touch x")));
        let joins = ["initialize", "initialized", "thread/read", "thread/resume"];
        assert_eq!(stage.daemon.heard(), [&joins[..], &["thread/unsubscribe"]].concat(), "left open, and left");
        assert!(stage.answer(shown("call_1", "touch x"), approve).await.unwrap().contains("1 request"));
        assert_eq!(stage.shown(), ["Run this command:\n\ntouch x"]);
        let answers = format!("7 {decision}");
        assert_eq!(stage.daemon.heard(), [&joins[..], &[&*answers, "thread/unsubscribe"]].concat());
    }
}

#[tokio::test]
async fn case_266_another_text_another_id_or_nothing_open_is_never_answered() {
    let mut stage = Stage::new(plays(vec![approval(7, "call_1", "rm -rf /")], Vec::new()));
    for (which, why) in [
        (shown("call_1", "touch x"), "something else than was shown"),
        (shown("call_2", "rm -rf /"), "no longer open"),
        (Which::These(Vec::new()), "no permission request was open"),
        (Which::These(vec!["call_2".into()]), "but another is: answer that one with `--request call_1`"),
    ] {
        let failure = stage.answer(which, true).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        assert!(failure.to_string().contains(why), "{failure}");
    }
    assert_eq!(stage.shown(), ["Run this command:\n\nrm -rf /"], "what is open now");
    assert!(stage.daemon.heard().iter().all(|heard| !heard.contains("accept") && !heard.contains("decline")));
}

/// Joining a thread that is not loaded would load it, and one that asks nothing is not joined to look.
#[tokio::test]
async fn case_267_a_thread_that_does_not_wait_is_not_joined() {
    for status in [
        json!({"type": "notLoaded"}),
        json!({"type": "idle"}),
        json!({"type": "active", "activeFlags": []}),
        json!(null),
    ] {
        let mut stage = Stage::new(Plays { status, ..Plays::default() });
        let failure = stage.answer(shown("call_1", "touch x"), true).await.unwrap_err();
        assert!(failure.to_string().contains("no longer open"), "{failure}");
        assert_eq!(stage.daemon.heard(), ["initialize", "initialized", "thread/read"]);
    }
}

#[tokio::test]
async fn case_267_what_somebody_else_answered_first_is_said() {
    let closed = vec![approval(7, "call_1", "touch x"), resolved(7)];
    let mut stage = Stage::new(plays(closed, Vec::new()));
    let failure = stage.answer(shown("call_1", "touch x"), true).await.unwrap_err();
    assert!(failure.to_string().contains("no longer open"), "{failure}");
    assert!(stage.daemon.heard().iter().all(|heard| !heard.contains("accept")));
    let stage =
        Stage::new(plays(vec![approval(7, "call_1", "touch x")], vec![resolved(7), item("call_1", "declined")]));
    let failure = stage.answer(shown("call_1", "touch x"), true).await.unwrap_err();
    assert!(failure.to_string().contains("somebody else"), "{failure}");
}

#[tokio::test]
async fn case_267_what_speaks_another_language_is_refused() {
    for garbage in ["", "not JSON"] {
        let mut stage = Stage::new(Plays { garbage: Some(garbage), ..plays(Vec::new(), Vec::new()) });
        let failure = stage.answer(shown("call_1", "touch x"), true).await.unwrap_err();
        assert!(failure.to_string().contains("not in its protocol"), "{failure}");
        assert!(!stage.daemon.heard().contains(&"thread/resume".to_owned()));
    }
}

#[tokio::test]
async fn case_268_a_turn_is_stopped_by_its_name_and_the_log_says_that_it_ended() {
    let mut stage = Stage::new(Plays::default());
    let failure = stage.socket.stop(&stage.context).await.unwrap_err();
    assert!(failure.to_string().contains("its own turn is over"), "{failure}");
    assert!(!stage.daemon.heard().contains(&"turn/interrupt".to_owned()));
    stage.log_view.send_modify(|log_view| (log_view.turn_open, log_view.turn_id) = (true, Some("u1".into())));
    let log_view = stage.log_view.clone();
    let ends = async {
        while stage.daemon.heard.recv().await.unwrap() != "turn/interrupt" {}
        log_view.send_modify(|log_view| log_view.turn_open = false);
    };
    let (stopped, ()) = tokio::join!(stage.socket.stop(&stage.context), ends);
    assert_eq!(stopped.unwrap(), "stopped");
}
