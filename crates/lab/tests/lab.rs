//! A lab on real namespaces is raised, used, disturbed and taken down, and leaves nothing behind.

mod support;

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use baton_lab::{Error, Lab, Options, Running, Signal};
use support::{Outcome, file, left_behind, raise, skipped};

const PAIR: &str = r#"
[[host]]
name = "client"
address = "10.77.0.1/24"
[[host]]
name = "ds1"
address = "10.77.0.11/24"
run = ["nginx"]
"#;

const CS: &str = r#"
[[host]]
name = "cs1"
address = "10.77.0.2/24"
roles = ["cs"]
"#;

const WHOAMI: &str = "http://10.77.0.11/whoami";

fn ip(line: &str) -> Result<bool, std::io::Error> {
    Ok(Command::new("ip")
        .args(line.split_whitespace())
        .status()?
        .success())
}

#[test]
fn a_command_runs_inside_with_its_own_exit_status() -> Outcome {
    let Some(lab) = raise("exec", PAIR)? else {
        return Ok(());
    };
    assert_eq!(
        lab.on("client", "sh -c exit\t7")?.status.code(),
        Some(0),
        "two words, not three"
    );
    let status = lab
        .running
        .exec("client")?
        .args(["sh", "-c", "exit 7"])
        .status()?;
    assert_eq!(status.code(), Some(7));
    assert!(
        lab.text("ds1", "ip -br address show eth0")?
            .contains("10.77.0.11/24")
    );
    assert!(lab.text("bridge", "ip -br link")?.contains("ds1@"));
    let range = lab.text("client", "cat /proc/sys/net/ipv4/ip_local_port_range")?;
    assert_eq!(
        range.split_whitespace().collect::<Vec<_>>(),
        ["1024", "65535"]
    );
    let unknown = lab
        .running
        .exec("ds9")
        .err()
        .ok_or("ds9 exists")?
        .to_string();
    assert!(
        unknown.contains("ds9") && unknown.contains("client, ds1"),
        "{unknown}"
    );
    Ok(())
}

#[test]
fn up_twice_and_down_twice_are_the_same_as_once() -> Outcome {
    let Some(lab) = raise("twice", PAIR)? else {
        return Ok(());
    };
    let pid = lab.running.host("ds1")?.things[0].pid;
    let mut said = String::new();
    let again = lab
        .running
        .lab()
        .up(&Options::new("/nonexistent"), |step| said += step)?;
    assert!(said.contains("is up already"), "{said}");
    assert_eq!(again.host("ds1")?.things[0].pid, pid);
    assert!(Running::names().contains(&lab.name));
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");

    let name = again.lab().name().clone();
    let first = again.down()?;
    assert!(first.was_up && first.warnings.is_empty(), "{first:?}");
    assert_eq!(left_behind(&lab.name), Vec::<String>::new());
    assert!(!baton_lab::down(&name, |_| {})?.was_up);
    assert!(matches!(Running::open(&lab.name), Err(Error::NotUp(_))));
    Ok(())
}

#[test]
fn a_namespace_of_another_is_left_alone() -> Outcome {
    let (name, text) = file("foreign", PAIR);
    let lab = Lab::parse(&text)?;
    if skipped("foreign", &lab) {
        return Ok(());
    }
    let foreign = format!("baton-{name}-ds1");
    assert!(ip(&format!("netns add {foreign}"))?);
    let refused = lab.up(&Options::new("/nonexistent"), |_| {});
    let left = left_behind(&name);
    assert!(ip(&format!("netns del {foreign}"))?, "it was left alone");
    assert!(
        matches!(&refused, Err(Error::Foreign(which)) if *which == foreign),
        "{refused:?}"
    );
    assert_eq!(left, [foreign], "nothing was made");
    Ok(())
}

