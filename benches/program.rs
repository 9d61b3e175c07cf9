//! Measures the whole program on a generated home: 3,000 sessions of which 20 are live; then with none and 200 live.
//!
//! Prints the time of a listing, with the logs in memory and on disk, the latency from a write to the line on the pipe,
//! the idle cost, and the memory. Linux only: it reads /proc. The tray is measured by the bench `tray`.
//!
//!     cargo bench --bench program            # 3,000 sessions, idle over 10 s
//!     cargo bench --bench program -- 10000 60

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this benchmark reads /proc: it runs on Linux");
}

#[cfg(target_os = "linux")]
#[path = "../tests/support/synthetic/holder.rs"]
#[expect(clippy::unwrap_used, clippy::expect_used, reason = "a failing benchmark stops")]
mod holder;

#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, reason = "a failing benchmark stops")]
mod linux {
    use super::holder;
    use std::fs::{self, OpenOptions};
    use std::io::{BufRead, BufReader, Write};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    const LIVE: usize = 20;
    const CHANGES: usize = 300;
    /// The time from one change to the next. Changes that follow each other within 40 ms are handled in batches.
    const GAP: Duration = Duration::from_millis(60);
    const ENDED: &[u8] = include_bytes!(
        "../tests/traces/01-normal-two-tools-destroyed/36535f61-5c7b-4f09-a70b-2f8aed97280f/events.jsonl"
    );

    pub(super) fn main() {
        let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
        let sessions = numbers.next().unwrap_or(3000);
        let idle = Duration::from_secs(numbers.next().unwrap_or(10) as u64);
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::make(&scratch.path().join("usual"), sessions, LIVE);
        println!("{sessions} sessions, {LIVE} live, {} MB of logs", sessions * ENDED.len() / 1_000_000);
        for args in [&["status", "--json"][..], &["status", "--all", "--json"]] {
            home.list(args); // once to warm the page cache
            let mut times: Vec<_> = (0..9).map(|_| home.list(args)).collect();
            times.sort_unstable();
            println!("{:<34}{:>9.1} ms (median of 9; least {:.1})", args.join(" "), millis(times[4]), millis(times[0]));
        }
        let mut times: Vec<_> = (0..3)
            .map(|_| {
                home.evict_logs();
                home.list(&["status", "--all", "--json"])
            })
            .collect();
        times.sort_unstable();
        println!("{:<34}{:>9.1} ms (least of 3)", "the same, logs not in memory", millis(times[0]));
        home.watch(idle, CHANGES);
        drop(home);
        for live in [0, 200] {
            let home = Home::make(&scratch.path().join(live.to_string()), sessions, live);
            println!("{sessions} sessions, {live} live");
            home.watch(idle, 0);
        }
    }

    struct Home {
        path: PathBuf,
        owners: Vec<Child>,
    }

    impl Home {
        fn make(scratch: &Path, sessions: usize, live: usize) -> Self {
            let path = scratch.join(".copilot");
            let program = scratch.join("copilot");
            fs::create_dir_all(scratch).unwrap();
            fs::copy("/bin/sleep", &program).unwrap();
            let mut owners = Vec::new();
            for n in 0..sessions {
                let folder = path.join("session-state").join(id(n));
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("workspace.yaml"), format!("name: Session {n}\ncwd: /home/dev/p{}\n", n % 50))
                    .unwrap();
                let log = folder.join("events.jsonl");
                if n < live {
                    fs::write(&log, ENDED.split_inclusive(|&byte| byte == b'\n').take(19).collect::<Vec<_>>().concat())
                        .unwrap();
                    let owner = holder::start(&program, &folder, false);
                    fs::write(folder.join(format!("inuse.{}.lock", owner.id())), format!("{}\n", owner.id())).unwrap();
                    owners.push(owner);
                } else {
                    fs::write(&log, ENDED).unwrap();
                    let age = Duration::from_secs(3600 + 2500 * n as u64);
                    let at = fs::metadata(&log).unwrap().modified().unwrap() - age;
                    OpenOptions::new().append(true).open(&log).unwrap().set_modified(at).unwrap();
                }
            }
            Self { path, owners }
        }

        fn program(&self, args: &[&str]) -> Command {
            let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
            command.args(args).arg("--home").arg(&self.path).env("HOME", self.path.parent().unwrap());
            command
        }

