//! .
#[derive(Default)]
pub struct Options;
pub struct TileStore;
