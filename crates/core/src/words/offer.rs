//! What an action would do to a session.

use crate::text::counted;

said! {
    /// What an action would do.
    Does {
        Answers { verb: &'static str, open: usize } => "{verb} {}, once", one_of(*open, "request");
        Replies { open: usize } => "answers {}", one_of(*open, "question");
        Recovers { by: Way } => "{by}";
        Continues { by: Option<Way>, after_turn: bool, sends: Sends } =>
            "{}{}{sends}", first(*by), if *after_turn { "when its turn is over, " } else { "" };
        Resends { by: Option<Way> } => "{}sends your last prompt again", first(*by);
        Stops { even_if_waiting: bool } =>
            "stops the running turn{}, not the session",
            if *even_if_waiting { ", even if it only waits for you" } else { "" };
        Ends { pid: u32, tool: bool } =>
            "ends process {pid}{}; you can resume the session afterwards", if *tool { " and kills its tool" } else { "" };
        Kills { pid: u32, tool: bool } =>
            "kills process {pid} before it can save anything{}; you can resume the session afterwards",
            if *tool { ", and may leave its tool running" } else { "" };
        ShowsTerminal => "brings its terminal to the front";
        EndsHosting => "ends the server that Pilotlight started for it; you can resume the session afterwards";
        Detaches => "ends Pilotlight's connection; if no other program is connected, the server ends the session's work";
        There { what: Box<str> } => "{what}";
        ResumesThere { host: Box<str> } => "opens a terminal that resumes it on {host}";
        AsksThere =>
            "Copilot asks in its terminal whether Pilotlight may answer there: press 1 for this session, 2 for this folder";
    }
}

said! {
    /// How a session is brought back.
    #[derive(Copy)]
    Way {
        Attach => "attaches to its server, and shows its requests here";
        AttachAndStop => "attaches to its server, and stops the silent turn";
        Host =>
            "resumes it in a server of Pilotlight's own; it loses the tools and hooks of its program, and perhaps the instructions";
        Resume => "resumes it in a terminal, in its folder";
    }
}

said! {
    /// What a session is sent so that it goes on.
    Sends {
        Prompt => "sends your last prompt again";
        PromptThere => "sends your last prompt again, in its terminal";
        GoOn => "tells it to continue, instead of sending your prompt again: a tool may have run";
        GoOnThere => "tells it in its terminal to continue, instead of sending your prompt again: a tool may have run";
        Nothing => "sends nothing until you choose this once more";
    }
}

/// `its open request`, `one of its 2 open requests`.
fn one_of(open: usize, what: &str) -> String {
    if open == 1 {
        format!("its open {what}")
    } else {
        format!("one of its {}", counted(open, &format!("open {what}")))
    }
}

fn first(by: Option<Way>) -> String {
    by.map(|way| format!("{way}; ")).unwrap_or_default()
}

/// What a session that we host lacks: only the program that started it knew that. Its log may have its instructions.
pub const fn without_program(has_instructions: bool) -> &'static str {
    if has_instructions {
        "without the tools and hooks that its program gave it"
    } else {
        "without the tools, hooks and instructions that its program gave it"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_hosted_session_lacks_its_instructions_unless_its_log_has_them() {
        assert_eq!(without_program(true), "without the tools and hooks that its program gave it");
        assert!(without_program(false).contains("tools, hooks and instructions"));
    }
}
