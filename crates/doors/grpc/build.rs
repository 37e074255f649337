//! Compiles `proto/` by a compiler in Rust, so that nobody has to install protoc.

use prost::Message as _;
use std::error::Error;
use std::path::PathBuf;

const PROTO: &str = "raingauge/v1/raingauge.proto";

fn main() -> Result<(), Box<dyn Error>> {
    // As it is now, and not when this was compiled: a build cache may be shared between clones.
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.display());

    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let files = protox::compile([PROTO], [&root])?;
    std::fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;

    for (name, is_server) in [("server", true), ("client", false)] {
        let folder = out.join(name);
        std::fs::create_dir_all(&folder)?;

        let mut code = tonic_prost_build::configure()
            .build_server(is_server)
            .build_client(!is_server)
            .build_transport(false)
            .emit_rerun_if_changed(false)
            .include_file("mod.rs")
            .out_dir(folder);

        if is_server {
            // Events are decoded one by one: see there.
            code =
                code.extern_path(".raingauge.v1.PublishRequest", "crate::events::PublishRequest");
        }

        code.compile_fds(files.clone())?;
    }

    Ok(())
}
