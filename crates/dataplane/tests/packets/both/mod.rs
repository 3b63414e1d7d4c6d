//! A node that is connection server and data server: what its data server answers to its own connection
//! server. Packets go through the XDP program and then, if that passes them, through the tcx program.

mod begins;
mod entry;
mod keep;
mod none;
mod refused;
mod release;
mod yields;
