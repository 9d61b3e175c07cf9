//! Sessions' folders, and processes that hold them.

use std::fs;
use std::path::{Path, PathBuf};

use pilotlight_system::process::testing::{Running, after, copy};

/// Two homes, each with the folder of a session, and Copilot's program.
pub(in crate::copilot) struct World {
    pub(in crate::copilot) scratch: tempfile::TempDir,
}

impl World {
    pub(in crate::copilot) fn new() -> Self {
        let world = Self { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.folder("home")).unwrap();
        fs::create_dir_all(world.folder("other")).unwrap();
        fs::create_dir(world.home("home").join("logs")).unwrap();
        copy("/bin/cat", &world.program());
        world
    }

    pub(in crate::copilot) fn home(&self, home: &str) -> PathBuf {
        self.scratch.path().join(home)
    }

    pub(in crate::copilot) fn folder(&self, home: &str) -> PathBuf {
        self.home(home).join("session-state").join("one")
    }

    pub(in crate::copilot) fn program(&self) -> PathBuf {
        self.scratch.path().join("copilot")
    }

    /// A Copilot that has these files of the home open.
    pub(in crate::copilot) fn with_open(&self, files: &[&str]) -> Running {
        let opens = |file: &&str| {
            let path = self.home("home").join(file);
            format!(r#"open(my $f{}, ">", "{}") or die;"#, file.len(), path.display())
        };
        after(&files.iter().map(opens).collect::<String>(), &self.program(), &[])
    }
}

/// The perl that takes the hold in this folder, as Copilot does for a session that it owns.
pub(in crate::copilot) fn holding(folder: &Path) -> String {
    format!(r#"open(F, ">", "{}/inuse.$$.hold") or die; flock(F, 6) or die;"#, folder.display())
}
