//! The few BPF system calls that libbpf-rs does not offer on file descriptors. All unsafe code of this crate is here.

use std::{
    ffi::CString,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
    time::Duration,
};

use libbpf_rs::libbpf_sys as raw;
use zerocopy::{FromBytes, IntoBytes};

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP, with `XDP_FLAGS_DRV_MODE` or `XDP_FLAGS_SKB_MODE`.
    Xdp {
        /// The flags of `include/uapi/linux/if_link.h`.
        flags: u32,
    },
    /// Ingress of the traffic control layer.
    TcxIngress,
    /// Egress of the traffic control layer.
    TcxEgress,
    /// Events of the sockets of a control group; the target is the group's descriptor.
    SocketEvents,
    /// Another hook of a control group, by its `enum bpf_attach_type`; the target is the group's descriptor.
    ControlGroup(raw::bpf_attach_type),
}

/// Attaches a program to a target, which is the index of an interface unless [`Hook`] says otherwise. The link lives
/// as long as the returned descriptor or a pin of it.
pub fn link_create(program: BorrowedFd<'_>, target: u32, hook: Hook) -> io::Result<OwnedFd> {
    let (attach_type, flags) = match hook {
        Hook::Xdp { flags } => (raw::BPF_XDP, flags),
        Hook::TcxIngress => (raw::BPF_TCX_INGRESS, 0),
        Hook::TcxEgress => (raw::BPF_TCX_EGRESS, 0),
        Hook::SocketEvents => (raw::BPF_CGROUP_SOCK_OPS, 0),
        Hook::ControlGroup(attach_type) => (attach_type, 0),
    };
    // SAFETY: an all-zero bpf_link_create_opts is what libbpf's own LIBBPF_OPTS makes.
    let mut options: raw::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<raw::bpf_link_create_opts>() as raw::size_t;
    options.flags = flags;
    // SAFETY: the program's descriptor is open, `options` lives through the call.
    let fd =
        unsafe { raw::bpf_link_create(program.as_raw_fd(), target as i32, attach_type, &options) };
    owned(fd)
}

/// Elements of a hash map that one call has copied.
pub struct Copied {
    /// How many elements were copied.
    pub count: usize,
    /// Where the next call goes on; `None`: nothing is left.
    pub next: Option<u32>,
}

/// Copies keys and values of a hash map, bucket by bucket, from the place that the last call has returned, or from the
/// beginning. Each key and value must be as long as the map's own. The error is `ENOSPC` if the first bucket has more
/// elements than `keys` and `values` have room for.
pub fn copy_elements(
    map: BorrowedFd<'_>,
    place: Option<u32>,
    keys: &mut [impl FromBytes + IntoBytes],
    values: &mut [impl FromBytes + IntoBytes],
) -> io::Result<Copied> {
    let most = keys.len().min(values.len());
    let mut count = u32::try_from(most).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut from = place.unwrap_or_default();
    let mut next = 0u32;
    let from = place.map_or(ptr::null_mut(), |_| (&raw mut from).cast());
    let (keys, values) = (keys.as_mut_bytes(), values.as_mut_bytes());
    // SAFETY: `keys` and `values` have room for `count` elements each, `from` and `next` for the number of a
    // bucket, which is all that a hash map says of a place; all of them live through the call.
    let code = unsafe {
        raw::bpf_map_lookup_batch(
            map.as_raw_fd(),
            from,
            (&raw mut next).cast(),
            keys.as_mut_ptr().cast(),
            values.as_mut_ptr().cast(),
            &raw mut count,
            ptr::null(),
        )
    };
    match done(code) {
        Ok(()) => Ok(Copied {
            count: count as usize,
            next: Some(next),
        }),
        // The last elements have been copied nevertheless.
        Err(error) if error.raw_os_error() == Some(nix::libc::ENOENT) => Ok(Copied {
            count: count as usize,
            next: None,
        }),
        Err(error) => Err(error),
    }
}

/// Replaces a link's program by another one, between two packets.
pub fn link_update(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both descriptors are open; no options.
    done(unsafe { raw::bpf_link_update(link.as_raw_fd(), program.as_raw_fd(), ptr::null()) })
}

/// Detaches a link's program from its interface even if another process holds the link: a child that has not yet begun
/// its program, or a process that lists links.
pub fn link_detach(link: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    done(unsafe { raw::bpf_link_detach(link.as_raw_fd()) })
}

