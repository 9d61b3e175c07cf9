//! Verified servers that misbehave: what they send takes bounded memory in the tray and delays nobody else.

use super::trays::Tray;
use crate::support::executable::copy_program;
use crate::support::running_time::running_time;
use crate::support::synthetic::{Folder, User};
use crate::support::{SOON, wait_until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A server that answers as Copilot does, except for the flood named by its first argument.
const SERVER: &str = r##"
use strict; use IO::Socket::INET; use IO::Select; $SIG{PIPE} = "IGNORE"; $| = 1; alarm 120;
my ($how, $session, $folder) = @ARGV;
open my $hold, ">", "$folder/inuse.$$.hold" or die; flock $hold, 2 or die; # as Copilot does
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 0, Listen => 16) or die;
print "ready\n";
my $objects = '{"":0},' x 3_000_000;
my $some = '{"":0},' x 150_000;
sub frame { my ($to, $body) = @_; syswrite_all($to, "Content-Length: " . length($body) . "\r\n\r\n$body") }
sub syswrite_all {
    my ($to, $bytes) = @_; my $at = 0;
    while ($at < length $bytes) { my $n = syswrite $to, $bytes, 65536, $at; return 0 unless $n; $at += $n }
    return 1;
}
sub event { my ($kind, $data) = @_;
    qq({"jsonrpc":"2.0","method":"session.event","params":{"sessionId":"SESSION","event":{"type":"$kind","data":$data,"id":"e","timestamp":"2026-11-20T18:07:25.003Z","parentId":null}}}) }
sub answer { my ($to, $id, $method) = @_;
    my $result = "{}";
    $result = '{"ok":true,"protocolVersion":3,"version":"1.0.102"}' if $method eq "connect";
    $result = '{"abortable":true,"hasActiveWork":true}' if $method eq "session.metadata.activity";
    if ($method eq "session.permissions.pendingRequests") {
        $result = '{"items":[]}';
        $result = "{\"items\":[${objects}0]}" if $how eq "answer";
        my $deep = "[" x 100 . "0,1" . "]" x 100;
        my $lists = "$deep," x 36;
        my $text = "x\\u0001" x 120_000;
        $result = qq({"items":[{"requestId":"r","request":{"kind":"strange","lists":[${lists}0],"text":"$text"}}]}) if $how eq "dense";
    }
    $result = '{"success":false}' if $method =~ /handlePending/;
    frame($to, qq({"jsonrpc":"2.0","id":$id,"result":$result}));
}
my @flood = map { my $body = $_; $body =~ s/SESSION/$session/; "Content-Length: " . length($body) . "\r\n\r\n$body" } (
    event("tool.execution_complete", "{\"result\":[${objects}0]}"),
    event("permission.requested", "{\"requestId\":\"r\",\"permissionRequest\":{\"kind\":\"commands\",\"a\":[${some}0]}}"),
    event("permission.requested", '{"requestId":"r","permissionRequest":{"kind":"commands","fullCommandText":"' . "x" x 500_000 . '"}}'),
    map({ event("session.idle", "{}") } 1 .. 200), map({ event("assistant.message_delta", '{"delta":"x"}') } 1 .. 200),
    map({ '{"jsonrpc":"2.0","method":"session.lifecycle","params":{"type":"x","sessionId":"SESSION"}}' } 1 .. 200),
);
@flood = map { '{"jsonrpc":"2.0","id":' . $_ . ',"method":"tool.call","params":{"sessionId":"SESSION","x":"y"}}' } 1 .. 5000 if $how eq "calls";
@flood = map { /^Content/ ? $_ : "Content-Length: " . length($_) . "\r\n\r\n$_" } @flood;
while (my $to = $listener->accept) {
    binmode $to; my ($in, $flooding, $next) = ("", 0, 0);
    my $select = IO::Select->new($to);
    while (1) {
        if (!$flooding || $select->can_read(0)) {
            my $n = sysread $to, my $more, 65536; last unless $n; $in .= $more;
        }
        while ($in =~ /^Content-Length: (\d+)\r\n\r\n/ && length($in) >= $+[0] + $1) {
            my $call = substr $in, $+[0], $1; substr($in, 0, $+[0] + $1) = "";
            my ($id) = $call =~ /"id":(\d+)/; my ($method) = $call =~ /"method":"([^"]*)"/;
            answer($to, $id, $method) if defined $id && defined $method;
            $flooding = 1 if defined $method && $method eq "session.resume" && $how =~ /events|calls/;
        }
        if ($flooding) { last unless syswrite_all($to, $flood[$next++ % @flood]) }
    }
    print "left after $next frames\n" if $flooding;
}
"##;

/// Runs one flood at a time, because memory and delays are measured.
static ALONE: Mutex<()> = Mutex::new(());

/// [`SERVER`] under Copilot's name, as the owner of a session with an open request.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    session: Folder,
}

