//! Synthetic session folders whose logs grow by events in Copilot's format, owned by a process that passes for
//! Copilot's: a copy of sleep(1) with its name. The tests with the real CLI are in `tests/e2e`.

use crate::support::executable::copy_program;
use crate::support::synthetic::holder;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use tempfile::TempDir;

/// A Copilot home, and a program with Copilot's name.
pub(crate) struct Sessions {
    root: TempDir,
    made: Cell<u32>,
}

/// One session.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    owner: RefCell<Option<Child>>,
    events: Cell<u32>,
}

impl Sessions {
    /// A home without a session.
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("pilotlight-home-").tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("home").join("session-state")).unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|path| Path::new(path).is_file()).unwrap();
        copy_program(sleep, root.path().join("copilot"));
        Self { root, made: Cell::new(0) }
    }

    /// The argument of `--home`.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The folder that the sessions work in.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Adds a session with a live owner and no prompt. Its complete folder appears at once, by a rename.
    pub(crate) fn add(&self, title: &str) -> Session {
        self.add_owned(title, |_, folder| holder::start(&self.root.path().join("copilot"), folder, false))
    }

    /// Adds a session that has answered its first prompt: it is idle, and unseen.
    pub(crate) fn add_answered(&self, title: &str) -> Session {
        let session = self.add(title);
        session.prompt();
        session.answer("Done.");
        session
    }

    /// As [`add`](Self::add), with an owner that `start` starts for a session's id and folder.
    pub(crate) fn add_owned(&self, title: &str, start: impl Fn(&str, &Path) -> Child) -> Session {
        let n = self.made.get() + 1;
        self.made.set(n);
        let id = format!("36535f61-5c7b-4f09-a70b-2f8aed97{n:04x}");
        let sessions = self.home().join("session-state");
        let hidden = sessions.join(format!(".{id}"));
        std::fs::create_dir(&hidden).unwrap();
        let title = serde_json::to_string(title).unwrap();
        let about = format!(
            "id: {id}\ncwd: {}\nbranch: main\nclient_name: github/cli\nname: {title}\ncreated_at: 2026-11-20T18:{:02}:{:02}.000Z\n",
            self.work().display(),
            n / 60,
            n % 60
        );
        std::fs::write(hidden.join("workspace.yaml"), about).unwrap();
        let owner = start(&id, &hidden);
        std::fs::write(hidden.join(format!("inuse.{}.lock", owner.id())), format!("{}\n", owner.id())).unwrap();
        let path = sessions.join(&id);
        let session = Session { id, path, owner: RefCell::new(Some(owner)), events: Cell::new(0) };
        session.write_to(&hidden, &[session.event("session.start", &json!({"selectedModel": "gpt-5.2"}))]);
        std::fs::rename(&hidden, &session.path).unwrap();
        session
    }
}

impl Session {
    fn event(&self, kind: &str, data: &Value) -> String {
        let n = self.events.get() + 1;
        self.events.set(n);
        let event = json!({
            "type": kind,
            "data": data,
            "id": format!("{}-{n}", self.id),
            "timestamp": jiff::Timestamp::now().to_string(),
            "parentId": format!("{}-{}", self.id, n - 1),
        });
        // Copilot writes the type first.
        let text = event.to_string();
        let (_, rest) = text.split_once('{').unwrap();
        let rest = rest.replacen(&format!(r#","type":"{kind}""#), "", 1);
        format!("{{\"type\":\"{kind}\",{rest}\n")
    }

    fn write_to(&self, folder: &Path, lines: &[String]) {
        let mut log = std::fs::File::options().create(true).append(true).open(folder.join("events.jsonl")).unwrap();
        log.write_all(lines.concat().as_bytes()).unwrap();
    }

    fn write(&self, events: &[(&str, Value)]) {
        let lines: Vec<_> = events.iter().map(|(kind, data)| self.event(kind, data)).collect();
        self.write_to(&self.path, &lines);
    }

    /// The user sends a prompt, which opens a turn.
    pub(crate) fn prompt(&self) {
        self.write(&[("user.message", json!({"content": "go"})), ("assistant.turn_start", json!({"turnId": "0"}))]);
    }

    /// A tool starts.
    pub(crate) fn tool(&self, call: &str, name: &str, command: &str) {
        self.write(&[
            ("assistant.message", json!({"content": "I will.", "toolRequests": [{"toolCallId": call}]})),
            ("tool.execution_start", json!({"toolCallId": call, "toolName": name, "arguments": {"command": command}})),
        ]);
    }

    /// A tool ends.
    pub(crate) fn tool_done(&self, call: &str) {
        self.write(&[("tool.execution_complete", json!({"toolCallId": call, "success": true}))]);
    }

    /// A permission is requested.
    pub(crate) fn ask(&self, request: &str, call: &str) {
        self.ask_for(request, call, "x");
    }

    /// A permission for this command is requested.
    pub(crate) fn ask_for(&self, request: &str, call: &str, command: &str) {
        let wanted = json!({"kind": "shell", "toolCallId": call, "fullCommandText": command});
        self.write(&[("permission.requested", json!({"requestId": request, "permissionRequest": wanted}))]);
    }

    /// The permission is granted.
    pub(crate) fn permit(&self, request: &str) {
        self.write(&[("permission.completed", json!({"requestId": request, "result": {"kind": "approved"}}))]);
    }

    /// The turn ends with an answer.
    pub(crate) fn answer(&self, text: &str) {
        self.write(&[
            ("assistant.message", json!({"content": text, "toolRequests": []})),
            ("assistant.turn_end", json!({"turnId": "0"})),
        ]);
    }

    /// The turn ends in an error.
    pub(crate) fn fail(&self, message: &str) {
        self.write(&[
            ("assistant.turn_end", json!({"turnId": "0"})),
            ("session.error", json!({"errorType": "query", "message": message, "statusCode": 500})),
        ]);
    }

    /// An event that is no progress.
    pub(crate) fn metric(&self) {
        self.write(&[("session.usage_record", json!({"usage": {"inputTokens": 100}}))]);
    }

    /// The session is shut down: its lock and its process are gone.
    pub(crate) fn shut_down(&self) {
        self.write(&[("session.shutdown", json!({"shutdownType": "routine"}))]);
        if let Some(owner) = &*self.owner.borrow() {
            std::fs::remove_file(self.path.join(format!("inuse.{}.lock", owner.id()))).unwrap();
        }
        self.kill();
    }

    /// Its process is killed, and its lock remains.
    pub(crate) fn kill(&self) {
        if let Some(mut owner) = self.owner.borrow_mut().take() {
            owner.kill().unwrap();
            owner.wait().unwrap();
        }
    }

    /// Its folder is deleted.
    pub(crate) fn delete(&self) {
        std::fs::remove_dir_all(&self.path).unwrap();
        self.kill();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}
