//! A step that sends requests in every spelling. Each must be answered by the data server of the location that nginx
//! itself finds for it.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::http::{connect, read_response};
use crate::slowness;
use crate::wait::{patience, until};
use crate::world::World;

/// The address, on the client, of the nginx that says for which location a request is.
const ORACLE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8099);

/// The address, on the client, of an Apache with the same locations.
const APACHE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8098);

/// Sends the same bytes to an nginx with a location for each route and to the cluster. The cluster's routes must be
/// `/ds1/`, `/ds2/` and `/ds3/` to the data servers of these names, and host `a.test` to ds3. The cluster must refuse
/// what nginx refuses. What an Apache would serve from the location of a route must either be that route's or be
/// refused, so that no other route gets it, whichever server a data server runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// The number of requests that are made up, besides those that are given.
    random: usize,
    /// The seed of the made-up requests. Without it the step chooses another one each time, and prints it.
    #[serde(default)]
    seed: Option<u64>,
    /// Requests, with `|` for the end of a line and the empty line left out.
    requests: Vec<String>,
}

/// A request, and whether a connection may move with it.
struct Case {
    text: String,
    may_move: bool,
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    /// The name of the data server or of the location.
    by: String,
}

impl Targets {
    /// Runs the step.
    ///
    /// # Errors
    /// Another data server has answered than the location's, or what nginx refuses was answered.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let directory = world.scratch.path().join("locations");
        fs::create_dir_all(&directory)?;
        // Apache's workers are not root, so the directory must be readable for all.
        fs::set_permissions(world.scratch.path(), Permissions::from_mode(0o755))?;
        let file = directory.join("nginx.conf");
        fs::write(&file, configuration(&directory.display().to_string()))?;
        let file = file.display().to_string();
        let apache = directory.join("apache.conf");
        fs::write(directory.join("page"), "page\n")?;
        fs::write(
            &apache,
            apache_configuration(&directory.display().to_string()),
        )?;
        let apache = apache.display().to_string();
        world.run("client", &["nginx", "-c", &file])?;
        let started = world.run("client", &["apache2", "-f", &apache, "-k", "start"]);
        let done = started.and_then(|_| world.lab.within("client", || self.compare())?);
        world.run("client", &["apache2", "-f", &apache, "-k", "stop"])?;
        world.run("client", &["nginx", "-c", &file, "-s", "stop"])?;
        done
    }

    fn compare(&self) -> Result<()> {
        let seed = self
            .seed
            .unwrap_or_else(|| fastrand::u64(..=i64::MAX as u64));
        eprintln!("  seed = {seed}");
        self.compare_with(fastrand::Rng::with_seed(seed))
            .with_context(|| format!("with seed = {seed}"))
    }

    fn compare_with(&self, mut random: fastrand::Rng) -> Result<()> {
        let given = self.requests.iter().map(|text| given(text));
        let made_up = (0..self.random).map(|_| make_up(&mut random));
        let cases: Vec<Case> = given.chain(made_up).collect();
        let (mut routed, mut refused, mut rest, mut unmoved, mut agreed) = (0, 0, 0, 0, 0);
        until(patience(), || Ok(TcpStream::connect(APACHE).map(drop)?))?;
        for case in &cases {
            let asked = || format!("{:?}", case.text);
            let expected = answer(TcpStream::connect(ORACLE)?, &case.text).with_context(asked)?;
            let apache = answer(TcpStream::connect(APACHE)?, &case.text).with_context(asked)?;
            if apache.status == 200 && apache.by.starts_with("ds") && !has_encoded_slash(&case.text)
            {
                ensure!(
                    expected.status != 200 || expected.by == apache.by,
                    "Apache says {apache:?} of {:?}, nginx {expected:?}",
                    case.text
                );
                agreed += usize::from(expected == apache);
            }
            let first = answer(connect(None, 80)?, &case.text).with_context(asked)?;
            agree(&expected, &first).with_context(asked)?;
            // The same bytes as a later request, on a connection that has already moved between data servers.
            let mut stream = connect(None, 80)?;
            for path in ["/ds2/x", "/ds1/x", "/ds2/y"] {
                let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
                stream.write_all(request.as_bytes())?;
                read_response(&mut stream).with_context(asked)?;
            }
            let further = answer(stream, &case.text).with_context(asked)?;
            let ended = further.status == 503 && !case.may_move;
            if ended {
                unmoved += 1;
            } else {
                agree(&expected, &further)
                    .with_context(asked)
                    .context("as a further request")?;
            }
            match expected.by.as_str() {
                _ if expected.status != 200 => refused += 1,
                "rest" => rest += 1,
                _ => routed += 1,
            }
        }
        eprintln!(
            "  {} targets: {routed} of a route, {rest} of none, {refused} refused, {agreed} of the same route for Apache; \
             {unmoved} ended their connection",
            cases.len()
        );
        ensure!(
            routed > 0 && rest > 0 && refused > 0 && agreed > 0,
            "the targets are all of one kind"
        );
        Ok(())
    }
}

/// Whether a target contains an encoded slash. Apache does not treat it as a slash when it resolves `..`, and refuses
/// it only if it is still there afterwards.
fn has_encoded_slash(text: &str) -> bool {
    text.to_ascii_lowercase().contains("%2f")
}

