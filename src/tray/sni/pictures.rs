//! The icon as a file, for panels that support only icon names. MATE's indicators draw "image missing" for an icon
//! without one.
//!
//! A file is named by a hash of its pixels. So each picture has its own name, a panel that caches pictures by name
//! never shows a stale one, and an existing file need not be written again. All are there before the icon is registered:
//! GTK looks into a folder of icons only every 5 s, and draws "image missing" for one that came in between.

use crate::system::paths::make_folder;
use crate::system::plain_file;
use crate::tray::icon::{Icon, Picture};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of the pictures, in the state folder.
const FOLDER: &str = "icons";

/// Writes the pictures. Without a folder it writes none, and panels get only the pixels.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    folder: Option<PathBuf>,
}

impl Pictures {
    /// Writes these pictures into this state folder. Removes those of an earlier run.
    pub(super) fn new(state_folder: Option<&Path>, icons: impl Iterator<Item = Icon>) -> Self {
        let make = |folder: PathBuf| {
            // A leftover does no harm: no other picture gets its name.
            let _ = fs::remove_dir_all(&folder);
            let made = make_folder(&folder).inspect_err(|error| tracing::debug!("no folder for icons: {error}"));
            made.is_ok().then_some(folder)
        };
        let pictures = Self { folder: state_folder.map(|folder| folder.join(FOLDER)).and_then(make) };
        if pictures.folder.is_some() {
            // Those that cannot be written are tried again when they are shown.
            icons.filter_map(|icon| icon.picture().ok()).all(|picture| !pictures.name(&picture).is_empty());
        }
        pictures
    }

    /// The folder, as panels read it; empty if there is none.
    pub(super) fn folder(&self) -> String {
        self.folder.as_deref().and_then(Path::to_str).unwrap_or_default().to_owned()
    }

    /// Writes this picture and returns its name; empty if it cannot be written.
    pub(super) fn name(&self, picture: &Picture) -> String {
        let Some(folder) = &self.folder else { return String::new() };
        let mut hasher = DefaultHasher::new();
        picture.rgba.hash(&mut hasher);
        let name = format!("pilotlight-{:016x}", hasher.finish());
        let file = folder.join(&name).with_extension("png");
        if !file.exists()
            && let Err(error) = write(&file, picture)
        {
            tracing::debug!("the icon cannot be written as a file: {error:#}");
            let _ = fs::remove_file(&file); // it may be incomplete
            return String::new();
        }
        name
    }
}

fn write(file: &Path, picture: &Picture) -> anyhow::Result<()> {
    Ok(plain_file::create(file)?.write_all(&picture.png()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tray::icon::State;

    fn files(state: &Path) -> Vec<PathBuf> {
        fs::read_dir(state.join(FOLDER)).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn case_168_the_picture_of_every_state_is_there_before_it_is_shown() {
        for (contrast, count) in [(false, false), (true, false), (false, true)] {
            let state = tempfile::tempdir().unwrap();
            let begun = std::time::Instant::now();
            let pictures = Pictures::new(Some(state.path()), Icon::all(contrast, count));
            println!("{} pictures in {:?}", files(state.path()).len(), begun.elapsed());
            let before = files(state.path()).len();
            for icon in Icon::all(contrast, count) {
                assert!(!pictures.name(&icon.picture().unwrap()).is_empty());
            }
            assert_eq!(files(state.path()).len(), before);
            assert_eq!(before, if count { 96 } else { 16 });
        }
    }

    #[test]
    fn each_picture_has_its_own_file() {
        let state = tempfile::tempdir().unwrap();
        let pictures = Pictures::new(Some(state.path()), std::iter::empty());
        let [well, trouble] = [State::Well, State::Trouble].map(|state| Icon::of(state).picture().unwrap());
        let (name, other) = (pictures.name(&well), pictures.name(&trouble));
        assert_ne!(name, other);
        assert_eq!(pictures.name(&well), name);
        assert_eq!(files(state.path()).len(), 2);
        let file = Path::new(&pictures.folder()).join(name).with_extension("png");
        let mut reader = png::Decoder::new(std::io::BufReader::new(fs::File::open(file).unwrap())).read_info().unwrap();
        let mut rgba = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut rgba).unwrap();
        assert_eq!(rgba, well.rgba);
        Pictures::new(Some(state.path()), std::iter::empty());
        assert!(files(state.path()).is_empty(), "files of an earlier run are removed");
    }

    #[test]
    fn an_icon_whose_file_cannot_be_written_has_no_name() {
        let picture = Icon::of(State::Well).picture().unwrap();
        assert_eq!(Pictures::new(None, std::iter::empty()).name(&picture), "");
        let state = tempfile::tempdir().unwrap();
        let pictures = Pictures::new(Some(state.path()), std::iter::empty());
        fs::remove_dir(state.path().join(FOLDER)).unwrap();
        assert_eq!(pictures.name(&picture), "");
        // A file is in the way of the folder.
        fs::write(state.path().join(FOLDER), "").unwrap();
        let pictures = Pictures::new(Some(state.path()), std::iter::empty());
        assert_eq!((pictures.folder(), pictures.name(&picture)), (String::new(), String::new()));
    }
}
