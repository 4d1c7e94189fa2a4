//! Every object of damaged dumps is shown: nothing panics or hangs.

use hprof_cli::ObjectIndex;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::kit::dump::{Dump, bytes, whole_dump};
use crate::kit::random::Random;
use hprof_query::paths::steps::View;
use hprof_query::show::Shower;

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn every_object_of_a_damaged_dump() {
    let whole = {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/jdk/jdk11.hprof.zst");
        let (heap, _graph) = Dump::sample(&sample).open_graph();
        bytes(&heap).to_vec()
    };
    // After strings and class names, which determine what can be read at all.
    let start = whole.len() / 4;
    let mut shown = 0;
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut damaged = whole.clone();
        // Few bytes change what objects say; more change which objects there are.
        for _ in 0..10usize.pow(u32::try_from(seed % 4).unwrap() + 1) {
            let at = start + random.below(damaged.len() - start);
            damaged[at] = u8::try_from(random.below(256)).unwrap();
        }
        let dump = Dump::of(&damaged);
        let Ok((heap, graph)) = dump.try_open_graph() else { continue };
        let view = View::new(&whole_dump(&heap, &graph));
        let shower = Shower::new(&whole_dump(&heap, &graph), view);
        let begin = Instant::now();
        for object in 0..graph.objects.len() {
            let (value, stack) = shower.meaning(ObjectIndex(object), 300, 10);
            assert!(value.is_none_or(|value| value.text.chars().count() <= 300));
            assert!(stack.is_none_or(|stack| stack.frames.len() <= 10));
            shown += usize::from(!shower.show(ObjectIndex(object)).fields.is_empty());
            let _ = shower.data(ObjectIndex(object), 3, 10).and_then(|data| data.text());
            shower.elements(ObjectIndex(object), 2, 5).for_each(drop);
        }
        // The known collections are looked up each time.
        for object in (0..graph.objects.len()).step_by(97) {
            let contents = shower.contents(ObjectIndex(object), 0, 20);
            assert!(contents.is_none_or(|contents| contents.entries.len() <= 20));
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", begin.elapsed());
    }
    assert!(shown > 10_000, "{shown}");
}
