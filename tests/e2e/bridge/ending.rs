//! A turn whose last event has been reported while Copilot still counts it as work: the extension alone, with a session
//! of the test's in place of Copilot's.

use crate::support::listener::{Connection, Listener, pose_as_pilotlight, record_hash};
use serde_json::json;
use std::fs;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Copilot's SDK, with one session, whose only turn has ended. It counts it as work the first `$BUSY` times that it is
/// asked.
const SDK: &str = r#"
let busy = Number(process.env.BUSY);
const none = { items: [] };
export const joinSession = async () => ({
  sessionId: "made-up",
  rpc: {
    metadata: { activity: async () => ({ hasActiveWork: busy-- > 0 }) },
    permissions: { pendingRequests: async () => none, getMode: async () => ({ mode: "ask" }) },
  },
  send: async () => {},
  on: (follow) =>
    ["user.message", "assistant.message", "assistant.turn_end"].forEach((type) => follow({ type, id: type, data: {} })),
});
"#;

/// The extension's process. Fields drop from the top.
struct Extension {
    shell: Child,
    connection: Connection,
    _listener: Listener,
    _folder: TempDir,
}

impl Extension {
    fn start(busy: u32) -> Self {
        let folder = TempDir::with_prefix("pilotlight-").unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::copy(
            concat!(env!("CARGO_MANIFEST_DIR"), "/crates/agents/src/copilot/bridge/extension.mjs"),
            at("extension.mjs"),
        )
        .unwrap();
        fs::write(at("key"), "key").unwrap();
        let settings = json!({"v": 2, "key": at("key"), "folders": [folder.path()]});
        fs::write(at("bridge.json"), settings.to_string()).unwrap();
        pose_as_pilotlight(&at("bridge.json"));
        record_hash(&at("bridge.json"));
        let sdk = at("node_modules/@github/copilot-sdk");
        fs::create_dir_all(&sdk).unwrap();
        fs::write(sdk.join("package.json"), r#"{"type": "module", "exports": {"./extension": "./sdk.js"}}"#).unwrap();
        fs::write(sdk.join("sdk.js"), SDK).unwrap();
        let listener = Listener::start(folder.path(), b"key");
        // It obeys no process that started it, or whose parent did: the shell stands for Copilot. It ends with its input.
        let shell = Command::new("sh")
            .args(["-c", "node extension.mjs & read -r _; kill $!"])
            .current_dir(folder.path())
            .envs([("BUSY", busy.to_string()), ("COPILOT_HOME", at("home").display().to_string())])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let connection = listener.accept();
        Self { shell, connection, _listener: listener, _folder: folder }
    }

    fn send(&self) -> Result<(), String> {
        let order = json!({"t": "send", "after": "user.message", "prompt": "Go on"});
        self.connection.order(1, order).map(drop)
    }
}

impl Drop for Extension {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().unwrap();
    }
}

#[test]
fn case_330_a_click_right_after_a_turn_waits_until_copilot_counts_it_as_over() {
    assert_eq!(Extension::start(3).send(), Ok(()));
}

#[test]
fn case_330_work_that_goes_on_after_a_turn_is_not_interrupted() {
    assert_eq!(Extension::start(u32::MAX).send(), Err("busy".to_owned()));
}
