//! Somebody who uses Codex: recordings (`tests/traces-codex`) are laid down anew, line by line, some with blanks in their
//! JSON, some with the end of a tool torn, beside a
//! process that holds the thread's lock as Codex does. That process is a terminal's own, or the daemon, which has
//! several threads loaded. Case 295.

use super::played::{Stage, later, millis, new_id, recordings, spaced, torn};
use super::truth::{Truth, now};
use crate::support::process::kill;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Recordings of threads in the daemon.
const SERVED: [&str; 12] = [
    "attach",
    "bgshell",
    "compact",
    "err401",
    "esc-tool",
    "hang",
    "hooks2",
    "long-tool",
    "perm-approve",
    "plain",
    "plan",
    "sigkill-tui",
];
/// Recordings of threads in a process of their own.
const ALONE: [&str; 5] = ["exec-deny", "exec-err401", "exec-json", "nodaemon", "nodaemon-sigkill"];
/// After how long it shows that a call asks, or does not any more, in milliseconds: nothing else tells than that no
/// child carries it out.
const LOOKS_AFTER: i64 = 1000;

/// Loads and unloads threads, and carries out calls, as lines on its standard input say. A new lock gets its name once it is
/// held: on a busy machine, this script would be seen between the two, which no event ends. Codex takes microseconds.
const OWNER: &str = r#"$| = 1; my (%locks, $child);
    while (<STDIN>) {
        my ($order, $what) = split;
        if ($order eq "load") {
            my $name = -e $what ? $what : "$what.new";
            open($locks{$what}, ">", $name) or die;
            flock($locks{$what}, 6) or die;
            $name eq $what or rename($name, $what) or die;
        }
        if ($order eq "unload") { unlink $what or die; delete $locks{$what} }
        if ($order eq "run" && !($child = fork)) { $ENV{CODEX_TOOL_CALL_ID} = $what; exec "sleep", 600 }
        if ($order eq "done") { kill "KILL", $child; waitpid $child, 0; $child = 0 }
        print 0 + $child, "\n";
    }"#;

/// One person, with one terminal of its own or with threads in a daemon.
pub(crate) struct Codex<'a>(pub(crate) Stage<'a>);

/// A process that has threads loaded.
struct Owner {
    process: Child,
    says: BufReader<ChildStdout>,
    /// The child that carries out a call.
    child: Option<u32>,
}

/// Perl by the name of Codex's program: what another program locks is none of its threads. It gets the name once it is
/// whole: several actors may need it at once.
fn program(home: &Path) -> PathBuf {
    let program = home.join("codex");
    if !program.exists() {
        let copy = "cp \"$(command -v perl)\" \"$0.$$\" && mv \"$0.$$\" \"$0\"";
        let copied = Command::new("sh").args(["-c", copy]).arg(&program).status();
        assert!(copied.unwrap().success(), "perl is needed for locks");
    }
    program
}

/// A thread.
struct Thread {
    id: String,
    log: PathBuf,
    lock: PathBuf,
    is_begun: bool,
    /// The last status that its log shows.
    status: &'static str,
}

