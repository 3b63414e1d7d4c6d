//! Compiles the data server's BPF programs for this machine: `native/kernel.c` includes them as they stand.

use std::env;
use std::path::PathBuf;

fn main() {
    let native = PathBuf::from("native");
    // The variable names a copy with a fault in it: see README.md.
    let bpf = env::var("BATON_MODEL_BPF").unwrap_or_else(|_| "../../../../bpf".into());
    cc::Build::new()
        .file(native.join("kernel.c"))
        .include(&native)
        .include(&bpf)
        .opt_level(2)
        // The programs in the kernel are compiled with the same flag: crates/dataplane/build.rs.
        .flag("-fno-strict-aliasing")
        // What the code says to a compiler for BPF means nothing to the compiler for this machine.
        .warnings(false)
        .compile("door");
    println!("cargo:rerun-if-changed=native");
    println!("cargo:rerun-if-changed={bpf}");
    println!("cargo:rerun-if-env-changed=BATON_MODEL_BPF");
}
