//! The stage: a process that creates a Copilot home, plays the script in it, and removes it. Beside it play the
//! [`guests`](crate::guests), sessions of other agents.
//!
//! It is what is at the far side of everything that the user does in a demo: it answers the calls of the one session that
//! a program runs, and carries out the orders that come over the bridges of the others. What the user did then shows in
//! the log, and the session goes on from there until the script repeats.
//!
//! The stage ends when its standard input closes, which happens when the demo ends for whatever reason. Players end in
//! the same way. If a player ends otherwise, the user has ended it from the menu. Its session is then shut down, as
//! Copilot does when it is interrupted, and starts again when the script repeats.

#![allow(clippy::disallowed_methods, reason = "a scratch folder of its own")]

use crate::guests::Guests;
use crate::pipe::{StageEvent, StageOrder};
use crate::programs::{Programs, stand_in};
use crate::script::{ANSWERED, APPROVED, Act, Aftermath, Beat, CAST, DENIED, STOPPED, Who, beats, id_of, prompted};
use crate::server::Call;
use crate::session::Session;
use crate::{HOME, PROGRAM, STATE};
use anyhow::Context;
use pilotlight_agents::copilot::bridge::wire::Order;
use pilotlight_agents::copilot::store::SESSIONS;
use pilotlight_agents::home::Home;
use pilotlight_system::clock::Clock;
use serde_json::json;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The prefix of the name of the stage's folder.
const FOLDER: &str = "pilotlight-demo";

/// Plays until standard input closes. Tells the demo on standard output what happens.
///
/// # Errors
/// If the folder cannot be created or written, or a player cannot be started. Everything is removed then, too.
pub fn run(speed: u32, programs: &dyn Programs) -> anyhow::Result<()> {
    let (sender, cues) = channel();
    let stop = sender.clone();
    spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if let Ok(ordered) = serde_json::from_str(&line) {
                let _ = stop.send(Cue::StageOrder(ordered)); // fails only when the stage has ended
            }
        }
        let _ = stop.send(Cue::Stop);
    })?;
    let mut stage = Stage::create(sender, speed, programs)?;
    stage.play(&cues).with_context(|| format!("the demo cannot continue in {}", stage.folder.display()))
}

/// Runs a function on a new thread.
fn spawn(work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    std::thread::Builder::new().name("stage".into()).spawn(work).context("the system refuses a thread")?;
    Ok(())
}

/// Waits for the end of an input, and discards what it reads.
pub fn wait_for_end(input: &mut impl Read) {
    let _ = io::copy(input, &mut io::sink()); // an error is an end, too
}

/// What the stage waits for.
enum Cue {
    /// The demo has ended.
    Stop,
    /// The user has acted on a session.
    StageOrder(StageOrder),
    /// A client has called the server in a session's player.
    Called(Who, Call),
    /// A session's player, with this pid, has ended.
    PlayerEnded(Who, u32),
    /// A guest's player, with this pid, ends.
    GuestEnded(u32),
}

struct Stage<'a> {
    folder: PathBuf,
    clock: Clock,
    speed: u32,
    cues: Sender<Cue>,
    programs: &'a dyn Programs,
    /// In the order of [`CAST`].
    sessions: Vec<Session>,
    /// What follows from the user's acts, in the order of time.
    aftermath: Vec<(Instant, Beat)>,
    /// Sessions of other agents.
    guests: Guests,
}

impl<'a> Stage<'a> {
    /// Creates a new folder, with its subfolders.
    fn create(cues: Sender<Cue>, speed: u32, programs: &'a dyn Programs) -> anyhow::Result<Self> {
        let folder = new_folder(&std::env::temp_dir())?;
        let (clock, sessions, aftermath) = (Clock::start(), Vec::new(), Vec::new());
        let ended = cues.clone();
        let guests = Guests::new(&folder, speed, move |pid| {
            let _ = ended.send(Cue::GuestEnded(pid)); // fails only when the stage has ended
        });
        let mut stage = Self { folder, clock, speed, cues, programs, sessions, aftermath, guests };
        for subfolder in [&format!("{HOME}/{SESSIONS}"), STATE, "work", "bin"] {
            fs::create_dir_all(stage.folder.join(subfolder))?;
        }
        programs.write_stand_in(&stand_in(&stage.folder, PROGRAM), &stage.folder, None)?;
        stage.guests.make(programs)?;
        for (index, who) in Who::ALL.into_iter().enumerate() {
            let id = id_of(index);
            fs::create_dir_all(stage.folder.join("work").join(CAST[index].folder))?;
            let path = stage.folder.join(HOME).join(SESSIONS).join(&id);
            stage.sessions.push(Session::new(who, &id, path));
        }
        Ok(stage)
    }

