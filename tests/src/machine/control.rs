//! A root shell in a machine, over a virtio port. It uses neither the machine's network nor a key.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};

/// The driver's end of the port. The machine's end is `tests/machines/guest/machine/control`.
pub(super) struct Control {
    stream: UnixStream,
    read: Vec<u8>,
    boot: Option<String>,
}

/// The result of a command.
pub(super) struct Output {
    pub status: i32,
    pub text: String,
}

impl Control {
    /// Connects to the port that QEMU has made.
    pub fn connect(socket: &Path) -> Result<Control> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(Duration::from_millis(250)))?;
                    return Ok(Control {
                        stream,
                        read: Vec::new(),
                        boot: None,
                    });
                }
                Err(error) if Instant::now() > end => {
                    return Err(error).context("QEMU has made no control port");
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Asks a machine that is already up to report its boot again.
    pub fn ask_for_boot(&mut self) -> Result<()> {
        Ok(self.stream.write_all(b"ask\n")?)
    }

    /// Waits until the machine has been started again since the last call, and its shell is ready.
    pub fn wait_for_boot(&mut self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            let line = self.line(end).context("the machine has not come up")?;
            if let Some(boot) = line.strip_prefix("up ")
                && self.boot.as_deref() != Some(boot)
            {
                self.boot = Some(boot.to_owned());
                return Ok(());
            }
        }
    }

    /// Runs a shell command and waits for its end, whatever its exit status is.
    pub fn try_run(&mut self, command: &str, limit: Duration) -> Result<Output> {
        let end = Instant::now() + limit;
        let asked = || anyhow!("`{command}` has no answer after {limit:?}");
        let mut words = base64(&[], command.as_bytes())?;
        words.push(b'\n');
        self.stream.write_all(&words)?;
        let mut text = String::new();
        loop {
            let line = self.line(end).with_context(asked)?;
            match line.split_once(' ') {
                Some(("out", coded)) => {
                    let plain = base64(&["-d"], coded.as_bytes())?;
                    text = String::from_utf8_lossy(&plain).into_owned();
                }
                Some(("end", status)) => {
                    let status = status.parse()?;
                    return Ok(Output { status, text });
                }
                Some(("up", boot)) if self.boot.as_deref() != Some(boot) => {
                    bail!("the machine was started again during `{command}`")
                }
                _ => {}
            }
        }
    }

    /// Runs a shell command and returns what it prints. A command that fails is an error.
    pub fn run(&mut self, command: &str, limit: Duration) -> Result<String> {
        let output = self.try_run(command, limit)?;
        ensure!(
            output.status == 0,
            "`{command}` ended with {}:\n{}",
            output.status,
            output.text
        );
        Ok(output.text)
    }

    /// Reads the next line. A machine that stops may leave an incomplete one.
    fn line(&mut self, end: Instant) -> Result<String> {
        loop {
            if let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=at).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
            let mut more = [0; 65536];
            match self.stream.read(&mut more) {
                Ok(0) => bail!("QEMU has closed the control port: it is gone"),
                Ok(count) => self.read.extend(&more[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ensure!(Instant::now() < end, "not a word in time");
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Encodes or decodes bytes with coreutils' base64, the same program that the machine uses.
fn base64(options: &[&str], bytes: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new("base64")
        .args(["-w", "0"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run base64")?;
    let mut input = child.stdin.take().context("base64 takes no input")?;
    let bytes = bytes.to_owned();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output()?;
    writer
        .join()
        .map_err(|_| anyhow!("writing to base64 failed"))??;
    ensure!(output.status.success(), "base64: {}", output.status);
    Ok(output.stdout)
}
