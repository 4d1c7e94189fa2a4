//! x
fn main() {
    hprof_cli::index::try_it(std::path::Path::new(&std::env::args().nth(1).unwrap()));
}
