//! The agent of a data server: user space that has a client's connection, because no program in the kernel can serve it.
//!
//! | why a connection comes to the agent | what it does |
//! |---|---|
//! | the server's listener is MPTCP, into which the kernel adopts nothing | [`relay`] |
//! | the server is in a container, in another network namespace | [`container`] |
//! | another data server died, or drains, in the middle of a response | [`resume`] |
//! | one packet does not say whose a request is, or where it ends | [`reader`] |
//!
//! Each time the connection is adopted into a listener of the agent's. The reader has it until it knows where its request
//! goes. The others join it to a second one to the server, which sees the client's own address, and its port where that is
//! free:
//!
//! ```text
//!  client:port <--(cluster address:80, adopted)--> agent <--(client)--> the local server's own listener
//! ```
//!
//! What goes from one to the other is the same for all of these ([`pass`]), and so is how a connection ends: each side's
//! end is passed on by itself, and if one half breaks, so does the other, by a RST: nobody may take a part for the whole.
//! That holds also if the agent itself is killed.
//!
//! Everything acts on the network namespace of the calling thread, and needs CAP_NET_ADMIN and a tokio runtime.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod client;
pub mod container;
mod listener;
mod pass;
pub mod position;
pub mod reader;
pub mod relay;
pub mod resume;
mod routing;
mod server;

pub use client::{Ends, Services};
pub use routing::Routing;