fn agree(expected: &Answer, answer: &Answer) -> Result<()> {
    let agrees = match (expected.status, expected.by.as_str()) {
        (200, "rest") => {
            matches!(answer.status, 200 | 403 | 404 | 405) && answer.by.starts_with("ds")
        }
        (200, by) => answer.by == by && answer.status != 503,
        // An answer in HTTP/0.9 has no status, and a server that has closed the connection has not answered.
        _ => answer.status == 0 || answer.status >= 400 && answer.status != 503,
    };
    if !agrees {
        bail!("nginx says {expected:?}, the cluster {answer:?}");
    }
    Ok(())
}

/// Sends these bytes, which end the connection, and returns the answer.
fn answer(mut stream: TcpStream, text: &str) -> Result<Answer> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(slowness::patience()))?;
    stream.write_all(text.as_bytes())?;
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        // The server never read the rest of a request that it refused, so its kernel sends a RST.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => return Err(error.into()),
    }
    let said = String::from_utf8_lossy(&said);
    let status = said.split(' ').nth(1).filter(|_| said.starts_with("HTTP/"));
    let served = said
        .lines()
        .find_map(|line| line.strip_prefix("X-Served-By: "));
    // An answer in HTTP/0.9 is the body alone, which begins with the name.
    let (status, by) = match status {
        Some(status) => (status.parse()?, served.unwrap_or_default()),
        None if said.is_empty() || said.starts_with('<') => (0, ""),
        None => (200, said.split_whitespace().next().unwrap_or_default()),
    };
    Ok(Answer {
        status,
        by: by.to_owned(),
    })
}

fn given(text: &str) -> Case {
    let text = text.replace('|', "\r\n");
    let is_old = !text.contains("HTTP/");
    let is_line = text.trim_start_matches(['\r', '\n']);
    let may_move = (is_line.starts_with("GET /") || is_line.starts_with("GET h")) && !is_old;
    let may_move = may_move && !text.contains("  ") && text.contains("\r\nHost");
    Case {
        text: format!("{text}\r\nConnection: close\r\n\r\n"),
        may_move,
    }
}

/// Makes up a target from pieces that have a meaning for some server.
fn make_up(random: &mut fastrand::Rng) -> Case {
    const PIECES: [&str; 42] = [
        "/", "/", "/", "/", "ds1", "ds1/", "/ds1/", "ds2/", "/ds3", "/ds3/", "%64s1", "ds%31",
        "d%733/", ".", "..", "./", "../", "/.", "/..", "%2e", "%2E%2e", "%2f", "%2F", "//", "%5c",
        "\\", "?", "#", ";", "%3f", "%23", "%25", "%252f", "%", "%0", "%00", "%zz", "%20", "a",
        "+", "%c3%a9", "DS1/",
    ];
    let mut target = String::new();
    if random.u8(..8) == 0 {
        target += [
            "http://h",
            "http://a.test",
            "HTTP://A.Test.:80",
            "http://u@h",
            "x:/",
        ][random.usize(..5)];
    }
    if random.u8(..16) > 0 {
        target += "/";
    }
    for _ in 0..random.usize(..7) {
        target += PIECES[random.usize(..PIECES.len())];
    }
    let hosts = [
        "h",
        "h",
        "h",
        "a.test",
        "A.TEST",
        "a.test.",
        "a.test:80",
        "a.test.:80",
        "a..test",
        "b.a.test",
    ];
    let host = hosts[random.usize(..hosts.len())];
    let (lead, method, blanks) = match random.u8(..16) {
        0 => ("\r\n", "GET", " "),
        1 => ("\r\n\r\n", "GET", " "),
        2 => ("", "PROPFINDS", " "),
        3 => ("", "GET", "  "),
        4 => ("", "get", " "),
        _ => ("", "GET", " "),
    };
    let end = if random.u8(..16) == 0 { "\n" } else { "\r\n" };
    Case {
        text: format!(
            "{lead}{method}{blanks}{target} HTTP/1.1{end}Host: {host}{end}Connection: close{end}{end}"
        ),
        may_move: method == "GET" && blanks == " " && end == "\r\n",
    }
}

fn configuration(directory: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {directory}/{name};\n"))
        .concat();
    let location = |path: &str, name: &str| {
        format!("location {path} {{ add_header X-Served-By {name}; return 200 \"{name} \"; }}\n")
    };
    let locations = ["ds1", "ds2", "ds3"].map(|name| location(&format!("/{name}/"), name));
    format!(
        "pid {directory}/pid;\nerror_log {directory}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\
         server {{\nlisten {ORACLE} default_server;\n{}{}}}\n\
         server {{\nlisten {ORACLE};\nserver_name a.test;\n{}}}\n}}\n",
        locations.concat(),
        location("/", "rest"),
        location("/", "ds3"),
    )
}

fn apache_configuration(directory: &str) -> String {
    let modules: String = ["mpm_event", "authz_core", "alias", "headers"]
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .concat();
    let locations = ["ds1", "ds2", "ds3"].map(|name| {
        format!("<Location /{name}/>\nHeader always set X-Served-By {name}\n</Location>\n")
    });
    let host = |name: &str, by: &str, more: &str| {
        format!(
            "<VirtualHost {APACHE}>\nServerName {name}\nHeader always set X-Served-By {by}\n\
             AliasMatch ^.*$ {directory}/page\n{more}</VirtualHost>\n"
        )
    };
    format!(
        "ServerRoot {directory}\nDefaultRuntimeDir {directory}\nPidFile {directory}/apache.pid\nListen {APACHE}\n\
         ErrorLog {directory}/apache.log\nUser www-data\nServerName rest\n{modules}<Directory />\n\
         Require all granted\n</Directory>\n{}{}",
        host("rest", "rest", &locations.concat()),
        host("a.test", "ds3", ""),
    )
}
