//! raingauge: counts events exactly, and answers how many of X between t1 and t2.

mod auth;
mod http;
mod observe;
mod serve;
mod services;
mod settings;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (mut data_dir, mut listen) = (None, None);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--data-dir" => data_dir = args.next(),
            "--listen" => listen = args.next(),
            _ => {}
        }
    }
    let settings = serve::load_settings(None, data_dir.as_deref().map(std::path::Path::new), listen.as_deref())?;
    serve::run(&settings)
}
