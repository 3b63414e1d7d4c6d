//! Compiles `bpf/pass.bpf.c`, the only BPF program that the lab itself loads.

use std::path::PathBuf;
use std::process::Command;
use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    let source = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("bpf/pass.bpf.c");
    let object = PathBuf::from(env::var("OUT_DIR")?).join("pass.bpf.o");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let status = Command::new(&clang)
        .args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-c"])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status()
        .map_err(|error| {
            format!("cannot run {clang} ({error}): install clang 14 or newer, or set CLANG")
        })?;
    if !status.success() {
        return Err(format!("{clang} could not compile {}", source.display()).into());
    }
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    Ok(())
}
