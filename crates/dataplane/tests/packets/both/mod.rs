//! A node that is connection server and data server: these tests show what its data server answers to its own
//! connection server. Packets go through the XDP program and then, if that passes them, through the tcx program.

mod entry;
mod hearing;
mod none;
mod refused;
mod yields;
