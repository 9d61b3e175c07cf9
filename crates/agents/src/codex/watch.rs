//! Listens to the daemon: it tells every connection the status of each thread, whether that is subscribed to it or not.
//! What a thread asks is told to subscribers alone, and this is none.

use super::carry::{status, waits_for_approval};
use super::client::Client;
use super::daemon_socket::DaemonSocket;
use crate::channel::failure::Failure;
use crate::channel::{Service, ServiceReport};
use async_trait::async_trait;
use pilotlight_core::order::Step;
use serde_json::{Value, json};

/// The most threads that are asked about at the beginning.
const THREADS_MAX: usize = 200;

#[async_trait]
impl Service for DaemonSocket {
    async fn watch(&self, tell: &(dyn Fn(ServiceReport) + Sync)) -> Result<(), Failure> {
        let mut client = Client::open(self).await?;
        let loaded = client.call(Step::Attach, "thread/loaded/list", &json!({})).await?;
        let ids = loaded.get("data").and_then(Value::as_array).cloned().unwrap_or_default();
        for id in ids.iter().filter_map(Value::as_str).take(THREADS_MAX) {
            // The threads that make titles cannot be read.
            if let Ok(status) = status(&mut client, id).await {
                tell(said(id, &status));
            }
        }
        loop {
            for message in std::mem::take(&mut client.heard) {
                if message.get("method").is_some_and(|method| method == "thread/status/changed")
                    && let Some(id) = message.pointer("/params/threadId").and_then(Value::as_str)
                {
                    tell(said(id, message.pointer("/params/status").unwrap_or(&Value::Null)));
                }
            }
            let message = client.hear().await?;
            client.heard.push(message);
        }
    }
}

fn said(id: &str, status: &Value) -> ServiceReport {
    let active = status.get("type").is_some_and(|kind| kind == "active");
    ServiceReport { id: id.into(), active, requests: usize::from(waits_for_approval(status)) }
}