impl Codex<'_> {
    /// Plays what one owner does, and perhaps one that resumes its last thread, and removes what they left.
    pub(crate) fn act(&mut self) {
        let is_served = self.0.rng.below(2) == 0;
        let mut threads: Vec<_> = (0..=usize::from(is_served)).map(|_| Thread::new(self.0.home)).collect();
        let mut owner = Owner::start(self.0.home, is_served);
        let mut lives = true;
        for thread in &mut threads {
            owner.order("load", &thread.lock);
            // A daemon's thread is known with its first prompt.
            self.0.note(&thread.id, if is_served { Truth::Absent } else { Truth::Is("idle") });
            self.0.rest();
            let names = if is_served { &SERVED[..] } else { &ALONE };
            let name = self.0.one_of(names);
            lives = self.play(thread, &mut owner, name);
            if !lives || self.0.is_over() {
                break;
            }
        }
        self.leave(&threads, owner, lives);
        self.0.rest();
        if let Some(thread) = threads.iter_mut().rev().find(|thread| thread.is_begun)
            && self.0.rng.below(2) == 0
            && !self.0.is_over()
        {
            self.resume(thread);
        }
        for thread in threads {
            self.0.note(&thread.id, Truth::Unknown);
            let _ = fs::remove_file(&thread.log); // it may never have been prompted
            let _ = fs::remove_file(&thread.lock); // deleted at a clean end
            self.0.note(&thread.id, Truth::Absent);
        }
    }

    /// Another process loads a thread, and goes on in it.
    fn resume(&mut self, thread: &mut Thread) {
        let mut owner = Owner::start(self.0.home, false);
        self.0.note(&thread.id, Truth::Unknown);
        owner.order("load", &thread.lock);
        // It is not prompted yet. What failed before, or asked, may still be shown.
        let is_known = matches!(thread.status, "working" | "needs-permission" | "idle");
        self.0.note(&thread.id, if is_known { Truth::Is("idle") } else { Truth::Unknown });
        self.0.rest();
        let lives = self.play(thread, &mut owner, "nodaemon-sigterm");
        self.leave(std::slice::from_ref(thread), owner, lives);
        self.0.rest();
    }

    /// The owner ends: cleanly, or it is killed, if it was not yet.
    fn leave(&mut self, threads: &[Thread], mut owner: Owner, lives: bool) {
        let is_clean = lives && self.0.rng.below(2) == 0 && !threads.iter().any(Thread::is_open);
        threads.iter().for_each(|thread| self.0.note(&thread.id, Truth::Unknown));
        for thread in threads.iter().filter(|thread| is_clean && thread.lock.exists()) {
            owner.order("unload", &thread.lock);
        }
        owner.kill();
        for thread in threads {
            let truth = match thread.status {
                _ if !thread.is_begun => Truth::Absent,
                _ if thread.is_open() => Truth::Is("crashed"),
                "permission-lost" => Truth::Is("failed"),
                _ => Truth::Is("ended"),
            };
            self.0.note(&thread.id, truth);
        }
    }

    /// Writes what a recording has, and does what its process did. Returns whether the owner still lives: it may be killed
    /// while the thread works or asks.
    fn play(&mut self, thread: &mut Thread, owner: &mut Owner, name: &str) -> bool {
        let folder = recordings("traces-codex").join(name);
        let text = fs::read_to_string(folder.join("rollout.jsonl")).unwrap();
        let labels = labels(&folder);
        let there = value(&text, "\"session_id\":\"").expect("the first line names the thread");
        println!("{name}: {}", thread.id);
        let (mut before, mut asks_user) = (None, false);
        let is_spaced = self.0.rng.below(2) == 0;
        let lines: Vec<_> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let at = value(line, "\"timestamp\":\"").and_then(millis).unwrap();
            if !self.0.follow(at - before.unwrap_or(at)) {
                return true;
            }
            before = Some(at);
            if owner.child.is_some() && (line.contains("CommandExecution") || line.contains("function_call_output")) {
                owner.order("done", Path::new("-"));
            }
            // One log has one beginning.
            if index > 0 || !thread.is_begun {
                let line = later(&line.replace(there, &thread.id), now() - at);
                // A tool whose end is lost has ended once the model goes on.
                let goes_on = || lines[index..].iter().any(|line| line.contains("\"role\":\"assistant\""));
                let is_end =
                    line.contains("function_call_output") && !labels.iter().any(|(line, _)| *line == index + 1);
                let line = if is_end && goes_on() && self.0.rng.below(3) == 0 { torn(&line) } else { line };
                thread.write(&if is_spaced { spaced(&line) } else { line });
            }
            if line.contains("\"approval_policy\":\"") {
                asks_user = !line.contains("\"approval_policy\":\"never\"");
            }
            if let Some((_, status)) = labels.iter().find(|(line, _)| *line == index + 1) {
                thread.status = status;
                self.0.note(&thread.id, Truth::Is(status));
            }
            let call = value(line, "\"call_id\":\"").filter(|_| line.contains("require_escalated") && asks_user);
            if let Some(call) = call {
                let is_allowed = lines[index..].iter().any(|line| {
                    line.contains("function_call_output") && line.contains(call) && line.contains("exited with code")
                });
                if !self.ask(thread, owner, call, is_allowed) {
                    return false;
                }
            }
            if self.0.is_over() {
                return true;
            }
            if thread.status == "working" && self.0.rng.below(60) == 0 {
                self.0.rest();
                owner.kill();
                return false;
            }
        }
        true
    }

    /// A call probably asks, until a child carries it out. Returns whether the owner still lives.
    fn ask(&mut self, thread: &mut Thread, owner: &mut Owner, call: &str, is_allowed: bool) -> bool {
        self.0.note(&thread.id, Truth::Unknown);
        self.0.wait(LOOKS_AFTER);
        thread.status = "needs-permission";
        self.0.note(&thread.id, Truth::Is("needs-permission"));
        self.0.wait(2 * LOOKS_AFTER);
        if self.0.rng.below(5) == 0 {
            owner.kill();
            return false;
        }
        if is_allowed {
            self.0.note(&thread.id, Truth::Unknown);
            owner.order("run", Path::new(call));
            self.0.wait(LOOKS_AFTER);
            thread.status = "working";
            self.0.note(&thread.id, Truth::Is("working"));
        }
        true
    }
}

