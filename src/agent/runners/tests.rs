use super::*;
use std::os::unix::fs::symlink;

#[test]
fn case_510_homes_share_a_log_by_a_link_to_all_of_them_to_a_folder_or_by_a_relative_one() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().join(path);
    fs::create_dir_all(at("one/projects/-a")).unwrap();
    fs::write(at("one/projects/-a/x.jsonl"), "").unwrap();
    for home in ["whole", "relative", "part", "copy", "loop"] {
        fs::create_dir(at(home)).unwrap();
    }
    symlink(at("one/projects"), at("whole/projects")).unwrap();
    symlink("../one/projects", at("relative/projects")).unwrap();
    fs::create_dir(at("part/projects")).unwrap();
    symlink(at("one/projects/-a"), at("part/projects/-a")).unwrap();
    fs::create_dir_all(at("copy/projects/-a")).unwrap();
    fs::write(at("copy/projects/-a/x.jsonl"), "").unwrap();
    symlink(at("loop/projects"), at("loop/projects")).unwrap();
    let (root, log) = (at("one/projects"), at("one/projects/-a/x.jsonl"));
    for (home, is_shared) in [
        ("one", true),
        ("whole", true),
        ("relative", true),
        ("part", true),
        ("copy", false),
        ("loop", false),
        ("absent", false),
    ] {
        assert_eq!(shares(&at(home).join("projects"), &root, &log), is_shared, "{home}");
        let there = at(home).join("projects");
        assert_eq!(shares(&root, &there, &there.join("-a/x.jsonl")), is_shared, "from {home}");
    }
    // A session that was not prompted yet has no log.
    assert!(shares(&at("whole/projects"), &root, &root.join("-a/none.jsonl")));
    assert!(!shares(&at("part/projects"), &root, &root.join("-a/none.jsonl")));
}

#[test]
fn a_home_is_named_by_its_variable_or_is_in_the_users() {
    let variables =
        |set: &[(&str, &str)]| set.iter().map(|(name, value)| (name.into(), value.into())).collect::<Vec<_>>();
    let home = |set: &[(&str, &str)]| home_in(&variables(set), "CODEX_HOME", ".codex");
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "/c")]), Some("/c".into()));
    assert_eq!(home(&[("HOME", "/h"), ("CODEX_HOME", "")]), Some("/h/.codex".into()));
    assert_eq!(home(&[]), None);
}
