use super::*;
use crate::channel::action_context::{LogView, Permit, ReportSink};
use crate::hooks::listener::{Handle, Hook, Told};
use crate::hooks::memory::Memory;
use pilotlight_core::time::{Moment, Time};
use serde_json::json;
use tokio::sync::{mpsc, watch};

/// What comes of an answer whose hook says this, or goes without a word.
async fn came_of(said: Option<FromHook>) -> (Result<(), Failure>, bool) {
    let (sender, mut told) = mpsc::channel(1);
    let input = json!({"v": 1, "kind": "permission", "session": "ses_1", "request": {"id": "per_1", "sessionID": "ses_1",
        "permission": "bash", "patterns": [], "metadata": {"command": "ls"}}});
    let asked = Asked::read(input.to_string().as_bytes()).unwrap();
    let hook = Hook { asked, owner: 7, at: Time(0), handle: Handle::new(sender) };
    let open = OpenHook::new("r".into(), hook, Moment::default(), &Memory::default()).unwrap();
    let context = ActionContext {
        id: "ses_1".into(),
        cwd: None,
        owned: true,
        log_view: watch::channel(LogView::default()).1,
        probe_result: None,
        drawn_by: None,
        permit: Permit::from(mpsc::unbounded_channel().0),
        reports: ReportSink::to(|_| ()),
    };
    let hook = async {
        let Some(Told::Answer(output, reply)) = told.recv().await else { panic!("it is told an answer") };
        assert_eq!(output, json!({"reply": "once"}));
        match said {
            Some(said) => reply.send(said).unwrap(),
            None => drop(reply),
        }
    };
    let (came, ()) = tokio::join!(answer(&open, &context, json!({"reply": "once"})), hook);
    (came, open.is_answered.load(Ordering::Relaxed))
}

#[tokio::test]
async fn case_782_only_what_opencode_confirms_is_done() {
    let told = |came: Result<(), Failure>| came.err().map(|failure| format!("{failure:?}")).unwrap_or_default();
    assert_eq!(told(came_of(Some(FromHook::Answered { status: 200 })).await.0), "");
    for late in [FromHook::Answered { status: 404 }, FromHook::LetGo] {
        let (came, is_ours) = came_of(Some(late)).await;
        let came = told(came);
        assert!(came.contains("answered in the terminal first") && !is_ours, "{late:?}: {came}");
    }
    let refused = told(came_of(Some(FromHook::Answered { status: 500 })).await.0);
    assert!(refused.contains("did not take the answer (status 500)"), "{refused}");
    for unknown in [None, Some(FromHook::Printed), Some(FromHook::Answered { status: 0 })] {
        let came = told(came_of(unknown).await.0);
        assert!(came.contains("did not report the result"), "{unknown:?}: {came}");
    }
}
