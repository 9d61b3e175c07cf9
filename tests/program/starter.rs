//! Who starts the tests: that decides nothing of what they find.

use crate::support::executable::executable;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a test program could be told by: its terminal and its parent, the variables of all that is above it, signals, umask
/// and open files.
const PROBE: &str = r#"#!/bin/bash
set -- "$@" $(sed 's/.*) //' /proc/$$/stat)
echo "arguments $1 $2"
echo "session $6"
echo "terminal $7"
echo "parent $PPID"
echo "runs $(tr '\0' ' ' </proc/$PPID/cmdline)"
for ((pid = $$; pid > 1; pid = $(awk '/^PPid:/ { print $2 }' /proc/$pid/status))); do
    above+=" $pid $(tr '\0' ' ' </proc/$pid/environ)"
done
echo "above $above"
# Of a child: bash itself ignores SIGQUIT. Without those that no program can set, which are the C library's.
echo "ignored $((0x$(awk '/^SigIgn:/ { print $2 }' /proc/self/status) & 0x7fffffff))"
echo "umask $(umask)"
echo "input $(readlink /proc/$$/fd/0)"
ls /proc/$$/fd >"$0.open"
echo "further $(awk '$1 > 2 && $1 < 255' "$0.open" | tr -d '\n')"
exit 7
"#;

#[test]
fn case_502_a_test_program_is_the_same_whoever_starts_it() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir(scratch.path().join("deps")).unwrap();
    let probe = scratch.path().join("deps/probe");
    executable(&probe, PROBE);
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/in-terminal.sh");
    let (runner, probe) = (runner.to_str().unwrap(), probe.to_str().unwrap());
    let run = format!("exec {runner} {probe} 'a b' c");
    let run_below = format!("{runner} {probe} 'a b' c");
    for starter in [
        vec!["sh", "-c", &run],
        vec!["setsid", "--wait", "sh", "-c", &run],
        vec!["env", "--ignore-signal", "SOMETHING=1", "CLAUDECODE=1", "sh", "-c", &run],
        vec!["sh", "-c", "umask 077; exec 9</etc/passwd <&- && eval \"$1\"", "sh", &run],
        // Its parent has ended.
        vec![
            "sh",
            "-c",
            "mkfifo \"$2\" && { (eval \"$1\"; echo $? >\"$2\") & } && read code <\"$2\" && exit $code",
            "sh",
            &run_below,
            &format!("{probe}.code"),
        ],
    ] {
        let mut command = Command::new(starter[0]);
        let ran = command.args(&starter[1..]).stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(ran.status.code(), Some(7), "{starter:?}\n{text}");
        let said: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        let is = |key: &str, value: &str| assert_eq!(said[key].trim(), value, "{starter:?}\n{text}");
        is("arguments", "a b c");
        is("session", said["parent"]);
        is("runs", "bash -i");
        assert_ne!(said["terminal"], "0", "{text}");
        is("ignored", "0");
        is("umask", "0022");
        is("input", "/dev/null");
        is("further", "");
        let above = format!(" {}", said["above"]);
        let own = std::process::id();
        assert!(!above.contains("CLAUDECODE") && !above.contains("SOMETHING"), "{starter:?}\n{text}");
        assert!(!above.contains(&format!(" {own} ")), "{starter:?}\n{text}");
    }
}
