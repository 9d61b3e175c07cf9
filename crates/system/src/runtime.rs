//! The runtime folder, in which the running tray keeps its lock, its note (who runs, and where its light is) and its
//! socket.
//!
//! An environment variable may name a runtime folder that other users can write to. So nothing in it is opened before
//! two things are verified: the folder belongs to us alone, and its files are ours, not symlinks, FIFOs that would
//! block an open, or another user's files. A folder that fails this is left alone and reported, and the next of
//! [`runtime_folders`](crate::paths::runtime_folders) is used instead.

#![allow(clippy::disallowed_methods, reason = "passes options to the one place")]

use super::note::{NOTE_MAX, Note};
use crate::paths;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The running tray's lock.
pub const LOCK: &str = "pilotlight.lock";
/// Names the lock's holder, and where its light is.
pub(crate) const NOTE: &str = "pilotlight.pid";
/// The note while it is written.
const NEW_NOTE: &str = "pilotlight.pid.new";
/// The control socket.
pub const SOCKET: &str = "pilotlight.sock";
/// The control socket while it is created. Not longer than the final name, because the path of a socket is limited (108
/// bytes on Linux, 104 on macOS).
pub const NEW_SOCKET: &str = "pilotlight.new";

/// A runtime folder that belongs to us alone.
#[derive(Debug)]
pub struct Runtime {
    #[cfg(unix)]
    folder: std::os::fd::OwnedFd,
    #[cfg(not(unix))]
    folder: std::path::PathBuf,
}

impl Runtime {
    /// Opens a runtime folder and verifies it and its files, without opening these. `None` if it does not exist.
    ///
    /// # Errors
    /// It does not belong to us alone, or contains files that are not ours: in words for the user, with what to do.
    #[cfg(unix)]
    pub fn open(folder: &Path) -> io::Result<Option<Self>> {
        unix::open(folder).map(|folder| folder.map(|folder| Self { folder }))
    }

    /// Opens a runtime folder. `None` if it does not exist. Here, folders below the user's own are private.
    ///
    /// # Errors
    /// Never; the signature is that of the other systems.
    #[cfg(not(unix))]
    pub fn open(folder: &Path) -> io::Result<Option<Self>> {
        Ok(folder.is_dir().then(|| Self { folder: folder.to_owned() }))
    }

    /// Creates the folder if necessary, and makes it private.
    ///
    /// # Errors
    /// It cannot be created; and those of [`open`](Self::open).
    pub fn make(folder: &Path) -> io::Result<Self> {
        paths::make_folder(folder)?;
        let runtime = Self::open(folder)?.ok_or(io::ErrorKind::NotFound)?;
        #[cfg(unix)]
        unix::make_private(&runtime.folder);
        Ok(runtime)
    }

    /// Opens the lock's file, and creates it if necessary.
    ///
    /// # Errors
    /// It cannot be opened, or is not a regular file of ours.
    pub fn lock_file(&self) -> io::Result<File> {
        self.file(LOCK, true)
    }

    /// The note, if there is one.
    pub fn note(&self) -> Option<Note> {
        let mut text = Vec::new();
        self.file(NOTE, false).and_then(|note| note.take(NOTE_MAX).read_to_end(&mut text)).ok()?;
        Note::parse(&text)
    }

    /// Replaces the note atomically.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_note(&self, note: &Note) -> io::Result<()> {
        let mut file = self.file(NEW_NOTE, true)?;
        file.set_len(0)?;
        io::Write::write_all(&mut file, note.text().as_bytes())?;
        self.rename(NEW_NOTE, NOTE)
    }

    /// Removes the note, if there is one.
    pub fn remove_note(&self) {
        self.remove(NOTE);
    }

    /// Removes the lock's file, even if another process holds the lock.
    pub fn remove_lock_file(&self) {
        self.remove(LOCK);
    }

    #[cfg(unix)]
    fn file(&self, name: &str, make: bool) -> io::Result<File> {
        unix::file(&self.folder, name, make)
    }

    #[cfg(unix)]
    fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.folder, name, rustix::fs::AtFlags::empty()); // there may be none
    }

    #[cfg(unix)]
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, from, &self.folder, to)?)
    }

    #[cfg(not(unix))]
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.folder.join(from), self.folder.join(to))
    }

    #[cfg(not(unix))]
    fn file(&self, name: &str, make: bool) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(make).create(make).truncate(false);
        Ok(crate::plain_file::open_with(&mut options, &self.folder.join(name), crate::plain_file::Links::Refused)?.0)
    }

    #[cfg(not(unix))]
    fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.folder.join(name)); // there may be none
    }
}

