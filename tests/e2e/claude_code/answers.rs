//! What the real Claude Code asks in a terminal, answered from the tray and by commands over the bridge; and what the bridge
//! leaves to the terminal.

use crate::support::claude::{Claude, ClaudeHome, program};
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::{COPILOT, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// What Claude Code asks before it runs a command.
pub(super) const DIALOG: &str = "Do you want to";

/// Claude Code in a terminal with the bridge, and the tray. Fields drop from the top.
pub(super) struct Bridged {
    pub(super) pilot: Pilot,
    pub(super) claude: Claude,
    home: ClaudeHome,
    pub(super) id: String,
}

/// A user's tray and home.
pub(super) fn user(config: &str) -> (Pilot, ClaudeHome) {
    let mut home = ClaudeHome::new();
    let all = format!("[actions]\nscripts-may-answer = true\n{config}[notifications]\nafter-start = \"1ms\"\n");
    let pilot = Pilot::watching(vec![home.dir()], &all, &[]);
    home.set("XDG_RUNTIME_DIR", &pilot.user().join("run"));
    (pilot, home)
}

/// Has Claude Code's own commands install the bridge, by this command.
pub(super) fn install(mut command: Command) {
    command.args(["bridge", "install", "--agent", "claude-code", "--yes"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", program().parent().unwrap().display()));
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let ran = CommandOutput::of(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// A user's tray and home, with the bridge.
fn installed(config: &str) -> (Pilot, ClaudeHome) {
    let (pilot, home) = user(config);
    install(pilot.command_with_tray(&[]));
    (pilot, home)
}

impl Bridged {
    pub(super) fn new() -> Self {
        Self::with(&[], "")
    }

    /// One whose program has these arguments, and whose tray has these settings.
    pub(super) fn with(arguments: &[&str], config: &str) -> Self {
        Self::of(installed(config), arguments)
    }

    /// One whose user does this before it starts.
    pub(super) fn beside(before: impl FnOnce(&mut Pilot)) -> Self {
        let (mut pilot, home) = installed("");
        before(&mut pilot);
        Self::of((pilot, home), &[])
    }

    fn of((pilot, home): (Pilot, ClaudeHome), arguments: &[&str]) -> Self {
        let claude = home.start(arguments);
        let id = claude.id();
        pilot.wait_status(&id, "idle", "");
        Self { pilot, claude, home, id }
    }

    /// Another session of the same user.
    pub(super) fn another(&self) -> (Claude, String) {
        let claude = self.home.start(&[]);
        let id = claude.id();
        (claude, id)
    }

    pub(super) fn dump(&self) -> String {
        format!("{}\n{}\n{:?}", self.claude.screen(), self.pilot.log(), self.decisions())
    }

    /// Gives a prompt, and waits until the tray has what it asks.
    pub(super) fn ask(&self, script: &str) -> Value {
        self.claude.enter(&format!("SCRIPT:{script} Paint the fence"));
        self.request()
    }

    /// What the tray has of what is asked, once it has it.
    pub(super) fn request(&self) -> Value {
        let request = || self.pilot.row_in_tray(&self.id).map(|row| row["request"].clone()).filter(Value::is_object);
        wait_until(COPILOT, "the tray has the request", || self.dump(), request)
    }

    /// Runs a command that must succeed.
    pub(super) fn run_ok(&self, arguments: &[&str]) -> CommandOutput {
        let ran = self.pilot.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}\n{}", self.dump());
        ran
    }

    pub(super) fn made(&self, file: &str) -> PathBuf {
        self.home.project().join(file)
    }

    pub(super) fn wait_made(&self, file: &str) {
        wait_until(COPILOT, "its tool has run", || self.dump(), || self.made(file).exists().then_some(()));
    }

    pub(super) fn wait_no_hook(&self) {
        let gone = || self.claude.hooks().is_empty().then_some(());
        wait_until(COPILOT, "no hook waits", || self.dump(), gone);
    }

    /// Waits until the log, which is behind the screen, says that its last tool was decided about like this.
    pub(super) fn wait_decision(&self, source: &str, decision: &str) {
        let is_last = || {
            let last = self.decisions().pop()?;
            (last == (source.to_owned(), decision.to_owned())).then_some(())
        };
        wait_until(COPILOT, "the log says who decided", || self.dump(), is_last);
    }

    /// How the log says that its tool was decided about.
    pub(super) fn decisions(&self) -> Vec<(String, String)> {
        let log = self.claude.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let decision = |line: Value| {
            let decision = line.get("permissionDecision")?;
            Some((decision["source"].as_str()?.to_owned(), decision["decision"].as_str()?.to_owned()))
        };
        lines.filter_map(decision).collect()
    }
}

#[test]
fn case_741_a_click_approves_what_its_popup_or_menu_shows() {
    let bridged = Bridged::new();
    let popups = bridged.pilot.popups();
    let request = bridged.ask("touch");
    assert_eq!(request["text"], "touch made", "{request}");
    assert_eq!(bridged.claude.hooks().len(), 1);
    let popup = popups.wait_for(1);
    bridged.claude.wait_screen(DIALOG);
    assert!(!bridged.made("made").exists());
    popups.click_after_reading(popup.number, "approve");
    bridged.wait_made("made");
    bridged.claude.wait_screen("It is done.");
    bridged.wait_decision("hook", "accept");
    bridged.pilot.wait_status(&bridged.id, "idle", "done, your turn");
    bridged.wait_no_hook();

    bridged.ask("twice");
    bridged.pilot.click(&bridged.id, "Approve once");
    wait_until(
        COPILOT,
        "the next is asked",
        || bridged.dump(),
        || bridged.request()["text"].as_str().filter(|text| *text == "touch again").map(drop),
    );
    bridged.run_ok(&["approve", "--yes", &bridged.id]);
    bridged.wait_made("again");
    bridged.pilot.wait_status(&bridged.id, "idle", "done, your turn");
}

#[test]
fn case_742_a_denial_takes_a_note_to_the_agent() {
    let bridged = Bridged::new();
    bridged.ask("touch");
    let ran = bridged.run_ok(&["deny", "--yes", "--note", "Use a \"brush\", please.", &bridged.id]);
    assert!(ran.out.contains("denied 1 request with a note"), "{ran:?}");
    bridged.claude.wait_log(r#"Use a \"brush\", please."#);
    bridged.claude.wait_screen("It is done.");
    assert!(!bridged.made("made").exists());
    bridged.wait_decision("hook", "reject");
}

#[test]
fn case_746_questions_with_one_and_several_choices_are_filled_in() {
    let bridged = Bridged::new();
    bridged.claude.enter("SCRIPT:sizes Paint the fence");
    let asked = || {
        let row = bridged.pilot.row_in_tray(&bridged.id)?;
        row["actions"]
            .as_array()?
            .contains(&"answer".into())
            .then(|| row["question"]["id"].as_str().map(str::to_owned))?
    };
    let id = wait_until(COPILOT, "the tray has the questions", || bridged.dump(), asked);
    let answer =
        ["answer", &bridged.id, "--request", &id, "--field", "Colour=Blue", "--field", "Sizes=S", "--field", "Sizes=L"];
    bridged.run_ok(&answer);
    bridged.claude.wait_log(r#"\"Which colour?\"=\"Blue\""#);
    bridged.claude.wait_log(r#"\"Which sizes?\"=\"S, L\""#);
    bridged.pilot.wait_status(&bridged.id, "idle", "");
}

#[test]
fn case_748_a_plan_is_approved_by_a_click() {
    let bridged = Bridged::with(&["--permission-mode", "plan"], "");
    bridged.claude.enter("SCRIPT:draft Paint the fence");
    bridged.pilot.wait_status_in_tray(&bridged.id, "needs-input", "Paint it.");
    bridged.pilot.click(&bridged.id, "Answer “Approve; each edit asks”");
    bridged.claude.wait_screen("It is done.");
    bridged.wait_decision("hook", "accept");
    bridged.pilot.wait_status(&bridged.id, "idle", "");
}

#[test]
fn case_743_answered_in_the_terminal_first_the_popup_goes_and_a_late_answer_says_so() {
    let bridged = Bridged::new();
    let popups = bridged.pilot.popups();
    bridged.ask("tool");
    let popup = popups.wait_for(1);
    bridged.claude.accept(DIALOG);
    bridged.wait_made("made");
    popups.wait_for_closed(&[popup.number]);
    bridged.wait_no_hook();
    let late = bridged.pilot.run(&["approve", "--yes", &bridged.id]);
    assert!(late.code != Some(0) && late.err.contains("answered in the terminal first"), "{late:?}");
    std::fs::write(bridged.made("go"), "").unwrap();
    bridged.claude.wait_screen("It is done.");
    bridged.wait_decision("user_temporary", "accept");
}

#[test]
fn case_744_a_tray_that_is_killed_leaves_the_dialog_usable() {
    let mut bridged = Bridged::new();
    bridged.ask("touch");
    assert_eq!(bridged.claude.hooks().len(), 1);
    bridged.pilot.kill_tray();
    bridged.wait_no_hook();
    bridged.claude.accept(DIALOG);
    bridged.wait_made("made");
    bridged.claude.wait_screen("It is done.");
}

#[test]
fn case_740_without_a_tray_a_hook_is_silent_and_gone_at_once() {
    let mut bridged = Bridged::new();
    bridged.pilot.end_tray();
    bridged.claude.enter("SCRIPT:touch Paint the fence");
    bridged.claude.wait_screen(DIALOG);
    bridged.wait_no_hook();
    bridged.claude.accept(DIALOG);
    bridged.wait_made("made");
    bridged.claude.wait_screen("It is done.");
    assert!(!bridged.claude.screen().contains("hook"), "{}", bridged.claude.screen());
}

#[test]
fn case_749_a_sub_agents_dialog_comes_at_once_and_is_left_to_the_terminal() {
    let bridged = Bridged::new();
    bridged.claude.enter("SCRIPT:agent Paint the fence");
    bridged.claude.wait_screen(DIALOG);
    bridged.wait_no_hook();
    bridged.pilot.wait_status(&bridged.id, "needs-permission", "asks for permission: Bash");
    let ran = bridged.pilot.run(&["deny", "--yes", &bridged.id]);
    assert!(ran.code != Some(0) && ran.err.contains("a sub-agent asks: answer in its terminal"), "{ran:?}");
    bridged.claude.accept(DIALOG);
    bridged.wait_made("made");
    std::fs::write(bridged.made("go"), "").unwrap();
}

/// The setting holds it: nothing is shown in the terminal meanwhile.
#[test]
#[ignore = "tests/long.sh"]
fn case_749_a_sub_agents_request_can_be_held_for_a_moment() {
    let bridged = Bridged::with(&[], "[claude-code]\nhold-sub-agents = \"15s\"\n");
    bridged.ask("agent");
    assert!(!bridged.claude.screen().contains(DIALOG), "{}", bridged.claude.screen());
    let explained = bridged.run_ok(&["explain", &bridged.id]).out;
    assert!(explained.contains("not yet shown in the terminal"), "{explained}");
    bridged.run_ok(&["approve", "--yes", &bridged.id]);
    bridged.wait_made("made");
    std::fs::write(bridged.made("go"), "").unwrap();
}

/// Nobody answers: its dialog comes.
#[test]
#[ignore = "tests/long.sh"]
fn case_749_a_held_request_of_a_sub_agent_is_let_go_in_the_end() {
    let bridged = Bridged::with(&[], "[claude-code]\nhold-sub-agents = \"2s\"\n");
    bridged.ask("agent");
    let began = Instant::now();
    bridged.claude.wait_screen(DIALOG);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    bridged.claude.accept(DIALOG);
    std::fs::write(bridged.made("go"), "").unwrap();
}

#[test]
#[ignore = "tests/long.sh"]
fn case_742_a_denial_can_stop_the_turn() {
    let bridged = Bridged::new();
    bridged.ask("twice");
    bridged.pilot.click(&bridged.id, "Deny, and stop the turn");
    bridged.pilot.wait_status(&bridged.id, "idle", "");
    assert!(!bridged.made("made").exists() && !bridged.claude.log().contains("And again."), "{}", bridged.dump());
}

#[test]
#[ignore = "tests/long.sh"]
fn case_745_always_adds_the_rule_that_is_shown() {
    let bridged = Bridged::new();
    bridged.ask("run");
    bridged.pilot.wait_menu(&bridged.id, "Bash(npm run *)");
    bridged.pilot.click(&bridged.id, "Approve, and allow that");
    bridged.claude.wait_screen("It is done.");
    let rules = std::fs::read_to_string(bridged.home.project().join(".claude/settings.local.json")).unwrap();
    assert!(rules.contains("Bash(npm run *)"), "{rules}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_748_a_plan_is_sent_back_with_a_note_or_approved_with_its_edits() {
    let bridged = Bridged::with(&["--permission-mode", "plan"], "");
    let asked = || {
        let row = bridged.pilot.row_in_tray(&bridged.id)?;
        row["actions"]
            .as_array()?
            .contains(&"answer".into())
            .then(|| row["question"]["id"].as_str().map(str::to_owned))?
    };
    bridged.claude.enter("SCRIPT:draft Paint the fence");
    let id = wait_until(COPILOT, "the tray has the plan", || bridged.dump(), asked);
    bridged.run_ok(&["answer", &bridged.id, "--request", &id, "--text", "Test it, too."]);
    bridged.claude.wait_log("Test it, too.");
    bridged.pilot.wait_status(&bridged.id, "idle", "");
    bridged.claude.enter("SCRIPT:draft Paint the gate");
    let id = wait_until(COPILOT, "the tray has the plan", || bridged.dump(), asked);
    bridged.run_ok(&["answer", &bridged.id, "--request", &id, "--choice", "2"]);
    bridged.claude.wait_screen("accept edits on");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_750_a_script_is_not_held_up() {
    let (pilot, home) = installed("");
    let began = Instant::now();
    let ran = CommandOutput::of(home.command(&["-p", "SCRIPT:touch Paint the fence"]));
    assert!(ran.code == Some(0) && began.elapsed() < Duration::from_secs(60), "{ran:?}");
    assert!(!home.project().join("made").exists() && !pilot.log().contains("a hook asks"), "{}", pilot.log());
}

/// The tray stands still: the terminal works, and the hook is gone with the session.
#[test]
#[ignore = "tests/long.sh"]
fn case_744_a_tray_that_stands_still_holds_nothing_up() {
    let bridged = Bridged::new();
    let tray = bridged.pilot.tray_pid();
    crate::support::process::signal(tray, Signal::STOP);
    bridged.claude.enter("SCRIPT:touch Paint the fence");
    bridged.claude.accept(DIALOG);
    bridged.wait_made("made");
    bridged.claude.wait_screen("It is done.");
    crate::support::process::signal(tray, Signal::CONT);
    bridged.wait_no_hook();
    bridged.pilot.wait_status(&bridged.id, "idle", "");
}

/// A tool that runs the hook itself, as one of its session's shell would.
#[test]
#[ignore = "tests/long.sh"]
fn case_751_a_tool_that_runs_the_hook_shows_and_approves_nothing() {
    forge("forge", &format!("{HOOK}\ntouch ended\n"));
}

/// It takes the place of its own shell, so that Claude Code is its parent, as it is of a hook.
#[test]
#[ignore = "tests/long.sh"]
fn case_861_a_tool_that_is_the_hook_shows_and_approves_nothing() {
    // The one below its shell ends when the hook, which took the shell's place, has ended.
    forge("become", &format!("(while kill -0 $$; do :; done; touch ended) >&- 2>&- &\nexec {HOOK}\n"));
}

/// Starts the hook with what a tool forged.
const HOOK: &str = concat!(env!("CARGO_BIN_EXE_pilotlight"), " hook claude-code <forged >printed");

/// Has a tool, which is asked for so, run a script that starts the hook. It shows and approves nothing.
fn forge(ask: &str, script: &str) {
    let bridged = Bridged::new();
    let forged = serde_json::json!({"session_id": bridged.id, "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "ls"}});
    std::fs::write(bridged.made("forged"), forged.to_string()).unwrap();
    std::fs::write(bridged.made("forge"), script).unwrap();
    bridged.ask(ask);
    bridged.claude.accept(DIALOG);
    bridged.wait_made("ended");
    assert_eq!(std::fs::read_to_string(bridged.made("printed")).unwrap(), "");
    let asked = bridged.pilot.log().lines().filter(|line| line.contains("a hook asks")).count();
    assert_eq!(asked, 1, "the tool's own request alone: {}", bridged.pilot.log());
}

/// Both answer within 50 ms: one of them wins, and both sides say the same.
#[test]
#[ignore = "tests/long.sh"]
fn case_752_of_two_answers_at_once_exactly_one_counts() {
    let bridged = Bridged::new();
    let (mut ours, mut theirs) = (0, 0);
    for round in 0..100_u64 {
        let before = bridged.decisions().len();
        bridged.ask("touch");
        bridged.claude.wait_screen(DIALOG);
        let deny = bridged.pilot.command_with_tray(&["deny", "--yes", &bridged.id]);
        let answered = std::thread::scope(|threads| {
            let denied = threads.spawn(|| CommandOutput::of(deny));
            let at = Instant::now() + Duration::from_millis(round % 50);
            wait_until(COPILOT, "it is time", String::new, || (Instant::now() >= at).then_some(()));
            bridged.claude.press(&["Enter"]);
            denied.join().unwrap()
        });
        let decided = || bridged.decisions().get(before).cloned();
        let (source, decision) = wait_until(COPILOT, "one has decided", || bridged.dump(), decided);
        let told = &answered;
        match (&*source, &*decision) {
            ("hook", "reject") => {
                ours += 1;
                assert_eq!(told.code, Some(0), "{told:?}");
            }
            ("user_temporary", "accept") => {
                theirs += 1;
                assert!(told.code != Some(0) && told.err.contains("first"), "{told:?}\n{}", bridged.dump());
            }
            other => panic!("{other:?}: {told:?}"),
        }
        bridged.pilot.wait_status(&bridged.id, "idle", "");
        bridged.wait_no_hook();
    }
    println!("{ours} by the tray, {theirs} in the terminal");
    assert!(ours > 0 && theirs > 0 && ours + theirs == 100, "{ours} and {theirs}");
}