/// The interface of a link; 0 once the interface is gone.
pub fn link_interface(link: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: all-zero is a valid bpf_link_info, a plain C union.
    let mut info: raw::bpf_link_info = unsafe { std::mem::zeroed() };
    let mut size = size_of::<raw::bpf_link_info>() as u32;
    // SAFETY: `info` is `size` bytes long and lives through the call.
    done(unsafe {
        raw::bpf_obj_get_info_by_fd(link.as_raw_fd(), (&raw mut info).cast(), &mut size)
    })?;
    // SAFETY: XDP and TCX links both begin their part of the union with the interface's index.
    Ok(unsafe { info.__bindgen_anon_1.xdp.ifindex })
}

/// Pins a descriptor of a map, program or link.
pub fn pin(object: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the descriptor is open and the path ends in NUL.
    done(unsafe { raw::bpf_obj_pin(object.as_raw_fd(), path.as_ptr()) })
}

/// Opens what is pinned at `path`.
pub fn open_pin(path: &Path) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    // SAFETY: the path ends in NUL.
    owned(unsafe { raw::bpf_obj_get(path.as_ptr()) })
}

/// What a program did with one packet.
#[derive(Debug)]
pub struct Outcome {
    /// The program's verdict (`XDP_*`, `TCX_*`).
    pub verdict: u32,
    /// The frame after the run.
    pub frame: Vec<u8>,
    /// The mean time of one run.
    pub duration: Duration,
}

/// Runs a packet program `repeat` times on `frame` (BPF_PROG_TEST_RUN). Only the last run's frame
/// comes back; a program that changes the frame's length should run once.
pub fn run_on_frame(
    program: BorrowedFd<'_>,
    frame: &[u8],
    context: Option<&mut [u8]>,
    repeat: u32,
) -> io::Result<Outcome> {
    let mut out = vec![0u8; 4096.max(frame.len() + 256)];
    // SAFETY: all-zero is what LIBBPF_OPTS makes of it.
    let mut options: raw::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<raw::bpf_test_run_opts>() as raw::size_t;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = frame.len() as u32;
    options.data_out = out.as_mut_ptr().cast();
    options.data_size_out = out.len() as u32;
    options.repeat = repeat as i32;
    if let Some(context) = context {
        options.ctx_in = context.as_ptr().cast();
        options.ctx_size_in = context.len() as u32;
        options.ctx_out = context.as_mut_ptr().cast();
        options.ctx_size_out = context.len() as u32;
    }
    // SAFETY: every buffer in `options` lives through the call and has the length stated.
    done(unsafe { raw::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) })?;
    out.truncate(options.data_size_out as usize);
    Ok(Outcome {
        verdict: options.retval,
        frame: out,
        duration: Duration::from_nanos(options.duration.into()),
    })
}

/// `struct xdp_md` (`include/uapi/linux/bpf.h`) of a frame that begins behind `metadata` bytes of metadata.
fn xdp_context(metadata: usize, end: usize, interface: u32) -> [u32; 6] {
    // Queue 0, which every interface has.
    [metadata as u32, end as u32, 0, interface, 0, 0]
}

/// Runs an XDP program once on a frame that has arrived at `interface`, with `metadata` in front, which must be whole
/// words.
pub fn run_on_arrival(
    program: BorrowedFd<'_>,
    metadata: &[u8],
    frame: &[u8],
    interface: u32,
) -> io::Result<Outcome> {
    let input = [metadata, frame].concat();
    let mut context = xdp_context(metadata.len(), input.len(), interface);
    let words: &mut [u8] = context.as_mut_bytes();
    let mut outcome = run_on_frame(program, &input, Some(words), 1)?;
    // What comes back begins with the metadata, wherever the program has moved the frame's own beginning.
    let begin = (context[0] as usize).min(outcome.frame.len());
    outcome.frame.drain(..begin);
    Ok(outcome)
}

/// Runs an XDP program once on a frame that has arrived at `interface`, with `metadata` in front, which must be whole
/// words. The kernel does what the program decides: a frame that it passes goes up to the kernel's stack.
pub fn run_live(
    program: BorrowedFd<'_>,
    metadata: &[u8],
    frame: &[u8],
    interface: u32,
) -> io::Result<()> {
    let frame = [metadata, frame].concat();
    let context = xdp_context(metadata.len(), frame.len(), interface);
    // SAFETY: all-zero is what LIBBPF_OPTS makes of it.
    let mut options: raw::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<raw::bpf_test_run_opts>() as raw::size_t;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = frame.len() as u32;
    options.ctx_in = context.as_ptr().cast();
    options.ctx_size_in = size_of_val(&context) as u32;
    options.repeat = 1;
    options.batch_size = 1;
    options.flags = raw::BPF_F_TEST_XDP_LIVE_FRAMES;
    // SAFETY: every buffer in `options` lives through the call and has the length stated.
    done(unsafe { raw::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) })
}