#[test]
fn a_namespace_that_took_the_place_of_ours_is_left_alone() -> Outcome {
    let Some(lab) = raise("replaced", PAIR)? else {
        return Ok(());
    };
    let replaced = format!("baton-{}-client", lab.name);
    assert!(ip(&format!("netns del {replaced}"))? && ip(&format!("netns add {replaced}"))?);
    let error = lab
        .running
        .clone()
        .down()
        .err()
        .map(|error| error.to_string());
    let left = left_behind(&lab.name);
    assert!(ip(&format!("netns del {replaced}"))?, "it was left alone");
    assert!(error.is_some_and(|text| text.contains(&replaced)));
    // Everything else went down. Only the state, for the next try, and the foreign namespace are left.
    assert_eq!(left, [format!("/run/baton-lab/{}", lab.name), replaced]);
    lab.running.clone().down()?;
    assert_eq!(left_behind(&lab.name), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_lab_that_the_machine_lost_is_raised_again() -> Outcome {
    let Some(lab) = raise("lost", PAIR)? else {
        return Ok(());
    };
    lab.running.kill("ds1", "nginx", Signal::SIGKILL)?;
    for host in ["bridge", "client", "ds1"] {
        assert!(ip(&format!("netns del baton-{}-{host}", lab.name))?);
    }
    let state = format!("/run/baton-lab/{}/lab.json", lab.name);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let text = std::fs::read_to_string(&state)?;
    std::fs::write(&state, text.replace(boot.trim(), "00000000-another-start"))?;

    lab.running
        .lab()
        .up(&Options::new("/nonexistent"), |_| {})?;
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    Ok(())
}

#[test]
fn a_link_has_its_loss_rate_and_mtu() -> Outcome {
    let hosts = PAIR.replace(
        "run = [\"nginx\"]",
        "run = [\"nginx\"]\nlink = { rate = \"500mbit\", loss = 0.02, mtu = 1400 }",
    );
    let Some(lab) = raise("link", &(hosts + CS))? else {
        return Ok(());
    };
    let rules = lab.text("bridge", "nft list ruleset")?;
    assert_eq!(rules.matches("mod 1000000 < 20000").count(), 2, "{rules}");
    for (host, interface) in [("bridge", "ds1"), ("ds1", "eth0")] {
        let queue = lab.text(host, &format!("tc qdisc show dev {interface}"))?;
        assert!(
            queue.contains("tbf") && queue.contains("rate 500Mbit"),
            "{queue}"
        );
        let link = lab.text(host, &format!("ip link show dev {interface}"))?;
        assert!(link.contains("mtu 1400"), "{link}");
    }
    // Single packets are lost, not 64 KiB of a stream, and bodies still arrive whole.
    assert!(
        lab.text("client", "ethtool -k eth0")?
            .contains("tcp-segmentation-offload: off")
    );
    // In one direction there are only acknowledgements, so it may take some downloads until one of them is lost.
    let mut rules = String::new();
    for _ in 0..20 {
        assert_eq!(
            lab.get("http://10.77.0.11/1m -o /dev/null -w %{size_download}")?,
            "1048576"
        );
        rules = lab.text("bridge", "nft list ruleset")?;
        let mut losses = rules.lines().filter(|line| line.contains("drop"));
        if losses.all(|line| !line.contains("counter packets 0 bytes 0")) {
            return Ok(());
        }
    }
    panic!("none was lost in a direction: {rules}");
}

/// The program answers each UDP packet to port 7 by XDP_TX; the client's kernel drops an answer
/// whose checksum is wrong.
#[test]
fn what_xdp_sends_arrives_with_right_checksums() -> Outcome {
    let Some(lab) = raise("xdp", &format!("{PAIR}{CS}"))? else {
        return Ok(());
    };
    let object = lab.running.host("cs1")?.directory.join("echo.bpf.o");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let compiled = Command::new(clang)
        .args(["-g", "-O2", "-target", "bpf", "-c"])
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/support/echo.bpf.c"
        ))
        .arg("-o")
        .arg(&object)
        .status()?;
    assert!(compiled.success());
    let object = object.display();
    lab.text(
        "cs1",
        &format!("ip link set dev eth0 xdpdrv obj {object} sec xdp"),
    )?;
    let echoed = lab
        .running
        .within("client", || -> std::io::Result<usize> {
            let socket = UdpSocket::bind("10.77.0.1:0")?;
            socket.connect("10.77.0.2:7")?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            let mut buffer = [0; 2000];
            for length in 1..=1400 {
                socket.send(&vec![7; length])?;
                if socket.recv(&mut buffer)? != length {
                    return Ok(length);
                }
            }
            Ok(1400)
        })??;
    assert_eq!(echoed, 1400);
    Ok(())
}

#[test]
fn a_cpu_quota_holds_for_all_that_runs_on_a_host() -> Outcome {
    let hosts = PAIR.replace("run = [", "cpu = 0.25\nrun = [");
    let Some(lab) = raise("cpu", &hosts)? else {
        return Ok(());
    };
    let inside = lab.text("ds1", "cat /proc/self/cgroup")?;
    let group = format!("/baton-lab/{}/ds1", lab.name);
    assert!(inside.contains(&group), "{inside}");
    let pid = lab.running.host("ds1")?.things[0].pid;
    assert!(std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?.contains(&group));
    assert!(
        !lab.text("client", "cat /proc/self/cgroup")?
            .contains("baton-lab")
    );
    let v1 = format!("/sys/fs/cgroup/cpu{group}");
    if std::path::Path::new(&v1).exists() {
        assert_eq!(
            std::fs::read_to_string(format!("{v1}/cpu.cfs_quota_us"))?,
            "5000\n"
        );
        assert_eq!(
            std::fs::read_to_string(format!("{v1}/cpu.cfs_period_us"))?,
            "20000\n"
        );
    }
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    Ok(())
}

