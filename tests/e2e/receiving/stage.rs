//! A stage of the table of situations: where its sessions run, and what was shown of them.

use super::outlook::{Limits, Outlook};
use super::scene::{Scene, watch};
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::pilotlight::Pilot;
use crate::support::target_dir;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// How long the sessions are watched before something is done to them.
const BEFORE: Duration = Duration::from_secs(3);

/// A stage.
pub(super) struct Stage {
    name: &'static str,
    pub(super) pilot: Pilot,
    pub(super) home: Rc<Home>,
    limits: &'static Limits,
    faults: Vec<String>,
    report: PathBuf,
}

impl Stage {
    /// A stage whose Pilotlight has these limits and further settings.
    pub(super) fn new(name: &'static str, limits: &'static Limits, config: &str) -> Self {
        let home = Rc::new(Home::new("project"));
        let pilot = Pilot::configured(&[&home], &format!("{}{config}", limits.settings()));
        let folder = target_dir().join("situations");
        std::fs::create_dir_all(&folder).unwrap();
        let report = folder.join(name.replace(' ', "-") + ".txt");
        std::fs::write(&report, "").unwrap();
        Self { name, pilot, home, limits, faults: Vec::new(), report }
    }

    /// As [`new`](Self::new), in a home with the bridge.
    pub(super) fn with_bridge(name: &'static str, limits: &'static Limits, config: &str) -> Self {
        let stage = Self::new(name, limits, "");
        // Copilot itself installs it.
        let program = stage.home.program(&Model::start());
        stage.pilot.configure(&format!("[actions]\ncopilot = {program:?}\n{}{config}", limits.settings()));
        let ran = stage.pilot.run(&["bridge", "install", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        stage
    }

    /// Plays these scenes at the same time, over twice their limit, after `disturb` has done something to them. Notes
    /// what looked wrong.
    pub(super) fn play(&mut self, mut scenes: Vec<(Scene, Outlook)>, disturb: impl FnOnce(&[(Scene, Outlook)])) {
        for (scene, _) in &mut scenes {
            scene.begin();
        }
        watch(&self.pilot, &mut scenes, BEFORE, |_| true);
        disturb(&scenes);
        // What is stuck already is looked at with the next rescan.
        let is_back = |scene: &Scene| scene.last().is_some_and(|sight| sight.status == "working");
        let is_over = |scenes: &[(Scene, Outlook)]| {
            scenes.iter().all(|(scene, outlook)| *outlook != Outlook::Late || is_back(scene))
        };
        watch(&self.pilot, &mut scenes, self.limits.twice(), is_over);
        let mut story = String::new();
        let mut ending = Vec::new();
        for (scene, outlook) in &scenes {
            let fault = outlook.fault(scene, self.limits);
            let mark = if fault.is_some() { "  WRONG" } else { "" };
            story += &format!("{}: {}{mark}\n{}", self.name, scene.play, scene.story());
            ending.push(fault);
            scene.resume();
        }
        for ((scene, outlook), fault) in scenes.iter().zip(ending) {
            let fault = fault.or_else(|| outlook.is_answered().then(|| scene.finish()).flatten());
            let words = |fault| format!("{}, {}: {fault}\n{}", self.name, scene.play, scene.story());
            self.faults.extend(fault.map(words));
        }
        std::fs::write(&self.report, std::fs::read_to_string(&self.report).unwrap() + &story).unwrap();
    }

    /// Asserts that nothing looked wrong.
    pub(super) fn end(&self) {
        assert!(self.faults.is_empty(), "{}", self.faults.join("\n"));
    }
}