/// Gives the calling thread the highest priority of all that wait for a processor (nice -20).
pub fn run_first() -> io::Result<()> {
    renice(-20)
}

/// Gives the calling thread, and threads that it starts from now on, more than the usual priority (nice -10). A server
/// that uses all processors must not keep the daemon from being heard.
pub fn run_before_servers() -> io::Result<()> {
    renice(-10)
}

/// Gives this thread the priority of servers, which a process loses that a daemon has started.
pub fn run_beside_servers() -> io::Result<()> {
    renice(0)
}

fn renice(nice: i32) -> io::Result<()> {
    // SAFETY: no pointers; on Linux 0 means the calling thread.
    if unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, nice) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Runs a `syscall` program over `argument`, which it may change.
pub fn run_on_argument(program: BorrowedFd<'_>, argument: &mut [u8]) -> io::Result<()> {
    // SAFETY: all-zero is what LIBBPF_OPTS makes of it.
    let mut options: raw::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<raw::bpf_test_run_opts>() as raw::size_t;
    options.ctx_in = argument.as_mut_ptr().cast();
    options.ctx_size_in = argument.len() as u32;
    // SAFETY: `argument` lives through the call and has the length stated.
    done(unsafe { raw::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) })
}

/// The verifier's count of instructions walked for a program: its cost to load.
pub fn verified_instructions(program: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: all-zero is a valid bpf_prog_info, a plain C struct.
    let mut info: raw::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut size = size_of::<raw::bpf_prog_info>() as u32;
    // SAFETY: `info` is `size` bytes long and lives through the call.
    done(unsafe {
        raw::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &mut size)
    })?;
    Ok(info.verified_insns)
}

/// The numbers by which the kernel knows the maps that a program uses.
pub fn maps_of(program: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    // SAFETY: all-zero is a valid bpf_prog_info, a plain C struct.
    let mut info: raw::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut ids = vec![0u32; 256];
    info.nr_map_ids = ids.len() as u32;
    info.map_ids = ids.as_mut_ptr() as u64;
    let mut size = size_of::<raw::bpf_prog_info>() as u32;
    // SAFETY: `info` is `size` bytes long, `ids` as long as it says, and both live through the call.
    done(unsafe {
        raw::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &mut size)
    })?;
    ids.truncate(info.nr_map_ids as usize);
    Ok(ids)
}

/// Makes every element of an array map zero. The map has `elements` elements of `bytes` bytes each. For a
/// per-processor array, `bytes` is the size of an element for all processors together.
pub fn zero_elements(map: BorrowedFd<'_>, elements: u32, bytes: usize) -> io::Result<()> {
    let keys: Vec<u32> = (0..elements).collect();
    let zeros = vec![0u8; bytes * elements as usize];
    let mut count = elements;
    // SAFETY: `keys` and `zeros` have `count` elements of the lengths that the map has; both live through the call.
    done(unsafe {
        raw::bpf_map_update_batch(
            map.as_raw_fd(),
            keys.as_ptr().cast(),
            zeros.as_ptr().cast(),
            &raw mut count,
            ptr::null(),
        )
    })
}

/// Makes an array of one number and lets go of it: the least that BPF can be asked for.
pub fn try_map() -> io::Result<()> {
    // SAFETY: no name and no options; the descriptor that comes back is closed at once.
    let fd = unsafe {
        raw::bpf_map_create(
            raw::BPF_MAP_TYPE_ARRAY,
            ptr::null(),
            size_of::<u32>() as u32,
            size_of::<u32>() as u32,
            1,
            ptr::null(),
        )
    };
    owned(fd).map(drop)
}

/// Whether the kernel takes an XDP program of two instructions.
pub fn may_load() -> bool {
    // SAFETY: no options.
    let code = unsafe { raw::libbpf_probe_bpf_prog_type(raw::BPF_PROG_TYPE_XDP, ptr::null()) };
    code == 1
}

/// Whether the verifier knows a helper in programs of a type. The answer is right only in a process that may load
/// programs: to others every helper seems to be there.
pub fn has_helper(program: raw::bpf_prog_type, helper: raw::bpf_func_id) -> io::Result<bool> {
    // SAFETY: no options.
    let code = unsafe { raw::libbpf_probe_bpf_helper(program, helper, ptr::null()) };
    done(code)?;
    Ok(code == 1)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// libbpf's convention: a negative errno, or a good value.
fn done(code: i32) -> io::Result<()> {
    if code < 0 {
        Err(io::Error::from_raw_os_error(-code))
    } else {
        Ok(())
    }
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    done(fd)?;
    // SAFETY: libbpf returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
