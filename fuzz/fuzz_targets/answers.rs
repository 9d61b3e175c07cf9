//! A server's output: frames or other bytes, matching or unexpected responses, and permission requests as shown to the
//! user.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilotlight_agents::copilot::server::client::ServerClient;
use pilotlight_agents::channel::request::Request;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: RefCell<Runtime> =
        RefCell::new(Builder::new_current_thread().enable_time().build().expect("a runtime"));
}

/// A frame around a body.
fn frame(body: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fuzz_target!(|data: &[u8]| {
    let (&mode, data) = data.split_first().unwrap_or((&0, data));
    if let Ok(value) = serde_json::from_slice(data)
        && let Some(request) = Request::read(&value)
    {
        let shown = request.shown();
        assert!(!shown.text.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        let _ = request.decisive();
    }
    // Raw, as one frame, or as one frame per line; each with or without a valid handshake first.
    let greeting = br#"{"jsonrpc":"2.0","id":1,"result":{"ok":true,"protocolVersion":3,"version":"1.0.102"}}"#;
    let mut output = if mode & 4 == 0 { Vec::new() } else { frame(greeting) };
    match mode % 4 {
        0 => output.extend_from_slice(data),
        1 => output.extend(frame(data)),
        _ => data.split(|&byte| byte == b'\n').for_each(|body| output.extend(frame(body))),
    }
    RUNTIME.with_borrow_mut(|runtime| {
        runtime.block_on(async {
            let output = std::io::Cursor::new(output);
            let deadline = Duration::from_millis(200);
            if let Ok(link) = ServerClient::over_stdio(output, tokio::io::sink(), Path::new("/"), deadline).await {
                let _ = tokio::time::timeout(deadline, link.pending("s")).await;
                let _ = tokio::time::timeout(deadline, link.activity("s")).await;
                link.leave();
            }
        });
    });
});
