//! A log line of any bytes parses or fails cleanly, wherever a line that is too long is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilotlight_agents::copilot::log_format::{is_fresh_prompt, is_shutdown, parse, parse_ends, end_of};
use pilotlight_core::limits::Limits;
use pilotlight_core::facts::Facts;
use pilotlight_core::time::Moment;

fuzz_target!(|data: &[u8]| {
    let (cut, line) = data.split_at_checked(2).unwrap_or((&[0, 0], data));
    let cut = usize::from(u16::from_le_bytes([cut[0], cut[1]])) % (line.len() + 1);
    let _ = (end_of(line), is_fresh_prompt(line), is_shutdown(line));
    let mut facts = Facts::default();
    for event in [parse(line), parse_ends(&line[..cut], &line[cut..])].into_iter().flatten() {
        facts.fold(&event, Moment::of(event.at.unwrap_or_default()), &Limits::default());
        assert!(facts.events <= 2);
    }
    // What is kept of a log is bounded, whatever its content.
    let turn = facts.turn.as_ref();
    assert!(turn.is_none_or(|turn| turn.tools.iter().all(|tool| tool.name.chars().count() <= 1000)));
});
