//! A step that runs `baton node` on a wrong configuration.

use anyhow::{Result, ensure};
use serde::Deserialize;
use toml::Table;

use super::node::{config_like, write_secret};
use crate::wait::patience;
use crate::world::{Snapshot, World};

/// Starts a node that must not start: it must end soon, say what is wrong, where, and what to do, and leave nothing
/// half set up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refuses {
    on: String,
    /// The host whose configuration is copied.
    like: String,
    /// The changes that make the configuration wrong.
    #[serde(default)]
    set: Table,
    /// Text appended to the file, for errors that no TOML table can hold.
    #[serde(default)]
    append: String,
    /// Texts that the node must print.
    says: Vec<String>,
    /// Texts that the node must not print.
    #[serde(default)]
    silent: Vec<String>,
    /// The command that runs the node, such as `unshare --user --map-root-user`. `{dir}` is the host's directory.
    #[serde(default)]
    by: Vec<String>,
    /// The user that runs the node instead of root.
    user: Option<String>,
}

impl Refuses {
    /// Runs the step.
    ///
    /// # Errors
    /// The node starts, prints something else, or leaves something behind.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let config = config_like(world, &self.like, &self.on, &self.set)?;
        let path = world.scratch.path().join("wrong.toml");
        write_secret(&path, &format!("{config}\n{}\n", self.append))?;
        let before = Snapshot::of(world, &self.on)?;
        let mut command = world.command(&self.on, patience().0)?;
        if let Some(user) = &self.user {
            // The file and its directory must be readable for the user: the check is about what only root may do.
            let open = ["chmod", "a+rX"].map(str::to_owned).into_iter();
            let paths = [world.scratch.path(), &path].map(|path| path.display().to_string());
            let words: Vec<String> = open.chain(paths).collect();
            world.run(
                &self.on,
                &words.iter().map(String::as_str).collect::<Vec<_>>(),
            )?;
            command.args([
                "setpriv",
                "--reuid",
                user,
                "--regid",
                user,
                "--clear-groups",
                "--",
            ]);
        }
        for word in &self.by {
            command.arg(world.fill(&self.on, word)?);
        }
        let output = command
            .arg(&world.baton)
            .args(["node", "--config"])
            .arg(&path)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(1),
            "the node ended with {}:\n{said}",
            output.status
        );
        for part in &self.says {
            ensure!(said.contains(part), "it does not say {part:?}:\n{said}");
        }
        for part in &self.silent {
            ensure!(!said.contains(part), "it says {part:?}:\n{said}");
        }
        ensure!(!said.contains("panicked"), "{said}");
        before.compare(&Snapshot::of(world, &self.on)?)
    }
}
