//! The agent of a data server. It has a client's connection in user space when no program in the kernel can serve it.
//!
//! | why a connection comes to the agent | what it does |
//! |---|---|
//! | the server's listener is MPTCP, into which the kernel adopts nothing | [`relay`] |
//! | the server is in a container, in another network namespace | [`container`] |
//! | another data server died, or drains, in the middle of a response | [`resume`] |
//! | one packet does not say whose a request is, or where it ends | [`reader`] |
//! | clients speak TLS, and the server does not | [`terminate`] |
//! | clients speak HTTP, and are to speak HTTPS | `redirect` |
//!
//! In each case the connection is adopted into a listener of the agent's. The reader has it until it knows where its
//! request goes. The others join it to a second connection, to the server. The server sees the client's own address,
//! and the client's own port where that is free:
//!
//! ```text
//!  client:port <--(cluster address:80, adopted)--> agent <--(client)--> the local server's own listener
//! ```
//!
//! All of these pass on bytes in the same way ([`pass`]), and end connections in the same way: the end of each
//! direction is passed on by itself, and if one connection breaks, the other one is broken by a RST, so nobody takes a
//! part for the whole. That holds also if the agent itself is killed.
//!
//! Everything acts on the network namespace of the calling thread, and needs CAP_NET_ADMIN and a tokio runtime.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod client;
pub mod container;
mod http;
mod listener;
mod pass;
pub mod position;
mod privileges;
mod proxy_protocol;
pub mod reader;
mod redirect;
pub mod relay;
pub mod resume;
mod routing;
mod server;
pub mod terminate;

pub use client::{Ends, Services};
pub use privileges::Account;
pub use routing::Routing;
