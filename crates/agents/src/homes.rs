//! Which homes are followed, and which agent's each is. A file system that may not answer is not touched for that.

use super::adapter::{ADAPTERS, Adapter, FIRST};
use super::home::Home;
use super::runners::is_own_folder;
use pilotlight_system::mounts::{self, Mounts, SilentHome};
use pilotlight_system::paths;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What leads to homes.
pub struct HomeSources<'a> {
    /// Those that the command line names: they replace all others.
    pub named: &'a [PathBuf],
    /// Those that the settings add.
    pub added: &'a [PathBuf],
    /// Those that nobody named, and that processes were seen to use: real paths.
    pub discovered: &'a [Home],
    /// The names of the agents that are switched off: only the command line leads to a home of theirs.
    pub off: &'a [&'static str],
    pub user_home: Option<&'a Path>,
}

/// The homes that are followed.
#[derive(Debug, Default)]
pub struct Found {
    /// Those that can be read.
    pub homes: Vec<Home>,
    /// Those whose file system does not answer, or may not and was not asked.
    pub unread: Vec<Home>,
    /// Why they are not read, of those that were asked.
    pub silent: Vec<SilentHome>,
    /// Those that an agent will make when it is used for the first time.
    pub(crate) awaited: Vec<Home>,
}

/// The homes that are followed, and those that are once they are made.
#[derive(Debug, Default)]
pub struct Followed {
    pub homes: Vec<Home>,
    pub awaited: Vec<Home>,
}

impl Found {
    /// All that are followed.
    pub fn followed(&self) -> Vec<Home> {
        self.homes.iter().chain(&self.unread).cloned().collect()
    }

