//! Prompts: what was sent to a session, by whom first, and sending and taking back one of ours.

use super::Link;
use crate::channel::fault::Fault;
use serde_json::json;

impl Link {
    /// The end of the server's event log of a session, from which [`prompt_since`](Self::prompt_since) reads on.
    pub(in crate::copilot::server) async fn log_end(&self, id: &str) -> Result<String, Fault> {
        const CALL: &str = "session.eventLog.tail";
        let answer = self.call(CALL, json!({"sessionId": id})).await?;
        answer["cursor"].as_str().map(str::to_owned).ok_or(Fault::Misunderstood(self.place, CALL))
    }

    /// The id of the first prompt, by anybody, after this place in its server's event log of a session. Empty if that
    /// prompt has none.
    pub(in crate::copilot::server) async fn prompt_since(
        &self,
        id: &str,
        cursor: &str,
    ) -> Result<Option<String>, Fault> {
        const CALL: &str = "session.eventLog.read";
        let params = json!({"sessionId": id, "cursor": cursor, "types": ["user.message"], "max": 1});
        let answer = self.call(CALL, params).await?;
        let events = answer["events"].as_array().ok_or(Fault::Misunderstood(self.place, CALL))?;
        Ok(events.first().map(|event| event["data"]["messageId"].as_str().unwrap_or_default().to_owned()))
    }

    /// Takes back a prompt that still waits for its turn. Returns `false` if it no longer does.
    pub(in crate::copilot::server) async fn withdraw(
        &self,
        id: &str,
        message: &str,
        prompt: &str,
    ) -> Result<bool, Fault> {
        const CALL: &str = "session.queue.withdrawMessage";
        let params = json!({"sessionId": id, "messageId": message, "expectedPrompt": prompt});
        let answer = self.call(CALL, params).await?;
        answer["removed"].as_bool().ok_or(Fault::Misunderstood(self.place, CALL))
    }

    /// Sends a prompt. Returns its id, if the server gives one.
    pub(crate) async fn send(&self, id: &str, prompt: &str) -> Result<Option<String>, Fault> {
        let answer = self.call("session.send", json!({"sessionId": id, "prompt": prompt})).await?;
        Ok(answer["messageId"].as_str().map(str::to_owned))
    }
}
