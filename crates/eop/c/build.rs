//! Gives the library the name that programs ask for at run time.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libeop.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
