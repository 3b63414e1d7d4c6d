//! Drain: a data server takes no new requests. An operator orders it at that node, or at any node that has the
//! cluster's secret.
//!
//! ```text
//!  baton drain ds1 --> daemon here --ORDER, until ACCOUNT--> daemon of ds1 --HELLO: draining--> all
//! ```
//!
//! `data_server::idle_handover` has the data server's idle connections leave, and `resume::mid_response` has responses
//! that are under way go on from another data server.

mod orders;

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use anyhow::{Context, Result};
use baton_config::Config;
use baton_core::operator_order::{GivenOrder, TakenOrders};
use baton_wire::Address;
use tracing::info;

use super::control::Response;

/// Whether this node drains, and which orders it has given to other nodes.
#[derive(Default)]
pub struct Drain {
    /// The file whose existence tells the next daemon to drain.
    note: PathBuf,
    noted: bool,
    until_end: bool,
    /// The last order to each other node.
    given: BTreeMap<Address, GivenOrder>,
    /// The orders of other nodes to this one, with the answer to each.
    taken: TakenOrders<Response>,
}

impl Drain {
    /// Begins as the daemon before this one left it.
    pub fn resumed(config: &Config) -> Self {
        let note = config.local.run_dir.join("draining");
        let noted = note.exists();
        if noted {
            info!(
                "still draining, because the file {} is there; `baton drain --undo` ends it",
                note.display()
            );
        }
        Self {
            note,
            noted,
            ..Self::default()
        }
    }

    /// Whether this node takes no new requests.
    pub fn is_on(&self) -> bool {
        self.noted || self.until_end
    }

    fn begin(&mut self, until_end: bool) -> Result<()> {
        if !self.is_on() {
            info!("draining: no new requests here from now on");
        }
        if until_end {
            self.until_end = true;
            return Ok(());
        }
        fs::write(&self.note, "").with_context(|| self.cannot_note())?;
        self.noted = true;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        match fs::remove_file(&self.note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| self.cannot_note());
            }
            _ => {}
        }
        if self.is_on() {
            info!("no longer draining: requests come here again");
        }
        (self.noted, self.until_end) = (false, false);
        Ok(())
    }

    fn cannot_note(&self) -> String {
        format!(
            "cannot note in {} for the next daemon that this node drains",
            self.note.display()
        )
    }
}
