//! Every way in which a turn can end, combined with everything that belongs to a turn: the end clears all of it, and
//! the next turn begins like the first one.

use super::story::Story;
use pilotlight_core::verdict::Status::{self, Crashed, Ended, Failed, Idle, NeedsInput, Working};
use serde_json::json;

/// Something that belongs to a turn, in the turn prompted at 0.
struct Fact {
    name: &'static str,
    /// An answer was given, so the end of the owner loses no work.
    answered: bool,
    /// A tool or a request is open, so the end of a round does not end the turn.
    open: bool,
    add: fn(Story) -> Story,
}

const fn fact(name: &'static str, add: fn(Story) -> Story) -> Fact {
    Fact { name, answered: false, open: false, add }
}

const fn open(name: &'static str, add: fn(Story) -> Story) -> Fact {
    Fact { name, answered: false, open: true, add }
}

const fn answer(name: &'static str, add: fn(Story) -> Story) -> Fact {
    Fact { name, answered: true, open: false, add }
}

const FACTS: [Fact; 19] = [
    fact("nothing", |story| story),
    open("a tool", |story| story.requests(1, &["bash"]).tool(1, "t1", "bash")),
    open("three tools", |story| story.tool(1, "t1", "bash").tool(1, "t2", "view").tool(1, "t3", "grep")),
    fact("tools used", |story| story.ran(1, "t1").fails(2, "t2", "failure", "no such file").round_end(2).round(2)),
    open("a permission request", |story| story.tool(1, "t1", "bash").permission(2, "r1", "t1")),
    open("a request without a tool", |story| story.permission(2, "r1", "t1")),
    open("a refused permission", |story| {
        let kind = "denied-no-approval-rule-and-could-not-request-from-user";
        story.tool(1, "t1", "bash").permission(2, "r1", "t1").permission_done(3, "r1", "t1", kind)
    }),
    open("a sub-agent in the foreground", |story| story.tool(1, "t1", "task").sub_agent_started(2, "a1", "t1", "sync")),
    open("a sub-agent's request", |story| {
        story.tool(1, "t1", "task").sub_agent_started(2, "a1", "t1", "sync").by("a1").permission(3, "r1", "t2")
    }),
    open("a sub-agent's tool", |story| {
        story
            .tool(1, "t1", "task")
            .sub_agent_started(2, "a1", "t1", "sync")
            .by("a1")
            .round(2)
            .by("a1")
            .tool(3, "s1", "bash")
    }),
    open("a sub-agent of a sub-agent", |story| {
        let story = story.tool(1, "t1", "task").sub_agent_started(2, "a1", "t1", "sync").by("a1").tool(3, "s1", "task");
        story.sub_agent_started(4, "a2", "s1", "sync").by("a2").permission(5, "r1", "s2")
    }),
    open("a question", |story| story.tool(1, "t1", "ask_user")),
    fact("a request for tools", |story| story.requests(1, &["bash"])),
    answer("an answer", |story| story.answer(1, "Done.")),
    answer("an answer that asks", |story| story.answer(1, "Shall I go on?")),
    answer("an answer in autopilot", |story| story.mode(1, "autopilot").answers(18, "On I go.")),
    fact("a task declared done", |story| story.event(1, "session.task_complete", json!({ "success": true }))),
    fact("a resume", |story| story.resume_pending(5)),
    fact("a compaction", |story| story.compacts(5)),
];

/// A way to end a turn, at 20, and the status 10 s later.
struct End {
    name: &'static str,
    apply: fn(Story) -> Story,
    status: Status,
}

const fn end(name: &'static str, status: Status, apply: fn(Story) -> Story) -> End {
    End { name, apply, status }
}

const ENDS: [End; 8] = [
    end("an answer", Idle, |story| story.answers(20, "Done.")),
    end("a round without a message", Idle, |story| story.round(20).round_end(20)),
    end("an error", Failed, |story| story.round_end(20).error(20)),
    end("an abort", Idle, |story| story.abort(20)),
    end("a shutdown", Ended, |story| story.shutdown(20)),
    end("a prompt", Working, |story| story.prompt(20).round(20)),
    end("a resume", Idle, |story| story.resume(20)),
    end("the owner's end", Crashed, Story::owner_gone),
];

/// Whether this ends a turn only if nothing is open.
fn ends_a_round(end: &End) -> bool {
    matches!(end.name, "an answer" | "a round without a message")
}

