//! How a connection comes to a data server: messages in, sockets out.

pub mod behind;
pub mod direct;
pub mod live;
pub mod loopback;
pub mod ports;
pub mod resume;
pub mod window;
pub mod without_socket;
