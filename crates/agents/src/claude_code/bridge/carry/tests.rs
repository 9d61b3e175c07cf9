use super::*;
use crate::channel::action_context::{Permit, ReportSink};
use tokio::sync::{mpsc, watch};

fn context(log_view: watch::Receiver<LogView>) -> ActionContext {
    ActionContext {
        id: "s".into(),
        cwd: None,
        owned: true,
        log_view,
        probe_result: None,
        drawn_by: None,
        permit: Permit::from(mpsc::unbounded_channel().0),
        reports: ReportSink::to(|_| ()),
    }
}

/// What is found out if the session's files show these, one after the other, while an answer is on its way.
async fn found(shown: &[LogView]) -> Outcome {
    let before = LogView {
        waits: true,
        turn_open: true,
        tools_open: 1,
        answered: vec![(Call::of("a"), true)],
        ..LogView::default()
    };
    let (sender, receiver) = watch::channel(before.clone());
    let context = context(receiver);
    let shows = async {
        for view in shown {
            sender.send_replace(view.clone());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = outcome(&context, &before) => outcome,
        () = shows => Outcome::Unknown,
    }
}

#[tokio::test(start_paused = true)]
async fn case_752_the_log_says_who_decided_and_its_process_that_somebody_did() {
    let view = |waits, answered: &[&str]| LogView {
        waits,
        turn_open: true,
        tools_open: 1,
        answered: answered.iter().map(|id| (Call::of(id), true)).collect(),
        ..LogView::default()
    };
    let ended = |answered: &[&str]| LogView { tools_open: 0, ..view(false, answered) };
    assert_eq!(found(&[view(true, &["a", "b"])]).await, Outcome::Ours);
    assert_eq!(found(&[view(false, &["a"]), view(false, &["a", "b"])]).await, Outcome::Ours);
    assert_eq!(found(&[view(false, &["a"]), ended(&["a"]), ended(&["a", "b"])]).await, Outcome::Ours);
    assert_eq!(found(&[view(false, &["a"]), ended(&["a"])]).await, Outcome::Terminals);
    assert_eq!(found(&[LogView { turn_open: false, ..view(false, &["a"]) }]).await, Outcome::Terminals);
    assert_eq!(found(&[view(false, &["a"])]).await, Outcome::Runs, "its log says who decided once the tool has ended");
    assert_eq!(found(&[view(true, &["a"])]).await, Outcome::Unknown);
    let stopped = LogView { aborted: Some(pilotlight_core::time::Time(1)), ..view(true, &["a"]) };
    assert_eq!(found(&[stopped]).await, Outcome::Ours);
}
