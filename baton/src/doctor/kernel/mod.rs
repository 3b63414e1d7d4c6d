//! Checks of the kernel: what it has, and whether it allows this process to use it.

pub mod bpf_fs;
pub mod btf;
pub mod control_groups;
pub mod features;
pub mod jit;
pub mod lockdown;
pub mod memory;
pub mod privileges;
pub mod proc;
pub mod programs;
pub mod version;
