//! The icon as a file, for panels that support only icon names. MATE's indicators draw "image missing" for an icon
//! without one.
//!
//! A file is named by a hash of its pixels. So each picture has its own name, a panel that caches pictures by name
//! never shows a stale one, and a file of an earlier run need not be written again. Each combination of settings has a
//! folder of its own, whose pictures are all there before the icon is registered: GTK looks into a folder of icons only
//! every 5 s, and draws "image missing" for one that came in between.

use crate::tray::icon::{Icon, Picture, decode};
use pilotlight_engine::config::Tray as Settings;
use pilotlight_system::log::{self, cause};
use pilotlight_system::paths::make_folder;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::state_file;
use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder of the pictures, in the state folder.
const FOLDER: &str = "icons";
/// The most bytes that are read of a picture: each has a few thousand.
const LENGTH_MAX: u64 = 1 << 16;

/// Writes the pictures. Without a folder it writes none, and panels get only the pixels.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    folder: Option<PathBuf>,
}

impl Pictures {
    /// Writes the pictures for these settings into this state folder, unless they are there already, and removes what
    /// another version left.
    pub(super) fn new(state_folder: Option<&Path>, settings: Settings) -> Self {
        let make = |folder: PathBuf| {
            let made = make_folder(&folder).inspect_err(|error| log::debug!("no folder for icons: {}", cause(error)));
            made.is_ok().then_some(folder)
        };
        let folder = state_folder.map(|folder| folder.join(FOLDER).join(name_of(settings))).and_then(make);
        let pictures = Self { folder };
        // Those that cannot be written are tried again when they are shown.
        pictures.write_all(settings);
        pictures
    }

    /// Writes the pictures for these settings. If all are there, removes every other file.
    fn write_all(&self, settings: Settings) {
        let icons = Icon::all(settings.high_contrast, settings.count).filter_map(|icon| icon.picture().ok());
        let mut names = HashSet::new();
        for picture in icons {
            match self.name(&picture) {
                name if name.is_empty() => return,
                name => names.insert(name),
            };
        }
        let Some(files) = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok()) else { return };
        for file in files.filter_map(Result::ok).map(|file| file.path()) {
            let is_known = file.file_stem().and_then(|name| name.to_str()).is_some_and(|name| names.contains(name));
            if !is_known {
                let _ = fs::remove_file(file); // a leftover does no harm
            }
        }
    }

    /// The folder, as panels read it; empty if there is none.
    pub(super) fn folder(&self) -> String {
        self.folder.as_deref().and_then(Path::to_str).unwrap_or_default().to_owned()
    }

    /// Writes this picture, unless it is there, and returns its name; empty if it cannot be written.
    pub(super) fn name(&self, picture: &Picture) -> String {
        let Some(folder) = &self.folder else { return String::new() };
        let mut hasher = DefaultHasher::new();
        picture.rgba.hash(&mut hasher);
        let name = format!("pilotlight-{:016x}", hasher.finish());
        let file = folder.join(&name).with_extension("png");
        if !is_there(&file, picture)
            && let Err(error) = write(&file, picture)
        {
            log::debug!("the icon cannot be written as a file: {}", cause(&*error));
            return String::new();
        }
        name
    }
}

const fn name_of(settings: Settings) -> &'static str {
    match (settings.high_contrast, settings.count) {
        (false, false) => "plain",
        (false, true) => "count",
        (true, false) => "contrast",
        (true, true) => "contrast-count",
    }
}

/// Whether the file has this picture. One that was written just before a crash may be empty.
fn is_there(file: &Path, picture: &Picture) -> bool {
    let mut bytes = Vec::new();
    let opened = plain_file::open(file, Links::Followed);
    let read = opened.is_ok_and(|(file, _)| file.take(LENGTH_MAX).read_to_end(&mut bytes).is_ok());
    read && decode(&bytes).is_ok_and(|written| written == *picture)
}

/// Replaces the file as a whole: a panel may be reading it.
fn write(file: &Path, picture: &Picture) -> anyhow::Result<()> {
    state_file::replace_without_sync(file, &picture.png()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tray::icon::State;

    const PLAIN: Settings = Settings { high_contrast: false, count: false };

    fn files(pictures: &Pictures) -> Vec<PathBuf> {
        fs::read_dir(pictures.folder()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn case_168_the_picture_of_every_state_is_there_before_it_is_shown() {
        let state = tempfile::tempdir().unwrap();
        for (high_contrast, count) in [(false, false), (true, false), (false, true), (true, true)] {
            let pictures = Pictures::new(Some(state.path()), Settings { count, high_contrast });
            let before = files(&pictures).len();
            assert_eq!(before, if count { 100 } else { 20 }, "in a folder of their own");
            for icon in Icon::all(high_contrast, count) {
                assert!(!pictures.name(&icon.picture().unwrap()).is_empty());
            }
            assert_eq!(files(&pictures).len(), before);
        }
    }

    #[test]
    fn each_picture_has_its_own_file() {
        let state = tempfile::tempdir().unwrap();
        let pictures = Pictures::new(Some(state.path()), PLAIN);
        let before = files(&pictures).len();
        let [well, trouble] = [State::Well, State::Trouble].map(|state| Icon::of(state).picture().unwrap());
        let (name, other) = (pictures.name(&well), pictures.name(&trouble));
        assert_ne!(name, other);
        assert_eq!(pictures.name(&well), name);
        assert_eq!(files(&pictures).len(), before);
        let file = Path::new(&pictures.folder()).join(name).with_extension("png");
        let mut reader = png::Decoder::new(std::io::BufReader::new(fs::File::open(file).unwrap())).read_info().unwrap();
        let mut rgba = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut rgba).unwrap();
        assert_eq!(rgba, well.rgba);
    }

    #[test]
    fn case_213_pictures_of_an_earlier_run_are_used_if_they_are_whole() {
        let state = tempfile::tempdir().unwrap();
        let new = || Pictures::new(Some(state.path()), PLAIN);
        let (pictures, icon) = (new(), Icon::of(State::Well).picture().unwrap());
        let file = |name: &str| Path::new(&pictures.folder()).join(name).with_extension("png");
        let written = |file: &Path| fs::metadata(file).unwrap().modified().unwrap();
        let well = file(&pictures.name(&icon));
        let before = written(&well);
        new();
        assert_eq!(written(&well), before, "it is not written again");
        fs::write(&well, "").unwrap();
        fs::write(file("pilotlight-0"), "comes from another version of Pilotlight").unwrap();
        new();
        assert!(is_there(&well, &icon), "one that a crash left empty is");
        assert!(!file("pilotlight-0").exists() && well.exists());
    }

    #[test]
    fn an_icon_whose_file_cannot_be_written_has_no_name() {
        let picture = Icon::of(State::Well).picture().unwrap();
        assert_eq!(Pictures::new(None, PLAIN).name(&picture), "");
        let state = tempfile::tempdir().unwrap();
        let pictures = Pictures::new(Some(state.path()), PLAIN);
        fs::remove_dir_all(state.path().join(FOLDER)).unwrap();
        assert!(!pictures.name(&picture).is_empty(), "the folder is made again");
        fs::remove_dir_all(state.path().join(FOLDER)).unwrap();
        // A file is in the way of the folder.
        fs::write(state.path().join(FOLDER), "").unwrap();
        assert_eq!(pictures.name(&picture), "");
        let pictures = Pictures::new(Some(state.path()), PLAIN);
        assert_eq!((pictures.folder(), pictures.name(&picture)), (String::new(), String::new()));
    }
}
