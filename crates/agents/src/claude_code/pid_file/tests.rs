use super::*;

#[test]
fn only_names_that_are_all_digits_are_files_of_processes() {
    assert_eq!(pid_of("123.json"), Some(123));
    let key = format!("123.{}.key", "0".repeat(64));
    for other in [&*key, "123.key", "a.json", "-1.json", "1.2.json", ".json", "123.json.tmp", "99999999999.json"] {
        assert_eq!(pid_of(other), None, "{other}");
    }
}

#[test]
fn a_files_states_are_read_and_spare_processes_are_none() {
    let parse = |text: &str| PidFile::parse(Path::new("/home"), &serde_json::from_str(text).unwrap());
    let of = |more: &str| parse(&format!("{{\"pid\":7,\"sessionId\":\"a-1\"{more}}}"));
    assert_eq!(of("").unwrap().state, None);
    assert_eq!(of(",\"status\":\"shell\"").unwrap().state, Some(State::Idle { shell: true }));
    assert_eq!(
        of(",\"status\":\"waiting\",\"waitingFor\":\"permission prompt\"").unwrap().state,
        Some(State::Waiting(Wait::Permission))
    );
    assert_eq!(
        of(",\"status\":\"waiting\",\"waitingFor\":\"something new\"").unwrap().state,
        Some(State::Waiting(Wait::Input))
    );
    assert_eq!(of(",\"status\":\"something new\"").unwrap().state, None);
    assert_eq!(of(",\"spare\":true"), None);
    assert_eq!(of(",\"kind\":\"bg\""), None, "started again, it names another session for a moment");
    assert_eq!(parse("{\"pid\":7,\"sessionId\":\"../../x\"}"), None);
    let panes =
        ["s:@0.%12", "s:@0.%", "s", "s:@0.%1;kill"].map(|tmux| of(&format!(",\"tmux\":\"{tmux}\"")).unwrap().pane);
    assert_eq!(panes, [Some("%12".into()), None, None, None]);
}

/// Case 582: what hides behind too many files is not known, and none of them is read.
#[test]
fn case_582_a_folder_with_too_many_files_cannot_be_listed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(FOLDER);
    fs::create_dir(&folder).unwrap();
    for pid in 1..=FILES_MAX {
        fs::write(folder.join(format!("{pid}.json")), "").unwrap();
    }
    assert_eq!(pids(home.path()).unwrap().len(), FILES_MAX);
    fs::write(folder.join("0.json"), "").unwrap();
    assert_eq!(
        list(home.path()).unwrap_err().to_string(),
        "it has more than 1000 files: remove those of old processes"
    );
}
