//! Widely used servers and a widely used client, as they are installed.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::bed::{Bed, CLIENT, PATIENCE, Program, bytes, here, text, write};
use crate::common::may_run;

const SIZES: [usize; 4] = [0, 1, 70_000, 64 << 20];

/// Writes a file of each size into the directory. curl must get the same bytes.
fn content(root: &Path) {
    fs::create_dir_all(root).unwrap();
    for size in SIZES {
        write(&root.join(size.to_string()), bytes(size));
    }
}

fn get_all(bed: &Bed, port: u16) {
    for size in SIZES {
        let got = bed.curl(&[&format!("http://10.88.0.100:{port}/{size}")]);
        assert!(got == bytes(size), "{} of {size} bytes", got.len());
    }
}

/// Sends four requests over one connection.
fn keep_alive(bed: &Bed, port: u16) {
    let url = format!("http://10.88.0.100:{port}/1");
    let (nowhere, count) = ("/dev/null", "%{num_connects} ");
    let mut arguments = vec!["--write-out", count];
    for _ in 0..4 {
        arguments.extend(["--output", nowhere, &url]);
    }
    let connects = String::from_utf8(bed.curl(&arguments)).unwrap();
    assert_eq!(connects, "1 0 0 0 ");
}

fn server(mut command: Command) -> Program {
    Program(command.stdin(Stdio::null()).spawn().unwrap())
}

/// The version that an optional program prints, or `None` if the program does not run here.
fn version(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(said)
}

/// Whether Go has MPTCP, by "go version go1.21.3 linux/amd64". Development versions print something else, and have it.
fn has_mptcp(version: &str) -> bool {
    let minor = (version.split_once(" go1.")).and_then(|(_, rest)| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok()
    });
    minor.is_none_or(|minor| minor >= 21)
}

fn until_up(bed: &Bed, port: u16) {
    drop(bed.connect(&format!("10.88.0.100:{port}")));
}

