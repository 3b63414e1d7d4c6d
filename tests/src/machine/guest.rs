//! One machine: a QEMU process, its control port and its monitor.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::control::{Control, Output};
use super::network::Network;

/// How long a command in a machine may take, unless the caller gives another limit.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// How long a machine may take from power on to its shell, beside other machines on few processors.
const BOOT: Duration = Duration::from_secs(900);

/// The kernel's command line. The processors are emulated, so mitigations that protect real ones only take time here.
/// QEMU 7.2 emulates cmpxchg16b wrongly, so the processors do not offer it; without that instruction Linux 7 gives BPF
/// programs memory for their socket storage only from slabs that are checked, so the command line has `slab_debug=F`.
const APPEND: &str = "slab_debug=F console=ttyS0 quiet root=/dev/nvme0n1 rootwait rw net.ifnames=0 panic=5 mitigations=off audit=0 \
                      nowatchdog no_timer_check rcupdate.rcu_expedited=1 systemd.show_status=false";

/// A network interface of a machine: virtio-net, with two queues and all that it can offload.
pub(super) struct Nic {
    pub tap: String,
    /// Further options of QEMU's device, such as ",ctrl_guest_offloads=off".
    pub options: &'static str,
}

/// The hardware of a machine.
pub(super) struct Hardware {
    pub name: &'static str,
    /// The last number of the machine's addresses.
    pub number: u8,
    pub memory: &'static str,
    pub nics: Vec<Nic>,
}

/// The kernel and the disk from which all machines boot. What a machine writes is visible to it alone and is lost when
/// it ends.
pub(super) struct Disk {
    pub kernel: PathBuf,
    pub image: PathBuf,
}

/// A running machine. It ends when this is dropped.
pub(super) struct Guest {
    pub name: &'static str,
    /// QEMU's process; `None` for a machine that another process has left up.
    child: Option<Child>,
    control: Option<Control>,
    monitor: PathBuf,
    console: PathBuf,
}

impl Guest {
    /// Switches the machine on.
    pub fn start(
        hardware: &Hardware,
        disk: &Disk,
        network: &Network,
        directory: &Path,
    ) -> Result<Guest> {
        let name = hardware.name;
        let file = |ending: &str| directory.join(format!("{name}.{ending}"));
        let (port, monitor, console) = (file("control"), file("monitor"), file("console"));
        let mut command = network.command("qemu-system-x86_64");
        if std::env::var_os("BATON_KERNELS_KVM").is_some_and(|value| value == "1") {
            command.args(["-accel", "kvm", "-cpu", "host"]);
        } else {
            // QEMU 7.2 emulates cmpxchg16b wrongly, and kernels use it if the processor offers it.
            command.args(["-accel", "tcg,thread=multi,tb-size=128"]);
            command.args(["-cpu", "Nehalem,-cx16"]);
        }
        command.args(["-machine", "q35,sata=off,smbus=off,usb=off"]);
        command.args(["-nodefaults", "-display", "none", "-smp", "2"]);
        command.args(["-m", hardware.memory]);
        command.arg("-kernel").arg(&disk.kernel).arg("-append");
        command.arg(format!(
            "{APPEND} systemd.hostname={name} systemd.machine_id={:032x}",
            0xba70_0000 + u32::from(hardware.number)
        ));
        let image = disk.image.display();
        command.arg("-drive").arg(format!(
            "file={image},format=raw,if=none,id=disk,snapshot=on,cache=unsafe"
        ));
        command.args(["-device", "nvme,drive=disk,serial=disk"]);
        command.args(["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"]);
        let socket = |path: &Path| format!("path={},server=on,wait=off", path.display());
        command
            .arg("-chardev")
            .arg(format!("socket,id=control,{}", socket(&port)));
        command.args(["-device", "virtserialport,chardev=control,name=control"]);
        command
            .arg("-chardev")
            .arg(format!("socket,id=monitor,{}", socket(&monitor)));
        command.args(["-mon", "chardev=monitor"]);
        command
            .arg("-serial")
            .arg(format!("file:{}", console.display()));
        for (index, nic) in hardware.nics.iter().enumerate() {
            let (tap, options, number) = (&nic.tap, nic.options, hardware.number);
            command.arg("-netdev").arg(format!(
                "tap,id=n{index},ifname={tap},queues=2,script=no,downscript=no,vhost=off"
            ));
            command.arg("-device").arg(format!(
                "virtio-net-pci,netdev=n{index},mq=on,vectors=6,romfile=,mac=52:54:00:77:{index:02x}:{number:02x}{options}"
            ));
        }
        let errors = std::fs::File::create(file("qemu"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(errors.try_clone()?)
            .stderr(errors)
            .spawn()
            .context("cannot start QEMU")?;
        let control = Control::connect(&port).with_context(|| {
            let said = std::fs::read_to_string(file("qemu")).unwrap_or_default();
            format!("{name}: QEMU says: {said}")
        })?;
        Ok(Guest {
            name,
            child: Some(child),
            control: Some(control),
            monitor,
            console,
        })
    }

    /// Attaches to a machine that another process has left up.
    pub fn attach(name: &'static str, directory: &Path) -> Result<Guest> {
        let file = |ending: &str| directory.join(format!("{name}.{ending}"));
        let mut control = Control::connect(&file("control"))?;
        control.ask_for_boot()?;
        Ok(Guest {
            name,
            child: None,
            control: Some(control),
            monitor: file("monitor"),
            console: file("console"),
        })
    }

    /// Waits until the machine is up, for the first time or again.
    pub fn wait_for_boot(&mut self) -> Result<()> {
        let up = self.control()?.wait_for_boot(BOOT);
        up.with_context(|| {
            let console = std::fs::read_to_string(&self.console).unwrap_or_default();
            format!("{}; on its console: {console}", self.name)
        })
    }

    /// Runs a shell command and returns what it prints. A command that fails, or takes longer than [`PATIENCE`], is an
    /// error.
    pub fn run(&mut self, command: &str) -> Result<String> {
        self.run_for(command, PATIENCE)
    }

    /// Runs a shell command like [`Guest::run`], with another time limit.
    pub fn run_for(&mut self, command: &str, limit: Duration) -> Result<String> {
        let output = self.control()?.run(command, limit);
        output.with_context(|| format!("on {}", self.name))
    }

    /// Runs a shell command and returns its output and exit status, whatever the status is.
    pub fn try_run(&mut self, command: &str) -> Result<Output> {
        let output = self.control()?.try_run(command, PATIENCE);
        output.with_context(|| format!("on {}", self.name))
    }

    /// Writes a file in the machine.
    pub fn write(&mut self, path: &str, text: &str) -> Result<()> {
        self.run(&format!("cat >{path} <<'END OF FILE'\n{text}\nEND OF FILE"))
            .map(drop)
    }

    /// Resets the machine, as if its power failed and came back at once.
    pub fn reset(&mut self) -> Result<()> {
        let mut monitor = UnixStream::connect(&self.monitor)?;
        monitor.write_all(b"system_reset\n")?;
        // QEMU stops reading a monitor as soon as its other end is closed.
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    }

    /// Closes the machine's shell port so that others can use it.
    pub fn release(&mut self) {
        self.control = None;
    }

    fn control(&mut self) -> Result<&mut Control> {
        self.control.as_mut().context("its shell is another's")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
