//! The messages: a file for each kind.

pub mod account;
pub mod body;
pub mod candidate;
pub mod head;
pub mod hello;
pub mod message;
pub mod numbered;
pub mod numbers;
pub mod order;
pub mod question;
pub mod reason;
pub mod resume;
pub mod sizes;
pub mod taken;
pub mod tallies;
pub mod tcb;
pub mod tcb_entry;
pub mod tcbs;
pub mod yielding;
