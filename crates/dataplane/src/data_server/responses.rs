//! Responses that begin elsewhere. The agent says where such a response ends, because the program sees only the rest
//! of it.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use baton_abi::Response;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    DataServer, Error,
    maps::{again, map_error},
};

/// The responses on all connections of this data server.
pub struct Responses {
    map: MapHandle,
}

impl DataServer {
    /// Opens the map that says where responses end.
    pub fn responses(&self) -> Result<Responses, Error> {
        let map = again("responses", &self.responses)?;
        Ok(Responses { map })
    }
}

impl Responses {
    /// Tells the program that what leaves by this socket goes on with this response. Call it before any byte has left.
    pub fn expect(&self, socket: BorrowedFd<'_>, response: &Response) -> Result<(), Error> {
        let key = socket.as_raw_fd().to_ne_bytes();
        let noted = self.map.update(&key, response.as_bytes(), MapFlags::ANY);
        noted.map_err(|error| map_error("responses", error))
    }
}
