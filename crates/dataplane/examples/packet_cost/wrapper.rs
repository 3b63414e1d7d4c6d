//! The program that gives every run of a test run a fresh packet.

use std::{
    env,
    net::SocketAddrV4,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use baton_dataplane::sys;
use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder};

/// The number of flows for which `restore.bpf.c` has room.
pub const FLOWS: u32 = 65_536;

/// `restore.bpf.c`, loaded.
pub struct Wrapper {
    restore: OwnedFd,
    /// An XDP program that drops at once.
    pub xdp_nothing: OwnedFd,
    /// A tcx program that goes on at once.
    pub tcx_nothing: OwnedFd,
    /// A tcx program that sends two copies of each packet to an interface ([`Wrapper::copy_to`]).
    pub tcx_copies: OwnedFd,
    template: MapHandle,
    flows: MapHandle,
    turn: MapHandle,
    measured: MapHandle,
    copies_to: MapHandle,
}

/// What the packet of a run has of its own.
#[derive(Clone, Copy)]
pub struct Flow {
    pub client: SocketAddrV4,
    pub service: SocketAddrV4,
    pub seq: u32,
    pub ack: u32,
}

/// The packet of which every run gets a copy.
pub struct Template {
    pub frame: Vec<u8>,
    /// Whether the measured program puts a header in front of the packet. Otherwise it may change the packet's tail.
    pub grows_in_front: bool,
    /// The number of flows that take turns: a power of two.
    pub flows: u32,
    /// How far the sequence and acknowledgement numbers of a packet are ahead of its flow's.
    pub ahead: (u32, u32),
}

impl Wrapper {
    /// Compiles and loads `restore.bpf.c`.
    pub fn load() -> Result<Self> {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/packet_cost/restore.bpf.c");
        let out = tempfile::tempdir()?;
        let file = out.path().join("restore.o");
        SkeletonBuilder::new()
            .source(source)
            .obj(&file)
            .clang(env::var("CLANG").unwrap_or_else(|_| "clang".into()))
            .clang_args([
                "-mcpu=v3",
                "-idirafter",
                &format!("/usr/include/{}-linux-gnu", env::consts::ARCH),
            ])
            .build()
            .context("compiling restore.bpf.c")?;
        let object = ObjectBuilder::default().open_file(&file)?.load()?;
        Ok(Self {
            restore: program(&object, "xdp_restore")?,
            xdp_nothing: program(&object, "xdp_nothing")?,
            tcx_nothing: program(&object, "tcx_nothing")?,
            tcx_copies: program(&object, "tcx_copies")?,
            template: map(&object, "templates")?,
            flows: map(&object, "bench_flows")?,
            turn: map(&object, "turn")?,
            measured: map(&object, "measured")?,
            copies_to: map(&object, "copies_to")?,
        })
    }

    pub fn set_flows(&self, flows: &[Flow]) -> Result<()> {
        let keys: Vec<u8> = (0..flows.len() as u32).flat_map(u32::to_ne_bytes).collect();
        let values: Vec<u8> = flows.iter().flat_map(Flow::bytes).collect();
        let (flags, count) = (MapFlags::ANY, flows.len() as u32);
        Ok(self
            .flows
            .update_batch(&keys, &values, count, flags, flags)?)
    }

    pub fn set_template(&self, template: &Template) -> Result<()> {
        ensure!(template.flows.is_power_of_two() && template.flows <= FLOWS);
        let mut frame = template.frame.clone();
        ensure!(frame.len() <= 256, "a template of {} bytes", frame.len());
        let words = [
            frame.len() as u32,
            template.grows_in_front.into(),
            template.flows,
            template.ahead.0,
            template.ahead.1,
        ];
        frame.resize(256, 0);
        let value = [words.map(u32::to_ne_bytes).concat(), frame].concat();
        set(&self.template, &value)
    }

    /// Lets every packet go to `program` from here on. This is slow, because the kernel waits until nobody runs the
    /// old program.
    pub fn aim(&self, program: BorrowedFd<'_>) -> Result<()> {
        set(&self.measured, &program.as_raw_fd().to_ne_bytes())
    }

    /// Sets the interface to which copies go; 0: no copies are made.
    pub fn copy_to(&self, interface: u32) -> Result<()> {
        set(&self.copies_to, &interface.to_ne_bytes())
    }

    /// Returns the mean nanoseconds of `runs` runs, each with its own packet, from the first flow on. `frame` must be
    /// as long as the template.
    pub fn run(&self, frame: &[u8], runs: u32) -> Result<u64> {
        set(&self.turn, &[0; 4])?;
        let outcome = sys::run_on_frame(self.restore.as_fd(), frame, None, runs)?;
        ensure!(outcome.verdict != 0, "the last run was aborted");
        Ok(outcome.duration.as_nanos() as u64)
    }
}

impl Flow {
    /// The bytes of `struct flow` of `restore.bpf.c`.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.client.ip().octets().to_vec();
        bytes.extend(self.client.port().to_be_bytes());
        bytes.extend(self.service.port().to_be_bytes());
        bytes.extend(self.seq.to_ne_bytes());
        bytes.extend(self.ack.to_ne_bytes());
        bytes
    }
}

fn set(map: &MapHandle, value: &[u8]) -> Result<()> {
    Ok(map.update(&[0; 4], value, MapFlags::ANY)?)
}

fn program(object: &Object, name: &str) -> Result<OwnedFd> {
    let mut programs = object.progs();
    let found = programs.find(|program| program.name() == name);
    let found = found.with_context(|| format!("restore.bpf.c has no {name}"))?;
    Ok(found.as_fd().try_clone_to_owned()?)
}

fn map(object: &Object, name: &str) -> Result<MapHandle> {
    let mut maps = object.maps();
    let found = maps.find(|map| map.name() == name);
    let found = found.with_context(|| format!("restore.bpf.c has no {name}"))?;
    Ok(MapHandle::try_from(&found)?)
}
