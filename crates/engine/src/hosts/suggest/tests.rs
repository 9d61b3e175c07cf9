use super::*;
use std::fs;

fn commands(source: &'static str, named: Vec<(String, Way)>) -> Vec<String> {
    of(source, named, &mut Vec::new()).iter().map(Candidate::command).collect()
}

#[test]
fn case_432_the_hosts_of_the_ssh_config_are_candidates() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join(".ssh");
    fs::create_dir_all(folder.join("conf.d")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write(
        "config",
        "Include conf.d/*.conf ~/.ssh/more\n# Host no\nHost devbox gpu *.corp !gpu2 jump?\n  User ada\n\
         host=equals # Host no2\nHOST \"quoted\"\nMatch host x\n  User git\nHost github.com\n  User git\nHost devbox\nHostName no3\n",
    );
    write("conf.d/a.conf", "Host work-1 work-2\n");
    write("conf.d/.hidden.conf", "Host hidden\n");
    write("conf.d/b.txt", "Host other\n");
    // They include each other.
    write("more", "Include more config\nHost last\n");
    let found = ssh_config::hosts(&folder).hosts;
    assert_eq!(found, ["work-1", "work-2", "last", "devbox", "gpu", "equals", "quoted"], "{found:?}");
    let none = ssh_config::hosts(scratch.path());
    assert!(none.hosts.is_empty() && none.missing.is_empty(), "{none:?}");
    write("config", "Host \u{1b}[31m $(reboot) a;b -oProxyCommand=x `x` ok ../x\nInclude /dev/zero /proc/self/mem\n");
    let known = ssh_config::hosts(&folder);
    let said: Vec<_> = known.missing.iter().map(|line| line.split(':').next().unwrap()).collect();
    let unread = |file: &str| format!("{file} cannot be read, so its hosts are not listed");
    assert_eq!(said, [unread("/dev/zero"), unread("/proc/self/mem")]);
    let named = known.hosts.into_iter().map(|host| (host.clone(), Way::Ssh(host))).collect();
    assert_eq!(commands("ssh config", named), ["pilotlight host add ok", "pilotlight host add x --ssh ../x"]);
}

#[test]
fn case_433_what_programs_print_becomes_command_lines_or_nothing() {
    let docker = containers("docker", "web\n\n  db_1 \n--privileged\n$(reboot)\n\u{1b}[2J\na b\n");
    let expected = ["web -- docker exec -i web", "db_1 -- docker exec -i db_1"];
    assert_eq!(commands("docker", docker), expected.map(|line| format!("pilotlight host add {line}")));
    let wsl = distributions("Debian\r\ndocker-desktop\r\ndocker-desktop-data\r\nUbuntu-24.04\r\n");
    let expected = ["Debian -- wsl.exe -d Debian -e", "Ubuntu-24.04 -- wsl.exe -d Ubuntu-24.04 -e"];
    assert_eq!(commands("wsl", wsl), expected.map(|line| format!("pilotlight host add {line}")));
    for nonsense in ["", "{", "[]", "null", "{\"Peer\":null}", "\u{0}\u{1}", &"x".repeat(1 << 16)] {
        for source in &SOURCES {
            let read = (source.read)(nonsense);
            assert!(commands(source.name, read).is_empty() || nonsense.len() < 10, "{}", source.name);
        }
    }
    let many = containers(
        "docker",
        &"a".repeat(30).split("").enumerate().map(|(n, _)| format!("c{n}\n")).collect::<String>().repeat(9),
    );
    let mut missing = Vec::new();
    let many = of(
        "docker",
        [many, containers("docker", &(1000..1200).map(|n| format!("c{n}\n")).collect::<String>())].concat(),
        &mut missing,
    );
    assert_eq!(many.len(), EACH);
    assert_eq!(missing, ["docker names more than 100 machines: only the first 100 are listed"]);
}

#[test]
fn case_433_known_hosts_are_left_out_and_names_are_told_apart() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let more = |name: &str, way: Way| Candidate::new(name, way, "docker").unwrap();
    let by = |to: &str| Way::Ssh(to.to_owned());
    let candidates = vec![
        more("web", by("web")),
        more("gpu", by("10.0.0.7")),
        more("web", by("web.corp")),
        more("b", by("known")),
        more("web", by("web.lab")),
    ];
    let hosts = [by("known").host("a", "/p", "/"), by("x").host("gpu", "/p", "/")];
    let found = runtime.block_on(super::candidates(&hosts, candidates)).candidates;
    let of_ours: Vec<_> = found.iter().filter(|one| one.source == "docker").map(|one| &*one.name).collect();
    assert_eq!(of_ours, ["web", "web-docker", "web-docker-2"]);
}
