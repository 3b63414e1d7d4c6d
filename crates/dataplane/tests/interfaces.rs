//! Programs at several interfaces of a node: their XDP mode, and what the next daemon finds. Needs root, and a BPF
//! file system.

use std::{os::fd::AsFd as _, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use baton_abi::{ROLE_CS, ROLE_DS};
use baton_dataplane::{Dataplane, Options, Pins, XdpChoice, XdpMode};
use libbpf_rs::{Link, Xdp, XdpFlags};
use nix::{net::if_::if_nametoindex, sched::CloneFlags, sched::unshare};

/// Pins, and a network namespace for the thread of the test. The namespace ends with the thread.
struct Bed(PathBuf);

impl Bed {
    fn new(test: &str) -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET).context("a namespace needs root")?;
        let pins = format!("/sys/fs/bpf/baton-cards-{}-{test}", std::process::id());
        Ok(Self(pins.into()))
    }

    fn options(&self, xdp: XdpChoice) -> Options {
        Options {
            roles: ROLE_CS | ROLE_DS,
            flows: 1024,
            kept_requests: 1024,
            xdp,
            frags: false,
            pins: Some(Pins::new(&self.0)),
        }
    }

    /// Starts a daemon at these interfaces.
    fn daemon(&self, interfaces: &[u32]) -> Result<Dataplane> {
        self.daemon_with(XdpChoice::Auto, interfaces)
    }

    fn daemon_with(&self, xdp: XdpChoice, interfaces: &[u32]) -> Result<Dataplane> {
        let options = self.options(xdp);
        let mut dataplane = Dataplane::load(&options)?;
        dataplane.attach(interfaces, &options)?;
        dataplane.follow_responses(true, interfaces, &options)?;
        Ok(dataplane)
    }

    /// Returns the error of a daemon that cannot start.
    fn refusal(&self, xdp: XdpChoice, interfaces: &[u32]) -> Result<String> {
        match self.daemon_with(xdp, interfaces) {
            Ok(_) => bail!("it began"),
            Err(error) => Ok(format!("{error:#}")),
        }
    }

    fn links(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with("link_") && name != "link_window" {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The kernel's id of a pinned link. The id stays the same as long as nothing is detached.
    fn link(&self, name: &str) -> Result<u32> {
        let link = Link::open(self.0.join(name)).with_context(|| name.to_owned())?;
        Ok(link.info()?.id)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for error in Pins::new(&self.0).remove() {
            eprintln!("{error}");
        }
    }
}

fn run(line: &str) -> Result<()> {
    let mut words = line.split_whitespace();
    let program = words.next().context("a program")?;
    let done = Command::new(program).args(words).output()?;
    ensure!(
        done.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(())
}

/// Makes a veth. If its peer polls, the veth takes frames that come by another interface.
fn veth(name: &str, takes_frames: bool) -> Result<u32> {
    run(&format!(
        "ip link add name {name} type veth peer name {name}-peer"
    ))?;
    if takes_frames {
        run(&format!("ethtool -K {name}-peer gro on"))?;
    }
    for end in [name.to_owned(), format!("{name}-peer")] {
        run(&format!("ip link set {end} up"))?;
    }
    Ok(if_nametoindex(name)?)
}

/// The mode of the XDP program at this interface, or None if there is no program.
fn xdp(interface: u32) -> Result<Option<XdpMode>> {
    let stdin = std::io::stdin();
    let found = Xdp::new(stdin.as_fd()).query(i32::try_from(interface)?, XdpFlags::NONE)?;
    Ok(match (found.drv_prog_id, found.skb_prog_id) {
        (0, 0) => None,
        (0, _) => Some(XdpMode::Generic),
        _ => Some(XdpMode::Native),
    })
}

/// Waits until no program is at the interface. The kernel gives up a link a moment after its last pin and descriptor
/// are gone.
fn is_detached(interface: u32) -> Result<()> {
    for _ in 0..3000 {
        if xdp(interface)?.is_none() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    bail!("a program is left at {interface}")
}

#[test]
fn the_next_daemon_has_other_interfaces() -> Result<()> {
    let bed = Bed::new("next")?;
    let (a, b) = (veth("eth0", true)?, veth("eth1", true)?);
    // With only one interface the names of the links have no number.
    let first = bed.daemon(&[a])?;
    assert!(!first.taken_over());
    assert_eq!(bed.links()?, ["link_cs", "link_ds", "link_head"]);
    let (cs, ds, head) = (
        bed.link("link_cs")?,
        bed.link("link_ds")?,
        bed.link("link_head")?,
    );
    drop(first);

    let second = bed.daemon(&[a, b])?;
    assert!(second.taken_over());
    assert_eq!(second.xdp_mode(), Some(XdpMode::Native));
    let names = |of_other: u32| {
        let both = |program: &str| {
            [
                format!("link_{program}"),
                format!("link_{program}_{of_other}"),
            ]
        };
        ["cs", "ds", "head"].map(both).concat()
    };
    assert_eq!(bed.links()?, names(b));
    assert_eq!(bed.link("link_cs")?, cs, "a's stays");
    let of_b = bed.link(&format!("link_cs_{b}"))?;
    assert_eq!(xdp(b)?, Some(XdpMode::Native));
    drop(second);

    // Clients come by the other interface with this daemon; no link is detached for that.
    let third = bed.daemon(&[b, a])?;
    assert!(third.taken_over());
    assert_eq!(bed.links()?, names(a));
    assert_eq!(bed.link("link_cs")?, of_b);
    assert_eq!(bed.link(&format!("link_cs_{a}"))?, cs);
    assert_eq!(bed.link(&format!("link_ds_{a}"))?, ds);
    assert_eq!(bed.link(&format!("link_head_{a}"))?, head);
    drop(third);

    // This daemon gives up one interface.
    let fourth = bed.daemon(&[a])?;
    assert_eq!(bed.links()?, ["link_cs", "link_ds", "link_head"]);
    assert_eq!(bed.link("link_cs")?, cs);
    assert_eq!(xdp(a)?, Some(XdpMode::Native));
    is_detached(b)?;
    drop(fourth);

    let mut last = bed.daemon(&[b, a])?;
    last.release();
    assert!(Pins::new(&bed.0).remove().is_empty());
    is_detached(a)?;
    is_detached(b)?;
    Ok(())
}

#[test]
fn all_interfaces_are_generic_if_one_must_be() -> Result<()> {
    let bed = Bed::new("generic")?;
    let a = veth("eth0", true)?;
    run("ip link add name eth2 type bridge")?;
    run("ip link set eth2 up")?;
    let d = if_nametoindex("eth2")?;
    for interfaces in [[a, d], [d, a]] {
        let dataplane = bed.daemon(&interfaces)?;
        assert_eq!(dataplane.xdp_mode(), Some(XdpMode::Generic));
        assert_eq!(xdp(a)?, Some(XdpMode::Generic));
        assert_eq!(xdp(d)?, Some(XdpMode::Generic));
    }
    // The next daemon finds the links in generic mode.
    let cs = bed.link("link_cs")?;
    let next = bed.daemon(&[d, a])?;
    assert_eq!(next.xdp_mode(), Some(XdpMode::Generic));
    assert_eq!(bed.link("link_cs")?, cs);
    Ok(())
}

/// A driver may support native XDP and yet take no frame that came by another interface. Such a frame would be lost.
#[test]
fn an_interface_that_takes_no_frames() -> Result<()> {
    let bed = Bed::new("takes")?;
    let (a, b) = (veth("eth0", true)?, veth("eth1", false)?);
    let alone = bed.daemon(&[b])?;
    assert_eq!(alone.xdp_mode(), Some(XdpMode::Native));
    drop(alone);
    let both = bed.daemon(&[a, b])?;
    assert_eq!(both.xdp_mode(), Some(XdpMode::Generic));
    assert_eq!(
        (xdp(a)?, xdp(b)?),
        (Some(XdpMode::Generic), Some(XdpMode::Generic))
    );
    Ok(())
}

#[test]
fn native_is_native_at_all_interfaces_or_refused() -> Result<()> {
    let bed = Bed::new("native")?;
    let (a, b) = (veth("eth0", true)?, veth("eth1", false)?);
    run("ip link add name eth2 type bridge")?;
    run("ip link set eth2 up")?;
    let bridge = if_nametoindex("eth2")?;
    let said = bed.refusal(XdpChoice::Native, &[a, bridge])?;
    assert!(
        said.contains("the driver of eth2 refuses native XDP"),
        "{said}"
    );
    let said = bed.refusal(XdpChoice::Native, &[a, b])?;
    assert!(
        said.contains("the driver of eth1 cannot send packets that came by another interface"),
        "{said}"
    );
    assert!(said.contains("xdp = \"auto\""), "{said}");
    run("ethtool -K eth1-peer gro on")?;
    let both = bed.daemon_with(XdpChoice::Native, &[a, b])?;
    assert_eq!(both.xdp_mode(), Some(XdpMode::Native));
    Ok(())
}

#[test]
fn generic_is_generic_at_all_interfaces() -> Result<()> {
    let bed = Bed::new("all")?;
    let (a, b) = (veth("eth0", true)?, veth("eth1", true)?);
    let all = |mode| -> Result<()> {
        assert_eq!((xdp(a)?, xdp(b)?), (Some(mode), Some(mode)));
        Ok(())
    };
    // This holds even where an earlier daemon left the links native.
    drop(bed.daemon_with(XdpChoice::Native, &[a, b])?);
    all(XdpMode::Native)?;
    let generic = bed.daemon_with(XdpChoice::Generic, &[a, b])?;
    assert_eq!(generic.xdp_mode(), Some(XdpMode::Generic));
    all(XdpMode::Generic)?;
    drop(generic);
    // If one interface is new, native mode is asked of both.
    drop(bed.daemon_with(XdpChoice::Generic, &[a])?);
    let native = bed.daemon_with(XdpChoice::Native, &[a, b])?;
    assert_eq!(native.xdp_mode(), Some(XdpMode::Native));
    all(XdpMode::Native)
}

/// A child process that has not yet begun its program holds links for a moment, and so does everybody who lists
/// links.
#[test]
fn a_link_that_somebody_else_holds_changes_its_mode_too() -> Result<()> {
    let bed = Bed::new("held")?;
    let (a, b) = (veth("eth0", true)?, veth("eth1", true)?);
    drop(bed.daemon_with(XdpChoice::Native, &[a, b])?);
    let _held = (
        Link::open(bed.0.join("link_cs"))?,
        Link::open(bed.0.join(format!("link_cs_{b}")))?,
    );
    let generic = bed.daemon_with(XdpChoice::Generic, &[a, b])?;
    assert_eq!(generic.xdp_mode(), Some(XdpMode::Generic));
    assert_eq!(
        (xdp(a)?, xdp(b)?),
        (Some(XdpMode::Generic), Some(XdpMode::Generic))
    );
    Ok(())
}
