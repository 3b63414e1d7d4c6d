//! Runs the system's own programs, with errors that show the command line.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::error::{Doing, Error, Result};

/// The directories in which programs are looked for besides `PATH`, which may lack the sbin directories.
const MORE_PLACES: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/usr/local/go/bin",
];

/// Programs and the Debian packages that have them.
const PACKAGES: [(&str, &str); 11] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    ("nft", "nftables"),
    ("nsenter", "util-linux"),
    ("setsid", "util-linux"),
    ("nginx", "nginx-light"),
    ("openssl", "openssl"),
    ("python3", "python3"),
    ("apache2", "apache2"),
    ("sha256sum", "coreutils"),
];

/// The full path of a program, or [`Error::NotInstalled`].
pub(crate) fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_PLACES.map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(|| Error::NotInstalled {
            program: program.to_owned(),
            hint: hint(program),
        })
}

/// A command that is not yet run.
pub(crate) fn tool<I, S>(program: &str, arguments: I) -> Result<Command>
where
    I: IntoIterator<Item = S>,
    S: AsRef<std::ffi::OsStr>,
{
    let mut command = Command::new(find(program)?);
    command.args(arguments);
    Ok(command)
}

/// Runs a command given as one line of words (none may hold a space), and gives its output.
pub(crate) fn run(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    finish(tool(program, words)?, None)
}

/// Runs a command to its end, `input` on its standard input, and gives its standard output.
pub(crate) fn finish(mut command: Command, input: Option<&str>) -> Result<String> {
    let line = words(&command);
    command
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().doing(|| format!("run `{line}`"))?;
    if let (Some(mut pipe), Some(text)) = (child.stdin.take(), input) {
        // If the program ends without reading, its status and stderr say why.
        let _ = pipe.write_all(text.as_bytes());
    }
    let output = child
        .wait_with_output()
        .doing(|| format!("wait for `{line}`"))?;
    judge(line, output)
}

/// The command line as one would type it.
pub(crate) fn words(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn judge(command: String, output: Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Tool {
        command,
        status: output.status.to_string(),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

fn hint(program: &str) -> String {
    match PACKAGES.iter().find(|(name, _)| *name == program) {
        Some((_, package)) => format!("on Debian, `apt-get install {package}`"),
        None if program == "go" => {
            "Go 1.21 or later, from https://go.dev/dl or golang-go of bookworm-backports".to_owned()
        }
        None => "is it in PATH?".to_owned(),
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_command_status_and_stderr() {
        let text = run("ls /no/such/place")
            .map(|_| String::new())
            .unwrap_or_else(|e| e.to_string());
        assert!(text.contains("ls /no/such/place"), "{text}");
        assert!(text.contains("exit status: 2"), "{text}");
        assert!(text.contains("No such file"), "{text}");
    }

    #[test]
    fn a_missing_program_says_which_package_has_it() {
        assert!(hint("nginx").contains("nginx-light"));
        assert!(matches!(
            find("baton-no-such-program"),
            Err(Error::NotInstalled { .. })
        ));
    }

    #[test]
    fn input_reaches_the_program() -> Result<()> {
        assert_eq!(finish(tool("cat", [""; 0])?, Some("abc"))?, "abc");
        Ok(())
    }
}
