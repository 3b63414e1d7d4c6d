//! nginx, as it is installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bed::{Bed, Program, bytes, text, write};

const SIZES: [usize; 4] = [0, 1, 70_000, 64 << 20];

/// Writes a file of each size into the directory. curl must get the same bytes.
fn content(root: &Path) {
    fs::create_dir_all(root).unwrap();
    for size in SIZES {
        write(&root.join(size.to_string()), bytes(size));
    }
}

fn get_all(bed: &Bed) {
    for size in SIZES {
        let got = bed.curl(&[&format!("http://10.88.0.100/{size}")]);
        assert!(got == bytes(size), "{} of {size} bytes", got.len());
    }
}

/// Sends four requests over one connection.
fn keep_alive(bed: &Bed) {
    let url = "http://10.88.0.100/1";
    let (nowhere, count) = ("/dev/null", "%{num_connects} ");
    let mut arguments = vec!["--write-out", count];
    for _ in 0..4 {
        arguments.extend(["--output", nowhere, url]);
    }
    let connects = String::from_utf8(bed.curl(&arguments)).unwrap();
    assert_eq!(connects, "1 0 0 0 ");
}

#[test]
fn nginx() {
    let Some(bed) = Bed::new() else { return };
    let dir = bed.dir.path();
    content(&dir.join("www"));
    write(
        &dir.join("nginx.conf"),
        format!(
            "daemon off; worker_processes 2; pid {0}/pid; error_log {0}/error.log;
             user root;
             events {{ worker_connections 256; }}
             http {{
               log_format who '$remote_addr $remote_port $server_addr $server_port $request_uri';
               access_log {0}/access.log who;
               server {{
                 listen 80 reuseport; listen [::]:80;
                 root {0}/www;
                 location /who {{ return 200 \"$remote_addr $server_addr\\n\"; }}
               }}
             }}",
            dir.display()
        ),
    );
    let mut command = bed.command("nginx");
    command
        .arg("-c")
        .arg(dir.join("nginx.conf"))
        .arg("-p")
        .arg(dir);
    let mut nginx = Program(command.stdin(Stdio::null()).spawn().unwrap());
    // nginx is up when it accepts a connection.
    drop(bed.connect("10.88.0.100:80"));
    get_all(&bed);
    keep_alive(&bed);
    assert_eq!(
        bed.curl(&["http://10.88.0.100/who"]),
        b"10.88.0.1 10.88.0.100\n"
    );
    assert_eq!(
        bed.curl(&["http://[fd88::100]/who"]),
        b"fd88::1 fd88::100\n"
    );
    // A program of the node itself connects by its own loopback, and by the cluster address.
    let mut own = bed.command("curl");
    own.args(["-sS", "http://127.0.0.1/who"]);
    assert_eq!(text(&own.output().unwrap()), "127.0.0.1 127.0.0.1\n");
    let mut around = bed.command("curl");
    around.args(["-sS", "http://10.88.0.100/who"]);
    assert_eq!(text(&around.output().unwrap()), "10.88.0.100 10.88.0.100\n");
    let log = fs::read_to_string(dir.join("access.log")).unwrap();
    let clients = log.lines().filter(|line| line.starts_with("10.88.0.1 "));
    assert_eq!(clients.count(), SIZES.len() + 4 + 1);
    // nginx quits as usual: the master process tells its workers.
    let quit = Command::new("kill")
        .args(["-QUIT", &nginx.0.id().to_string()])
        .status();
    assert!(quit.unwrap().success());
    assert!(nginx.0.wait().unwrap().success());
    bed.wait("the end of its listeners", || {
        bed.counter("app_listen_ended") == bed.counter("app_listen")
    });
}
