//! Copilot's terminal interface, driven inside [`Tmux`] as by a person, with keys and the screen, and the same program
//! without anybody in front of it ([`Unattended`]).

use super::freeze::freeze;
use super::home::{Folder, Home};
use super::model::Model;
use super::process::{end, is_live, parent, signal};
use super::tmux::Tmux;
use super::{COPILOT, block_on, wait, wait_until};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The terminal interface's question before a tool runs.
pub(crate) const DIALOG: &str = "Do you want to run this command?";
/// Its question before an extension may answer that.
pub(crate) const CONSENT: &str = "wants elevated permissions";

/// A running terminal interface. Its terminal hangs up when this value is dropped.
pub(crate) struct Terminal {
    tmux: Tmux,
    /// Its session's folder on disk.
    pub(crate) folder: Folder,
    pid: u32,
}

impl Terminal {
    /// Starts the interface in `home` with these arguments, and waits until it accepts a prompt.
    pub(crate) fn start(home: &Home, model: &Model, args: &[&str]) -> Self {
        let (tmux, pid) = Self::open(home, model, args);
        let folder = wait_until(
            COPILOT,
            "the terminal interface owns a session",
            || tmux.screen(),
            || home.sessions().into_iter().find(|folder| folder.locks().contains(&pid)),
        );
        Self { tmux, folder, pid }
    }

    /// Resumes a session in the interface. It does not own the session, and writes nothing, before the first prompt.
    pub(crate) fn resume(home: &Home, model: &Model, id: &str) -> Self {
        Self::resume_by(home, model, id, &[&format!("--resume={id}")])
    }

    /// As [`resume`](Self::resume), with these arguments.
    pub(crate) fn resume_by(home: &Home, model: &Model, id: &str, args: &[&str]) -> Self {
        let (tmux, pid) = Self::open(home, model, args);
        Self { tmux, folder: home.session(id), pid }
    }

    fn open(home: &Home, model: &Model, args: &[&str]) -> (Tmux, u32) {
        let mut command = home.copilot(model);
        command.args(args);
        let tmux = Tmux::start(&command, 140, 45);
        wait_until(
            COPILOT,
            "the terminal interface accepts a prompt",
            || tmux.screen(),
            || tmux.screen().lines().any(|line| line.trim_start().starts_with('❯')).then_some(()),
        );
        let pid = tmux.pid;
        (tmux, pid)
    }

    /// Pastes a line, and presses Enter.
    ///
    /// While Copilot reloads its servers, as after `/cwd`, it may drop what is typed; right after Escape, it may drop an
    /// Enter. Then this does as a person does: it pastes the line again once the input has stayed empty for a while, and
    /// presses Enter again once the line has stayed there.
    pub(crate) fn enter(&self, line: &str) {
        const DROPPED_AFTER: Duration = Duration::from_secs(15);
        self.tmux.paste(line);
        if wait(DROPPED_AFTER, || self.shows_typed(line)).is_none() && self.input().trim().is_empty() {
            self.tmux.paste(line);
        }
        self.wait_typed(line);
        self.tmux.press(&["Enter"]);
        if wait(DROPPED_AFTER, || (!self.holds_typed(line)).then_some(())).is_none() {
            self.tmux.press(&["Enter"]);
        }
    }

    /// Waits until its input shows this line: an Enter that comes with the paste is part of it.
    fn wait_typed(&self, line: &str) {
        let what = format!("the terminal's input shows {line:?}");
        wait_until(COPILOT, &what, || self.dump(), || self.shows_typed(line));
    }

    fn shows_typed(&self, line: &str) -> Option<()> {
        let screen = self.tmux.screen();
        screen.rsplit_once('❯').filter(|(_, input)| input.contains(line)).map(drop)
    }

    /// Whether the line still stands in the input, which is framed: an earlier prompt, said above, is not.
    fn holds_typed(&self, line: &str) -> bool {
        let screen = self.tmux.screen();
        let framed = screen.rsplit_once('❯').filter(|(above, _)| above.trim_end().ends_with('─'));
        framed.is_some_and(|(_, input)| input.contains(line))
    }

    /// The first line of its input, below all that was said before.
    fn input(&self) -> String {
        let screen = self.tmux.screen();
        let input = screen.rsplit_once('❯').and_then(|(_, input)| input.lines().next());
        input.unwrap_or_default().to_owned()
    }

    /// Types a line without pressing Enter.
    pub(crate) fn type_only(&self, line: &str) {
        self.tmux.text(line);
        self.wait_typed(line);
    }

    /// Answers the permission dialog, once it is shown, with its first choice: yes, this time.
    pub(crate) fn approve(&self) {
        self.wait_screen(DIALOG);
        self.tmux.press(&["Enter"]);
    }

