use super::cast::{BEATS, by_id};
use super::guest::Act;
use super::*;
use crate::homes;
use crate::script::{CAST, LENGTH};
use std::path::PathBuf;

#[test]
fn case_314_the_table_is_in_order_and_its_acts_are_consistent() {
    assert!(BEATS.is_sorted_by_key(|(at, ..)| *at) && BEATS.iter().all(|(at, ..)| *at < LENGTH));
    let (mut entered, mut open, mut works) = ([false; GUESTS.len()], [false; GUESTS.len()], [false; GUESTS.len()]);
    for &(at, who, act) in BEATS {
        let it = (at, who, act);
        assert!(entered[who] || act == Act::Enter, "{it:?}: it has not entered");
        match act {
            Act::Enter => entered[who] = true,
            Act::Prompt(_) => assert!(!std::mem::replace(&mut works[who], true), "{it:?}: it works"),
            Act::Runs(_) | Act::Asks(_) => assert!(works[who] && !std::mem::replace(&mut open[who], true), "{it:?}"),
            Act::Done => assert!(std::mem::replace(&mut open[who], false), "{it:?}: no tool is open"),
            Act::Says(_) => assert!(!open[who] && std::mem::replace(&mut works[who], false), "{it:?}"),
        }
    }
    assert!(entered.iter().all(|entered| *entered) && !works.contains(&true), "no turn is open when it repeats");
}

#[test]
fn case_314_the_table_repeats_with_the_script() {
    let at = |index, speed| beat(index, speed).0.0;
    assert_eq!(
        (at(0, 1), at(BEATS.len(), 1), at(2 * BEATS.len(), 4)),
        (0, i64::from(LENGTH) * 1000, i64::from(LENGTH) * 500)
    );
}

#[test]
fn case_314_every_guest_says_that_it_is_a_demo_and_has_an_id_of_its_own() {
    assert!(GUESTS.iter().all(|role| role.title.starts_with("Demo: ")));
    let folder = Path::new("/stage");
    for index in 0..GUESTS.len() {
        let post = post(folder, index);
        assert_eq!(post.title, by_id(folder, &post.id).unwrap().1.title);
        assert!(post.home.folder().starts_with(folder) && post.work.starts_with(folder));
        assert!(post.id.starts_with(&format!("de{}", CAST.len() + index + 1)));
    }
    assert!(by_id(folder, "de010000-0000-4000-8000-000000000001").is_none());
}

#[tokio::test]
async fn case_316_every_program_that_a_demo_starts_is_its_own() {
    let folder = Path::new("/stage");
    let own = PathBuf::from("/stage/bin");
    let named = stand_in(folder, "copilot");
    for home in homes(folder) {
        assert!(home.folder().starts_with(folder));
        // For the first agent the settings of a demo name it.
        let is_first = home.adapter() == pilotlight_agents::adapter::FIRST;
        if !is_first {
            let program = home.program(Some(&named)).await.unwrap();
            assert_eq!(program.parent(), Some(&*own));
            assert_eq!(program.file_stem().unwrap().to_str(), Some(home.adapter().profile().program));
        }
    }
}