    fn play(&mut self, cues: &Receiver<Cue>) -> anyhow::Result<()> {
        tell(&StageEvent::Ready { folder: self.folder.clone() })?;
        let start = Instant::now();
        self.guests.begin(start);
        let mut script = beats(self.speed).map(|(at, beat)| (start + at.to_std(), beat)).peekable();
        while let Some(&(scripted, _)) = script.peek() {
            let due = self.aftermath.first().map_or(scripted, |(due, _)| scripted.min(*due));
            let guests = self.guests.due();
            match cues.recv_timeout(due.min(guests).saturating_duration_since(Instant::now())) {
                Ok(Cue::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(Cue::StageOrder(ordered)) => {
                    let error = self.carry_out(&ordered)?.err().map(Into::into);
                    tell(&StageEvent::Did { id: ordered.id, error })?;
                }
                Ok(Cue::Called(who, call)) => self.answer(who, &call)?,
                Ok(Cue::PlayerEnded(who, pid)) => self.player_ended(who, pid)?,
                Ok(Cue::GuestEnded(pid)) => self.guests.ended(pid),
                Err(RecvTimeoutError::Timeout) if guests < due => self.guests.play(self.programs)?,
                Err(RecvTimeoutError::Timeout) if due < scripted => {
                    let (_, beat) = self.aftermath.remove(0);
                    self.perform(beat)?;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((_, beat)) = script.next() {
                        self.play_beat(beat)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Plays a line of the script, unless the user has acted on its session.
    fn play_beat(&mut self, beat: Beat) -> anyhow::Result<()> {
        match beat.act {
            Act::Enter => self.enter(beat.who),
            _ if self.sessions[beat.who as usize].left_script => Ok(()),
            _ => self.perform(beat),
        }
    }

    fn perform(&mut self, Beat { who, act, .. }: Beat) -> anyhow::Result<()> {
        let at = self.clock.now().wall;
        let session = &mut self.sessions[who as usize];
        if session.player.is_none() {
            return Ok(()); // the user ended it: it starts again when the script repeats
        }
        session.write(act, at)?;
        self.report(who, act)?;
        let session = &mut self.sessions[who as usize];
        match act {
            Act::ShutDown => session.release()?,
            Act::Crash => session.kill(),
            _ => return Ok(()),
        }
        tell(&StageEvent::Left { session: session.id.clone() })
    }

    /// Tells the demo what a bridge in the session's terminal would report of an act.
    fn report(&self, who: Who, act: Act) -> anyhow::Result<()> {
        let session = &self.sessions[who as usize];
        for message in session.log.reports(&session.id, act, self.clock.now().wall) {
            tell(&StageEvent::Reported { session: session.id.clone(), message })?;
        }
        Ok(())
    }

    /// Starts the session's player, unless it is running, and returns the session to the script.
    fn enter(&mut self, who: Who) -> anyhow::Result<()> {
        let (role, work) = (&CAST[who as usize], self.folder.join("work"));
        let session = &mut self.sessions[who as usize];
        if session.player.is_some() {
            self.aftermath.retain(|(_, beat)| beat.who != who);
            let was_left = std::mem::take(&mut session.left_script);
            let ends = was_left && session.log.works();
            return if ends { self.perform(Beat { at: 0, who, act: Act::Abort }) } else { Ok(()) };
        }
        // The user has resumed it in a terminal, where it stays.
        if Home::at(&self.folder.join(HOME)).process_in_use(&session.id).is_some() {
            return Ok(());
        }
        // A new session is built under a temporary name, so that it appears complete.
        let temporary = session.path.with_file_name(format!(".{}", session.id));
        let is_new = !session.path.exists();
        let folder = if is_new { &temporary } else { &session.path };
        if is_new {
            fs::create_dir_all(folder)?;
            let about = format!(
                "id: {}\ncwd: {}\nbranch: {}\nclient_name: {}\nname: {:?}\ncreated_at: {}\n",
                session.id,
                quoted(&work.join(role.folder)),
                role.branch,
                role.client,
                role.title,
                self.clock.now().wall
            );
            fs::write(folder.join("workspace.yaml"), about)?;
        } else {
            session.log = crate::events::Log::of_lines(session.lines());
        }
        let has_server = role.has_server();
        let mut child = self.programs.player(has_server)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pid = child.id();
        if let Some(output) = child.stdout.take() {
            let cues = self.cues.clone();
            spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let call = serde_json::from_str(&line).ok();
                    let _ = call.map(|call| cues.send(Cue::Called(who, call)));
                }
                let _ = cues.send(Cue::PlayerEnded(who, pid)); // fails only when the stage has ended
            })?;
        }
        session.player = Some(child);
        session.left_script = false;
        // Replaces the lock of a player that crashed, as Copilot does.
        session.unlock(folder);
        fs::write(folder.join(format!("inuse.{pid}.lock")), format!("{pid}\n"))?;
        session.log.change_owner();
        if is_new {
            fs::rename(&temporary, &session.path)?;
        }
        if !has_server {
            let id = session.id.clone();
            tell(&StageEvent::Joined { session: id.clone(), owner: pid })?;
            tell(&StageEvent::Reported { session: id, message: json!({"t": "pending", "items": []}) })?;
        }
        Ok(())
    }

    /// Handles the end of a player. If it was not scripted, the user ended it, and the session is shut down.
    fn player_ended(&mut self, who: Who, pid: u32) -> anyhow::Result<()> {
        let at = self.clock.now().wall;
        let session = &mut self.sessions[who as usize];
        if session.player.as_ref().is_none_or(|player| player.id() != pid) {
            return Ok(());
        }
        if !session.log.is_empty() {
            session.write(Act::ShutDown, at)?;
        }
        session.release()?;
        tell(&StageEvent::Left { session: session.id.clone() })
    }

    /// Carries out what the user wants of a session. The inner error says why it is not possible, as a bridge would.
    fn carry_out(&mut self, ordered: &StageOrder) -> anyhow::Result<Result<(), &'static str>> {
        let found = self.sessions.iter().find(|session| session.id == ordered.session && session.player.is_some());
        let Some(session) = found else { return Ok(Err("gone")) };
        let (who, log, id) = (session.who, &session.log, &*session.id);
        let is_last = |after: &str| log.prompt() == Some(after);
        let follows = match &ordered.order {
            Order::Approve { request_id, text, .. } if log.wants(id, request_id) && text == request_id => APPROVED,
            Order::Deny { request_id, text, .. } if log.wants(id, request_id) && text == request_id => DENIED,
            Order::Answer { request_id, .. } if log.asks(id, request_id) => ANSWERED,
            Order::Stop { after } if is_last(after) && log.works() => STOPPED,
            Order::Send { after, prompt } if is_last(after) && !log.works() => {
                self.send(who, prompt)?;
                return Ok(Ok(()));
            }
            Order::Approve { .. } | Order::Deny { .. } | Order::Answer { .. } | Order::Plan { .. } => {
                return Ok(Err("gone"));
            }
            Order::Stop { .. } | Order::Send { .. } => return Ok(Err("changed")),
            Order::Listen { .. } | Order::Elevate { .. } => return Ok(Err("unsupported")),
        };
        self.follow(who, follows)?;
        Ok(Ok(()))
    }

    /// Writes a prompt of the user's, and lets the session work on it.
    fn send(&mut self, who: Who, prompt: &str) -> anyhow::Result<()> {
        self.sessions[who as usize].prompt(prompt, self.clock.now().wall)?;
        self.follow(who, prompted(who))
    }

    /// Lets a session go on after the user has acted on it: what is due now at once.
    fn follow(&mut self, who: Who, follows: Aftermath) -> anyhow::Result<()> {
        self.sessions[who as usize].left_script = true;
        self.aftermath.retain(|(_, beat)| beat.who != who);
        let now = Instant::now();
        for &(at, act) in follows {
            let beat = Beat { at, who, act };
            if at == 0 {
                self.perform(beat)?;
            } else {
                self.aftermath.push((now + Duration::from_secs(at.into()) / self.speed.max(1), beat));
            }
        }
        self.aftermath.sort_by_key(|(due, _)| *due);
        Ok(())
    }

    /// Answers a call of the server in a session's player, as Copilot's would.
    fn answer(&mut self, who: Who, call: &Call) -> anyhow::Result<()> {
        let (method, params) = (call.body["method"].as_str().unwrap_or_default(), &call.body["params"]);
        let session = &self.sessions[who as usize];
        let (id, log) = (&*session.id, &session.log);
        let is_known = params["sessionId"].as_str().is_none_or(|other| other == id);
        let result = match method {
            _ if !is_known => Err((-32603, "Session not found")),
            "connect" => Ok(json!({"ok": true, "protocolVersion": 3, "version": "1.0.102"})),
            "session.resume" => Ok(json!({"sessionId": id})),
            "session.metadata.activity" => Ok(json!({"abortable": log.works(), "hasActiveWork": log.works()})),
            "session.permissions.pendingRequests" => {
                Ok(json!({"items": log.open_request(id).into_iter().collect::<Vec<_>>()}))
            }
            "session.permissions.handlePendingPermissionRequest" => {
                let is_open = log.wants(id, params["requestId"].as_str().unwrap_or_default());
                let follows = if params["result"]["kind"] == "approve-once" { APPROVED } else { DENIED };
                if is_open {
                    self.follow(who, follows)?;
                }
                Ok(json!({"success": is_open}))
            }
            "session.abort" if log.works() => {
                self.follow(who, STOPPED)?;
                Ok(json!({"success": true}))
            }
            "session.send" if log.works() => Err((-32603, "It works")),
            "session.send" => {
                self.send(who, params["prompt"].as_str().unwrap_or_default())?;
                Ok(json!({"messageId": self.sessions[who as usize].log.prompt()}))
            }
            method if method.starts_with("session.eventLog.") => Err((-32601, "Method not found")),
            _ => Ok(json!({"success": true})),
        };
        if call.body["id"].is_null() {
            return Ok(());
        }
        let mut body = json!({"jsonrpc": "2.0", "id": call.body["id"]});
        match result {
            Ok(result) => body["result"] = result,
            Err((code, message)) => body["error"] = json!({"code": code, "message": message}),
        }
        let reply = Call { client: call.client, body };
        self.sessions[who as usize].tell(&serde_json::to_string(&reply)?);
        Ok(())
    }
}

/// Tells the demo something.
fn tell(told: &StageEvent) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(told)?)?;
    Ok(out.flush()?)
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        for session in &mut self.sessions {
            session.kill();
        }
        self.guests.kill();
        remove(&self.folder);
    }
}

/// Creates a new folder that only the user can open.
fn new_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(false);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let pid = std::process::id();
    for suffix in 0..100 {
        let folder = parent.join(format!("{FOLDER}-{pid}-{suffix}"));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let message =
                    format!("the demo cannot create its folder {}; set TMPDIR to a writable one", folder.display());
                return Err(error).context(message);
            }
        }
    }
    anyhow::bail!("the demo finds no free name for its folder in {}; remove old ones", parent.display())
}

/// Removes the stage's folder. Retries, because the demo may still write into it as it ends.
pub fn remove(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => std::thread::park_timeout(Duration::from_millis(20)),
        }
    }
}

/// A path as a quoted YAML string.
fn quoted(path: &Path) -> String {
    serde_json::to_string(&path.to_string_lossy()).unwrap_or_default()
}