#[test]
fn nginx() {
    if !may_run("nginx") {
        return;
    }
    let bed = Bed::new();
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
    let mut nginx = server(command);
    until_up(&bed, 80);
    get_all(&bed, 80);
    keep_alive(&bed, 80);
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

#[test]
fn apache_with_cgi() {
    if !may_run("apache_with_cgi") {
        return;
    }
    let bed = Bed::new();
    let dir = bed.dir.path();
    content(&dir.join("www"));
    fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = dir.join("who.cgi");
    write(
        &script,
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s %s %s\\n' $REMOTE_ADDR $SERVER_ADDR $SERVER_PORT\n",
    );
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let modules = "/usr/lib/apache2/modules";
    write(
        &dir.join("apache.conf"),
        format!(
            "ServerName cluster\nServerRoot {0}\nPidFile {0}/pid\nErrorLog {0}/error.log\nListen 8080\n\
             LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so\n\
             LoadModule authz_core_module {modules}/mod_authz_core.so\n\
             LoadModule cgi_module {modules}/mod_cgi.so\nLoadModule alias_module {modules}/mod_alias.so\n\
             User nobody\nGroup nogroup\nDocumentRoot {0}/www\nScriptAlias /who {0}/who.cgi\n\
             <Directory {0}>\nRequire all granted\n</Directory>\n",
            dir.display()
        ),
    );
    let mut command = bed.command("apache2");
    command
        .args(["-DFOREGROUND", "-f"])
        .arg(dir.join("apache.conf"));
    let _apache = server(command);
    until_up(&bed, 8080);
    get_all(&bed, 8080);
    keep_alive(&bed, 8080);
    assert_eq!(
        bed.curl(&["http://10.88.0.100:8080/who"]),
        b"10.88.0.1 10.88.0.100 8080\n"
    );
}

#[test]
fn python_http_server() {
    if !may_run("python_http_server") {
        return;
    }
    let bed = Bed::new();
    content(&bed.dir.path().join("www"));
    let mut command = bed.command("/usr/bin/python3");
    command.args(["-u", "-m", "http.server", "8000", "--directory", "www"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = server(command);
    until_up(&bed, 8000);
    get_all(&bed, 8000);
    server.0.kill().unwrap();
    let mut log = String::new();
    server
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    let requests: Vec<_> = log
        .lines()
        .filter(|line| line.contains("\"GET /"))
        .collect();
    assert_eq!(requests.len(), SIZES.len());
    assert!(
        requests.iter().all(|line| line.starts_with("10.88.0.1 ")),
        "{log}"
    );
}

/// The server is statically linked, so no library call could have been replaced. It has MPTCP listeners if it can.
#[test]
fn a_static_go_server() {
    if !may_run("a_static_go_server") {
        return;
    }
    let go = if Path::new("/usr/local/go/bin/go").exists() {
        "/usr/local/go/bin/go"
    } else {
        "go"
    };
    if !version(go, "version").is_some_and(|version| has_mptcp(&version)) {
        eprintln!("a_static_go_server: skipped: needs Go 1.21 or later (golang-go)");
        return;
    }
    let bed = Bed::new();
    let binary = bed.dir.path().join("serve");
    let built = Command::new(go)
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod")
        .args(["build", "-o"])
        .arg(&binary)
        .arg(here("serve.go"))
        .status();
    assert!(built.unwrap().success());
    let mut command = bed.command(binary.to_str().unwrap());
    command.stdout(Stdio::piped());
    let mut server = server(command);
    assert_eq!(server.line(), "listens [::]:8000");
    until_up(&bed, 8000);
    for size in SIZES {
        let got = bed.curl(&[&format!("http://10.88.0.100:8000/bytes/{size}")]);
        assert!(got == bytes(size), "{} of {size} bytes", got.len());
    }
    let who = String::from_utf8(bed.curl(&["http://10.88.0.100:8000/who"])).unwrap();
    assert!(
        who.starts_with("10.88.0.1:") && who.ends_with(" 10.88.0.100:8000\n"),
        "{who}"
    );
    // A kernel without MPTCP refuses before a hook is called.
    if Path::new("/proc/sys/net/mptcp").exists() {
        assert!(bed.counter("app_no_mptcp") > 0);
    }
    upgrade(&bed);
}

/// Switches to another protocol after a request, like WebSocket: both ends send whenever they like.
fn upgrade(bed: &Bed) {
    let mut stream = bed.connect("10.88.0.100:8000");
    stream
        .write_all(
            b"GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
        )
        .unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    line.clear();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "unasked\n");
    for word in ["one\n", "two\n"] {
        stream.write_all(word.as_bytes()).unwrap();
        line.clear();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, word);
    }
}

#[test]
fn a_java_server() {
    if !may_run("a_java_server") {
        return;
    }
    // A runtime without a compiler does not run a source file.
    if version("javac", "-version").is_none() {
        eprintln!("a_java_server: skipped: needs a Java development kit (default-jdk-headless)");
        return;
    }
    let bed = Bed::new();
    let mut command = bed.command("java");
    command.arg(here("Serve.java")).stdout(Stdio::piped());
    let mut server = server(command);
    assert_eq!(server.line(), "listens");
    until_up(&bed, 8000);
    for size in SIZES {
        let got = bed.curl(&[&format!("http://10.88.0.100:8000/bytes/{size}")]);
        assert!(got == bytes(size), "{} of {size} bytes", got.len());
    }
    let who = String::from_utf8(bed.curl(&["http://10.88.0.100:8000/who"])).unwrap();
    assert!(who.starts_with("/10.88.0.1:"), "{who}");
}

#[test]
fn curl_as_a_client() {
    if !may_run("curl_as_a_client") {
        return;
    }
    let bed = Bed::new();
    let listener = bed.client_listener(CLIENT);
    let port = listener.local_addr().unwrap().port();
    let body = bytes(1 << 20);
    let answer = body.clone();
    let serving = thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = Vec::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !request.ends_with(b"\r\n\r\n") {
            assert!(reader.read_until(b'\n', &mut request).unwrap() > 0);
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Peer: {peer}\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&answer).unwrap();
        peer
    });
    let mut curl = bed.command("curl");
    let format = "%{stderr}%{local_ip}:%{local_port} %{remote_ip}:%{remote_port}";
    curl.args([
        "-sS",
        "--write-out",
        format,
        &format!("http://{CLIENT}:{port}/"),
    ]);
    let output = curl.output().unwrap();
    let peer = serving.join().unwrap();
    assert!(output.stdout == body);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, format!("{peer} {CLIENT}:{port}"));
    assert_eq!(peer.ip().to_string(), "10.88.0.100");

    // Exit status 7: failed to connect
    let mut refused = bed.command("curl");
    refused.args(["-sS", &format!("http://{CLIENT}:9/")]);
    assert_eq!(refused.output().unwrap().status.code(), Some(7));
}