    /// Adds those of these homes, which nobody named, that are not among them.
    pub fn add(&mut self, discovered: &[Home], off: &[&'static str]) {
        let mounts = Mounts::read();
        for home in discovered.iter().filter(|home| !off.contains(&home.adapter().profile().names.name)) {
            let is_known = self.homes.iter().chain(&self.unread).any(|known| is_same(known, home, &mounts));
            if is_known || !is_still_own(home, &mounts) {
                continue;
            }
            // Nobody is told any more to make the first home.
            if self.unread.is_empty() && self.homes.len() == 1 {
                self.awaited.extend(self.homes.pop_if(|first| is_default(first) && first.is_absent()));
            }
            self.homes.push(home.clone());
        }
    }
}

/// Finds the homes, and asks the file systems that may not answer. Blocks for a while if one does not.
pub fn find(wanted: &HomeSources<'_>) -> Found {
    let ask = |homes: Vec<PathBuf>, _: &[PathBuf]| {
        let (answering, silent) = mounts::answering(homes);
        (answering, silent.iter().map(|silent| silent.home.clone()).collect(), silent)
    };
    find_among(wanted, |name| std::env::var_os(name), ask)
}

/// Finds the homes without touching those whose file system may not answer. It is asked for those alone that may not be
/// there.
pub fn find_untouched(wanted: &HomeSources<'_>) -> Followed {
    let mounts = Mounts::read();
    let split = |homes: Vec<PathBuf>, uncertain: &[PathBuf]| {
        let (mut local, others): (Vec<_>, Vec<_>) =
            homes.into_iter().partition(|home| mounts.of(&home.join("any")).is_none());
        let (asked, others) = others.into_iter().partition(|home| uncertain.contains(home));
        local.extend(mounts::answering(asked).0);
        (local, others, Vec::new())
    };
    let found = find_among(wanted, |name| std::env::var_os(name), split);
    Followed { homes: found.followed(), awaited: found.awaited }
}

/// Where an agent has its home, unless the user names others.
struct Usual {
    adapter: &'static dyn Adapter,
    home: PathBuf,
    /// No variable names it.
    is_default: bool,
}

/// `variable` reads a variable: an empty one counts as unset. `split` tells the homes that can be read from the others, and is
/// given those that may not be there.
fn find_among(
    wanted: &HomeSources<'_>,
    variable: impl Fn(&str) -> Option<OsString>,
    split: impl FnOnce(Vec<PathBuf>, &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>, Vec<SilentHome>),
) -> Found {
    let usual: Vec<_> = ADAPTERS.iter().filter_map(|adapter| usual(*adapter, &variable, wanted.user_home)).collect();
    let is_on =
        |adapter: &'static dyn Adapter| !wanted.named.is_empty() || !wanted.off.contains(&adapter.profile().names.name);
    let by_default = usual.iter().filter(|usual| is_on(usual.adapter)).map(|usual| usual.home.clone()).collect();
    let uncertain = usual.iter().filter(|usual| usual.is_default && usual.adapter != FIRST);
    let uncertain: Vec<_> = uncertain.filter_map(|usual| paths::absolute(&usual.home)).collect();
    let homes = paths::homes(wanted.named, by_default, wanted.added, wanted.user_home);
    let (readable, unread, mut silent) = split(homes, &uncertain);
    let its = |home: &Path| usual.iter().find(|usual| paths::absolute(&usual.home).as_deref() == Some(home));
    // Most people use one agent: of the others there is no folder, and nothing to wait for.
    let is_absent =
        |home: &Path| wanted.named.is_empty() && its(home).is_some_and(|usual| usual.is_default && !home.is_dir());
    let (absent, readable): (Vec<_>, Vec<_>) = readable.into_iter().partition(|home| is_absent(home));
    let has_usual = readable.iter().chain(&unread).any(|home| its(home).is_some());
    let home = |home: PathBuf| match its(&home) {
        Some(usual) => Home::of(usual.adapter, home),
        None => Home::at(&home),
    };
    // Whoever has none yet will make the first one.
    let mut absent = absent.into_iter();
    let first = if has_usual { None } else { absent.next() };
    let awaited = absent.map(home).filter(|home| is_on(home.adapter())).collect();
    let homes = first.into_iter().chain(readable).map(home).filter(|home| is_on(home.adapter())).collect();
    // Of what does not answer, nobody knows whether it is there.
    let is_left_out = |home: &PathBuf| wanted.named.is_empty() && uncertain.contains(home);
    silent.retain(|silent| !is_left_out(&silent.home));
    let untold = |home: PathBuf| match its(&home) {
        _ if is_left_out(&home) => None,
        Some(usual) => Some(Home::of(usual.adapter, home)),
        None => Some(Home::unread(home)),
    };
    let mut found = Found { homes, unread: unread.into_iter().filter_map(untold).collect(), silent, awaited };
    if wanted.named.is_empty() {
        found.add(wanted.discovered, wanted.off);
    }
    found
}

/// Whether a home is this one, which is named by its real path.
pub fn is_same(home: &Home, real: &Home, mounts: &Mounts) -> bool {
    home.adapter() == real.adapter() && (home.folder() == real.folder() || mounts.real(home.folder()) == real.folder())
}

/// Whether a home that nobody named is still where it was, a folder of our user's, and not behind a link or on a file system that
/// may not answer.
pub fn is_still_own(home: &Home, mounts: &Mounts) -> bool {
    let folder = home.folder();
    let is_real = mounts.resolve(folder).is_ok_and(|real| real == folder) && mounts.of(&folder.join("any")).is_none();
    is_real && is_own_folder(folder)
}

/// The agents whose homes can be found by their processes, without those that are switched off.
pub fn sought(off: &[&'static str]) -> Vec<&'static dyn Adapter> {
    let is_sought = |adapter: &&'static dyn Adapter| {
        let profile = adapter.profile();
        !profile.home_variable.is_empty() && profile.fingerprint.is_some() && !off.contains(&profile.names.name)
    };
    ADAPTERS.iter().copied().filter(is_sought).collect()
}

/// What the agent's variable names, else what it makes in the user's home.
fn usual(
    adapter: &'static dyn Adapter,
    variable: impl Fn(&str) -> Option<OsString>,
    user_home: Option<&Path>,
) -> Option<Usual> {
    if adapter.profile().home.is_empty() {
        return None; // only what is named can be one
    }
    let named = variable(adapter.profile().home_variable).filter(|home| !home.is_empty());
    let is_default = named.is_none();
    let home = named.map(PathBuf::from).or_else(|| Some(user_home?.join(adapter.profile().home)))?;
    Some(Usual { adapter, home, is_default })
}

/// Whether this is where an agent has its home if nobody names one.
fn is_default(home: &Home) -> bool {
    let usual = usual(home.adapter(), |name| std::env::var_os(name), paths::user_home().as_deref());
    usual.is_some_and(|usual| usual.is_default && paths::absolute(&usual.home).as_deref() == Some(home.folder()))
}

/// Where an agent has its home, unless the user names others.
pub fn usual_home(adapter: &'static dyn Adapter) -> Option<Home> {
    let usual = usual(adapter, |name| std::env::var_os(name), paths::user_home().as_deref())?;
    Some(Home::of(adapter, usual.home))
}

/// The home that is meant by the folder that contains it.
pub fn below(folder: &Path) -> Option<PathBuf> {
    let adapters = ADAPTERS.iter().filter(|adapter| !adapter.profile().home.is_empty());
    let mut homes = adapters.map(|adapter| Home::of(*adapter, folder.join(adapter.profile().home)));
    homes.find(|home| home.root().is_dir()).map(|home| home.folder().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The agents' names and homes that are found; `variables` are set, and of the default homes these are there.
    fn found(variables: &[(&str, &str)], there: &[&str], wanted: &HomeSources<'_>) -> Vec<(&'static str, PathBuf)> {
        let user = wanted.user_home.unwrap();
        there.iter().for_each(|name| fs::create_dir_all(user.join(name)).unwrap());
        let value = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| OsString::from(value));
        let found = find_among(wanted, value, |homes, _| (homes, Vec::new(), Vec::new())).followed();
        found.into_iter().map(|home| (home.adapter().profile().names.name, home.folder().to_owned())).collect()
    }

    fn wanted(user: &Path) -> HomeSources<'_> {
        HomeSources { named: &[], added: &[], discovered: &[], off: &[], user_home: Some(user) }
    }

    #[test]
    fn case_280_of_each_agent_only_the_home_that_is_there_is_followed() {
        let user = tempfile::tempdir().unwrap();
        let at = |name: &str| user.path().join(name);
        let none = found(&[], &[], &wanted(user.path()));
        assert_eq!(none, [("copilot", at(".copilot"))], "the first agent's will be made");
        let other = found(&[], &[".codex"], &wanted(user.path()));
        assert_eq!(other, [("codex", at(".codex"))], "nobody waits for the first agent's then");
        let both = found(&[], &[".copilot"], &wanted(user.path()));
        assert_eq!(both, [("copilot", at(".copilot")), ("codex", at(".codex"))]);
        let off = HomeSources { off: &["copilot"], ..wanted(user.path()) };
        assert_eq!(found(&[], &[], &off), [("codex", at(".codex"))]);
        let all: Vec<_> = ADAPTERS.iter().map(|adapter| adapter.profile().names.name).collect();
        let none = HomeSources { off: &all, ..wanted(user.path()) };
        assert!(found(&[], &[], &none).is_empty());
        let named = [at(".codex")];
        let named = HomeSources { named: &named, off: &["codex"], ..wanted(user.path()) };
        assert_eq!(found(&[], &[], &named), [("codex", at(".codex"))], "the command line was meant so");
    }

    #[test]
    fn case_281_a_home_that_a_variable_names_is_that_agents_even_while_it_is_empty() {
        let user = tempfile::tempdir().unwrap();
        let empty = user.path().join("empty");
        fs::create_dir(&empty).unwrap();
        let variables = [("CODEX_HOME", empty.to_str().unwrap()), ("COPILOT_HOME", "")];
        let homes = found(&variables, &[".copilot"], &wanted(user.path()));
        assert_eq!(homes, [("copilot", user.path().join(".copilot")), ("codex", empty.clone())]);
        let named = [empty.clone()];
        let homes = found(&variables, &[], &HomeSources { named: &named, ..wanted(user.path()) });
        assert_eq!(homes, [("codex", empty)]);
    }

    #[test]
    fn without_a_home_of_the_users_there_is_only_what_variables_name() {
        let found = |value: Option<&str>| {
            let wanted = HomeSources { named: &[], added: &[], discovered: &[], off: &[], user_home: None };
            let variable = |name: &str| value.filter(|_| name == "COPILOT_HOME").map(Into::into);
            let found = find_among(&wanted, variable, |homes, _| (homes, Vec::new(), Vec::new())).followed();
            found.iter().map(|home| home.folder().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found(Some("/env")), [Path::new("/env")]);
        assert_eq!(found(None), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_may_not_answer_is_not_looked_into() {
        let user = tempfile::tempdir().unwrap();
        let (home, other) = (user.path().join("home"), user.path().join(".codex"));
        fs::create_dir_all(&other).unwrap();
        fs::create_dir_all(home.join("thread-writer-locks")).unwrap();
        let added = [home.clone()];
        let wanted = HomeSources { added: &added, ..wanted(user.path()) };
        let found = find_among(&wanted, |_| None, |homes, _| (Vec::new(), homes, Vec::new()));
        assert_eq!(found.unread, [Home::of(FIRST, user.path().join(".copilot")), Home::unread(home)]);
    }
}
