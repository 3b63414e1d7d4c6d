//! The three servers, on real namespaces, serve the same pages.

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use baton_lab::servers::SUMS;
use support::{Outcome, Raised, raise};

const HOSTS: &str = r#"
[[host]]
name = "client"
address = ["10.77.0.1/24", "fd77::1/64"]
[[host]]
name = "ds1"
address = ["10.77.0.11/24", "fd77::11/64"]
run = ["nginx"]
[[host]]
name = "ds2"
address = ["10.77.0.12/24", "fd77::12/64"]
run = ["apache"]
[[host]]
name = "ds3"
address = ["10.77.0.13/24", "fd77::13/64"]
run = ["goserver", { server = "nginx", port = 8080, workers = 1 }]
"#;

const SERVERS: [(&str, &str); 4] = [
    ("ds1", "10.77.0.11"),
    ("ds2", "10.77.0.12"),
    ("ds3", "10.77.0.13"),
    ("ds3", "10.77.0.13:8080"),
];

/// All checks share one lab, because raising it takes longer than any of them.
#[test]
fn every_server_serves_every_page() -> Outcome {
    let Some(lab) = raise("pages", HOSTS)? else {
        return Ok(());
    };
    for (name, address) in SERVERS {
        let tell = |error| format!("{address}: {error}");
        pages(&lab, name, address).map_err(tell)?;
        uploads(&lab, address).map_err(tell)?;
    }
    for (name, address) in [
        ("ds1", "[fd77::11]"),
        ("ds2", "[fd77::12]"),
        ("ds3", "[fd77::13]"),
    ] {
        assert_eq!(
            lab.get(&format!("http://{address}/whoami"))?,
            format!("{name}\n")
        );
    }
    logs(&lab)?;
    chunks(&lab)?;
    slowness(&lab)?;
    let answer = lab.running.within("client", web_socket)??;
    assert_eq!(answer, b"\x81\x05Hello\x88\x00");
    let listeners = lab.text("ds3", "ss --no-header -lnM sport = :80")?;
    assert!(
        !listeners.trim().is_empty(),
        "the Go server does not listen with MPTCP"
    );
    Ok(())
}

fn pages(lab: &Raised, name: &str, address: &str) -> Outcome {
    let url = |path: &str| format!("http://{address}{path}");
    assert_eq!(lab.get(&url("/whoami"))?, format!("{name}\n"));
    assert_eq!(lab.get(&url("/health"))?, "ok\n");
    assert_eq!(lab.get(&url("/ds2/a/b"))?, format!("{name} /ds2/a/b\n"));
    assert_eq!(lab.get(&url("/empty"))?, "");
    for line in SUMS.lines() {
        let (sum, file) = line.split_once("  ").ok_or("not a line of sha256sum")?;
        let mut shell = lab.running.exec("client")?;
        shell
            .args(["sh", "-c", "curl -sSf \"$0\" | sha256sum"])
            .arg(url(&format!("/{file}")));
        let got = String::from_utf8(shell.output()?.stdout)?;
        assert_eq!(got.split_whitespace().next(), Some(sum), "{address}/{file}");
    }
    assert!(
        lab.get(&url("/nothing")).is_err(),
        "a page that is not there"
    );
    Ok(())
}

/// Checks that a server reads a body to its end, whether its length is announced or not.
fn uploads(lab: &Raised, address: &str) -> Outcome {
    for (file, length) in [
        ("empty", "0"),
        ("1b", "1"),
        ("64k", "65536"),
        ("64m", "67108864"),
    ] {
        for chunked in ["", "-H Transfer-Encoding:chunked "] {
            let body = format!("--data-binary @/var/tmp/baton-lab/files/{file}");
            let answer = lab.get(&format!("{chunked}{body} http://{address}/upload"))?;
            let mut words = answer.split_whitespace();
            assert_eq!(words.next(), Some(length), "{chunked}{file}: {answer}");
            let sum = SUMS
                .lines()
                .find(|line| line.ends_with(&format!("  {file}")));
            if let Some(got) = words.next() {
                assert_eq!(sum.map(|sum| &sum[..64]), Some(got), "{chunked}{file}");
            }
        }
    }
    Ok(())
}

/// Each request is one line of the log with the client's address. nginx writes the line within a second.
fn logs(lab: &Raised) -> Outcome {
    for host in ["ds1", "ds2", "ds3"] {
        let path = lab.running.host(host)?.directory.join("access.log");
        let mut log = String::new();
        for _ in 0..100 {
            log = std::fs::read_to_string(&path)?;
            if log.contains("fd77::1 ") {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let whoami = log
            .lines()
            .find(|line| line.contains("\"GET /whoami HTTP/1.1\""));
        let words: Vec<&str> = whoami.ok_or("no line for /whoami")?.split(' ').collect();
        assert_eq!(words[0], "10.77.0.1");
        assert!(words[1].parse::<u16>()? >= 1024);
        assert_eq!(words[5..], ["200", "4"], "{log}");
        assert!(!log.contains("/health"), "{log}");
    }
    Ok(())
}

fn chunks(lab: &Raised) -> Outcome {
    let answer = lab.text(
        "client",
        "curl -sSfi http://10.77.0.13/chunked?size=4096 -o /dev/null -D -",
    )?;
    assert!(answer.contains("Transfer-Encoding: chunked"), "{answer}");
    let sum = lab
        .running
        .exec("client")?
        .args([
            "sh",
            "-c",
            "curl -sSf http://10.77.0.13/chunked?size=4096 | sha256sum",
        ])
        .output()?;
    let wanted = SUMS
        .lines()
        .find(|line| line.ends_with("  4k"))
        .ok_or("no 4k")?;
    assert_eq!(String::from_utf8(sum.stdout)?[..64], wanted[..64]);
    Ok(())
}

fn slowness(lab: &Raised) -> Outcome {
    let lines = lab.get("http://10.77.0.13/slow?for=250ms")?;
    assert!(lines.starts_with("1\n2\n"), "{lines}");
    assert!(lab.get("http://10.77.0.13/slow?for=long").is_err());
    Ok(())
}

/// Sends a handshake with the key of RFC 6455 section 1.3, the masked frame of section 5.7 and a close. Returns the
/// frames of the answer.
fn web_socket() -> std::io::Result<Vec<u8>> {
    let mut connection = TcpStream::connect("10.77.0.13:80")?;
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    connection.write_all(
        b"GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    )?;
    connection.write_all(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")?;
    connection.write_all(b"\x88\x80\x00\x00\x00\x00")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, frames) = answer.split_at(end.map_or(answer.len(), |end| end + 4));
    let head = String::from_utf8_lossy(head);
    if !head.starts_with("HTTP/1.1 101 ") || !head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") {
        return Err(std::io::Error::other(head.into_owned()));
    }
    Ok(frames.to_vec())
}
