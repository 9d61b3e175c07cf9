//! Bad lines: torn, broken, repeated, forked, huge. None is fatal, each is counted, and the lines after them are read.

use super::story::Story;
use pilotlight_agents::copilot::log_format::{end_of, is_fresh_prompt, parse, parse_ends};
use pilotlight_core::event::{Body, Event, ScheduleChange};
use pilotlight_core::verdict::Status::{Idle, NeedsPermission, Quiet, Working};
use serde_json::json;

/// An envelope around `data`, as Copilot writes it.
fn line(kind: &str, data: &str) -> String {
    format!(
        r#"{{"type":"{kind}","data":{data},"id":"77777777-0000-4000-8000-000000000000","timestamp":"2026-11-20T18:00:05.000Z","parentId":null}}"#
    )
}

/// A turn with `broken` before a permission request: the request must be read, and every line counted.
#[track_caller]
fn is_survived(broken: impl Into<Vec<u8>>) -> Story {
    let broken = broken.into();
    let shown = String::from_utf8_lossy(&broken[..broken.len().min(200)]).into_owned();
    let story = Story::prompted().raw(5, broken).tool(6, "t1", "bash").permission(7, "r1", "t1");
    let facts = story.facts(7);
    assert_eq!(facts.events + facts.skipped, 6, "every line is counted: {shown}");
    story.is(7, NeedsPermission);
    story
}

#[track_caller]
fn is_skipped(broken: impl Into<Vec<u8>>) {
    assert_eq!(is_survived(broken).facts(7).skipped, 1, "it counts as skipped");
}

/// UP, files.
#[test]
fn case_84_a_run_of_nuls_is_skipped() {
    is_skipped(vec![0; 1]);
    is_skipped(vec![0; 4096]);
    let mut torn = line("assistant.turn_start", "{}").into_bytes();
    torn.truncate(60);
    torn.resize(4096, 0);
    is_skipped(torn);
}

