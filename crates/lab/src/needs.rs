//! Finds out what the machine lacks for a lab, before anything is made.

use crate::cgroup::Hierarchy;
use crate::error::{Error, Result};
use crate::file::{Lab, ServerKind, Thing};
use crate::{clock, servers, tool};

impl Lab {
    /// Checks that this machine has what is needed to raise the lab.
    ///
    /// # Errors
    /// [`Error::CannotRun`] with everything that is missing and how to get it.
    pub fn can_run(&self) -> Result<()> {
        let mut missing = Vec::new();
        if !nix::unistd::geteuid().is_root() {
            missing.push("you are not root, and network namespaces need it: use sudo".to_owned());
        }
        let mut need = |program: &str| {
            missing.extend(tool::find(program).err().map(|error| error.to_string()));
        };
        for program in [
            "ip",
            "ethtool",
            "tc",
            "nft",
            "nsenter",
            "setsid",
            "sh",
            "sha256sum",
        ] {
            need(program);
        }
        for kind in [ServerKind::Nginx, ServerKind::Apache, ServerKind::Go] {
            if self.runs(kind) {
                need(servers::program(kind));
            }
        }
        for thing in self.things() {
            if let Thing::Program(one) = thing
                && !one.program.contains('/')
                && one.program != "baton"
            {
                need(&one.program);
            }
        }
        if self.hosts.iter().any(|host| host.own_clock) {
            missing.extend(clock::library().err().map(|error| error.to_string()));
        }
        if self.hosts.iter().any(|host| host.cpu.is_some())
            && let Err(error) = Hierarchy::find()
        {
            missing.push(error.to_string());
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Error::CannotRun(missing))
        }
    }

    fn runs(&self, kind: ServerKind) -> bool {
        self.things()
            .any(|thing| matches!(thing, Thing::Server(one) if one.kind == kind))
    }

    fn things(&self) -> impl Iterator<Item = &Thing> {
        self.hosts.iter().flat_map(|host| &host.run)
    }
}
