//! The error numbers that C programs see.

use std::ffi::CStr;

use nix::errno::Errno;
use nix::libc;
use sockets::Error;

/// The number of EREDO, which is above all numbers of the system.
pub(crate) const EREDO: i32 = 1000;

/// Returns the number of an error.
pub(crate) fn of(error: &Error) -> i32 {
    let code = match error {
        Error::Redo { .. } => return EREDO,
        Error::Io { cause, .. } => match cause.raw_os_error() {
            Some(number) => return number,
            None if cause.kind() == std::io::ErrorKind::TimedOut => Errno::ETIMEDOUT,
            None => Errno::EIO,
        },
        Error::Session(error) => match error {
            sockets::SessionError::Unreachable { .. } => Errno::EHOSTUNREACH,
            sockets::SessionError::Lost { .. } => Errno::ECONNRESET,
            sockets::SessionError::Loop { .. } | sockets::SessionError::Hops { .. } => Errno::ELOOP,
            sockets::SessionError::Full { .. } => Errno::ENOBUFS,
            sockets::SessionError::Refused(_) => Errno::EACCES,
            sockets::SessionError::Ended => Errno::EPIPE,
            _ => Errno::EPROTO,
        },
        Error::Protocol(_) => Errno::EPROTO,
        Error::Plain { .. } => Errno::EOPNOTSUPP,
        Error::TooLong { .. } => Errno::EMSGSIZE,
        _ => Errno::EIO,
    };
    code as i32
}

/// Returns the text of an error number.
pub(crate) fn text(code: i32) -> &'static CStr {
    match code {
        EREDO => c"Redirected without an answer: send again",
        0 => c"Success",
        // The next numbers are those that functions of this library set besides the system's own.
        libc::EHOSTUNREACH => c"No server can be reached",
        libc::ECONNRESET => c"The connection is gone, and some requests have no answer",
        libc::ELOOP => c"Redirected in a circle, or too often without an answer",
        libc::ENOBUFS => c"Too many bytes wait for answers to be kept",
        libc::EACCES => c"The client's token is missing, forged or expired",
        libc::EPIPE => c"This end of the session has ended",
        libc::EPROTO => c"The other end does not keep to the EOP protocol",
        libc::EOPNOTSUPP => c"A plain client cannot be redirected",
        libc::EMSGSIZE => c"The message is too long",
        libc::EINVAL => c"An argument is not valid",
        libc::ECONNREFUSED => c"Connection refused",
        libc::ETIMEDOUT => c"Connection timed out",
        libc::EADDRINUSE => c"Address already in use",
        _ => c"See strerror(3)",
    }
}
