//! Named network namespaces, for a lab and for tests.

use std::fs::File;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};
use nix::{getsockopt_impl, sockopt_impl};

use crate::{Error, Result};

sockopt_impl!(
    /// The option that gives the cookie of a socket's network namespace (socket(7)).
    NetnsCookie,
    GetOnly,
    libc::SOL_SOCKET,
    libc::SO_NETNS_COOKIE,
    u64
);

/// The number by which the kernel identifies this thread's network namespace, as `bpf_get_netns_cookie()` returns it.
///
/// # Errors
/// [`Error::System`] on kernels before 5.14.
pub fn cookie() -> Result<u64> {
    let ask = || -> std::io::Result<u64> {
        let any = socket(
            AddressFamily::Inet,
            SockType::Datagram,
            SockFlag::empty(),
            None,
        )?;
        Ok(getsockopt(&any, NetnsCookie)?)
    };
    ask().map_err(Error::system("ask for the network namespace's cookie"))
}

/// Runs `work` in the namespace that `ip netns add NAME` made, on a thread of its own. The caller stays in its
/// namespace, and a panic in `work` is passed on to it. A runtime that is built within `work` is in the namespace if it
/// is single-threaded or starts its threads there.
///
/// # Errors
/// [`Error::System`] if there is no such namespace or it may not be entered.
pub fn run<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
    let path = Path::new("/run/netns").join(name);
    let entering = || format!("enter the network namespace {name}");
    let namespace = File::open(path).map_err(Error::system(entering()))?;
    let inside = move || {
        setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from)?;
        Ok(work())
    };
    thread::scope(|scope| match scope.spawn(inside).join() {
        Ok(done) => done.map_err(Error::system(entering())),
        Err(panic) => resume_unwind(panic),
    })
}
