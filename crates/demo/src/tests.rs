use super::events::Log;
use super::script::{Act, CAST, LENGTH, SCRIPT, Who, beats};
use super::*;
use pilotlight_agents::copilot::log_format;
use pilotlight_core::facts::Facts;
use pilotlight_core::owner::Owner;
use pilotlight_core::time::{Moment, Time};
use pilotlight_core::verdict::{Liveness, Observations, Status, judge};

const START: Time = Time(1_700_000_000_000);

/// A scripted session, judged without a stage.
struct Played {
    log: Log,
    facts: Facts,
    owner: Owner,
}

impl Played {
    fn perform(&mut self, who: Who, act: Act, at: Moment, limits: &Limits) {
        for line in self.log.lines("id", &CAST[who as usize], act, at.wall).lines() {
            let event = log_format::parse(line.as_bytes()).unwrap_or_else(|_| panic!("not an event: {line}"));
            self.facts.fold(&event, at, limits);
        }
        match act {
            Act::Enter if !matches!(self.owner, Owner::Alive { .. }) => {
                self.log.change_owner();
                self.owner = Owner::Alive { pid: 1, started: Some(at.wall) };
            }
            Act::Crash => self.owner = Owner::Gone { pid: 1, at: Some(at.wall) },
            Act::ShutDown => self.owner = Owner::Gone { pid: 1, at: Some(at.wall) },
            _ => {}
        }
    }
}

/// The statuses of the cast at these seconds from the start, which must be ascending.
fn statuses(seconds: impl IntoIterator<Item = u32>, speed: u32) -> Vec<Vec<Status>> {
    let limits = limits(speed);
    let played = |_: &_| Played { log: Log::default(), facts: Facts::default(), owner: Owner::Never };
    let mut cast: Vec<Played> = CAST.iter().map(played).collect();
    let mut beats = beats(speed).peekable();
    let statuses = seconds.into_iter().map(|second| {
        // Half a second later, because beats are at whole seconds.
        let now = Span((i64::from(second) * 1000 + 500) / i64::from(speed));
        while let Some((at, beat)) = beats.next_if(|(at, _)| *at <= now) {
            cast[beat.who as usize].perform(beat.who, beat.act, Moment::of(START + at), &limits);
        }
        let now = Moment::of(START + now);
        let judged = |it: &Played| {
            judge(Observations::by_log(&it.facts), &it.owner, &Liveness::default(), None, now, &limits).status
        };
        cast.iter().map(judged).collect()
    });
    statuses.collect()
}

#[test]
fn every_status_shows_at_once_after_fifty_five_seconds() {
    use Status::*;
    let expected =
        [Working, NeedsPermission, NeedsInput, Stuck, Finishing, PermissionLost, Crashed, Failed, Idle, Ended, Quiet];
    for speed in [1, 10] {
        assert_eq!(statuses([55], speed), [expected], "at {speed} times the pace");
    }
    assert!(Status::ALL.iter().all(|status| expected.contains(status)));
}

#[test]
fn the_script_repeats_with_the_same_statuses() {
    let repeated = LENGTH + 55;
    assert_eq!(statuses([repeated], 1), statuses([55], 1));
    let before_the_end = statuses([LENGTH - 1], 1).remove(0);
    let closed = |status: &Status| {
        use Status::*;
        matches!(status, Idle | NeedsInput | PermissionLost | Crashed | Failed | Ended)
    };
    assert!(before_the_end.iter().all(closed), "{before_the_end:?}: no turn is open when the script repeats");
}

#[test]
fn the_script_is_in_order_and_its_acts_are_consistent() {
    assert!(SCRIPT.is_sorted_by_key(|beat| beat.at));
    assert!(SCRIPT.iter().all(|beat| beat.at < LENGTH));
    let mut open = [false; CAST.len()];
    for beat in SCRIPT {
        let open = &mut open[beat.who as usize];
        match beat.act {
            Act::Tool(..) | Act::Ask(..) => assert!(!std::mem::replace(open, true), "{beat:?}: a tool is open"),
            Act::Done | Act::Denied => assert!(std::mem::replace(open, false), "{beat:?}: no tool is open"),
            Act::Wants(_) | Act::Allowed | Act::Answered => assert!(*open, "{beat:?}: no tool is open"),
            Act::Answer(_) | Act::End => assert!(!*open, "{beat:?}: a tool is open"),
            _ => {}
        }
    }
}

#[test]
fn every_session_says_that_it_is_a_demo() {
    assert!(CAST.iter().all(|role| role.title.starts_with("Demo: ")));
}
