//! The person behind an SDK client, who answers permission requests, questions and plans, or does not.
//!
//! A [`Person`] has a [`Manner`] that the test may change at any time. Pending requests are answered once the manner is
//! no longer [`Manner::Waits`].

use async_trait::async_trait;
use github_copilot_sdk::handler::{
    ElicitationHandler, ExitPlanModeHandler, ExitPlanModeResult, PermissionHandler, PermissionResult, UserInputHandler,
    UserInputResponse,
};
use github_copilot_sdk::{
    ElicitationRequest, ElicitationResult, ExitPlanModeData, PermissionRequestData, RequestId, SessionId,
};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::watch;

/// How a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Says yes at once.
    Approves,
    /// Says no at once.
    Refuses,
    /// Is away: the client reports that the user is not available.
    Away,
    /// Leaves it to another client.
    Leaves,
    /// Does not answer, until the manner changes.
    Waits,
}

/// Answers for one or more sessions.
#[derive(Clone)]
pub(crate) struct Person {
    manner: Arc<watch::Sender<Manner>>,
}

impl Person {
    /// A person with this manner.
    pub(crate) fn new(manner: Manner) -> Self {
        Self { manner: Arc::new(watch::channel(manner).0) }
    }

    /// Changes the manner. Pending requests are answered accordingly.
    pub(crate) fn set_manner(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    async fn decision(&self) -> Manner {
        *self.manner.subscribe().wait_for(|manner| *manner != Manner::Waits).await.unwrap()
    }
}

#[async_trait]
impl PermissionHandler for Person {
    async fn handle(&self, _: SessionId, _: RequestId, _: PermissionRequestData) -> PermissionResult {
        match self.decision().await {
            Manner::Approves => PermissionResult::approve_once(),
            Manner::Refuses => PermissionResult::reject("not this".to_owned()),
            Manner::Away => PermissionResult::user_not_available(),
            Manner::Leaves | Manner::Waits => PermissionResult::no_result(),
        }
    }
}

#[async_trait]
impl UserInputHandler for Person {
    async fn handle(
        &self,
        _: SessionId,
        _: Option<RequestId>,
        _: String,
        _: Option<Vec<String>>,
        _: Option<bool>,
    ) -> Option<UserInputResponse> {
        let answer = UserInputResponse { answer: "red".to_owned(), was_freeform: false };
        (self.decision().await == Manner::Approves).then_some(answer)
    }
}

#[async_trait]
impl ElicitationHandler for Person {
    async fn handle(&self, _: SessionId, _: RequestId, _: ElicitationRequest) -> ElicitationResult {
        let accept = self.decision().await == Manner::Approves;
        let action = if accept { "accept" } else { "decline" };
        ElicitationResult { action: action.to_owned(), content: accept.then(|| json!({"color": "red"})) }
    }
}

#[async_trait]
impl ExitPlanModeHandler for Person {
    async fn handle(&self, _: SessionId, _: Option<RequestId>, _: ExitPlanModeData) -> ExitPlanModeResult {
        let approved = self.decision().await == Manner::Approves;
        let selected_action = approved.then(|| "interactive".to_owned());
        ExitPlanModeResult { approved, selected_action, feedback: None }
    }
}
