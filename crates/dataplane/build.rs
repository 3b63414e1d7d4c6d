//! Compiles `bpf/baton.bpf.c` and generates its skeleton.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};
use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<()> {
    let bpf = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let skeleton = PathBuf::from(env::var("OUT_DIR")?).join("baton.skel.rs");
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;

    SkeletonBuilder::new()
        .source(bpf.join("baton.bpf.c"))
        .clang(env::var("CLANG").unwrap_or_else(|_| "clang".into()))
        .clang_args([
            // Version 3 has 32-bit arithmetic and atomic fetch-and-add.
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            // Headers are summed and hashed as words: as the kernel, which is built so, we alias.
            "-fno-strict-aliasing",
            // Where Debian keeps <asm/types.h>, which the kernel's UAPI headers want.
            "-idirafter",
            &format!("/usr/include/{arch}-linux-gnu"),
        ])
        .build_and_generate(&skeleton)
        .context("bpf/baton.bpf.c did not build: it needs clang 14 or newer and the headers of linux-libc-dev")?;

    println!("cargo:rerun-if-changed={}", bpf.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    Ok(())
}