    /// Presses keys by their tmux names.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux.press(keys);
    }

    /// Runs a `!command` of the user. The `!` switches the prompt to shell mode, which shows it apart from the command.
    pub(crate) fn shell(&self, command: &str) {
        self.tmux.text("!");
        self.wait_screen("Shell ·");
        self.tmux.paste(command);
        self.wait_screen(&format!("! {command}"));
        self.tmux.press(&["Enter"]);
    }

    /// Interrupts the turn as a user does, by pressing Escape twice. The interface takes two at once for another key,
    /// and forgets the first after about half a second. So the second press waits for the hint, and if it came too
    /// late, everything is repeated.
    pub(crate) fn interrupt(&self) {
        let mut first: Option<Instant> = None;
        let mut pressed_twice = false;
        wait_until(
            COPILOT,
            "Escape interrupts the turn",
            || self.dump(),
            || {
                if self.folder.types().iter().any(|kind| kind == "abort") {
                    return Some(());
                }
                if first.is_none_or(|at| at.elapsed() > Duration::from_secs(2)) {
                    self.tmux.press(&["Escape"]);
                    (first, pressed_twice) = (Some(Instant::now()), false);
                } else if !pressed_twice && self.tmux.screen().contains("esc again to interrupt") {
                    self.tmux.press(&["Escape"]);
                    pressed_twice = true;
                }
                None
            },
        );
    }

    /// Exits with `/exit`. The interface may lose the Enter key while it still draws its list of commands. In that case
    /// the line is cleared and typed again.
    pub(crate) fn exit(&self) {
        self.exit_of(&self.folder);
    }

    /// As [`exit`](Self::exit), for a terminal that now shows the session of this folder.
    pub(crate) fn exit_of(&self, folder: &Folder) {
        let mut last: Option<Instant> = None;
        wait_until(
            COPILOT,
            "/exit ends the session",
            || self.dump(),
            || {
                if folder.types().iter().any(|kind| kind == "session.shutdown") {
                    return Some(());
                }
                if last.is_none_or(|at| at.elapsed() > Duration::from_secs(8)) {
                    self.tmux.press(&["C-u"]);
                    self.enter("/exit");
                    last = Some(Instant::now());
                }
                None
            },
        );
    }

    /// Waits until the log holds an event of this type.
    pub(crate) fn wait_logged(&self, kind: &str) {
        let is_logged = || self.folder.types().iter().any(|logged| logged == kind).then_some(());
        wait_until(COPILOT, &format!("the log has {kind}"), || self.dump(), is_logged);
    }

    /// Waits until the terminal shows this text.
    pub(crate) fn wait_screen(&self, text: &str) {
        let what = format!("the terminal shows {text:?}");
        wait_until(COPILOT, &what, || self.dump(), || self.tmux.screen().contains(text).then_some(()));
    }

    /// Waits until the terminal no longer shows this text. The interface draws late, and a key goes to what is on the
    /// screen.
    pub(crate) fn wait_no_screen(&self, text: &str) {
        let what = format!("the terminal no longer shows {text:?}");
        wait_until(COPILOT, &what, || self.dump(), || (!self.tmux.screen().contains(text)).then_some(()));
    }

    /// Records what is drawn from now on.
    pub(crate) fn record(&self) {
        self.tmux.record();
    }

    /// The text that was drawn since the recording began.
    pub(crate) fn recorded(&self) -> String {
        self.tmux.recorded()
    }

    /// The text on the terminal's screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux.screen()
    }

    /// Signals the interface's process, and waits until it is gone.
    pub(crate) fn signal(&self, with: Signal) {
        signal(self.pid, with);
        wait_until(COPILOT, "the terminal interface is gone", || self.dump(), || (!is_live(self.pid)).then_some(()));
    }

    /// Stops the interface's process, and before it tmux, which would let it go on. Keys and the screen need
    /// [`thaw`](Self::thaw).
    pub(crate) fn freeze(&self) {
        freeze(parent(self.pid).expect("the interface runs"));
        freeze(self.pid);
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        signal(self.pid, Signal::CONT);
        signal(parent(self.pid).expect("the interface runs"), Signal::CONT);
    }

    /// The pid of the interface's process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the pid of the extension that it starts for its session.
    pub(crate) fn extension(&self) -> u32 {
        wait_until(COPILOT, "the session has its extension", || self.dump(), || self.find_extension())
    }

    /// The pid of its extension, if it has started one.
    pub(crate) fn find_extension(&self) -> Option<u32> {
        let is_extension = |pid: u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
            let loads = line.split('\0').any(|word| word.ends_with("extension_bootstrap.mjs"));
            (parent(pid) == Some(self.pid) && loads).then_some(pid)
        };
        let mut pids =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.find_map(is_extension)
    }

    pub(crate) fn dump(&self) -> String {
        format!("{}\n{}", self.tmux.screen(), self.folder.dump())
    }
}

/// `copilot -p`: runs one prompt without anybody to ask, and exits. Terminated when dropped.
pub(crate) struct Unattended {
    child: tokio::process::Child,
}

impl Unattended {
    /// Starts it in `home`.
    pub(crate) fn start(home: &Home, model: &Model, prompt: &str) -> Self {
        let mut command: tokio::process::Command = home.copilot(model).into();
        command.args(["-p", prompt]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: block_on(async { command.kill_on_drop(true).spawn().unwrap() }) }
    }

    /// Waits for its exit.
    pub(crate) fn wait(mut self) {
        let ended = block_on(async { tokio::time::timeout(COPILOT, self.child.wait()).await });
        ended.expect("copilot -p does not end").unwrap();
    }
}

impl Drop for Unattended {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
