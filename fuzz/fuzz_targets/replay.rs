//! A whole log, replayed under every owner story and past its end: the verdict is stable, and each change changes the
//! status.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilotlight_agents::copilot::log_format;
use pilotlight_core::limits::Limits;
use pilotlight_core::replay::{OwnerStory, Replay};
use pilotlight_core::time::Span;

fuzz_target!(|data: &[u8]| {
    for story in [OwnerStory::Alive, OwnerStory::Dead, OwnerStory::Unknown] {
        let mut replay = Replay::new(story, Limits::default(), log_format::parse);
        let mut changes = Vec::new();
        for line in data.split(|&byte| byte == b'\n').take(200) {
            replay.line(line, &mut changes);
        }
        let verdict = replay.verdict();
        assert_eq!(verdict, replay.verdict());
        assert!(changes.last().is_none_or(|last| last.status == verdict.status));
        replay.finish(Span::hours(2), &mut changes);
        assert!(changes.windows(2).all(|pair| pair[0].status != pair[1].status), "{changes:?}");
        assert!(changes.iter().all(|change| change.because.to_string().chars().count() < 1000), "{changes:?}");
    }
});