/// Whether the fact survives the end: a compaction is not part of a turn that ends with a round.
fn survives(fact: &Fact, end: &End) -> bool {
    fact.name == "a compaction" && end.status == Idle && end.name != "an abort" && end.name != "a resume"
}

#[test]
fn case_12_every_end_of_a_turn_clears_what_belonged_to_it() {
    let mut wrong = Vec::new();
    for fact in &FACTS {
        for end in &ENDS {
            let story = (end.apply)((fact.add)(Story::prompted()));
            if fact.open && ends_a_round(end) {
                if story.facts(30).turn.is_none() {
                    wrong.push(format!("{}, ended by {}: it ended despite something open", fact.name, end.name));
                }
                continue;
            }
            let mut check = |holds: bool, message: String| {
                if !holds {
                    wrong.push(format!("{}, ended by {}: {message}", fact.name, end.name));
                }
            };
            let expected = match (end.status, fact.answered) {
                (Crashed, true) => Ended,
                (Idle, _) if survives(fact, end) => Working,
                (status, _) => status,
            };
            let verdict = story.verdict(30);
            check(verdict.status == expected, format!("{expected}, not {} ({})", verdict.status, verdict.because));
            if end.status == Crashed {
                continue; // not in the log: see the last test
            }
            let facts = story.sign(30).facts(30); // the next event also closes in the facts what only time has closed
            check(facts.requests.is_empty(), "a request is left".to_owned());
            check(facts.sub_agents.is_empty(), format!("a sub-agent is left: {:?}", facts.sub_agents));
            check(!facts.waits_for_model() || end.status == Working, "it waits for a model".to_owned());
            check(facts.compaction.is_none() || survives(fact, end), "a compaction is left".to_owned());
            let fresh = (end.status == Working).then(|| Story::new().prompt(20).round(20).facts(30).turn).flatten();
            check(facts.turn == fresh, format!("a turn is left: {:?}", facts.turn));
        }
    }
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn case_12_the_turn_after_every_end_is_like_the_first() {
    let first = Story::new().prompt(100).round(100);
    let mut wrong = Vec::new();
    for fact in &FACTS {
        for end in &ENDS {
            let mut story = (end.apply)((fact.add)(Story::prompted()));
            if end.status == Crashed {
                story = story.new_owner(80).resume(90);
            }
            let story = story.prompt(100).round(100);
            let mut differs = (story.facts(100).turn != first.facts(100).turn).then(|| "the turn itself".to_owned());
            for at in [100.0, 130.0, 159.999, 160.0, 219.999, 220.0, 4000.0] {
                let (verdict, expected) = (story.verdict(at), first.verdict(at));
                if (verdict.status, &verdict.because.to_string()) != (expected.status, &expected.because.to_string()) {
                    differs.get_or_insert(format!("at {at} s {} ({})", verdict.status, verdict.because));
                }
            }
            wrong.extend(differs.map(|difference| format!("{}, ended by {}: {difference}", fact.name, end.name)));
        }
    }
    assert!(wrong.is_empty(), "{} pairs:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn case_12_late_completions_open_nothing() {
    let is_end = |end: &&End| end.status != Crashed && end.status != Working && !ends_a_round(end);
    for end in ENDS.iter().filter(is_end) {
        let story = Story::prompted().tool(1, "t1", "bash").permission(2, "r1", "t1");
        let story = (end.apply)(story).permission_done(25, "r1", "t1", "approved").done(26, "t1").round_end(27).fails(
            28,
            "t1",
            "denied",
            "could not request permission",
        );
        let facts = story.facts(30);
        assert_eq!(facts.turn, None, "{}", end.name);
        assert!(facts.denials.of() == 0 && facts.requests.is_empty(), "{}", end.name);
        if end.status != Failed {
            assert_eq!(story.status(30), Idle, "{}", end.name); // anything written after a shutdown undoes it
        }
    }
}

#[test]
fn case_12_the_owners_end_leaves_nothing_open_for_the_next_owner() {
    let mut wrong = Vec::new();
    for fact in &FACTS {
        let story = (fact.add)(Story::prompted()).new_owner(20);
        let expected = if fact.name.contains("asks") { NeedsInput } else { Idle };
        let verdict = story.verdict(50);
        if verdict.status != expected {
            wrong.push(format!("{}: {expected}, not {} ({})", fact.name, verdict.status, verdict.because));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
