//! Where a process runs, if that is not where this program does: in a container or a sandbox of this machine.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use crate::identity::Identity;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much of a process's control groups is read, in bytes.
const GROUPS_MAX: u64 = 64 << 10;
/// The least and the most digits of a container's id, and how many of them name it.
const DIGITS: std::ops::RangeInclusive<usize> = 12..=64;
const NAMING: usize = 12;

/// A place that is not ours, by what its processes' control groups are called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A container of Docker, or of Podman, by its id.
    Docker(Box<str>),
    Podman(Box<str>),
    /// A container of LXC, by its name.
    Lxc(Box<str>),
    /// A pod of Kubernetes.
    Pod,
    /// Other namespaces, which have no name.
    Sandbox,
}

/// Where a process runs. `None` if that is where this one does, or is not known.
pub fn place_of(pid: u32) -> Option<Place> {
    let groups = |pid: &str| {
        let mut text = Vec::new();
        File::open(format!("/proc/{pid}/cgroup")).ok()?.take(GROUPS_MAX).read_to_end(&mut text).ok()?;
        Some(place_in(&String::from_utf8_lossy(&text)))
    };
    let (theirs, ours) = (groups(&pid.to_string())?, groups("self").flatten());
    if theirs.is_some() && theirs != ours {
        return theirs;
    }
    (is_in_other(pid, "mnt") || is_in_other(pid, "pid")).then_some(Place::Sandbox)
}

/// Whether a process is in another namespace of this kind, as far as it can be read.
fn is_in_other(pid: u32, kind: &str) -> bool {
    let link = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
    link(&pid.to_string()).zip(link("self")).is_some_and(|(theirs, ours)| theirs != ours)
}

/// The place that control groups are of, which are lines of `number:controllers:path`.
fn place_in(groups: &str) -> Option<Place> {
    let parts = groups.lines().flat_map(|line| line.rsplit(':').next().unwrap_or_default().split('/'));
    let parts: Vec<_> = parts.map(|part| part.strip_suffix(".scope").unwrap_or(part)).collect();
    let id_of = |text: &str| {
        let is_id = DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| Box::from(&text[..NAMING]))
    };
    let is_name = |name: &&str| {
        !name.is_empty()
            && !name.starts_with('-')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    if parts.iter().any(|part| part.starts_with("kubepods")) {
        return Some(Place::Pod);
    }
    let after = |prefix: &str| parts.iter().find_map(|part| id_of(part.strip_prefix(prefix)?));
    let below = |folder: &str| parts.windows(2).find_map(|pair| id_of(pair[1]).filter(|_| pair[0] == folder));
    let podman = after("libpod-").map(Place::Podman);
    podman.or_else(|| after("docker-").or_else(|| below("docker")).map(Place::Docker)).or_else(|| {
        parts
            .iter()
            .find_map(|part| part.strip_prefix("lxc.payload.").filter(is_name))
            .map(|name| Place::Lxc(name.into()))
    })
}

/// Whether a path means to a process what it means here. `None` if that cannot be known.
pub fn sees_same(pid: u32, path: &Path) -> Option<bool> {
    if !is_in_other(pid, "mnt") {
        return Some(true);
    }
    let identity = |path: PathBuf| fs::metadata(path).ok().map(|meta| Identity::of(&meta));
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    fs::metadata(&root).ok()?;
    let (theirs, ours) = (identity(root.join(path.strip_prefix("/").unwrap_or(path))), identity(path.to_owned()));
    Some(theirs.is_some() && theirs == ours)
}

/// Whether a process sees the files that this one sees, and may do what this one may: it is in no container, no sandbox and
/// under no other root. `false` if that cannot be read.
pub fn is_as_free(pid: u32) -> bool {
    let root = |pid: &str| fs::read_link(format!("/proc/{pid}/root")).ok();
    let shares_root = root(&pid.to_string()).zip(root("self")).is_some_and(|(theirs, ours)| theirs == ours);
    let status = |pid: &str| fs::read_to_string(format!("/proc/{pid}/status")).ok();
    let (theirs, ours) = (status(&pid.to_string()), status("self"));
    let is_confined = theirs.as_deref().map(confinement) != ours.as_deref().map(confinement);
    shares_root && !is_confined && place_of(pid).is_none()
}

/// Whether a process may gain no rights, and the number of its system calls' filter, by its `status`. What confines it there, it
/// cannot lift, and neither can what it starts.
fn confinement(status: &str) -> (Option<&str>, Option<&str>) {
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    (value("NoNewPrivs:"), value("Seccomp:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_790_a_confined_process_is_known_by_what_it_cannot_lift() {
        use std::process::{Command, Stdio};
        let waits = |program: &str, words: &[&str]| {
            let mut command = Command::new(program);
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        };
        assert!(is_as_free(std::process::id()));
        assert!(!is_as_free(u32::MAX), "there is none");
        assert_eq!(confinement("Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\n"), (Some("1"), Some("2")));
        assert_eq!(confinement(""), (None, None));
        // A tool of util-linux that confines what it starts, as an agent's sandbox does.
        let Ok(mut child) = waits("setpriv", &["--no-new-privs", "cat"]) else { return };
        let is_cat = || fs::read_link(format!("/proc/{}/exe", child.id())).is_ok_and(|exe| !exe.ends_with("setpriv"));
        let begun = std::time::Instant::now();
        while !is_cat() && begun.elapsed().as_secs() < 30 {
            std::thread::yield_now();
        }
        assert!(!is_as_free(child.id()));
        child.kill().and_then(|()| child.wait()).unwrap();
    }

    #[test]
    fn case_435_a_container_is_known_by_its_control_groups() {
        let id = "0123456789abcdef".repeat(4);
        let (docker, podman) = (Place::Docker("0123456789ab".into()), Place::Podman("0123456789ab".into()));
        for (groups, place) in [
            (format!("0::/system.slice/docker-{id}.scope\n"), Some(docker.clone())),
            (format!("12:pids:/docker/{id}\n1:name=systemd:/docker/{id}\n"), Some(docker.clone())),
            (format!("0::/../../docker-{id}.scope\n"), Some(docker)),
            (
                format!("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{id}.scope/container\n"),
                Some(podman),
            ),
            ("0::/lxc.payload.web-1/init.scope\n".into(), Some(Place::Lxc("web-1".into()))),
            (format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope\n"), Some(Place::Pod)),
            ("0::/user.slice/user-1000.slice/session-2.scope\n".into(), None),
            ("0::/system.slice/docker.service\n".into(), None),
            (
                "0::/docker/../../etc\n0::/docker-$(reboot).scope\n0::/lxc.payload.--x\n0::/lxc.payload.a b\n".into(),
                None,
            ),
            ("nonsense".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(place_in(&groups), place, "{groups}");
        }
        assert_eq!(place_of(std::process::id()), None);
        assert_eq!(sees_same(std::process::id(), Path::new("/nowhere")), Some(true));
    }
}
