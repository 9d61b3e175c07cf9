//! The settings as they were last valid, saved in the state folder. They hold for whatever cannot be read at the next
//! start: without them, a typo would end `detail = "none"`, and popups would show every command in full.

use super::{Config, parse, print};
use pilotlight_system::state_file;
use std::path::Path;

/// The file in the state folder.
pub const FILE: &str = "last-settings.toml";

/// The first line of the file: which settings it holds. Those of another file say nothing about these.
fn head(config: &Path) -> String {
    format!("# The last valid settings of {config:?}. Pilotlight writes this file; it is no place for changes.\n")
}

/// Reads the saved settings of the config at `config`. `None` if there are none, or they are broken.
pub fn load(file: &Path, config: &Path) -> Option<Config> {
    let text = state_file::read(file);
    let (read, problems) = parse(text.strip_prefix(&head(config))?, file);
    problems.is_empty().then_some(read)
}

/// Saves the settings of the config at `config`, if they are not saved yet.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn save(file: &Path, config: &Path, settings: &Config) -> anyhow::Result<()> {
    let text = head(config) + &print(settings);
    if state_file::read(file) == text {
        return Ok(());
    }
    state_file::replace(file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::alert::Detail;
    use std::fs;

    #[test]
    fn case_621_a_typo_changes_no_setting_that_was_valid_before() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, file) = (scratch.path().join("config.toml"), scratch.path().join("state").join(FILE));
        let valid = "[notifications]\ndetail = \"none\"\n[list]\nended-most = 3\n[actions]\nask-servers = false\n";
        let (config, problems) = parse(valid, &path);
        assert_eq!(problems, []);
        save(&file, &path, &config).unwrap();
        let kept = load(&file, &path);
        assert_eq!(kept.as_ref(), Some(&config));
        assert_eq!(load(&file, &scratch.path().join("other.toml")), None, "the settings of another file");
        for (broken, is_whole) in [
            ("[notifications\ndetail = \"none\"\n", true),
            ("\0", true),
            ("[notifications]\ndetail = \"nome\"\n[list]\nended-most = 3\n[actions]\nask-servers = false\n", false),
            ("[notifications]\ndetial = \"none\"\n[list]\nended-most = 3\n[actions]\nask-servers = false\n", false),
            ("[notification]\ndetail = \"none\"\n[list]\nended-most = 3\n[actions]\nask-servers = false\n", false),
        ] {
            fs::write(&path, broken).unwrap();
            let (read, problems) = crate::config::load(&path, kept.as_ref());
            assert_eq!((&read, problems.len()), (&config, 1), "{broken}");
            assert_eq!(problems[0].spoils_all(), is_whole, "{broken}");
            // Where nothing was saved, what hides most holds.
            let (read, _) = crate::config::load(&path, None);
            assert_eq!(read.notifications.rules.detail, Detail::None, "{broken}");
        }
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(crate::config::load(&path, kept.as_ref()).0, config);
        fs::remove_file(&path).unwrap();
        assert_eq!(crate::config::load(&path, kept.as_ref()), (Config::default(), Vec::new()), "no file is no mistake");
    }

    #[test]
    fn settings_that_are_saved_already_are_not_written_again() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, file) = (scratch.path().join("config.toml"), scratch.path().join(FILE));
        save(&file, &path, &Config::careful()).unwrap();
        let identity = |path: &Path| pilotlight_system::identity::Identity::of(&fs::metadata(path).unwrap());
        let before = identity(&file);
        save(&file, &path, &Config::careful()).unwrap();
        assert_eq!(identity(&file), before);
    }
}
