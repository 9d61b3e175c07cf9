//! The watches of programs' files: each tells once that its file was opened, as by whoever starts the program, or replaced.

use super::Source;
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use std::collections::HashSet;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

/// A start, and what puts another file or link in its place. Told once: some agents open their own program all the time, and
/// some people start one in a loop.
const STARTS: WatchFlags = WatchFlags::OPEN
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::ONESHOT);
/// The most links that lead to a program; more form a loop.
const LINKS_MAX: usize = 8;

impl Source {
    /// Watches these programs' files, and the links that lead to them, in place of all others. Returns whether any was not
    /// watched until now.
    pub(in crate::watcher) fn watch_programs(&mut self, programs: &[PathBuf]) -> bool {
        let files = programs.iter().flat_map(|program| with_links(program));
        // One that cannot be watched is found by the slow rescan, as on other systems.
        let watches: HashSet<i32> =
            files.filter_map(|file| inotify::add_watch(&self.inotify, file, STARTS).ok()).collect();
        for left in self.programs.difference(&watches) {
            let _ = inotify::remove_watch(&self.inotify, *left); // the kernel has removed it if it has told already
        }
        let is_any_new = !watches.is_subset(&self.programs);
        self.programs = watches;
        is_any_new
    }

    pub(super) fn handle_program(&mut self, watch: i32, flags: ReadFlags) {
        if flags.contains(ReadFlags::IGNORED) {
            self.programs.remove(&watch);
        } else {
            self.hints.started = true;
        }
    }
}

/// A program's path, and what the links in its place lead to: an update may replace any of them.
fn with_links(program: &Path) -> impl Iterator<Item = PathBuf> {
    let target = |link: &PathBuf| Some(link.parent()?.join(fs::read_link(link).ok()?));
    iter::successors(Some(program.to_owned()), target).take(LINKS_MAX)
}
