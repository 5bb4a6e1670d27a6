// Generates the C++ half of the bridge; CMake finds its headers under <target>/cxxbridge.
fn main() {
    cxx_build::bridge("src/lib.rs").std("c++20").compile("lockstep_text_bridge");
    println!("cargo:rerun-if-changed=src/lib.rs");
}
