//! The properties of the running kernel that decide whether programs can be loaded and attached, and what libbpf and the
//! kernel say of them.

mod feature;
pub(crate) mod messages;
mod refusal;
mod running;
mod xdp;

pub use self::{
    feature::{FEATURES, Feature, Part, Presence, probe, used_by},
    refusal::{Cause, Refusal},
    running::{Kernel, Lockdown, Release},
    xdp::{XdpHolder, XdpMode, XdpState},
};
pub(crate) use self::{refusal::judge, xdp::native_refusal};
