//! Packet tables: packet in, verdict, packet out and counters, for each program. Each packet is run alone through
//! `BPF_PROG_TEST_RUN`. Needs root; nothing is attached to any interface of the host.
//!
//! [`node`] runs packets and reports the outcome, [`segment`] makes packets, [`read`] takes apart what comes out with
//! an implementation that is not ours, and [`cluster`] says which nodes there are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::type_complexity, reason = "the row of a table needs no name")]

mod altered;
mod at_once;
mod blank;
mod client_hello;
mod cluster;
mod damage;
mod host;
mod invariants;
mod lccp;
mod merged;
mod network;
mod node;
mod options;
mod prelude;
mod read;
mod seen;
mod segment;
mod sniff;
mod table;
mod tls_routes;

mod aware_client;
mod both;
mod channels;
mod connection_server;
mod data_server;
mod for_daemon;
mod fuzz;
mod fuzz_hellos;
mod pairs;
mod switch;
mod vectors;
