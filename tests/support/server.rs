//! Copilot as a server, driven over the SDK as by an editor or a script.
//!
//! A [`Server`] is the process, a [`Client`] one connection to it, a [`Session`] one session of that connection. The
//! SDK starts no process here (that needs its download feature); the test passes it the stream.
//!
//! The server ends a session, and kills its tools, when its last client disconnects. Keep the [`Client`] as long as the
//! session must live.

use super::home::{Folder, Home, KEY};
use super::model::Model;
use super::person::Person;
use super::process::{end, signal};
use super::{COPILOT, block_on, wait_until};
use github_copilot_sdk::hooks::SessionHooks;
use github_copilot_sdk::{
    Client as Sdk, DeliveryMode, MessageOptions, ProviderConfig, ResumeSessionConfig, SessionConfig, SessionId,
    SystemMessageConfig,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

/// An MCP server over standard input and output. Its only tool asks the user a question before it answers.
const ASKER: &str = r#"
say() { printf '%s\n' "$1"; }
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
    case $line in
    *'"initialize"'*)
        version=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion":"\([^"]*\)".*/\1/p')
        say '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"'"$version"'","capabilities":{"tools":{}},"serverInfo":{"name":"asker","version":"1"}}}' ;;
    *'"tools/list"'*)
        say '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"ask","description":"asks","inputSchema":{"type":"object","properties":{}}}]}}' ;;
    *'"tools/call"'*)
        call=$id
        say '{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Which database shall I drop?","requestedSchema":{"type":"object","properties":{"db":{"type":"string","enum":["test","prod"]}},"required":["db"]}}}' ;;
    *'"e1"'*)
        say '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[{"type":"text","text":"answered"}]}}' ;;
    *'"method"'*'"id"'* | *'"id"'*'"method"'*)
        say '{"jsonrpc":"2.0","id":'"$id"',"result":{}}' ;;
    esac
done
"#;

/// A Copilot server on a free port of loopback. Terminated when dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
    provider: ProviderConfig,
    sessions: PathBuf,
    project: PathBuf,
}

fn provider(model: &Model) -> ProviderConfig {
    ProviderConfig::new(model.url()).with_provider_type("openai").with_wire_api("completions").with_api_key(KEY)
}

/// One connection.
pub(crate) struct Client {
    sdk: Sdk,
}

/// One session of a connection.
pub(crate) struct Session {
    sdk: github_copilot_sdk::session::Session,
    /// Its folder on disk.
    pub(crate) folder: Folder,
}

impl Server {
    /// Starts a server in `home`; its sessions use `model`.
    pub(crate) fn start(home: &Home, model: &Model) -> Self {
        Self::with_token(home, model, None)
    }

    /// As [`Server::start`], with a token that clients must present.
    pub(crate) fn with_token(home: &Home, model: &Model, token: Option<&str>) -> Self {
        Self::with(home, model, token, &[])
    }

    /// As [`Server::start`], with further arguments.
    pub(crate) fn with_arguments(home: &Home, model: &Model, arguments: &[&str]) -> Self {
        Self::with(home, model, None, arguments)
    }

