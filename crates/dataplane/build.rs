//! Compiles `bpf/baton.bpf.c`, `bpf/app.bpf.c`, `bpf/eop.bpf.c` and `bpf/client.bpf.c`, and generates their
//! skeletons, and what the keys and values of each map of the first two are made of.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::btf::{
    Btf, BtfKind, BtfType, HasSize as _, ReferencesType as _,
    types::{Array, Composite, DataSec, Int, IntEncoding, MemberAttr, Ptr, Struct, Var},
};

fn main() -> Result<()> {
    // The programs read requests eight bytes at a time (bpf/routing/request.h), and clang makes them for the byte order of
    // the machine that it runs on.
    ensure!(
        env::var("CARGO_CFG_TARGET_ENDIAN")? == "little",
        "the BPF programs are for little-endian machines, such as x86-64 and arm64; {} is none",
        env::var("TARGET")?
    );
    let bpf = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let app = build(&bpf, &out, "app")?;
    build(&bpf, &out, "eop")?;
    build(&bpf, &out, "client")?;
    let object = build(&bpf, &out, "baton")?;
    fs::write(
        out.join("layouts.rs"),
        layouts(&[object.as_path(), app.as_path()])?,
    )?;

    println!("cargo:rerun-if-changed={}", bpf.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    Ok(())
}

/// Compiles `NAME.bpf.c` and generates its skeleton, `NAME.skel.rs`. The object.
fn build(bpf: &Path, out: &Path, name: &str) -> Result<PathBuf> {
    let object = out.join(format!("{name}.bpf.o"));
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    SkeletonBuilder::new()
        .source(bpf.join(format!("{name}.bpf.c")))
        .obj(&object)
        .clang(env::var("CLANG").unwrap_or_else(|_| "clang".into()))
        .clang_args([
            // Headers name each other from there on.
            "-I",
            &bpf.to_string_lossy(),
            // Version 3 has 32-bit arithmetic and atomic fetch-and-add.
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-parameter",
            // Headers are summed and hashed as words: as the kernel, which is built so, we alias.
            "-fno-strict-aliasing",
            // Where Debian keeps <asm/types.h>, which the kernel's UAPI headers want: of this machine, and of one
            // that the build is for.
            "-idirafter",
            &format!("/usr/include/{arch}-linux-gnu"),
            "-idirafter",
            &format!("/usr/{arch}-linux-gnu/include"),
        ])
        .build_and_generate(out.join(format!("{name}.skel.rs")))
        .with_context(|| format!("bpf/{name}.bpf.c did not build: it needs clang 14 or newer and the headers of linux-libc-dev"))?;
    Ok(object)
}

/// A table of the maps, by name: what their keys and values are made of, in words. libbpf finds their
/// definitions in the same way: a structure whose members `key` and `value` point to the types.
fn layouts(objects: &[&Path]) -> Result<String> {
    let mut rust = String::from("pub const LAYOUTS: &[(&str, &str)] = &[\n");
    for object in objects {
        layouts_of(&mut rust, object)?;
    }
    rust.push_str("];\n");
    Ok(rust)
}

fn layouts_of(rust: &mut String, object: &Path) -> Result<()> {
    let btf = Btf::from_path(object)?;
    let maps: DataSec<'_> = btf
        .type_by_name(".maps")
        .context("the object has no maps")?;
    for place in maps.iter() {
        let var: Var<'_> = btf.type_by_id(place.ty).context("a map is no variable")?;
        let name = var.name().context("a map has no name")?;
        let definition = Struct::try_from(var.referenced_type().skip_mods_and_typedefs());
        let definition = definition.ok().context("a map is no structure")?;
        let mut layout = String::new();
        for member in definition.iter() {
            let part = member.name.unwrap_or_default().to_string_lossy();
            if part == "key" || part == "value" {
                let pointer: Ptr<'_> = btf.type_by_id(member.ty).context("no pointer")?;
                write!(layout, "{part} ")?;
                describe(&mut layout, &btf, pointer.referenced_type())?;
            }
        }
        writeln!(rust, "    ({:?}, {layout:?}),", name.to_string_lossy())?;
    }
    Ok(())
}

/// Everything that a reader of the bytes must know.
fn describe(text: &mut String, btf: &Btf<'_>, ty: BtfType<'_>) -> Result<()> {
    let ty = ty.skip_mods_and_typedefs();
    match ty.kind() {
        BtfKind::Int => {
            let int = Int::try_from(ty).ok().context("not an int")?;
            let signed = matches!(int.encoding, IntEncoding::Signed);
            write!(text, "{}{} ", if signed { 'i' } else { 'u' }, int.bits)?;
        }
        BtfKind::Array => {
            let array = Array::try_from(ty).ok().context("not an array")?;
            write!(text, "{} times ", array.capacity())?;
            describe(text, btf, array.contained_type())?;
        }
        BtfKind::Struct | BtfKind::Union => {
            let name = ty.name().unwrap_or_default().to_string_lossy();
            let composite = Composite::try_from(ty).ok().context("not a structure")?;
            write!(text, "{name} of {} {{ ", composite.size())?;
            for member in composite.iter() {
                let name = member.name.unwrap_or_default().to_string_lossy();
                let (at, bits) = match member.attr {
                    MemberAttr::Normal { offset } => (offset, 0),
                    MemberAttr::BitField { size, offset } => (offset, size),
                };
                write!(text, "{name} at {at}:{bits} ")?;
                let ty = btf.type_by_id(member.ty);
                describe(text, btf, ty.context("a member of an unknown type")?)?;
            }
            text.push_str("} ");
        }
        other => anyhow::bail!(
            "a map holds {other:?}, of which the next version could not tell what it is"
        ),
    }
    Ok(())
}
