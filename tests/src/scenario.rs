//! A scenario, parsed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use baton_lab::Lab;
use serde::Deserialize;
use toml::{Table, Value};

use crate::{change, slowness, step::Step};

/// A folder of scenario files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// The folder of all scenarios that this machine can run.
    Scenarios,
    /// The folder of short scenarios for slow machines. They show nothing that the others do not.
    Smoke,
}

impl Folder {
    fn name(self) -> &'static str {
        match self {
            Self::Scenarios => "scenarios",
            Self::Smoke => "smoke",
        }
    }
}

/// The contents of a scenario file.
pub struct Scenario {
    /// The file's name without its ending.
    pub name: String,
    /// What the scenario proves, in a sentence.
    pub shows: String,
    /// The programs that the scenario calls.
    pub needs: Vec<String>,
    /// Whether the scenario fills the machine, so that no other may run beside it.
    pub alone: bool,
    /// Whether every change has to pass the scenario.
    pub core: bool,
    /// The lab, named after the scenario, with the scenario's changes applied.
    pub lab: Lab,
    /// The steps, in the order in which they run.
    pub steps: Vec<Step>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    shows: String,
    lab: PathBuf,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    core: bool,
    #[serde(default)]
    change: Table,
    step: Vec<Table>,
}

impl Scenario {
    /// Reads all scenarios of a folder, sorted by name.
    ///
    /// # Errors
    /// A file cannot be read or parsed; the error names its path.
    pub fn all(folder: Folder) -> Result<Vec<Scenario>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder.name());
        let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
            .with_context(|| format!("cannot read {}", directory.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .collect();
        files.sort();
        let read =
            |path: &PathBuf| Scenario::read(path).with_context(|| format!("in {}", path.display()));
        files.iter().map(read).collect()
    }

    fn read(path: &Path) -> Result<Scenario> {
        let file: File = toml::from_str(&std::fs::read_to_string(path)?)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let long = std::env::var_os("BATON_TEST_LONG").is_some();
        let steps = file.step.into_iter().enumerate().map(|(index, mut table)| {
            change::choose_length(&mut table, long);
            slowness::stretch(&mut table);
            Value::Table(table)
                .try_into()
                .with_context(|| format!("step {}", index + 1))
        });
        Ok(Scenario {
            lab: lab(&name, &file.lab, &file.change)?,
            name: name.into_owned(),
            shows: file.shows,
            needs: file.needs,
            alone: file.alone,
            core: file.core,
            steps: steps.collect::<Result<_>>()?,
        })
    }
}

/// Reads a lab file and applies the scenario's changes. The lab's name begins with "t-", so that it never collides
/// with one that somebody raised by hand.
fn lab(scenario: &str, file: &Path, changes: &Table) -> Result<Lab> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../labs")
        .join(file);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut table: Table = text
        .parse()
        .with_context(|| format!("in {}", path.display()))?;
    change::merge(&mut table, changes);
    slowness::stretch_lab(&mut table);
    table.insert("name".into(), format!("t-{scenario}").into());
    let text = table
        .to_string()
        .replace("{tests}", env!("CARGO_MANIFEST_DIR"));
    Ok(Lab::parse(&text)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_scenario_can_be_read() -> anyhow::Result<()> {
        for folder in [super::Folder::Scenarios, super::Folder::Smoke] {
            assert!(!super::Scenario::all(folder)?.is_empty());
        }
        Ok(())
    }
}
