//! Sets the library's soname: the name by which programs load it at run time.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libeop.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
