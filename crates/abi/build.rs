//! Compiles the headers in `bpf/abi` for the BPF target and turns their BTF into Rust, so that every struct and
//! constant is defined once, in C.

use std::{env, fmt::Write as _, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};
use libbpf_rs::HasSize as _;
use libbpf_rs::btf::{Btf, BtfKind, BtfType, types};

fn main() -> Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../bpf");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", root.join("abi").display());

    let object = out.join("abi.o");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let status = Command::new(&clang)
        .args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-c"])
        .arg("-I")
        .arg(&root)
        .arg(root.join("abi/abi.c"))
        .arg("-o")
        .arg(&object)
        .status()
        .with_context(|| format!("cannot run {clang}: install clang 14 or newer, or set CLANG"))?;
    if !status.success() {
        bail!("{clang} could not compile bpf/abi/abi.c");
    }

    let btf = Btf::from_path(&object)?;
    let mut rust = String::new();
    if let Some(wide) = btf.type_by_kind::<types::Enum64<'_>>().next() {
        let name = wide.name().unwrap_or_default().to_string_lossy();
        bail!("bpf/abi: a value of `enum {name}` does not fit into 32 bits");
    }
    for kind in btf.type_by_kind::<types::Enum<'_>>() {
        write_enum(&mut rust, &kind)?;
    }
    for kind in btf.type_by_kind::<types::Struct<'_>>() {
        write_struct(&mut rust, &btf, &kind)?;
    }
    fs::write(out.join("abi.rs"), rust)?;
    Ok(())
}

/// Writes an enum as one constant for each member and a table of their names. It does not become a Rust enum, because
/// values come from other machines, and `baton-wire` parses them.
fn write_enum(rust: &mut String, kind: &types::Enum<'_>) -> Result<()> {
    let name = kind
        .name()
        .context("enum without a name")?
        .to_string_lossy()
        .to_uppercase();
    let mut table = String::new();
    for member in kind.iter() {
        let member_name = member
            .name
            .context("member without a name")?
            .to_string_lossy();
        writeln!(
            rust,
            "/// `{member_name}` of `bpf/abi`.\npub const {member_name}: u32 = {};",
            member.value
        )?;
        write!(table, "(\"{member_name}\", {member_name}), ")?;
    }
    writeln!(
        rust,
        "/// Every member of `enum {}`.\npub const {name}_NAMES: &[(&str, u32)] = &[{table}];",
        name.to_lowercase()
    )?;
    Ok(())
}

fn write_struct(rust: &mut String, btf: &Btf<'_>, kind: &types::Struct<'_>) -> Result<()> {
    let c_name = kind
        .name()
        .context("struct without a name")?
        .to_string_lossy();
    let name = camel(&c_name);
    writeln!(rust, "/// `struct {c_name}` of `bpf/abi`.")?;
    writeln!(
        rust,
        "#[repr(C)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]"
    )?;
    writeln!(rust, "#[allow(missing_docs)]\npub struct {name} {{")?;
    let mut defaults = String::new();
    for member in kind.iter() {
        let field = member.name.context("anonymous member")?.to_string_lossy();
        let (ty, default) = rust_type(
            &btf.type_by_id(member.ty)
                .context("member of an unknown type")?,
        )?;
        writeln!(rust, "    pub {field}: {ty},")?;
        writeln!(defaults, "            {field}: {default},")?;
    }
    writeln!(rust, "}}")?;
    writeln!(
        rust,
        "impl Default for {name} {{\n    fn default() -> Self {{\n        Self {{\n{defaults}        }}\n    }}\n}}"
    )?;
    writeln!(
        rust,
        "const _: () = assert!(size_of::<{name}>() == {});",
        kind.size()
    )?;
    Ok(())
}

/// The Rust spelling of a C type, and its zero.
fn rust_type(ty: &BtfType<'_>) -> Result<(String, String)> {
    let ty = ty.skip_mods_and_typedefs();
    match ty.kind() {
        BtfKind::Int => {
            let int = types::Int::try_from(ty).ok().context("not an int")?;
            let sign = if matches!(int.encoding, types::IntEncoding::Signed) {
                'i'
            } else {
                'u'
            };
            Ok((format!("{sign}{}", int.bits), "0".into()))
        }
        BtfKind::Array => {
            let array = types::Array::try_from(ty).ok().context("not an array")?;
            let (item, zero) = rust_type(&array.contained_type())?;
            let n = array.capacity();
            Ok((format!("[{item}; {n}]"), format!("[{zero}; {n}]")))
        }
        BtfKind::Struct => {
            let name = camel(&ty.name().context("anonymous struct")?.to_string_lossy());
            Ok((name.clone(), format!("{name}::default()")))
        }
        other => bail!("bpf/abi uses a type that crosses no boundary: {other:?}"),
    }
}

fn camel(name: &str) -> String {
    name.split('_')
        .map(|part| {
            let (head, tail) = part.split_at(1);
            head.to_uppercase() + tail
        })
        .collect()
}
