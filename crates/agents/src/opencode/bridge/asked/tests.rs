use super::*;
use pilotlight_core::form::FormAnswer;

const SESSION: &str = "ses_dd7b167b2ffe5gnPmK3no8yF8X";

/// A permission as opencode 1.18.33 asks for it.
fn permission(name: &str, patterns: &Value, metadata: &Value) -> Value {
    json!({"v": 1, "kind": "permission", "session": SESSION, "directory": "/p", "title": "Paint the fence", "request": {
        "id": "per_2284ea32a001", "sessionID": SESSION, "permission": name, "patterns": patterns, "metadata": metadata,
        "always": ["touch *"], "tool": {"messageID": "msg_1", "callID": "call_1"}}})
}

fn question(questions: &Value) -> Value {
    json!({"v": 1, "kind": "question", "session": SESSION, "directory": "/p",
        "request": {"id": "que_2284f656d001", "sessionID": SESSION, "questions": questions}})
}

fn read(input: &Value) -> Option<Asked> {
    Asked::read(input.to_string().as_bytes())
}

fn shown(name: &str, patterns: &Value, metadata: &Value) -> Request {
    read(&permission(name, patterns, metadata)).unwrap().request("r").unwrap()
}

#[test]
fn case_780_what_a_tool_is_to_do_is_shown_whole() {
    let bash = shown("bash", &json!(["touch made", "ls"]), &json!({"command": "touch made; ls"}));
    assert_eq!((&*bash.kind, bash.decisive().as_deref()), ("commands", Some("touch made; ls")));
    let diff = "Index: /p/x\n--- /p/x\n+++ /p/x\n@@ -1 +1 @@\n-a\n+b\n";
    let edit = shown("edit", &json!(["p/x"]), &json!({"filepath": "/p/x", "diff": diff}));
    assert_eq!((&*edit.kind, edit.text), ("write", format!("/p/x\n\n{diff}")));
    let fetch = shown("webfetch", &json!(["http://x/"]), &json!({"url": "http://x/", "format": "text"}));
    assert_eq!((&*fetch.kind, fetch.decisive().as_deref()), ("url", Some("http://x/")));
    let outside = json!({"filepath": "/etc/hostname", "parentDir": "/etc"});
    let outside = shown("external_directory", &json!(["/etc/*"]), &outside);
    assert_eq!((&*outside.kind, outside.decisive().as_deref()), ("path", Some("/etc/hostname")));
    let read = shown("read", &json!(["/p/.env"]), &json!({}));
    assert_eq!((&*read.kind, read.decisive().as_deref()), ("read", Some("/p/.env")));
}

#[test]
fn case_780_what_is_not_known_is_shown_as_it_is_and_never_by_a_button_alone() {
    for (name, patterns, metadata) in [
        ("bash", json!(["ls"]), json!({"command": "ls", "workdir": "/etc"})),
        ("bash", json!(["ls"]), json!({"command": 7})),
        ("edit", json!(["x"]), json!({"filepath": "/x", "diff": "", "files": [1]})),
        ("external_directory", json!(["/etc/*", "/srv/*"]), json!({"filepath": "/etc/x", "parentDir": "/etc"})),
        ("external_directory", json!(["/*"]), json!({"filepath": "/etc/x", "parentDir": "/etc"})),
        ("external_directory", json!(["/etc/*"]), json!({"command": "ls /etc", "directories": ["/etc"]})),
        ("read", json!(["/a", "/b"]), json!({})),
        ("files_delete", json!(["*"]), json!({})),
        ("commands", json!(["*"]), json!({"fullCommandText": "ls"})),
        ("a\u{202e}b", json!(["*"]), json!({})),
        (&"x".repeat(4000), json!(["*"]), json!({})),
    ] {
        let request = shown(name, &patterns, &metadata);
        assert_eq!(request.decisive(), None, "{request:?}");
        assert!(request.kind.len() <= KIND_MAX && !request.kind.contains('\u{202e}'), "{request:?}");
        for value in metadata.as_object().unwrap().keys() {
            assert!(request.shown().text.contains(value.as_str()), "{request:?}");
        }
    }
}

#[test]
fn case_781_an_input_of_another_form_is_nothing() {
    let good = permission("bash", &json!(["ls"]), &json!({"command": "ls"}));
    assert!(read(&good).is_some());
    let with = |path: &str, value: Value| {
        let mut other = good.clone();
        *other.pointer_mut(path).unwrap() = value;
        other
    };
    for other in [
        json!(null),
        json!([]),
        with("/v", json!(2)),
        with("/kind", json!("plan")),
        with("/kind", json!("question")),
        with("/session", json!("../x")),
        with("/session", json!("")),
        with("/session", json!("a\u{202e}b")),
        with("/request/id", json!("")),
        with("/request/id", json!(1)),
        with("/request/permission", json!("")),
        with("/request/patterns", json!("ls")),
        with("/request", json!({})),
    ] {
        assert_eq!(read(&other), None, "{other}");
    }
    for text in ["", "{", "\u{0}", "[[[["] {
        assert_eq!(Asked::read(text.as_bytes()), None);
    }
}