#[test]
fn what_is_killed_is_dead_with_all_it_started_until_it_is_started_again() -> Outcome {
    let Some(lab) = raise("kill", PAIR)? else {
        return Ok(());
    };
    let before = lab.running.host("ds1")?.things[0].clone();
    assert!(before.alive);
    lab.running.kill("ds1", "nginx", Signal::SIGKILL)?;
    let refused = lab.on("client", &format!("curl -s --max-time 10 {WHOAMI}"))?;
    assert!(!refused.status.success(), "nginx's workers live on");
    assert!(!lab.running.host("ds1")?.things[0].alive);
    lab.running.restart("ds1", "nginx")?;
    let after = lab.running.host("ds1")?.things[0].clone();
    assert!(after.alive && after.pid != before.pid);
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    let unknown = lab
        .running
        .restart("ds1", "apache")
        .err()
        .ok_or("apache runs")?
        .to_string();
    assert!(
        unknown.contains("apache") && unknown.contains("nginx"),
        "{unknown}"
    );
    Ok(())
}

#[test]
fn a_stubborn_program_is_killed_and_its_children_too() -> Outcome {
    let hosts = PAIR.replace(
        "run = [\"nginx\"]",
        "run = [{ command = [\"sh\", \"-c\", \"trap '' TERM; sleep 7771 & sleep 7772\"] }]",
    );
    let Some(lab) = raise("stubborn", &hosts)? else {
        return Ok(());
    };
    let pid = lab.running.host("ds1")?.things[0].pid;
    lab.running.clone().down()?;
    let session = Command::new("ps")
        .args(["-o", "stat=", "-s", &pid.to_string()])
        .output()?;
    let states = String::from_utf8(session.stdout)?;
    // A zombie counts as dead: it has ended, and only init has still to reap it.
    assert!(
        states.lines().all(|state| state.starts_with('Z')),
        "{states}"
    );
    Ok(())
}

#[test]
fn what_others_started_can_be_ended_alone() -> Outcome {
    let Some(lab) = raise("others", PAIR)? else {
        return Ok(());
    };
    let mut command = lab.running.exec("client")?;
    command.args(["sh", "-c", "echo inside; sleep 7773"]);
    let mut other = command.stdout(Stdio::piped()).spawn()?;
    let mut said = String::new();
    let stdout = other.stdout.take().ok_or("it has no output")?;
    BufReader::new(stdout).read_line(&mut said)?;
    assert_eq!(said, "inside\n");
    lab.running.end_others()?;
    assert_eq!(other.wait()?.signal(), Some(Signal::SIGKILL as i32));
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    Ok(())
}

#[test]
fn what_does_not_start_is_told_with_its_log_and_all_is_taken_down() -> Outcome {
    let command =
        "run = [{ command = [\"sh\", \"-c\", \"echo no luck today >&2; exit 3\"], port = 80 }]";
    let (name, text) = file("false", &PAIR.replace("run = [\"nginx\"]", command));
    let lab = Lab::parse(&text)?;
    if skipped("false", &lab) {
        return Ok(());
    }
    let error = lab
        .up(&Options::new("/nonexistent"), |_| {})
        .err()
        .ok_or("it is up")?
        .to_string();
    for part in ["sh on ds1", "status 3", "no luck today"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(left_behind(&name), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_node_that_ends_at_once_takes_the_lab_down_with_it() -> Outcome {
    let hosts = PAIR.replace(
        "run = [\"nginx\"]",
        "roles = [\"cs\", \"ds\"]\nrun = [\"node\", \"nginx\"]",
    );
    let service = "[[config.service]]\nname = \"web\"\naddress = \"10.77.0.100\"\nport = 80\n";
    let (name, text) = file("node", &(hosts + service));
    let lab = Lab::parse(&text)?;
    if skipped("node", &lab) {
        return Ok(());
    }
    let missing = lab
        .up(&Options::new("/nonexistent"), |_| {})
        .err()
        .ok_or("it is up")?
        .to_string();
    assert!(
        missing.contains("find the baton program at /nonexistent"),
        "{missing}"
    );
    let ended = lab
        .up(&Options::new("/bin/false"), |_| {})
        .err()
        .ok_or("it is up")?;
    assert!(
        matches!(&ended, Error::NotReady { thing, .. } if thing == "node"),
        "{ended}"
    );
    assert_eq!(left_behind(&name), Vec::<String>::new());
    Ok(())
}
