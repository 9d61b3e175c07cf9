//! Which file systems may stop answering: those that another machine or a program serves. Whoever touches one then waits
//! in the kernel, and nothing ends that wait. So where they are is known from the list of mounts alone.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use crate::deadline;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// How long a file system may take to answer before it counts as silent. A share over a slow line takes tenths of a
/// second.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// The most links in a path; more form a loop.
const LINKS_MAX: usize = 40;

/// A mounted file system that may stop answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of this mount: another one at the same place has another.
    pub id: u64,
    /// Where it is mounted.
    pub path: PathBuf,
    /// What it is, in a word for the user.
    pub kind: &'static str,
}

impl Mount {
    /// Why what is on it was not read, in words for the user.
    pub fn no_answer(&self) -> String {
        format!("its file system ({} at {}) does not answer", self.kind, self.path.display())
    }
}

/// The mounted file systems that may stop answering.
#[derive(Clone, Debug, Default)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Those that this process sees now. None on systems without such a list.
    pub fn read() -> Self {
        if cfg!(target_os = "linux") {
            Self::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
        } else {
            Self::default()
        }
    }

    /// Parses the list of mounts, proc_pid_mountinfo(5). A mount hides those at and below its place that came before.
    /// The root is left out: we are on it ourselves.
    fn parse(list: &[u8]) -> Self {
        let mut mounts: Vec<Mount> = Vec::new();
        for line in list.split(|byte| *byte == b'\n') {
            let mut fields = line.split(|byte| *byte == b' ');
            let id = fields.next().and_then(|id| str::from_utf8(id).ok()?.parse().ok());
            let (Some(id), Some(path)) = (id, fields.nth(3).map(unescape)) else { continue };
            let kind = fields.skip_while(|field| *field != b"-").nth(1).and_then(kind);
            mounts.retain(|mount| !mount.path.starts_with(&path));
            mounts.extend(kind.filter(|_| path != Path::new("/")).map(|kind| Mount { id, path, kind }));
        }
        Self(mounts)
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The real path, as far as it can be found out without touching such a file system.
    ///
    /// # Errors
    /// The first one that the path leads to.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, Mount> {
        match self.walk(path) {
            (real, None) => Ok(real),
            (_, Some(mount)) => Err(mount.clone()),
        }
    }

    /// Follows a path to the first such file system. Returns where it leads to, and that file system.
    fn walk(&self, path: &Path) -> (PathBuf, Option<&Mount>) {
        let Ok(path) = std::path::absolute(path) else { return (path.to_owned(), None) };
        let (mut here, mut rest, mut links) = (PathBuf::from("/"), parts(&path), 0);
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                here.pop();
                continue;
            }
            here.push(part);
            if let Some(mount) = self.0.iter().find(|mount| mount.path == here) {
                here.extend(rest);
                return (here, Some(mount));
            }
            let Some(target) = std::fs::read_link(&here).ok().filter(|_| links < LINKS_MAX) else { continue };
            links += 1;
            here.pop();
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            for part in parts(&target).into_iter().rev() {
                rest.push_front(part);
            }
        }
        (here, None)
    }

    /// The one that a path is on.
    pub fn of(&self, path: &Path) -> Option<Mount> {
        if self.is_empty() { None } else { self.resolve(path).err() }
    }

    /// The real path of a file or folder. Where it is on one, that is not touched, and links on it stay in the path.
    pub fn real(&self, path: &Path) -> PathBuf {
        if !self.is_empty()
            && let (real, Some(_)) = self.walk(path)
        {
            return real;
        }
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    }

    /// Those below a real path.
    pub fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Mount> {
        self.0.iter().filter(move |mount| mount.path != path && mount.path.starts_with(path))
    }
}

/// A home whose file system does not answer.
#[derive(Clone, Debug)]
pub struct SilentHome {
    pub home: PathBuf,
    mount: Mount,
}

impl SilentHome {
    /// In words for the user.
    pub fn words(&self) -> String {
        format!("{} is not read: {}", self.home.display(), self.mount.no_answer())
    }
}

