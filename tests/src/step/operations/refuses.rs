//! `baton node` on a wrong configuration.

use anyhow::{Result, ensure};
use serde::Deserialize;
use toml::Table;

use super::node::{config_like, write_secret};
use crate::step::checks::snapshot::Snapshot;
use crate::step::patience;
use crate::world::World;

/// Starts a node that must not start: it ends soon, says what is wrong, where, and what to do, and
/// leaves nothing half set up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refuses {
    on: String,
    /// Whose configuration.
    like: String,
    /// What makes it wrong.
    #[serde(default)]
    set: Table,
    /// Text at the end of the file, for what no table can hold.
    #[serde(default)]
    append: String,
    /// Parts of what it says.
    says: Vec<String>,
    /// What is not to be said.
    #[serde(default)]
    silent: Vec<String>,
    /// What runs it, as `unshare --user --map-root-user`. `{dir}` is the host's directory.
    #[serde(default)]
    by: Vec<String>,
    /// As this user instead of root.
    user: Option<String>,
}

impl Refuses {
    /// Does it.
    ///
    /// # Errors
    /// It starts, says something else, or leaves something.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let config = config_like(world, &self.like, &self.on, &self.set)?;
        let path = world.scratch.path().join("wrong.toml");
        write_secret(&path, &format!("{config}\n{}\n", self.append))?;
        let before = Snapshot::of(world, &self.on)?;
        let mut command = world.command(&self.on, patience().0)?;
        if let Some(user) = &self.user {
            // The file and the way to it must be readable: this is about what root alone may do.
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
