//! A client, an I/O server with the cluster's addresses, and an application node, whose only route leads to the I/O
//! server. A program on the node reaches everything else through the agent.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use baton_dataplane::{AppMaps, Pins, app_counter_name};
use baton_saps::{AgentSettings, IoServer, IoSettings, NetworkKind, PortPolicy};
use baton_virtual_sockets::{Agent, Counters, Group, RefusedPorts, Settings, take_back};
use baton_wire::ClusterKey;
use tokio::sync::oneshot;

use crate::common::{self, Namespace, Thread, line};

pub const CLUSTER: &str = "10.88.0.100";
pub const CLUSTER_V6: &str = "fd88::100";
pub const CLIENT: &str = "10.88.0.1";
pub const CLIENT_V6: &str = "fd88::1";
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Bed {
    pub client: Namespace,
    pub io: Namespace,
    pub app: Namespace,
    pub dir: tempfile::TempDir,
    pub group: Group,
    pub pins: Pins,
    network: NetworkKind,
    agent: Option<Running>,
    server: Option<Thread<()>>,
}

struct Running {
    maps: AppMaps,
    counters: Arc<Counters>,
    refused: Arc<RefusedPorts>,
    thread: Thread<Agent>,
}

/// The addresses of the I/O server and the node on the forwarding network.
const IO: &str = "10.99.0.1";
const NODE: &str = "10.99.0.2";
/// The size of the receive buffers at both ends, B_r.
const BUFFER: u32 = 128 * 1024;

fn cluster() -> Vec<IpAddr> {
    vec![CLUSTER.parse().unwrap(), CLUSTER_V6.parse().unwrap()]
}

fn forwarding() -> SocketAddr {
    SocketAddr::new(IO.parse().unwrap(), 7009)
}

fn key() -> ClusterKey {
    ClusterKey::from_bytes([7; 32]).unwrap()
}

impl Bed {
    /// Makes a bed whose channel is over TCP; see [`Bed::over`].
    pub fn new() -> Option<Self> {
        Self::over(NetworkKind::Tcp)
    }

    /// Makes a bed, or returns `None` if this test may not make namespaces.
    pub fn over(network: NetworkKind) -> Option<Self> {
        if !common::may_run_here() {
            return None;
        }
        let (client, io) = (Namespace::new("client"), Namespace::new("io"));
        let app = Namespace::new("app");
        for (from, device, to) in [(&client, "eth0", &io), (&app, "eth1", &io)] {
            let name = &to.name;
            from.ip(&format!(
                "link add {device} type veth peer name {device} netns {name}"
            ));
        }
        for (namespace, v4, v6) in [(&client, CLIENT, CLIENT_V6), (&io, CLUSTER, CLUSTER_V6)] {
            namespace.ip(&format!("address add {v4}/24 dev eth0"));
            namespace.ip(&format!("address add {v6}/64 dev eth0 nodad"));
            namespace.ip("link set eth0 up");
        }
        for (namespace, address) in [(&io, IO), (&app, NODE)] {
            namespace.ip(&format!("address add {address}/24 dev eth1"));
            namespace.ip("link set eth1 up");
        }
        let place = PathBuf::from(format!("/sys/fs/bpf/{}", app.name));
        let mut bed = Self {
            client,
            io,
            group: Group::named_after(&place).unwrap(),
            pins: Pins::new(place),
            app,
            dir: tempfile::tempdir().unwrap(),
            network,
            agent: None,
            server: None,
        };
        bed.start_io_server();
        bed.start();
        Some(bed)
    }

    /// Starts the I/O server, or a new one in its place.
    pub fn start_io_server(&mut self) {
        let (ready, is_ready) = mpsc::channel();
        let network = self.network;
        let work = async move |stopped| {
            let server = IoServer::start(IoSettings {
                node: "io1".to_owned(),
                listen: forwarding(),
                network,
                key: key(),
                previous_key: None,
                cluster_addresses: cluster(),
                buffer: BUFFER,
                policy: PortPolicy::RoundRobin,
                weights: BTreeMap::new(),
            });
            let _server = server.unwrap();
            ready.send(()).unwrap();
            let _: Result<(), oneshot::error::RecvError> = stopped.await;
        };
        self.server = Some(Thread::start(&self.io, work));
        is_ready.recv_timeout(PATIENCE).unwrap();
    }

    /// Starts an agent, which takes over what an earlier one left.
    pub fn start(&mut self) {
        let settings = Settings {
            group: self.group.clone(),
            pins: Some(self.pins.clone()),
            cluster: cluster(),
            direct: vec![("10.99.0.0".parse().unwrap(), 16)],
        };
        let (ready, is_ready) = mpsc::channel();
        let network = self.network;
        let work = async move |stopped: oneshot::Receiver<()>| {
            let far = baton_saps::Agent::start(AgentSettings {
                node: "app1".to_owned(),
                io_server: forwarding(),
                network,
                key: key(),
                previous_key: None,
                buffer: BUFFER,
            });
            let agent = Agent::start(settings).unwrap();
            ready
                .send((agent.maps().unwrap(), agent.counters(), agent.refused()))
                .unwrap();
            tokio::select! {
                ended = agent.serve(far.unwrap()) => panic!("{ended:?}"),
                _ = stopped => {}
            }
            agent
        };
        let thread = Thread::start(&self.app, work);
        let (maps, counters, refused) = is_ready.recv_timeout(PATIENCE).unwrap();
        self.agent = Some(Running {
            maps,
            counters,
            refused,
            thread,
        });
    }