        /// Evicts the logs from the page cache, as far as the system allows.
        fn evict_logs(&self) {
            for folder in fs::read_dir(self.path.join("session-state")).unwrap() {
                let log = fs::File::open(folder.unwrap().path().join("events.jsonl")).unwrap();
                log.sync_all().unwrap();
                rustix::fs::fadvise(&log, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            }
        }

        fn list(&self, args: &[&str]) -> Duration {
            let start = Instant::now();
            let output = self.program(args).output().unwrap();
            let took = start.elapsed();
            assert!(output.status.success());
            took
        }

        /// Measures `watch --json`: the latency of changes, the idle cost and the memory.
        fn watch(&self, idle: Duration, changes: usize) {
            let mut child = self.program(&["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
            let (sender, lines) = channel();
            let out = BufReader::new(child.stdout.take().unwrap());
            std::thread::spawn(move || {
                for line in out.lines().map_while(Result::ok) {
                    if sender.send((Instant::now(), line)).is_err() {
                        return;
                    }
                }
            });
            // After a second without a line, all sessions are listed and all folders watched.
            while lines.recv_timeout(Duration::from_secs(1)).is_ok() {}
            let mut took: Vec<_> = (0..changes)
                .map(|n| {
                    #[expect(clippy::disallowed_methods, reason = "the gap is part of the measurement")]
                    std::thread::sleep(GAP);
                    self.change(n, &lines)
                })
                .collect();
            took.sort_unstable();
            let at = |share: f64| millis(took[((took.len() - 1) as f64 * share) as usize]);
            if changes > 0 {
                println!(
                    "{:<34}{:>9.3} ms (p95 {:.3}, p99 {:.3}, of {changes})",
                    "append -> line, p50",
                    at(0.5),
                    at(0.95),
                    at(0.99)
                );
            }
            while lines.recv_timeout(Duration::from_secs(1)).is_ok() {}
            let before = switches(child.id());
            let end = Instant::now() + idle;
            // The wait is the measurement. Lines with an age are updated once a minute.
            let count = std::iter::from_fn(|| lines.recv_timeout(end - Instant::now()).ok()).count();
            let switches = switches(child.id()) - before;
            println!(
                "{:<34}{:>9.2} a second over {idle:?}, {count} lines",
                "context switches, idle",
                switches as f64 / idle.as_secs_f64()
            );
            println!(
                "{:<34}{:>9.1} MiB (peak {:.1})",
                "memory, watch",
                memory(child.id(), "VmRSS:"),
                memory(child.id(), "VmHWM:")
            );
            child.kill().unwrap();
            child.wait().unwrap();
        }

        /// Toggles a session between working and idle, and waits for the line.
        fn change(&self, n: usize, lines: &Receiver<(Instant, String)>) -> Duration {
            let session = id(n / 2 % LIVE);
            let at = jiff::Timestamp::now();
            let event = |kind: &str, data: &str, m: usize| {
                format!(
                    "{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"{n}-{m}\",\"timestamp\":\"{at:.3}\",\"parentId\":null}}\n"
                )
            };
            let (batch, status) = if n.is_multiple_of(2) {
                (event("user.message", "{\"content\":\"go on\"}", 0), "\"working\"")
            } else {
                let answer = event("assistant.message", "{\"content\":\"Done.\",\"toolRequests\":[]}", 1);
                (answer + &event("assistant.turn_end", "{}", 2), "\"idle\"")
            };
            let log = self.path.join("session-state").join(&session).join("events.jsonl");
            let mut log = OpenOptions::new().append(true).open(log).unwrap();
            let start = Instant::now();
            log.write_all(batch.as_bytes()).unwrap();
            drop(log);
            loop {
                let (at, line) = lines.recv_timeout(Duration::from_secs(5)).unwrap();
                if line.contains(&session) && line.contains(status) {
                    return at - start;
                }
            }
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            for owner in &mut self.owners {
                let _ = owner.kill();
                let _ = owner.wait();
            }
        }
    }

    fn id(n: usize) -> String {
        format!("{n:08x}-0000-4000-a000-000000000000")
    }

    fn millis(time: Duration) -> f64 {
        time.as_secs_f64() * 1e3
    }

    fn status_field(text: &str, name: &str) -> u64 {
        let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// The context switches of all threads so far.
    fn switches(pid: u32) -> u64 {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let of = |path: PathBuf| {
            let status = fs::read_to_string(path.join("status")).unwrap();
            status_field(&status, "voluntary_ctxt_switches:") + status_field(&status, "nonvoluntary_ctxt_switches:")
        };
        threads.map(|thread| of(thread.unwrap().path())).sum()
    }

    fn memory(pid: u32, field: &str) -> f64 {
        status_field(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap(), field) as f64 / 1024.0
    }
}
