//! x
mod address_set;
pub(crate) mod build;
mod class_table;
mod column;
mod contents;
pub mod evidence;
mod fit;
mod jvm;
pub mod layout;
mod lookup;
mod pieces;
mod prelude;
mod problem;
mod progress;
mod scan;
pub mod sizes;
pub mod summary;
pub mod tables;
mod texts;
mod values;
mod worker;
pub use progress::{Progress, Quiet};

/// x
pub fn try_it(path: &std::path::Path) {
    use crate::hprof::input::Mapped;
    let m = Mapped::open(path).unwrap();
    m.will_scan();
    let t = std::time::Instant::now();
    let header = crate::hprof::Header::parse(m.bytes()).unwrap();
    let b = build::build(
        &build::Source {
            bytes: m.bytes(),
            header,
            compression: None,
        },
        None,
        false,
        &Quiet,
    )
    .unwrap();
    eprintln!("build {:?}", t.elapsed());
    let s = &b.summary;
    let t = std::time::Instant::now();
    let z = sizes::Sizes::new(s, None);
    eprintln!("sizes {:?}", t.elapsed());
    eprintln!("{:?} {:?}", z.fit, z.sources(s));
    for p in s.problems() {
        eprintln!("problem {p}");
    }
    for (k, v) in s.properties() {
        eprintln!("{k}={v}");
    }
    for (n, c) in s.numbered_classes() {
        let mut o = c.objects.get();
        if s.java_lang_class() == Some(n) {
            o += s.facts().class_objects.get();
        }
        if o > 0 {
            println!(
                "{}\t{}\t{}\t{:?}\t{:?}",
                s.class_name(c),
                o,
                z.total(n),
                z.instance(n),
                s.distance(c)
            );
        }
    }
}
