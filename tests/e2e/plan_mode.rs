//! Case 201c: a session whose process died between turns, in plan mode or not, has nothing to go on with.

use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::pilotlight::Pilot;
use crate::support::process::signal;
use crate::support::terminal::Terminal;
use rustix::process::Signal;

#[test]
#[ignore = "tests/long.sh"]
fn case_201c_a_session_in_plan_mode_that_was_not_cut_off_is_offered_to_be_resumed() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &["--plan"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    pilot.wait_status(&id, "idle", "");
    signal(terminal.pid(), Signal::KILL);
    let row = pilot.wait_status(&id, "ended", "its process is gone");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
    let offered = format!("resume it instead: `pilotlight resume {id}`");
    for ran in [pilot.run(&["reconnect", "--continue", &id]), pilot.run_without_tray(&["reconnect", "--continue", &id])]
    {
        assert!(ran.code == Some(4) && ran.err.contains(&offered), "{ran:?}");
    }
    let explained = pilot.run(&["explain", &id]);
    assert!(explained.out.contains("resume it instead"), "{explained:?}");
}