/// UP, files: the next writer appends directly to the torn line.
#[test]
fn case_84_a_line_after_a_torn_one_is_read() {
    let whole =
        line("permission.requested", r#"{"requestId":"r1","permissionRequest":{"kind":"shell","toolCallId":"t1"}}"#);
    for front in [
        "\0\0\0\0",
        r#"{"type":"assistant.message","data":{"content":"I wi"#,
        r#"{"type":"system.message","data":{"content":"You a"#,
        r#"{"type":"session.info","data":{"message":"x"},"id":"5"#,
        r#"{"type":"hook.start","data":{}"#,
        r#"{"ty"#,
    ] {
        let story = Story::prompted().raw(5, format!("{front}{whole}"));
        assert_eq!(story.facts(5).requests.len(), 1, "after {front:?}");
    }
}

/// UP, files.
#[test]
fn case_84_broken_json_is_skipped() {
    let whole = line("assistant.turn_start", r#"{"turnId":"0"}"#);
    for cut in 1..whole.len() {
        is_skipped(&whole[..cut]);
    }
    for broken in
        ["{}", "[]", "null", "42", "\"x\"", "}", "{\"type\":\"abort\"}", "plain text", "{\"type\":\"abort\",}"]
    {
        is_skipped(broken);
    }
    is_skipped(line("abort", "{\"a\":[}"));
    is_skipped(line("session.error", "{\"message\":}"));
    is_skipped(format!("{whole}x"));
}

/// UP, files.
#[test]
fn case_84_invalid_utf_8_does_no_harm() {
    let mut bytes = line("assistant.message", r#"{"content":"a?b","toolRequests":[]}"#).into_bytes();
    let at = bytes.iter().position(|&byte| byte == b'?').unwrap();
    for byte in [0x80, 0xC3, 0xFF] {
        bytes[at] = byte;
        is_survived(bytes.clone());
    }
    is_survived(vec![0xFF; 300]);
    is_survived(b"\xEF\xBB\xBF".to_vec());
}

/// UP, files: they do not end a line.
#[test]
fn case_84_unicode_line_separators_inside_strings_are_text() {
    let data = json!({ "content": "a\u{2028}b\u{2029}c\u{85}d", "toolRequests": [] });
    let story = Story::prompted().event(5, "assistant.message", data).round_end(6);
    assert_eq!(story.facts(6).skipped, 0);
    story.is(6, Idle);
}

/// UP, files.
#[test]
fn case_84_carriage_returns_and_blanks_around_a_line_are_ignored() {
    let plain = line("assistant.message", r#"{"content":"Shall I?","toolRequests":[]}"#);
    for dressed in [format!("{plain}\r"), format!("  {plain}\t\r\n"), plain.replace(',', " ,\r ").replace(':', " : ")] {
        if let (Ok(dressed), Ok(plain)) = (parse(dressed.as_bytes()), parse(plain.as_bytes())) {
            assert_eq!((dressed.body, dressed.id), (plain.body, plain.id));
        } else {
            // The last form puts blanks into the timestamp, too.
            assert!(dressed.contains(" : 00 : "), "{dressed}");
        }
    }
    is_survived(format!("{plain}\r"));
}

/// UP, files.
#[test]
fn case_84_an_unknown_type_is_a_sign_of_life() {
    let story = Story::prompted().event(50, "assistant.daydream", json!({ "of": ["sheep"] }));
    story.turns(110, Working, Quiet);
    let facts = story.facts(50);
    assert_eq!((facts.events, facts.skipped), (4, 0));
    let fields = Story::prompted().event(50, "abort", json!({ "reason": "x", "new": { "field": [1, null] } }));
    fields.is(50, Idle);
}

/// UP, files: an event that has to be paired is useless without its id.
#[test]
fn case_84_events_without_required_fields_are_skipped() {
    for kind in ["tool.execution_start", "tool.execution_complete", "permission.requested", "permission.completed"] {
        is_skipped(line(kind, "{}"));
        is_skipped(line(kind, "null"));
        is_skipped(line(kind, "[1]"));
    }
    let whole = line("assistant.turn_start", "{}");
    is_skipped(whole.replace(r#","timestamp":"2026-11-20T18:00:05.000Z""#, ""));
    is_skipped(whole.replace(r#""type":"assistant.turn_start","#, ""));
    is_survived(whole.replace(r#""data":{},"#, ""));
    is_survived(whole.replace(r#","parentId":null"#, ""));
    is_survived(whole.replace(r#""id":"77777777-0000-4000-8000-000000000000","#, ""));
    is_survived(line("user.message", "{}"));
    is_survived(line("session.error", "{}"));
    is_survived(line("subagent.started", "{}"));
    is_survived(line("session.resume", "null"));
}

/// UP, files.
#[test]
fn case_84_fields_of_a_wrong_type_are_ignored_or_skip_the_line() {
    for (kind, field) in [
        ("tool.execution_start", "toolCallId"),
        ("tool.execution_complete", "toolCallId"),
        ("permission.requested", "requestId"),
        ("permission.completed", "requestId"),
    ] {
        for value in ["7", "null", "true", "{}", "[\"x\"]"] {
            is_skipped(line(kind, &format!("{{\"{field}\":{value}}}")));
        }
    }
    let whole = line("assistant.turn_start", "{}");
    is_skipped(whole.replace("\"2026-11-20T18:00:05.000Z\"", "1795197605000"));
    is_skipped(whole.replace("\"assistant.turn_start\"", "3"));
    is_skipped(whole.replace("2026-11-20T18:00:05.000Z", "yesterday"));
    is_survived(whole.replace("\"parentId\":null", "\"parentId\":5"));
    is_survived(line("session.error", r#"{"errorType":5,"message":{},"statusCode":"500"}"#));
    is_survived(line("user.message", r#"{"content":5,"delivery":true,"isAutopilotContinuation":"yes"}"#));
    is_survived(line("session.start", r#"{"selectedModel":1,"context":"x"}"#));
    is_survived(line("assistant.message", r#"{"content":null,"toolRequests":7}"#));
}

/// UP, files.
#[test]
fn case_84_the_order_of_fields_does_not_matter() {
    let bodies = [
        ("assistant.turn_start", "{}"),
        ("system.message", "{\"content\":\"x\"}"),
        ("session.usage_checkpoint", "{\"n\":1}"),
        (
            "tool.execution_start",
            r#"{"toolCallId":"t1","toolName":"bash","arguments":{"mode":"async","command":"ls"}}"#,
        ),
        ("session.error", r#"{"errorType":"query","message":"no","statusCode":500}"#),
    ];
    for (kind, data) in bodies {
        let fields = [
            format!("\"type\":\"{kind}\""),
            format!("\"data\":{data}"),
            "\"agentId\":\"a1\"".to_owned(),
            "\"id\":\"i1\"".to_owned(),
            "\"timestamp\":\"2026-11-20T18:00:05.000Z\"".to_owned(),
            "\"parentId\":\"p1\"".to_owned(),
        ];
        let plain = format!("{{{}}}", fields.join(","));
        let plain = parse(plain.as_bytes()).unwrap();
        assert_eq!(plain.sub_agent.map(|id| id.0), Some(&b"a1"[..]), "{kind}");
        for turned in 0..fields.len() {
            for swapped in 0..fields.len() {
                let mut fields = fields.clone();
                fields.rotate_left(turned);
                fields.swap(0, swapped);
                let other = format!("{{{}}}", fields.join(","));
                assert_eq!(parse(other.as_bytes()).as_ref(), Ok(&plain), "{other}");
            }
        }
    }
}

/// UP, files.
#[test]
fn case_85_the_same_id_twice_counts_once() {
    let story = Story::prompted().tool(1, "t1", "bash");
    let lines: Vec<_> = story.lines().map(<[u8]>::to_vec).collect();
    let twice = lines.iter().fold(story.clone(), |story, line| story.raw(2, line.clone()));
    assert_eq!(twice.facts(2).events, 4);
    assert_eq!(twice.facts(2).turn, story.facts(2).turn);
    let denied = Story::prompted().denied(1, "t1");
    let last = denied.lines().last().unwrap().to_vec();
    let thrice = denied.clone().raw(2, last.clone()).raw(3, last);
    assert_eq!(thrice.facts(3).denials.of(), 1);
    let ended = Story::prompted().answers(1, "Done.");
    let prompt = ended.lines().nth(1).unwrap().to_vec();
    ended.raw(10, prompt).is(10, Idle);
}

/// UP, files.
#[test]
fn case_87_two_writers_that_continue_from_the_same_line_are_a_conflict() {
    let chained = Story::prompted().tool(1, "t1", "bash").sign(2);
    assert!(!chained.verdict(2).because.to_string().contains("conflict"));
    let forked = chained.forked(2).sign(3);
    forked.says(3, Working, "conflict");
    let settled = forked.resume(10).prompt(11);
    let because = settled.verdict(11).because.to_string();
    assert!(!because.contains("conflict"), "since the last resume: {because}");
}

/// A process continues from the last line that it has read: the other one has written since.
#[test]
fn case_87_a_resume_that_continues_from_an_earlier_line_is_a_conflict() {
    let ended = Story::prompted().answers(1, "Done.");
    let both = ended.clone().resume(2).prompt(3).answers(4, "Done.").forked(4).resume(5);
    both.says(5, Idle, "conflict");
    // However much was written in between.
    let long = (10..200).fold(ended.clone().resume(2), Story::sign);
    assert!(!long.facts(200).forked);
    assert!(long.clone().forked(191).resume(201).facts(201).forked);
    // The next process that reads both is a single one again, unless the other one lives on.
    let third = both.resume(10).prompt(11);
    assert!(!third.facts(11).forked);
    let fourth = (20..200).fold(third, Story::sign);
    assert!(!fourth.facts(200).forked);
    assert!(fourth.forked(182).sign(201).facts(201).forked, "it continues from before the resume");
    // Another connection to the same process settles nothing.
    let joins = json!({ "alreadyInUse": true, "sessionWasActive": true });
    let forked = ended.sign(3).forked(1).sign(4);
    assert!(forked.facts(4).forked && forked.event(5, "session.resume", joins).facts(5).forked);
}

/// A single process, after a stop while a request is open: the chain goes from the request to the abort, to the
/// request's end and to the round's end. A resume continues from the last line.
#[test]
fn case_160_events_in_another_order_than_their_chain_are_no_conflict() {
    let asks = Story::prompted().tool(1, "t1", "bash").permission(1, "r1", "t1");
    // The ids are numbers: the abort, written last, will be the seventh event, and the request was the fourth.
    let ended = asks.child_of(8).permission_done(2, "r1", "t1", "cancelled").round_end(2).child_of(5).abort(2);
    assert!(!ended.facts(2).forked);
    ended.is(2, Idle);
    assert!(!ended.clone().child_of(7).prompt(3).facts(3).forked, "the same process");
    assert!(!ended.clone().child_of(8).resume(3).prompt(4).facts(4).forked, "another one, from the last line");
    assert!(!ended.clone().child_of(7).resume(3).prompt(4).facts(4).forked, "the same one, for another client");
    assert!(ended.child_of(6).resume(3).facts(3).forked);
}

/// Records of calls to the model have a chain of their own, and no process continues from them.
#[test]
fn case_160_records_are_not_part_of_the_chain() {
    let compacts = Story::prompted().answers(1, "Done.").compacts(2);
    let recorded = compacts.child_of(99).event(2, "model.turn_started", json!({})).child_of(98);
    let recorded = recorded.event(2, "model.response", json!({}));
    let done = recorded.clone().child_of(6).event(3, "session.compaction_complete", json!({}));
    assert!(!done.facts(3).forked);
    assert!(!recorded.child_of(6).resume(3).facts(3).forked);
}

/// UP, files: Copilot itself logs this.
#[test]
fn case_87_a_session_opened_while_in_use_is_a_conflict() {
    let resume = json!({ "selectedModel": "fake-model", "alreadyInUse": true });
    Story::prompted().answers(1, "Done.").event(5, "session.resume", resume).says(5, Idle, "conflict");
}

/// UP, files: lines of 50 KB, 430 KB and 20 MB.
#[test]
fn case_65_a_huge_line_is_read() {
    for size in [50_000, 430_000, 20_000_000] {
        let text = "s".repeat(size);
        let story = Story::prompted().answer(1, &text);
        story.is(1, pilotlight_core::verdict::Status::Finishing);
        let answer = story.lines().last().unwrap();
        assert!(end_of(answer).is_some() && !is_fresh_prompt(answer));
        let system = Story::prompted().event(100, "system.message", json!({ "content": text }));
        system.is(100, Working);
        let (head, tail) = answer.split_at(2000);
        let ends = parse_ends(head, &tail[tail.len() - 2000..]).unwrap();
        assert_eq!((ends.at, ends.id), parse(answer).map(|event| (event.at, event.id)).unwrap());
        assert!(!matches!(ends.body, Body::Prompt { .. }));
    }
}

/// A log read backwards is read back to such a prompt.
#[test]
fn a_prompt_that_closes_everything_open_is_recognised() {
    let fresh = |story: &Story| is_fresh_prompt(story.lines().last().unwrap());
    assert!(fresh(&Story::cut().prompt(0)));
    assert!(!fresh(&Story::cut().steers(0)));
    assert!(!fresh(&Story::cut().by("a1").prompt(0)));
    assert!(!fresh(&Story::cut().round(0)));
    assert!(!is_fresh_prompt(b"{\"type\":\"user.message\""));
}

/// An escaped quote does not end a string, and an envelope inside a string is no event.
#[test]
fn case_84_an_event_quoted_in_an_event_is_text() {
    let inner = line("session.shutdown", "{}");
    let quoted = Story::prompted().event(5, "session.info", json!({ "message": inner, "more": format!("x{inner}") }));
    quoted.is(5, Working);
    let nested: serde_json::Value = serde_json::from_str(&inner).unwrap();
    Story::prompted().event(5, "session.info", json!({ "inner": nested })).is(5, Working);
    Story::prompted()
        .event(5, "assistant.message", json!({ "inner": nested, "toolRequests": [nested] }))
        .is(5, Working);
    let event = parse(inner.as_bytes()).unwrap();
    assert!(matches!(event, Event { body: Body::Shutdown, sub_agent: None, .. }));
    Story::prompted().by("session.shutdown\"},").sign(5).is(5, Working);
}

/// A change of a schedule in words.
fn told(change: Option<&ScheduleChange<'_>>) -> String {
    match change {
        None => "none".into(),
        Some(ScheduleChange::Armed { id, at, after, repeats, persists }) => {
            let (id, at) = (id.read(40), at.map(|at| at.0));
            format!("{id} at {at:?} after {:?}, {repeats} {persists}", after.map(|after| after.0))
        }
        Some(ScheduleChange::Fired { id, every }) => format!("{} fired, {:?}", id.read(40), every.map(|every| every.0)),
        Some(ScheduleChange::Cancelled { id }) => format!("{} cancelled", id.read(40)),
    }
}

/// As the CLI's schema has them.
#[test]
fn case_765_a_schedule_is_read_with_its_firing_and_its_end() {
    let schedule = |kind: &str, data: serde_json::Value| {
        let line = line(kind, &data.to_string());
        assert!(kind != "user.message" || !is_fresh_prompt(line.as_bytes()), "reading goes on to what made it");
        told(parse(line.as_bytes()).unwrap().besides.schedule.as_ref())
    };
    let at = 1_795_956_360_000_i64;
    assert_eq!(
        schedule("session.schedule_created", json!({"id": 3, "prompt": "x", "intervalMs": 300_000, "recurring": true})),
        "3 at None after Some(300000), true true"
    );
    assert_eq!(
        schedule("session.schedule_created", json!({"at": at, "id": 4, "prompt": "\"id\":5", "recurring": false})),
        "4 at Some(1795956360000) after None, false true"
    );
    assert_eq!(
        schedule("session.schedule_rearmed", json!({"id": 3, "nextRunAt": at})),
        "3 at Some(1795956360000) after None, true true"
    );
    assert_eq!(schedule("session.schedule_cancelled", json!({"id": 3})), "3 cancelled");
    assert_eq!(schedule("user.message", json!({"content": "x", "source": "schedule-3"})), "3 fired, None");
    assert_eq!(schedule("session.schedule_created", json!({"prompt": "x"})), "none");
    for (hostile, read) in [
        (json!({"id": {"a": [1]}, "at": "soon", "intervalMs": -5}), "at None after None"),
        (json!({"id": 3, "at": 1e300, "intervalMs": 1.5}), "at None after Some(1)"),
    ] {
        let read_so = schedule("session.schedule_created", hostile);
        assert!(read_so.contains(read), "{read_so}");
    }
}

#[test]
fn case_770_a_message_is_read_also_from_a_line_that_is_too_long_to_hold() {
    let said = |data: &str| {
        let line = line("assistant.message", data);
        parse(line.as_bytes()).unwrap().besides.message.map(|text| text.read(600).into_owned())
    };
    assert_eq!(said(r#"{"content":"It is\n\"done\".","toolRequests":[]}"#).as_deref(), Some("It is\n\"done\"."));
    assert_eq!(said(r#"{"content":"","toolRequests":[{"toolCallId":"t"}]}"#).as_deref(), Some(""));
    assert_eq!(said(r#"{"content":[7]}"#), None);
    let long =
        line("assistant.message", &format!(r#"{{"messageId":"m","content":"It \"says\" {}"}}"#, "x".repeat(1 << 20)));
    let (head, tail) = (&long.as_bytes()[..4096], &long.as_bytes()[long.len() - 4096..]);
    let message = parse_ends(head, tail).unwrap().besides.message.unwrap().read(20).into_owned();
    assert_eq!(message, "It \"says\" xxxxxxxxxx");
    let other = long.replace("assistant.message", "user.message");
    assert_eq!(parse_ends(&other.as_bytes()[..4096], tail).unwrap().besides.message, None);
}
