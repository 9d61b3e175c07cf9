//! The text for other bars, printed by the real program: once, and at each change.

use crate::support::desktop::sessions::Sessions;
use crate::support::desktop::tray::User;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const FORMATS: [&str; 4] = ["waybar", "tmux", "swiftbar", "plain"];

#[test]
fn status_prints_each_format_once() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let hostile = sessions.add("<b>#(touch x)</b> & | bash=x");
    hostile.prompt();
    hostile.tool("c1", "bash", "npm test");
    hostile.ask("r1", "c1");
    let status = |format: &str| {
        let output = user.command(None, &["status", "--format", format]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let waybar: Value = serde_json::from_str(&status("waybar")).unwrap();
    assert_eq!(waybar["text"], "⚑1 work · &lt;b&gt;#(touch x)&lt;/b&gt; &amp; | ba…");
    assert_eq!(waybar["class"][0], "needs-you");
    assert_eq!(status("tmux"), "#[fg=yellow]⚑1 work · <b>##(touch x)</b> & | ba…: x#[default]\n");
    assert_eq!(status("plain"), "⚑1 work · <b>#(touch x)</b> & | ba…: x\n");
    assert!(status("swiftbar").contains("⚑ work · <b>#(touch x)</b> & ¦ bash=x · needs-permission | emojize=false"));
    assert!(!user.scratch.path().join("x").exists());
}

#[test]
fn watch_prints_a_line_for_each_change_and_nothing_else() {
    let sessions = Sessions::new();
    let user = User::new(&sessions);
    let session = sessions.add("Paint the fence");
    let mut watch = user.command(None, &["watch", "--format", "plain"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "✓1");
    session.prompt();
    assert_eq!(lines.next().unwrap(), "▶1");
    session.metric();
    session.tool("c1", "bash", "npm test");
    session.ask("r1", "c1");
    assert_eq!(lines.next().unwrap(), "⚑1 work · Paint the fence: x");
    session.permit("r1");
    assert_eq!(lines.next().unwrap(), "▶1");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn without_a_session_or_a_home_there_is_still_a_text() {
    let user = User::new(&Sessions::new());
    for format in FORMATS {
        let output = user.command(None, &["status", "--format", format]).output().unwrap();
        // The home was deleted with the sessions.
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(String::from_utf8(output.stdout).unwrap().contains('○'), "{format}");
    }
    for wrong in [&["status", "--format", "dance"][..], &["status", "--format", "plain", "--json"], &["watch"]] {
        assert_eq!(user.command(None, wrong).output().unwrap().status.code(), Some(2), "{wrong:?}");
    }
}
