//! Of whose programs: a control group.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use baton_dataplane::{control_groups, mounts};

/// The group that was given, or that of the whole machine.
pub fn group_or_all(given: Option<PathBuf>) -> Result<PathBuf> {
    match given {
        Some(group) => Ok(group),
        None => Ok(control_groups(&mounts())
            .context(
                "no control groups of version 2 are mounted here; \
                 mount -t cgroup2 none DIRECTORY, and give it with --cgroup",
            )?
            .into()),
    }
}