/// Whether the process is the tray that has its lock in this folder: it runs our very program, and took the lock itself.
#[cfg(target_os = "linux")]
pub fn is_tray_of(folder: &Path, pid: u32) -> bool {
    use crate::identity::Identity;
    let lock = std::fs::metadata(folder.join(LOCK)).ok().map(|meta| Identity::of(&meta));
    let lock = lock.filter(|_| crate::process::runs_our_program(pid));
    let mut open = lock.and_then(|_| crate::process::open_files(pid).ok()).into_iter().flatten();
    open.any(|file| file.path.ends_with(LOCK) && file.identity() == lock && file.is_locked_by_it())
}

/// Other systems do not show who holds a lock, and there nothing depends on it.
#[cfg(not(target_os = "linux"))]
pub const fn is_tray_of(_folder: &Path, _pid: u32) -> bool {
    false
}

/// Connects to a socket if somebody takes the connection at once: one whose owner stands still may have a full queue.
/// The stream does not block.
///
/// # Errors
/// Those of connecting; [`io::ErrorKind::WouldBlock`] if the queue is full (on Linux).
#[cfg(unix)]
pub fn connect_now(path: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    let address = SocketAddrUnix::new(path)?;
    let stream = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&stream, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&stream, true)?;
    connect(&stream, &address)?;
    Ok(stream.into())
}

