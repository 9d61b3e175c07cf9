//! Another machine that is not reached, while this one comes into another network: a network namespace of the test's own.

use super::hosts::{name_hosts, serves};
use crate::support::network::Network;
use crate::support::running_time::running_time;
use crate::support::synthetic::User;
use crate::support::{SOON, wait_until};
use std::fs;
use std::time::Duration;

/// Nobody waits for the next try then, which is the later the longer it was not reached.
#[test]
fn case_451_in_a_new_network_a_machine_is_tried_again_at_once() {
    let Some(network) = Network::new() else {
        return; // only root can make one
    };
    let (near, remote) = (User::new(), User::new());
    let session = remote.session(1);
    let _owner = session.owner(&remote);
    session.prompt();
    let (tried, there) = (near.scratch.path().join("tried"), near.scratch.path().join("there"));
    let serve = serves(&remote).join(" ");
    let script = format!("echo >>{}; test -e {} && exec {serve}", tried.display(), there.display());
    name_hosts(&near, &[("devbox", vec!["sh".into(), "-c".into(), script])]);
    network.enter();
    let watch = near.watch();
    let count = || fs::read(&tried).map_or(0, |tried| tried.len());
    // At 0, 1, 3 and 8 s; the next time only at 23 s.
    wait_until(SOON, "it is tried four times", || count().to_string(), || (count() == 4).then_some(()));
    fs::write(&there, "").unwrap();
    let begun = running_time();
    network.join_another();
    watch.wait_status(&session, "working");
    let took = running_time() - begun;
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(count(), 5);
}
