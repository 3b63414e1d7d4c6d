//! Each fault does what it says, ends when it is undone, and leaves nothing behind.

mod support;

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use baton_lab::{Direction, Error, Fault, Loss, Only, Packets};
use support::{Outcome, Raised, raise};

const PAIR: &str = r#"
[[host]]
name = "client"
address = "10.77.0.1/24"
[[host]]
name = "ds1"
address = "10.77.0.11/24"
run = ["nginx"]
"#;

const WHOAMI: &str = "http://10.77.0.11/whoami";

/// The exit status of curl(1) if there was no answer within the time.
const TOO_LATE: Option<i32> = Some(28);
/// The exit status of curl(1) if there was no connection.
const REFUSED: Option<i32> = Some(7);
/// The exit status of curl(1) if the connection was broken off.
const RESET: Option<i32> = Some(56);

/// The exit status of a curl that waits no longer than `seconds`.
fn code(lab: &Raised, seconds: u32) -> Result<Option<i32>, Box<dyn std::error::Error>> {
    let line = format!("curl -sSf --max-time {seconds} {WHOAMI}");
    Ok(lab.on("client", &line)?.status.code())
}

/// Sends `count` numbers from the client, and returns those that came to ds1, in the order of their arrival.
fn sent(lab: &Raised, count: u32) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let receiver = lab
        .running
        .within("ds1", || UdpSocket::bind("0.0.0.0:999"))??;
    receiver.set_read_timeout(Some(Duration::from_secs(1)))?;
    let sender = lab
        .running
        .within("client", || UdpSocket::bind("0.0.0.0:0"))??;
    let mut came = Vec::new();
    let mut buffer = [0; 4];
    for number in 0..count {
        sender.send_to(&number.to_be_bytes(), "10.77.0.11:999")?;
    }
    while receiver.recv(&mut buffer).is_ok() {
        came.push(u32::from_be_bytes(buffer));
    }
    Ok(came)
}

fn mac_address(lab: &Raised) -> Result<String, Box<dyn std::error::Error>> {
    let line = lab.text("ds1", "ip -br link show eth0")?;
    Ok(line
        .split_whitespace()
        .nth(2)
        .unwrap_or_default()
        .to_owned())
}

fn packets(lab: &Raised, packets: Packets) -> Outcome {
    Ok(lab.running.fault("ds1", &Fault::Packets(packets))?)
}

#[test]
fn a_cut_link_carries_nothing_until_it_is_mended() -> Outcome {
    let Some(lab) = raise("cut", PAIR)? else {
        return Ok(());
    };
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    lab.running.fault("ds1", &Fault::Cut)?;
    assert!(matches!(code(&lab, 1)?, TOO_LATE | REFUSED));
    assert!(
        lab.text("ds1", "ip -br link show eth0")?
            .contains("NO-CARRIER")
    );
    lab.running.fault("ds1", &Fault::Mend)?;
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");

    let unknown = lab.running.fault("bridge", &Fault::Cut);
    assert!(
        matches!(unknown, Err(Error::NoSuchHost { .. })),
        "{unknown:?}"
    );
    // The lab can also be taken down while a link is cut.
    Ok(lab.running.fault("ds1", &Fault::Cut)?)
}

