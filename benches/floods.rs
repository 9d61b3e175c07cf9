//! Does everything at once that one session, folder or home can do to the others: a log of a terabyte, one that grows
//! faster than it is read, twenty thousand locks in a folder, storms of folders that are created and deleted. At the
//! same time, one session alternates between working and idle.
//!
//! Prints how late that session's changes are reported, and how long the program takes to exit in the middle of it.
//! Linux only.
//!
//!     cargo bench --bench floods             # 500 changes, storms of 5,000 folders
//!     cargo bench --bench floods -- 2000 5000

#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this benchmark makes sparse files: it runs on Linux");
}

#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, reason = "a failing benchmark stops")]
mod linux {
    use crate::support::synthetic::User;
    use rustix::process::Signal;
    use std::fs::{self, File, OpenOptions};
    use std::io::{Seek, SeekFrom, Write};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    pub(super) fn main() {
        let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
        let changes: u32 = numbers.next().unwrap_or(500);
        let folders: u32 = numbers.next().unwrap_or(5000);
        let user = User::new();
        let [other, huge, fast, full] = [0, 1, 2, 3].map(|n| user.session(n));
        let _owners = [&other, &huge, &fast, &full].map(|session| session.owner(&user));
        for session in [&other, &huge, &fast, &full] {
            session.prompt();
        }
        let watch = user.watch();
        watch.wait_status(&other, "working");
        let pid = watch.pid();
        let memory = || {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let field =
                |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
            format!("{} (peak {})", field("VmRSS:"), field("VmHWM:"))
        };
        let before = memory();
        let done = AtomicBool::new(false);
        let is_running = || !done.load(Ordering::Relaxed);
        let (mut took, end) = std::thread::scope(|scope| {
            scope.spawn(|| {
                let file = OpenOptions::new().write(true).open(huge.log()).unwrap();
                for n in 0_u64.. {
                    file.set_len(if n % 50 == 49 { 200 } else { (1 << 40) + n }).unwrap();
                    wait(Duration::from_millis(2));
                    if !is_running() {
                        return;
                    }
                }
            });
            scope.spawn(|| {
                let mut file = OpenOptions::new().write(true).open(fast.log()).unwrap();
                let line = fast.line(Duration::ZERO, "session.info", r#"{"message":"on and on"}"#);
                while is_running() {
                    file.seek(SeekFrom::End(100 << 20)).unwrap();
                    file.write_all(format!("\n{line}").as_bytes()).unwrap();
                    wait(Duration::from_millis(2));
                }
            });
            scope.spawn(|| {
                for n in 0.. {
                    drop(File::create(full.path.join(format!("inuse.{}.lock", 2_000_000_000 + n % 20_000))).unwrap());
                    if !is_running() {
                        return;
                    }
                }
            });
            scope.spawn(|| {
                while is_running() {
                    let made: Vec<_> = (10..10 + folders).map(|n| user.session(n)).collect();
                    for session in made {
                        fs::remove_dir_all(session.path).unwrap();
                    }
                }
            });
            let took: Vec<_> = (0..changes)
                .map(|n| {
                    wait(Duration::from_millis(10));
                    let (lines, begun) = (watch.count(), Instant::now());
                    let status = if n % 2 == 0 { "idle" } else { "working" };
                    if n % 2 == 0 {
                        other.answer();
                    } else {
                        other.prompt();
                    }
                    while !watch.has_reported(lines, &other, status) {
                        assert!(begun.elapsed() < Duration::from_secs(30), "it is not reported as {status}");
                        wait(Duration::from_micros(200));
                    }
                    begun.elapsed()
                })
                .collect();
            println!("memory {before} before, {} after", memory());
            let begun = Instant::now();
            watch.end(Signal::TERM);
            let end = begun.elapsed();
            done.store(true, Ordering::Relaxed);
            (took, end)
        });
        took.sort_unstable();
        let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
        println!(
            "append -> line, in the flood       {:.2} ms (p99 {:.2}, worst {:.2}, of {changes}); ended after {end:.1?}",
            at(50),
            at(99),
            at(100)
        );
    }

    fn wait(time: Duration) {
        #[expect(clippy::disallowed_methods, reason = "the pace of the changes is part of the test")]
        std::thread::sleep(time);
    }
}
