//! The privileges of a process that talks to strangers.

use std::io;

use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, getuid, setgid, setgroups, setuid};

/// What connections to servers need: a client's address as their own and a mark (CAP_NET_ADMIN), and ports below 1024,
/// also to listen at (CAP_NET_BIND_SERVICE). With CAP_NET_ADMIN the kernel loads its module `tls` when it is needed.
const NEEDED: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_BIND_SERVICE];

/// A user, and the groups that its processes have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: Uid,
    /// The user's own group.
    pub group: Gid,
    /// Further groups that the user is in, because servers' sockets may be for these.
    pub groups: Vec<Gid>,
}

/// Becomes this user, if this program is not that user already. Gives up all capabilities but those, for good, and
/// leaves no memory in core dumps. Must be called while the process has one thread, because each thread has capabilities
/// of its own.
pub(crate) fn reduce(account: &Account) -> io::Result<()> {
    prctl::set_no_new_privs()?;
    if account.user != getuid() {
        prctl::set_keepcaps(true)?;
        setgroups(&account.groups)?;
        setgid(account.group)?;
        setuid(account.user)?;
    }
    prctl::set_dumpable(false)?;
    let had = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let kept: CapsHashSet = NEEDED.into_iter().filter(|one| had.contains(one)).collect();
    let none = CapsHashSet::new();
    for (set, rest) in [
        (CapSet::Inheritable, &none),
        (CapSet::Effective, &kept),
        (CapSet::Permitted, &kept),
    ] {
        caps::set(None, set, rest).map_err(io::Error::other)?;
    }
    Ok(())
}
