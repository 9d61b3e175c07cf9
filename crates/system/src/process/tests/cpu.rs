//! CPU time below a shell, on Linux.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use crate::process::testing::{Running, wait_until};
use crate::process::{CpuSample, cpu_of_descendants};
use pilotlight_core::time::Span;

/// More ticks than chance accounts for.
const BUSY: Span = Span(50);

struct Shell {
    process: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn run(script: &str) -> Self {
        let mut command = Command::new("sh");
        let mut process = Running::start(command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()));
        let input = process.0.stdin.take().unwrap();
        let output = BufReader::new(process.0.stdout.take().unwrap());
        Self { process, input, output }
    }

    fn sample(&self) -> CpuSample {
        cpu_of_descendants(self.process.pid()).unwrap()
    }

    fn says(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), expected);
    }
}

#[test]
fn a_busy_grandchild_counts_and_sleepers_do_not() {
    let mut busy = Shell::run("sh -c 'sh -c \"echo ready; while :; do :; done\"; :'; :");
    let mut idle = Shell::run("sh -c 'sh -c \"echo ready; read line\"; :'; :");
    busy.says("ready");
    idle.says("ready");
    let [busy_before, idle_before] = [busy.sample(), idle.sample()];
    assert_eq!([busy_before.descendants(), idle_before.descendants()], [2, 2]);
    wait_until("CPU time of the busy one", || busy.sample().used_since(&busy_before) >= BUSY);
    assert_eq!(idle.sample().used_since(&idle_before), Span::ZERO);
}

#[test]
fn the_process_itself_does_not_count() {
    let mut shell = Shell::run("exec 3<&0; sh -c 'read line; :' <&3 & echo ready; while :; do :; done");
    let mut other = Shell::run("sh -c 'echo ready; while :; do :; done'; :");
    shell.says("ready");
    other.says("ready");
    wait_until("its child", || shell.sample().descendants() == 1);
    let [before, other_before] = [shell.sample(), other.sample()];
    wait_until("time to pass", || other.sample().used_since(&other_before) >= BUSY);
    assert!(shell.sample().used_since(&before) < BUSY);
}

/// A build starts hundreds of short processes, and a sample catches few of them.
#[test]
fn a_process_that_ended_between_the_samples_counts() {
    let mut shell = Shell::run(
        "sh -c 'echo ready; read line; (i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); echo done; read line; :'; :",
    );
    shell.says("ready");
    let before = shell.sample();
    shell.input.write_all(b"go\n").unwrap();
    shell.says("done");
    let after = shell.sample();
    assert_eq!([before.descendants(), after.descendants()], [1, 1]);
    assert!(after.used_since(&before) >= BUSY, "{:?}", after.used_since(&before));
    assert_eq!(shell.sample().used_since(&after), Span::ZERO);
}

#[test]
fn a_new_child_counts_in_full() {
    let mut shell = Shell::run("echo ready; read line; sh -c 'while :; do :; done'; :");
    shell.says("ready");
    let before = shell.sample();
    assert_eq!(before.descendants(), 0);
    shell.input.write_all(b"go\n").unwrap();
    wait_until("CPU time of the new one", || shell.sample().used_since(&before) >= BUSY);
}