#[test]
fn a_paused_program_answers_late_and_a_killed_one_never() -> Outcome {
    let Some(lab) = raise("pause", PAIR)? else {
        return Ok(());
    };
    let nginx = || "nginx".to_owned();
    lab.running.fault("ds1", &Fault::Pause { thing: nginx() })?;
    assert_eq!(code(&lab, 1)?, TOO_LATE);
    lab.running
        .fault("ds1", &Fault::Continue { thing: nginx() })?;
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    lab.running.fault("ds1", &Fault::Kill { thing: nginx() })?;
    // A connection that comes before the kernel has closed all sockets of the program is reset.
    let mut code_now = code(&lab, 5)?;
    for _ in 0..50 {
        if code_now != RESET {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        code_now = code(&lab, 5)?;
    }
    assert_eq!(code_now, REFUSED);
    let unknown = lab.running.fault(
        "ds1",
        &Fault::Pause {
            thing: "apache".into(),
        },
    );
    assert!(
        matches!(unknown, Err(Error::NoSuchThing { .. })),
        "{unknown:?}"
    );

    // A stopped program is taken down as fast as any other.
    lab.running.restart("ds1", "nginx")?;
    lab.running.fault("ds1", &Fault::Pause { thing: nginx() })?;
    let begin = Instant::now();
    let down = lab.running.clone().down()?;
    assert!(down.warnings.is_empty(), "{down:?}");
    assert!(
        begin.elapsed() < Duration::from_secs(28),
        "it was killed in the end"
    );
    Ok(())
}

/// A client that has half of an answer must learn of the reboot only from its own timers.
#[test]
fn a_host_that_reboots_says_no_word_and_knows_nothing() -> Outcome {
    let Some(lab) = raise("reboot", PAIR)? else {
        return Ok(());
    };
    let before = lab.running.host("ds1")?.things[0].pid;
    let mac = mac_address(&lab)?;
    let inode = std::fs::metadata(lab.running.host("ds1")?.namespace)?;
    lab.text("ds1", "sysctl -qw net.ipv4.ip_forward=1")?;
    let mut curl = lab.running.exec("client")?;
    curl.args(["curl", "-sS", "--limit-rate", "1M", "-o", "/dev/null"]);
    let mut curl = curl.arg("http://10.77.0.11/64m").spawn()?;
    lab.text(
        "bridge",
        "nft add table netdev t; add chain netdev t c { type filter hook ingress device ds1 \
         priority 0; }; add rule netdev t c ip protocol tcp tcp flags & (fin|rst) != 0 counter",
    )?;
    std::thread::sleep(Duration::from_millis(500));
    lab.running.fault("ds1", &Fault::Halt)?;
    assert!(matches!(code(&lab, 1)?, TOO_LATE | Some(7)));
    assert!(!lab.running.host("ds1")?.things[0].alive);
    let seen = lab.text("bridge", "nft list table netdev t")?;
    assert!(seen.contains("counter packets 0 "), "{seen}");
    assert_eq!(curl.try_wait()?, None, "nobody told it");

    lab.running.fault("ds1", &Fault::Reboot)?;
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    let host = lab.running.host("ds1")?;
    assert!(host.things[0].alive && host.things[0].pid != before);
    assert_eq!(lab.text("ds1", "cat /proc/sys/net/ipv4/ip_forward")?, "0\n");
    assert_eq!(mac_address(&lab)?, mac);
    use std::os::unix::fs::MetadataExt as _;
    assert_ne!(std::fs::metadata(host.namespace)?.ino(), inode.ino());
    curl.kill()?;
    curl.wait()?;

    // A second reboot works at once, and the lab can also be taken down while a host has no power.
    lab.running.fault("ds1", &Fault::Reboot)?;
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    Ok(lab.running.fault("ds1", &Fault::Halt)?)
}

#[test]
fn packets_are_lost_only_on_the_way_and_of_the_kind_that_was_said() -> Outcome {
    let Some(lab) = raise("lose", PAIR)? else {
        return Ok(());
    };
    let lose = |only, direction| Packets {
        lose: Loss::new(1.0).unwrap_or_default(),
        only,
        direction,
        ..Packets::default()
    };
    packets(&lab, lose(Only::Lccp, Direction::Both))?;
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    packets(&lab, lose(Only::Tcp, Direction::To))?;
    assert_eq!(code(&lab, 1)?, TOO_LATE);
    assert_eq!(sent(&lab, 50)?.len(), 50, "UDP is not TCP");
    packets(&lab, lose(Only::All, Direction::From))?;
    assert_eq!(sent(&lab, 50)?.len(), 50, "only the other way");
    packets(&lab, lose(Only::All, Direction::To))?;
    assert_eq!(sent(&lab, 50)?, Vec::<u32>::new());
    packets(&lab, Packets::default())?;
    assert_eq!(sent(&lab, 50)?.len(), 50);
    Ok(())
}

#[test]
fn packets_come_twice_whichever_way_they_go() -> Outcome {
    let Some(lab) = raise("twice", PAIR)? else {
        return Ok(());
    };
    let twice = |direction| Packets {
        twice: Loss::new(0.5).unwrap_or_default(),
        direction,
        ..Packets::default()
    };
    packets(&lab, twice(Direction::To))?;
    let came = sent(&lab, 200)?;
    assert!((250..=350).contains(&came.len()), "{} of 200", came.len());
    packets(&lab, twice(Direction::From))?;
    assert_eq!(sent(&lab, 200)?.len(), 200, "not on this way");
    lab.running
        .fault("ds1", &Fault::Packets(Packets::default()))?;
    let client = Fault::Packets(twice(Direction::From));
    lab.running.fault("client", &client)?;
    let came = sent(&lab, 200)?;
    assert!((250..=350).contains(&came.len()), "{} of 200", came.len());
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    Ok(())
}

#[test]
fn late_packets_are_overtaken_and_all_arrive() -> Outcome {
    let Some(lab) = raise("late", PAIR)? else {
        return Ok(());
    };
    let late = |part, by, direction| Packets {
        late: Loss::new(part).unwrap_or_default(),
        by: Duration::from_millis(by),
        direction,
        ..Packets::default()
    };
    for (host, direction) in [("ds1", Direction::To), ("client", Direction::From)] {
        let fault = Fault::Packets(late(0.2, 50, direction));
        lab.running.fault(host, &fault)?;
        let came = sent(&lab, 200)?;
        let overtaken = came.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert_eq!(came.len(), 200, "{host}");
        assert!(overtaken > 0, "{host}: {came:?}");
        lab.running
            .fault(host, &fault.undone_by().ok_or("it cannot be undone")?)?;
        assert!(sent(&lab, 200)?.is_sorted(), "{host}");
    }

    // If all packets are late, the link is like a long line. An answer takes two round trips, four times the delay.
    lab.running
        .fault("ds1", &Fault::Packets(late(1.0, 50, Direction::Both)))?;
    let begin = Instant::now();
    assert_eq!(lab.get(WHOAMI)?, "ds1\n");
    assert!(
        begin.elapsed() >= Duration::from_millis(200),
        "{:?}",
        begin.elapsed()
    );
    let processes = String::from_utf8(Command::new("ps").arg("ax").output()?.stdout)?;
    assert!(processes.contains(&format!("{}/bridge/late.py", lab.name)));
    // The process that holds packets is taken down with the lab, which the end of the test checks.
    Ok(())
}