#[test]
fn case_781_its_folder_and_title_are_bounded_and_a_sub_agent_is_told() {
    let mut hostile = permission("bash", &json!(["ls"]), &json!({"command": "ls"}));
    hostile["title"] = format!("a\u{1b}[2J\n\u{202e}{}", "x".repeat(1 << 20)).into();
    hostile["request"]["sessionID"] = "ses_child".into();
    let asked = read(&hostile).unwrap();
    let title = asked.about.name.as_deref().unwrap();
    assert!(title.chars().count() <= NAME_MAX && !title.contains(['\u{1b}', '\n', '\u{202e}']), "{title:?}");
    assert_eq!((asked.about.cwd.as_deref(), asked.sub_agent.as_deref()), (Some("/p"), Some("ses_child")));
    let open = asked.open_request("r", Moment::default()).unwrap();
    assert_eq!((&*open.kind, open.asks.as_deref(), open.over_bridge.is_some()), ("shell", Some("ls"), true));
}

#[test]
fn case_782_an_approval_is_for_once_and_a_denial_goes_on_or_stops() {
    let asked = read(&permission("bash", &json!(["ls"]), &json!({"command": "ls"}))).unwrap();
    let given = |decision: &Decision| asked.output(decision);
    let deny = |note: Option<&str>, stop| Decision::Deny(Denial { note: note.map(Into::into), stop });
    assert_eq!(given(&Decision::Approve), Ok(json!({"reply": "once"})));
    assert_eq!(given(&deny(None, false)), Ok(json!({"reply": "reject", "message": DENIED})));
    assert_eq!(given(&deny(Some("Use a brush"), false)), Ok(json!({"reply": "reject", "message": "Use a brush"})));
    assert_eq!(given(&deny(None, true)), Ok(json!({"reply": "reject"})));
    assert_eq!(given(&deny(Some("Use a brush"), true)), Err(NOT_BOTH));
    assert_eq!(given(&Decision::Always { rules: "touch *".into() }), Err(NO_RULES));
}

#[test]
fn case_783_questions_are_answered_in_their_order() {
    let colour = json!({"question": "Which colour?", "header": "Colour",
        "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]});
    let sizes = json!({"question": "Which sizes?", "header": "Sizes", "multiple": true,
        "options": [{"label": "S", "description": ""}, {"label": "L", "description": ""}]});
    let answered = |questions: &Value, answer: &FormAnswer| {
        let asked = read(&question(questions)).unwrap();
        let form = asked.question("r").unwrap().1?;
        Ok::<_, &str>(asked.reply(&form.result(answer)?).unwrap()["answers"].clone())
    };
    let one = json!([colour]);
    assert_eq!(answered(&one, &FormAnswer::Choice(1)), Ok(json!([["Blue"]])));
    assert_eq!(answered(&one, &FormAnswer::Text("Green, rather".into())), Ok(json!([["Green, rather"]])));
    assert_eq!(answered(&one, &FormAnswer::Decline), Ok(json!([[DECLINED]])));
    let fields = json!({"Sizes": ["S", "L"], "Colour": "Blue"});
    let fields = FormAnswer::Fields(fields.as_object().unwrap().clone());
    assert_eq!(answered(&json!([colour, sizes]), &fields), Ok(json!([["Blue"], ["S", "L"]])));
    assert_eq!(answered(&json!([colour, sizes]), &FormAnswer::Decline), Ok(json!([[DECLINED], [DECLINED]])));
    let mut closed = colour.clone();
    closed["custom"] = false.into();
    assert!(answered(&json!([closed]), &FormAnswer::Text("Green".into())).is_err());
    let words = json!([{"question": "What name?", "header": "Name", "options": []}]);
    assert_eq!(answered(&words, &FormAnswer::Text("Ada".into())), Ok(json!([["Ada"]])));
    let many: Vec<_> = (0..500).map(|n| json!({"label": format!("choice {n}")})).collect();
    for unknown in [
        json!([]),
        json!("Which?"),
        json!([{"question": "Which?"}]),
        json!([{"question": "Which?", "header": "W", "options": many}]),
        json!([{"question": "Which?", "options": [{"label": "a"}, {"label": "a"}]}]),
    ] {
        assert!(read(&question(&unknown)).unwrap().question("r").unwrap().1.is_err(), "{unknown}");
    }
    let (shown, _) = read(&question(&one)).unwrap().question("r").unwrap();
    assert_eq!(&*shown.unwrap().text, "Which colour?");
}
