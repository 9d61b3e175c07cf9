//! Agents in containers and sandboxes of this machine: which, and what reaches them.

use super::check::CheckContext;
use super::finding::Finding;
use pilotlight_agents::containers::agents_elsewhere;
use pilotlight_core::text::counted;
use pilotlight_system::process::Place;

const CHECK: &str = "containers";

pub(super) fn containers(context: &CheckContext) -> Vec<Finding> {
    let found = words(&context.config.owners.names);
    let n = found.len();
    found.into_iter().map(|text| Finding::ok(CHECK, text).redacted(counted(n, "agent in a container"))).collect()
}

/// A sentence for each agent that runs in a container of this machine.
pub(crate) fn words(names: &[String]) -> Vec<String> {
    agents_elsewhere(names)
        .into_iter()
        .map(|(agent, place)| format!("{agent} runs in {}", place_words(&place)))
        .collect()
}

fn place_words(place: &Place) -> String {
    let adds = |way: &str| format!("to see its sessions, run `pilotlight host add NAME -- {way}` once");
    match place {
        Place::Docker(id) => format!("the Docker container {id}: {}", adds(&format!("docker exec -i {id}"))),
        Place::Podman(id) => format!("the Podman container {id}: {}", adds(&format!("podman exec -i {id}"))),
        Place::Lxc(name) => {
            format!(
                "the container {name} of LXC or Incus: {}, or with `lxc exec` or `lxc-attach -n`",
                adds(&format!("incus exec {name} --"))
            )
        }
        Place::Pod => format!("a pod of Kubernetes: {}", adds("kubectl exec -i POD --")),
        Place::Sandbox => {
            "a sandbox with a home of its own, which no command can enter. Bind its home to a folder of this \
                           machine, and name the agent's home there in `homes` of the settings"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_437_each_place_is_said_with_what_reaches_it() {
        let id: Box<str> = "0123456789ab".into();
        for (place, words) in [
            (Place::Docker(id.clone()), "-- docker exec -i 0123456789ab`"),
            (Place::Podman(id), "-- podman exec -i 0123456789ab`"),
            (Place::Lxc("web".into()), "-- incus exec web --`"),
            (Place::Pod, "-- kubectl exec -i POD --`"),
            (Place::Sandbox, "which no command can enter"),
        ] {
            assert!(place_words(&place).contains(words), "{}", place_words(&place));
        }
    }
}