    /// Ends the I/O server.
    pub fn stop_io_server(&mut self) {
        self.server.take().unwrap().stop().unwrap();
    }

    /// Ends the agent as if its process were killed: its sockets and threads end, its pins stay.
    pub fn kill(&mut self) {
        drop(self.agent.take().unwrap().thread.stop().unwrap());
    }

    /// Ends the agent like a daemon that restores its node.
    pub fn take_down(&mut self) {
        let agent = self.agent.take().unwrap().thread.stop().unwrap();
        let errors = agent.take_down();
        assert!(errors.is_empty(), "{errors:?}");
    }

    /// Returns a command that runs in the node's control group.
    pub fn command(&self, program: &str) -> Command {
        let enter = "echo 0 > \"$0/cgroup.procs\" && exec \"$@\"";
        self.node_command(
            "sh",
            &["-c", enter, self.group.path().to_str().unwrap(), program],
        )
    }

    fn node_command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.app.name))
            .arg(program)
            .args(arguments)
            .current_dir(self.dir.path());
        command
    }

    /// Runs one of `programs/` to its end and returns its output.
    pub fn run(&self, script: &str, arguments: &[&str]) -> String {
        text(&self.python(script, arguments).output().unwrap())
    }

    /// Returns a command that runs one of `programs/`.
    pub fn python(&self, script: &str, arguments: &[&str]) -> Command {
        let mut command = self.command("/usr/bin/python3");
        command.arg(here(script)).args(arguments);
        command
    }

    /// Starts one of `programs/` that writes a line when it is ready.
    pub fn start_python(&self, script: &str, arguments: &[&str]) -> Program {
        let mut command = self.python(script, arguments);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Program(child.unwrap())
    }

    /// Connects from the client, as soon as a program listens.
    pub fn connect(&self, to: &str) -> TcpStream {
        let to: SocketAddr = to.parse().unwrap();
        let begun = Instant::now();
        loop {
            match self
                .client
                .run(|| TcpStream::connect_timeout(&to, PATIENCE))
            {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    stream.set_write_timeout(Some(PATIENCE)).unwrap();
                    return stream;
                }
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{to}: {error}"),
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Listens at the client, for programs to connect to.
    pub fn client_listener(&self, address: &str) -> TcpListener {
        self.client.run(|| TcpListener::bind((address, 0)).unwrap())
    }

    /// Runs `curl` at the client.
    pub fn curl(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.client.name));
        command.args([
            "curl",
            "--silent",
            "--show-error",
            "--fail",
            "--max-time",
            "60",
        ]);
        let output = command.args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "curl {arguments:?}: {error}");
        output.stdout
    }

    pub fn refused(&self) -> &RefusedPorts {
        &self.agent.as_ref().unwrap().refused
    }

    pub fn counters(&self) -> &Counters {
        &self.agent.as_ref().unwrap().counters
    }

    /// The value of one of the hooks' counters, by its metric's label.
    pub fn counter(&self, name: &str) -> u64 {
        let all = self.agent.as_ref().unwrap().maps.counters().unwrap();
        let found = (0..)
            .zip(&all)
            .find(|(index, _)| app_counter_name(*index).as_deref() == Some(name));
        *found.unwrap_or_else(|| panic!("no counter {name}")).1
    }

    /// Waits until `is_so` holds.
    pub fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(
                begun.elapsed() < PATIENCE,
                "{what} did not come; {:?}",
                self.counters()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // This also ends processes that programs have started and left behind.
        let _ = fs::write(self.group.path().join("cgroup.kill"), "1");
        if let Some(running) = self.agent.take() {
            let _ = running.thread.stop();
        }
        if let Some(server) = self.server.take() {
            let _ = server.stop();
        }
        let errors = take_back(&self.group, Some(&self.pins));
        assert!(thread::panicking() || errors.is_empty(), "{errors:?}");
    }
}

/// A program, which ends with the test.
pub struct Program(pub Child);

impl Program {
    /// The next line that the program writes.
    pub fn line(&mut self) -> String {
        let output = self.0.stdout.as_mut().unwrap();
        line(output)
    }

    pub fn say(&mut self, text: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{text}").unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn here(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sockets/programs")
        .join(script)
}

pub fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns `count` bytes, which are the same each time.
pub fn bytes(count: usize) -> Vec<u8> {
    (0..count as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

pub fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).unwrap();
}