impl Server {
    fn start(user: &User, how: &str) -> Self {
        let session = user.session(1);
        session.workspace(&format!("id: {}\ncwd: /home/dev/project\nclient_name: sdk\n", session.id));
        let program = user.scratch.path().join("server").join("copilot");
        fs::create_dir(program.parent().unwrap()).unwrap();
        copy_program("/usr/bin/perl", &program);
        let mut command = Command::new(&program);
        command
            .args(["-e", SERVER, how, &session.id])
            .arg(&session.path)
            .arg0("copilot")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        session.lock(child.id());
        session.prompt();
        session.log_event("tool.execution_start", r#"{"toolCallId":"c","toolName":"bash","arguments":{}}"#);
        let asks = r#"{"requestId":"r","permissionRequest":{"kind":"shell","toolCallId":"c","fullCommandText":"ls"}}"#;
        session.log_event("permission.requested", asks);
        let mut server = Self { child, output, session };
        assert_eq!(server.next_line(), "ready\n");
        server
    }

    /// The next line of its output.
    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A memory figure from `/proc/PID/status`, in KiB.
fn memory(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

/// The growth of a tray's memory, in KiB.
struct Growth {
    pid: u32,
    /// Anonymous memory: without the program's own pages, which are loaded as needed.
    anonymous: u64,
}

impl Growth {
    fn of(tray: &Tray) -> Self {
        let pid = tray.pid();
        fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
        Self { pid, anonymous: memory(pid, "RssAnon") }
    }

    /// Without the pages of the program's own file, which are loaded as needed and take 31 MiB of a debug build.
    fn is_bounded(&self, what: &str) {
        let own = memory(self.pid, "VmHWM") - memory(self.pid, "RssFile");
        println!("{what}: {} KiB before, {own} KiB of its own at most", self.anonymous);
        assert!(own < 16 << 10, "{what}: {} KiB, then {own} KiB", self.anonymous);
    }

    fn is_released(&self) {
        let grown = || memory(self.pid, "RssAnon").saturating_sub(self.anonymous);
        wait_until(
            SOON,
            "memory is released",
            || format!("{} KiB more", grown()),
            || (grown() < 8 << 10).then_some(()),
        );
    }
}

/// Standard output and standard error.
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Has the same tray answer a command for another session. Returns how long that took.
fn other_command(user: &User, other: &Folder) -> Duration {
    let begun = running_time();
    let output = user.run(&["approve", "--yes", &other.id]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    running_time() - begun
}

#[test]
fn case_135_an_answer_of_21_mb_fails_only_its_own_call() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let user = User::new();
    let server = Server::start(&user, "answer");
    let other = user.session(2);
    let _owner = other.owner(&user);
    other.prompt();
    let tray = Tray::start(&user);
    other_command(&user, &other);
    let growth = Growth::of(&tray);
    for _ in 0..3 {
        let approve =
            user.pilotlight(&["approve", "--yes", &server.session.id]).stderr(Stdio::piped()).spawn().unwrap();
        let took = other_command(&user, &other);
        println!("another session's command was answered after {took:?}");
        assert!(took < Duration::from_secs(5), "{took:?}");
        let output = approve.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output).contains("sent more than Pilotlight takes at once"), "{output:?}");
    }
    growth.is_bounded("an answer of 21 MB");
    growth.is_released();
}

/// Its kind is unknown, so it is shown as raw JSON.
#[test]
fn case_135_the_largest_request_is_shown_in_full_in_bounded_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let user = User::new();
    let server = Server::start(&user, "dense");
    let tray = Tray::start(&user);
    let growth = Growth::of(&tray);
    let output = user.run(&["approve", "--yes", &server.session.id]);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("its log says something else than the request"),
        "{output:.2000?}"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches('x').count(), 120_000 + text.matches("text").count(), "shown in full");
    growth.is_bounded("the largest request");
    growth.is_released();
}

#[test]
fn case_135_a_flood_of_events_takes_bounded_memory_and_delays_nobody() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let user = User::new();
    let server = Server::start(&user, "events");
    let other = user.session(2);
    let _owner = other.owner(&user);
    other.prompt();
    let tray = Tray::start(&user);
    other_command(&user, &other);
    let growth = Growth::of(&tray);
    let attached = user.run(&["reconnect", &server.session.id]);
    assert_eq!(attached.status.code(), Some(0), "{attached:?}");
    let (begun, mut worst) = (Instant::now(), Duration::ZERO);
    while begun.elapsed() < Duration::from_secs(6) {
        worst = worst.max(other_command(&user, &other));
    }
    println!("during the flood another session's command is answered after {worst:?} at most");
    assert!(worst < Duration::from_secs(5), "{worst:?}");
    growth.is_bounded("a flood of events");
    drop(server);
    growth.is_released();
}

/// Each call of a server needs an answer, so we disconnect from a server that sends thousands.
#[test]
fn case_135_a_flood_of_calls_ends_the_connection() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let user = User::new();
    let mut server = Server::start(&user, "calls");
    let tray = Tray::start(&user);
    let growth = Growth::of(&tray);
    let _ = user.run(&["reconnect", &server.session.id]); // the connection may end before the command does
    let line = server.next_line();
    assert!(line.starts_with("left after "), "{line:?}");
    growth.is_bounded("a flood of calls");
    growth.is_released();
}