impl Owner {
    fn start(home: &Path, is_daemon: bool) -> Self {
        let mut command = Command::new(program(home));
        command.args(["-e", OWNER]);
        if is_daemon {
            command.args(["app-server", "--listen", "unix://", "--managed-daemon"]);
        }
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("perl is needed for locks");
        let says = BufReader::new(process.stdout.take().unwrap());
        Self { process, says, child: None }
    }

    /// Gives an order, and waits until it is carried out.
    fn order(&mut self, order: &str, what: &Path) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{order} {}", what.display()).unwrap();
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        self.child = Some(line.trim().parse().expect("it answers")).filter(|child| *child > 0);
    }

    /// Kills it, and then what it leaves running.
    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.child.take().into_iter().for_each(kill);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Thread {
    fn new(home: &Path) -> Self {
        let (id, at) = (new_id(7), jiff::Timestamp::now());
        let folder = home.join("sessions").join(at.strftime("%Y/%m/%d").to_string());
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join(format!("rollout-{}-{id}.jsonl", at.strftime("%Y-%m-%dT%H-%M-%S")));
        let lock = home.join(format!("thread-writer-locks/{id}.lock"));
        Self { id, log, lock, is_begun: false, status: "idle" }
    }

    /// Whether a turn is open.
    fn is_open(&self) -> bool {
        // A question at the end of a turn is none: these recordings ask by a tool.
        matches!(self.status, "working" | "needs-permission" | "needs-input")
    }

    fn write(&mut self, line: &str) {
        let mut log = fs::File::options().append(true).create(true).open(&self.log).unwrap();
        log.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.is_begun = true;
    }
}

/// The text behind this mark, up to the next quotation mark.
fn value<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    Some(line.split_once(mark)?.1.split_once('"')?.0)
}

/// The status from each labelled line on, while the thread's owner lives.
fn labels(folder: &Path) -> Vec<(usize, &'static str)> {
    let text = fs::read_to_string(folder.join("labels.txt")).unwrap();
    let alive = text.lines().skip(1).take_while(|line| !line.starts_with("owner"));
    let label = |line: &str| {
        let (at, rest) = line.split_once(' ')?;
        let status = rest.split(' ').next()?;
        Some((at.parse().ok()?, *STATUSES.iter().find(|known| **known == status)?))
    };
    alive.filter_map(label).collect()
}

/// The statuses that labels name.
const STATUSES: [&str; 6] = ["idle", "working", "needs-permission", "needs-input", "permission-lost", "failed"];

#[test]
fn every_recording_that_is_played_has_labels() {
    for name in SERVED.iter().chain(&ALONE) {
        let labels = labels(&recordings("traces-codex").join(name));
        assert!(labels.len() >= 2, "{name}: {labels:?}");
    }
}
