//! The functions of `include/eop.h`.
//!
//! All functions rely on these promises of their C callers: a pointer to a socket or listener came from this library
//! and was not closed, and no other thread uses it meanwhile; a pointer with a length has that many bytes; a string
//! ends with a zero.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::{EFAULT, EINVAL};
use sockets::{
    Allow, ClusterKey, EopKey, Listener, Options, Peer, Resend, ServerOptions, Speak, connect,
};
use std::os::fd::AsRawFd as _;

use crate::code;
use crate::socket::{EopListener, EopSocket};

/// `struct eop_options` of `include/eop.h`.
#[repr(C)]
pub struct EopOptions {
    speak: u32,
    limit: u32,
    resend_limit: u32,
    idempotent: u32,
    hops: u32,
    connect_timeout_ms: u32,
    patience_ms: u32,
    nagle: u32,
    allow: *const c_char,
    cluster_key: *const c_char,
    redirected_only: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_connect(
    address: *const c_char,
    port: u16,
    options: *const EopOptions,
) -> *mut EopSocket {
    pointer(|| {
        // SAFETY: as C promises, see above.
        let (server, options) = unsafe { (place(address, port)?, options.as_ref()) };
        // SAFETY: the same promise holds for the strings in `options`.
        let options = unsafe { client_options(options) }?;
        let socket = connect(server, options).map_err(|error| code::of(&error))?;
        Ok(EopSocket::client(socket))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_listen(
    address: *const c_char,
    port: u16,
    options: *const EopOptions,
) -> *mut EopListener {
    pointer(|| {
        // SAFETY: as C promises, see above.
        let (at, options) = unsafe { (place(address, port)?, options.as_ref()) };
        // SAFETY: the same promise holds for the strings in `options`.
        let options = unsafe { server_options(options) }?;
        let listener = Listener::bind(at, options).map_err(|error| code::of(&error))?;
        Ok(EopListener(listener))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_accept(listener: *mut EopListener) -> *mut EopSocket {
    pointer(|| {
        // SAFETY: as C promises, see above.
        let listener = unsafe { listener.as_ref() }.ok_or(EFAULT)?;
        let session = listener.0.accept().map_err(|error| code::of(&error))?;
        Ok(EopSocket::server(session))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_send(
    socket: *mut EopSocket,
    message: *const c_void,
    length: usize,
) -> c_int {
    let sent = number(|| {
        // SAFETY: as C promises, see above.
        let (socket, message) =
            unsafe { (socket.as_mut().ok_or(EFAULT)?, bytes(message, length)?) };
        socket.send(message.unwrap_or_default()).map(|()| 0)
    });
    // The result is 0 or -1.
    sent as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_recv(socket: *mut EopSocket, buffer: *mut c_void, size: usize) -> isize {
    number(|| {
        // SAFETY: as C promises, see above.
        let socket = unsafe { socket.as_mut() }.ok_or(EFAULT)?;
        if size == 0 {
            return socket.recv(&mut []);
        }
        if buffer.is_null() || size > isize::MAX as usize {
            return Err(EFAULT);
        }
        // SAFETY: the buffer has `size` bytes, as C promises, and nobody else reads or writes them meanwhile. Each of
        // them is a valid u8, even if C has not written it.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
        socket.recv(buffer)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_more(socket: *const EopSocket) -> usize {
    // SAFETY: as C promises, see above.
    unsafe { socket.as_ref() }.map_or(0, EopSocket::more)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_ended(socket: *const EopSocket) -> c_int {
    // SAFETY: as C promises, see above.
    unsafe { socket.as_ref() }.map_or(1, |socket| socket.ended().into())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_redirect(
    socket: *mut EopSocket,
    answer: *const c_void,
    length: usize,
    address: *const c_char,
    port: u16,
) -> c_int {
    let done = number(|| {
        // SAFETY: as C promises, see above.
        let (socket, target) = unsafe { (socket.as_mut().ok_or(EFAULT)?, place(address, port)?) };
        // SAFETY: as C promises, see above.
        let answer = unsafe { bytes(answer, length) }?;
        socket.redirect(answer, target).map(|()| 0)
    });
    // The result is 0 or -1.
    done as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_peer(socket: *const EopSocket) -> c_int {
    // SAFETY: as C promises, see above.
    match unsafe { socket.as_ref() }.and_then(EopSocket::peer) {
        Some(Peer::Eop) => 1,
        Some(Peer::Plain) => 0,
        None => -1,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_fd(socket: *const EopSocket) -> c_int {
    // SAFETY: as C promises, see above.
    unsafe { socket.as_ref() }.map_or(-1, EopSocket::fd)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_listener_fd(listener: *const EopListener) -> c_int {
    // SAFETY: as C promises, see above.
    unsafe { listener.as_ref() }.map_or(-1, |listener| listener.0.tcp().as_raw_fd())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_listener_port(listener: *const EopListener) -> u16 {
    // SAFETY: as C promises, see above.
    let at = unsafe { listener.as_ref() }.and_then(|listener| listener.0.local_addr().ok());
    at.map_or(0, |at| at.port())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_close(socket: *mut EopSocket) {
    if !socket.is_null() {
        // SAFETY: made by `pointer`, and given back once.
        drop(unsafe { Box::from_raw(socket) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eop_listener_close(listener: *mut EopListener) {
    if !listener.is_null() {
        // SAFETY: made by `pointer`, and given back once.
        drop(unsafe { Box::from_raw(listener) });
    }
}

#[unsafe(no_mangle)]
extern "C" fn eop_strerror(error: c_int) -> *const c_char {
    code::text(error).as_ptr()
}

/// Runs a function's body and sets errno if it fails. A panic becomes EIO, because it must not unwind into C.
fn caught<T>(body: impl FnOnce() -> Result<T, i32>) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(nix::libc::EIO));
    result.map_err(Errno::set_raw).ok()
}

fn pointer<T>(body: impl FnOnce() -> Result<T, i32>) -> *mut T {
    caught(body).map_or(std::ptr::null_mut(), |made| Box::into_raw(Box::new(made)))
}

fn number(body: impl FnOnce() -> Result<usize, i32>) -> isize {
    // No slice is longer than isize::MAX.
    caught(body).map_or(-1, |number| number as isize)
}

/// The bytes that C passes; `None` if it passes none.
///
/// # Safety
/// `start` is null or has `length` bytes that nobody writes while the result is used.
unsafe fn bytes<'a>(start: *const c_void, length: usize) -> Result<Option<&'a [u8]>, i32> {
    if start.is_null() {
        return if length == 0 { Ok(None) } else { Err(EFAULT) };
    }
    if length > isize::MAX as usize {
        return Err(EFAULT);
    }
    // SAFETY: the caller's promise.
    Ok(Some(unsafe {
        std::slice::from_raw_parts(start.cast::<u8>(), length)
    }))
}

/// The string that C passes; `None` if the pointer is null.
///
/// # Safety
/// `text` is null or a string.
unsafe fn string<'a>(text: *const c_char) -> Result<Option<&'a str>, i32> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| EINVAL)
}

/// The address and port that C passes.
///
/// # Safety
/// `address` is null or a string.
unsafe fn place(address: *const c_char, port: u16) -> Result<SocketAddr, i32> {
    // SAFETY: the caller's promise.
    let address = unsafe { string(address) }?.ok_or(EFAULT)?;
    let address: IpAddr = address.parse().map_err(|_| EINVAL)?;
    Ok(SocketAddr::new(address, port))
}

fn speak(number: u32) -> Result<Speak, i32> {
    match number {
        0 => Ok(Speak::Eop),
        1 => Ok(Speak::Plain),
        2 => Ok(Speak::Either),
        _ => Err(EINVAL),
    }
}

/// Sets an option, unless 0 is given, which stands for the default.
fn set<T>(field: &mut T, given: u32, make: impl FnOnce(u32) -> T) {
    if given != 0 {
        *field = make(given);
    }
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}

/// The options of a client, as C gives them.
///
/// # Safety
/// Each pointer in `given` is null or a string.
unsafe fn client_options(given: Option<&EopOptions>) -> Result<Options, i32> {
    let mut options = Options::default();
    let Some(given) = given else {
        return Ok(options);
    };
    options.speak = speak(given.speak)?;
    options.idempotent = given.idempotent != 0;
    options.nodelay = given.nagle == 0;
    set(&mut options.limit, given.limit, |limit| limit);
    set(&mut options.resend, given.resend_limit, |limit| {
        Resend::Session {
            limit: limit as usize,
        }
    });
    set(&mut options.hops, given.hops, |hops| hops as usize);
    set(
        &mut options.connect_timeout,
        given.connect_timeout_ms,
        milliseconds,
    );
    set(&mut options.patience, given.patience_ms, milliseconds);
    // SAFETY: the caller's promise.
    if let Some(list) = unsafe { string(given.allow) }? {
        let list: Result<_, _> = list.split(',').map(|range| range.trim().parse()).collect();
        options.allow = Allow::only(list.map_err(|_| EINVAL)?);
    }
    Ok(options)
}

/// The options of a server, as C gives them.
///
/// # Safety
/// Each pointer in `given` is null or a string.
unsafe fn server_options(given: Option<&EopOptions>) -> Result<ServerOptions, i32> {
    let mut options = ServerOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    options.speak = speak(given.speak)?;
    options.redirected_only = given.redirected_only != 0;
    options.nodelay = given.nagle == 0;
    set(&mut options.limit, given.limit, |limit| limit);
    set(&mut options.patience, given.patience_ms, milliseconds);
    // SAFETY: the caller's promise.
    if let Some(key) = unsafe { string(given.cluster_key) }? {
        let key: ClusterKey = key.parse().map_err(|_| EINVAL)?;
        options.key = Some(EopKey::of(&key));
    }
    if options.redirected_only && options.key.is_none() {
        return Err(EINVAL);
    }
    Ok(options)
}