/// Whether anybody listens at this socket.
#[cfg(unix)]
pub fn is_listened_to(socket: &Path) -> bool {
    match connect_now(socket) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

#[cfg(unix)]
mod unix {
    use super::{LOCK, NEW_NOTE, NEW_SOCKET, NOTE, SOCKET};
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat, fchmod, fstat, openat, statat};
    use rustix::io::Errno;
    use rustix::process::geteuid;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    /// Write permission of the group and of others.
    const WRITABLE_BY_OTHERS: RawMode = 0o022;
    /// All permissions of the group and of others.
    const ACCESSIBLE_TO_OTHERS: RawMode = 0o077;

    pub(super) fn open(folder: &Path) -> io::Result<Option<OwnedFd>> {
        let shown = folder.display();
        let failed = |error: Errno| io::Error::new(io::Error::from(error).kind(), format!("{shown}: {error}"));
        let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::open(folder, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(None),
            // Systems report a symlink by different errors.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                return refuse(format!("{shown} is not a folder, or a link to one: move it away"));
            }
            Err(error) => return Err(failed(error)),
        };
        let meta = fstat(&opened).map_err(failed)?;
        if meta.st_uid != geteuid().as_raw() {
            return refuse(format!("the folder {shown} belongs to another user (number {})", meta.st_uid));
        }
        if meta.st_mode & WRITABLE_BY_OTHERS != 0 {
            return refuse(format!(
                "others may write to the folder {shown}: take that from them with `chmod go-w {shown}`"
            ));
        }
        for (name, kind) in [
            (LOCK, FileType::RegularFile),
            (NOTE, FileType::RegularFile),
            (NEW_NOTE, FileType::RegularFile),
            (SOCKET, FileType::Socket),
            (NEW_SOCKET, FileType::Socket),
        ] {
            match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(meta) => {
                    if let Some(reason) = foreign(&meta, kind) {
                        return refuse(format!("{shown}/{name} {reason}: remove it"));
                    }
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(Some(opened))
    }

    /// Why a file is not ours. `None` if it is.
    fn foreign(meta: &Stat, kind: FileType) -> Option<String> {
        let found = FileType::from_raw_mode(meta.st_mode);
        if found != kind {
            let what = match found {
                FileType::Symlink => "a link",
                FileType::Fifo => "a FIFO",
                FileType::Directory => "a folder",
                FileType::Socket => "a socket",
                FileType::RegularFile => "a plain file",
                _ => "a device",
            };
            return Some(format!("is {what}, which Pilotlight did not put there"));
        }
        let is_ours = meta.st_uid == geteuid().as_raw();
        (!is_ours).then(|| format!("belongs to another user (number {})", meta.st_uid))
    }

    /// Removes the permissions of others. A folder that they can only read is trusted, because they cannot write to it.
    pub(super) fn make_private(folder: &OwnedFd) {
        if fstat(folder).is_ok_and(|meta| meta.st_mode & ACCESSIBLE_TO_OTHERS != 0) {
            let _ = fchmod(folder, Mode::RWXU); // if refused, others still see only names
        }
    }

    pub(super) fn file(folder: &OwnedFd, name: &str, make: bool) -> io::Result<File> {
        let access = if make { OFlags::RDWR | OFlags::CREATE } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        match foreign(&fstat(&file)?, FileType::RegularFile) {
            None => Ok(file.into()),
            Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{name} {reason}"))),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn refused(folder: &Path) -> String {
        Runtime::open(folder).unwrap_err().to_string()
    }

    #[test]
    fn a_folder_of_our_own_is_created_private_and_used() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("made").join("when needed");
        assert!(Runtime::open(&folder).unwrap().is_none());
        let runtime = Runtime::make(&folder).unwrap();
        assert_eq!(runtime.note(), None);
        runtime.write_note(&Note { process: 4711, doing: "its icon is on its way to the panel".into() }).unwrap();
        let note = Note { process: 4711, doing: "its icon is in the panel".into() };
        runtime.write_note(&note).unwrap();
        assert_eq!(runtime.note(), Some(note));
        runtime.lock_file().unwrap();
        for name in [NOTE, LOCK] {
            assert_eq!(fs::metadata(folder.join(name)).unwrap().mode() & 0o7777, 0o600);
        }
        runtime.remove_note();
        assert_eq!(runtime.note(), None);
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(Runtime::open(&folder).unwrap().is_some(), "nobody else may write there");
        Runtime::make(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
    }

    #[test]
    fn case_143_a_folder_that_does_not_belong_to_us_alone_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("folder");
        Runtime::make(&folder).unwrap();
        let link = scratch.path().join("link");
        symlink(&folder, &link).unwrap();
        fs::write(scratch.path().join("file"), "").unwrap();
        for wrong in [link, scratch.path().join("file")] {
            assert!(refused(&wrong).contains("is not a folder, or a link to one"), "{}", refused(&wrong));
        }
        for mode in [0o720, 0o702, 0o1777] {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            assert!(refused(&folder).contains("others may write to the folder"), "{mode:o}");
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&folder, Some(65534), None).unwrap();
            assert!(refused(&folder).contains("belongs to another user (number 65534)"), "{}", refused(&folder));
        }
    }

    #[test]
    fn case_143_files_that_are_not_ours_are_refused_before_they_are_opened() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("folder");
        let runtime = Runtime::make(&folder).unwrap();
        let target = scratch.path().join("target");
        fs::write(&target, "precious").unwrap();
        for name in [LOCK, NOTE, NEW_NOTE, SOCKET, NEW_SOCKET] {
            let path = folder.join(name);
            symlink(&target, &path).unwrap();
            assert!(refused(&folder).contains(&format!("{name} is a link")), "{}", refused(&folder));
            assert!(runtime.file(name, true).is_err() && runtime.file(name, false).is_err());
            fs::remove_file(&path).unwrap();
            crate::process::testing::make_pipe(&path);
            assert!(refused(&folder).contains(&format!("{name} is a FIFO")), "{}", refused(&folder));
            // A FIFO that is created after the folder was verified does not block an open.
            assert!(runtime.file(name, true).is_err() && runtime.file(name, false).is_err());
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            assert!(refused(&folder).contains("is a folder"), "{}", refused(&folder));
            fs::remove_dir(&path).unwrap();
            if rustix::process::geteuid().is_root() {
                let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
                if [LOCK, NOTE, NEW_NOTE].contains(&name) {
                    fs::remove_file(&path).unwrap();
                    fs::write(&path, "").unwrap();
                }
                std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
                assert!(refused(&folder).contains("belongs to another user"), "{}", refused(&folder));
                fs::remove_file(&path).unwrap();
            }
        }
        assert!(Runtime::open(&folder).unwrap().is_some());
        assert_eq!(fs::read_to_string(target).unwrap(), "precious");
    }

    /// A connection to a socket whose owner stands still would wait for ever.
    #[test]
    fn case_823_a_full_queue_is_not_waited_for() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(!is_listened_to(&path));
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&*path).unwrap()).unwrap();
        listen(&listener, 0).unwrap();
        let _waits = connect_now(&path).unwrap();
        let refused = connect_now(&path).unwrap_err();
        assert!(matches!(refused.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused), "{refused}");
        #[cfg(target_os = "linux")]
        assert!(is_listened_to(&path), "it has a queue");
    }
}