/// Tells the homes whose file system answers from those whose does not. Blocks up to [`PATIENCE`] if one does not.
pub fn answering(homes: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<SilentHome>) {
    let mounts = Mounts::read();
    let (mut answering, mut silent) = (Vec::new(), Vec::new());
    for home in homes {
        match silent_mount(mounts.of(&home.join("any"))) {
            Some(mount) => silent.push(SilentHome { home, mount }),
            None => answering.push(home),
        }
    }
    (answering, silent)
}

/// Touches a file system: it answers, with whatever, or waits. `statfs` is never answered from a cache.
pub fn touch(path: &Path) {
    #[cfg(unix)]
    let _ = rustix::fs::statfs(path);
    #[cfg(not(unix))]
    let _ = path.metadata();
}

/// The file system, if it does not answer in time. Blocks up to [`PATIENCE`].
pub(crate) fn silent_mount(mount: Option<Mount>) -> Option<Mount> {
    let mount = mount?;
    let path = mount.path.clone();
    // Without a thread it is read as any other.
    let answer = deadline::run_within("file system", PATIENCE, move || touch(&path)).unwrap_or(Some(()));
    answer.is_none().then_some(mount)
}

/// A type of file system that may stop answering, in a word for the user. The names are those that the kernel lists.
fn kind(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"autofs" => "an automount",
        b"nfs" | b"nfs4" => "NFS",
        b"cifs" | b"smb3" | b"smbfs" => "SMB",
        b"9p" => "9p",
        b"fuse" | b"fuseblk" | b"virtiofs" => "FUSE",
        name if name.starts_with(b"fuse.") => "FUSE",
        b"vboxsf" => "a VirtualBox share",
        b"vmhgfs" => "a VMware share",
        b"prl_fs" => "a Parallels share",
        b"ceph" => "Ceph",
        b"afs" => "AFS",
        b"coda" => "Coda",
        b"lustre" => "Lustre",
        b"gpfs" => "GPFS",
        b"gfs2" => "GFS2",
        b"ocfs2" => "OCFS2",
        _ => return None,
    })
}

/// A path of the list, in which spaces, tabs, line feeds and backslashes are octal numbers of three digits.
fn unescape(field: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field);
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'\\').then(|| after.get(..3)).flatten();
        let number = escaped.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    #[cfg(unix)]
    return <OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes).into();
    #[cfg(not(unix))]
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// The parts of an absolute path, without its root.
pub(crate) fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn case_179_what_is_on_a_file_system_that_may_stop_answering_is_known_without_touching_it() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        symlink("there is/deep", base.join("link")).unwrap();
        symlink("round", base.join("round")).unwrap();
        let shown = base.display();
        let list = format!(
            "22 1 0:20 / / rw - fuse.overlay x rw\n\
             30 22 0:31 / /run/user/1000/doc rw shared:1 - fuse.portal portal rw\n\
             31 22 0:32 / {shown}/there\\040is rw,relatime shared:2 master:1 - fuse.bindfs x rw\n\
             32 22 0:33 / {shown}/covered rw - nfs4 server:/x rw\n\
             33 22 0:34 / {shown}/covered rw - tmpfs x rw\n\
             34 22 0:35 / {shown}/one/log rw - cifs //server/x rw\n"
        );
        let mounts = Mounts::parse(list.as_bytes());
        let kinds = |path: &str| mounts.of(&base.join(path)).map(|mount| mount.kind);
        assert_eq!(
            ["there is", "there is/any/thing", "link", "link/more", "other/../there is"].map(kinds),
            [Some("FUSE"); 5]
        );
        assert_eq!(["", "there", "covered/x", "one", "round/x", "missing/x"].map(kinds), [None; 6]);
        assert_eq!(mounts.resolve(&base.join("one/../covered")), Ok(base.join("covered")));
        let below: Vec<_> = mounts.below(&base.join("one")).map(|mount| mount.kind).collect();
        assert_eq!(below, ["SMB"]);
        assert!(!Mounts::parse(b"22 1 0:20 / / rw - ext4 x rw\ngarbage\n\n").0.iter().any(|_| true));
    }
}