    fn with(home: &Home, model: &Model, token: Option<&str>, arguments: &[&str]) -> Self {
        let mut command: tokio::process::Command = home.copilot(model).into();
        command.args(arguments);
        command.envs(token.map(|token| ("COPILOT_CONNECTION_TOKEN", token)));
        command.args(["--server", "--port", "0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let (child, port) = block_on(async {
            let mut child = command.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let port = loop {
                let line = lines.next_line().await.unwrap().expect("the server exited before it printed its port");
                if let Some(port) = line.trim().strip_prefix("CLI server listening on port ") {
                    break port.parse().unwrap();
                }
            };
            // Keeps reading: with the pipe closed, the server's own prints would fail.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            (child, port)
        });
        Self {
            child,
            port,
            provider: provider(model),
            sessions: home.dir().join("session-state"),
            project: home.project(),
        }
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The provider's configuration that a session needs to use the model, as JSON.
    pub(crate) fn provider(&self) -> Value {
        serde_json::to_value(&self.provider).unwrap()
    }

    /// Opens another connection.
    pub(crate) fn connect(&self) -> Client {
        block_on(async {
            let stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
            let (read, write) = stream.into_split();
            let sdk = Sdk::from_streams(read, write, self.project.clone()).unwrap();
            sdk.verify_protocol_version().await.unwrap();
            Client { sdk }
        })
    }

    /// Creates a session of `client`. Without a person, nobody can be asked.
    pub(crate) fn create(&self, client: &Client, person: Option<&Person>) -> Session {
        self.create_as(client, person, |config| config)
    }

    /// As [`create`](Self::create), with a model of its own, and answers as they arrive if it `streams`.
    pub(crate) fn create_for(&self, client: &Client, person: &Person, model: &Model, streams: bool) -> Session {
        self.create_as(client, Some(person), |config| config.with_provider(provider(model)).with_streaming(streams))
    }

    /// As [`create`](Self::create), with an MCP server whose tool asks the user which database to drop (`SCRIPT:mcp`),
    /// and with all permissions granted.
    pub(crate) fn create_with_asker(&self, client: &Client, person: &Person) -> Session {
        let script = self.project.join("asker.sh");
        std::fs::write(&script, ASKER).unwrap();
        let asker = json!({"asker": {"type": "stdio", "command": "sh", "args": [script]}});
        let session = self
            .create_as(client, Some(person), |config| config.with_mcp_servers(serde_json::from_value(asker).unwrap()));
        session.call("session.permissions.setApproveAll", json!({"enabled": true}));
        session
    }

    /// As [`create`](Self::create), in a session that has only these instructions, and without these tools.
    pub(crate) fn create_with_instructions(
        &self,
        client: &Client,
        person: &Person,
        instructions: &str,
        excluded: &[&str],
    ) -> Session {
        let message = SystemMessageConfig::new().with_mode("append").with_content(instructions);
        self.create_as(client, Some(person), |config| {
            config.with_system_message(message).with_excluded_tools(excluded.iter().copied())
        })
    }

    /// As [`create`](Self::create), with these hooks of the program's own.
    pub(crate) fn create_with_hooks(&self, client: &Client, person: &Person, hooks: Arc<dyn SessionHooks>) -> Session {
        self.create_as(client, Some(person), |config| config.with_hooks(hooks))
    }

    fn create_as(
        &self,
        client: &Client,
        person: Option<&Person>,
        more: impl FnOnce(SessionConfig) -> SessionConfig,
    ) -> Session {
        let mut config = SessionConfig::default()
            .with_model("fake-model")
            .with_provider(self.provider.clone())
            .with_working_directory(&self.project);
        if let Some(person) = person {
            let person = Arc::new(person.clone());
            config = config
                .with_permission_handler(person.clone())
                .with_user_input_handler(person.clone())
                .with_elicitation_handler(person.clone())
                .with_exit_plan_mode_handler(person);
        }
        self.session(block_on(client.sdk.create_session(more(config))).unwrap())
    }

    /// Resumes the session `id` in this server, with `pending` as `continue_pending_work`. The CLI writes nothing
    /// before the first prompt.
    pub(crate) fn resume(&self, client: &Client, id: &str, person: &Person, pending: Option<bool>) -> Session {
        let person = Arc::new(person.clone());
        let mut config = ResumeSessionConfig::new(SessionId::new(id))
            .with_model("fake-model")
            .with_provider(self.provider.clone())
            .with_permission_handler(person.clone())
            .with_user_input_handler(person);
        if let Some(pending) = pending {
            config = config.with_continue_pending_work(pending);
        }
        self.session(block_on(client.sdk.resume_session(config)).unwrap())
    }

    fn session(&self, sdk: github_copilot_sdk::session::Session) -> Session {
        Session { folder: Folder { path: self.sessions.join(sdk.id().as_str()) }, sdk }
    }

    /// The pid of the process that owns this server's sessions.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("the server is running")
    }

    /// Kills the server, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        signal(self.pid(), Signal::KILL);
        block_on(self.child.wait()).unwrap();
    }

    /// Terminates the server, and waits for its exit.
    pub(crate) fn terminate(&mut self) {
        signal(self.pid(), Signal::TERM);
        block_on(self.child.wait()).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Client {
    /// Makes a call that the SDK has no method for.
    pub(crate) fn call(&self, method: &str, params: Value) -> Value {
        block_on(self.sdk.call(method, Some(params))).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Deletes a session with its folder.
    pub(crate) fn delete(&self, id: &str) {
        block_on(self.sdk.delete_session(&SessionId::new(id))).unwrap();
    }

    /// Closes the connection.
    pub(crate) fn leave(&self) {
        self.sdk.force_stop();
    }
}

impl Session {
    /// The session's id.
    pub(crate) fn id(&self) -> String {
        self.sdk.id().to_string()
    }

    /// Sends a prompt, and waits until it is in the log.
    pub(crate) fn send(&self, prompt: &str) {
        self.send_as(MessageOptions::new(prompt));
        let what = format!("the prompt {prompt:?} is in the log");
        wait_until(
            COPILOT,
            &what,
            || self.folder.dump(),
            || {
                let events = self.folder.events();
                events.iter().any(|e| e["type"] == "user.message" && e["data"]["content"] == prompt).then_some(())
            },
        );
    }

    /// Sends a prompt into the running turn instead of queueing it.
    pub(crate) fn steer(&self, prompt: &str) {
        self.send_as(MessageOptions::new(prompt).with_mode(DeliveryMode::Immediate));
    }

    /// Sends a message without waiting for it to be in the log.
    pub(crate) fn send_as(&self, message: MessageOptions) {
        block_on(self.sdk.send(message)).unwrap();
    }

    /// Aborts the running turn.
    pub(crate) fn abort(&self) {
        block_on(self.sdk.abort()).unwrap();
    }

    /// Sets the mode: `interactive`, `plan` or `autopilot`.
    pub(crate) fn set_mode(&self, mode: &str) {
        self.call("session.mode.set", json!({"mode": mode}));
    }

    /// Compacts the history. Returns when that is done.
    pub(crate) fn compact(&self) -> Value {
        self.call("session.history.compact", json!({}))
    }

    /// Removes the event with this id and all later ones.
    pub(crate) fn truncate(&self, event: &str) -> Value {
        self.call("session.history.truncate", json!({"eventId": event}))
    }

    /// Runs a `!command` of the user.
    pub(crate) fn shell(&self, command: &str) -> Value {
        self.call("session.shell.executeUserRequested", json!({"requestId": "r1", "command": command}))
    }

    /// Shuts down the session, but not its server.
    pub(crate) fn destroy(&self) {
        self.call("session.destroy", json!({}));
    }

    /// Makes a call with this session's id.
    pub(crate) fn call(&self, method: &str, mut params: Value) -> Value {
        params["sessionId"] = self.id().into();
        let answer = block_on(self.sdk.client().call(method, Some(params)));
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }
}
