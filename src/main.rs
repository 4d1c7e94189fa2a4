//! x
fn main() {
    let p = std::env::args().nth(1).unwrap();
    let r = hprof_cli::index::Heap::open_indexed(
        std::path::Path::new(&p),
        &Default::default(),
        &hprof_cli::index::Quiet,
    );
    match r {
        Ok((h, o)) => eprintln!("{} {:?} {}", o.len(), h.notes(), h.is_fresh()),
        Err(e) => eprintln!("{e}"),
    }
}
