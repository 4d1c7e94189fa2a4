//! Explanations of heaps that are given as lists of places.

use hprof_values::ObjectId;

use crate::compare::places::{DumpPlace, DumpPlaces, PlaceLabel, Via};
use crate::frameworks::Naming;

use super::{ExplainedHeap, OneHeap};

/// A heap of places.
struct Heaped(DumpPlaces);

impl Heaped {
    fn new() -> Self {
        Self(DumpPlaces::default())
    }

    /// Adds a place; the largest of its objects has a share of the retained size.
    fn place(&mut self, parent: Option<u32>, via: Via, class: &str, objects: u64, bytes: u64) -> u32 {
        let label = PlaceLabel {
            via,
            class: Some(class.into()),
            is_class_object: false,
            called: None,
            naming: Naming::Generic,
            has_sentence: false,
        };
        self.0.labels.push(label);
        self.0.places.push(DumpPlace {
            parent,
            label: u32::try_from(self.0.labels.len() - 1).unwrap(),
            objects,
            own_bytes: 0,
            retained_bytes: bytes,
            largest_bytes: bytes / objects,
            following: 0,
            is_nesting: false,
            example: ObjectId(self.0.places.len() as u64 + 1),
        });
        if parent.is_none() {
            self.0.reachable_bytes += bytes;
        }
        u32::try_from(self.0.places.len() - 1).unwrap()
    }

    fn field(&mut self, parent: u32, name: &str, class: &str, objects: u64, bytes: u64) -> u32 {
        let via = Via::Field { class: "app.Server".into(), name: name.into() };
        self.place(Some(parent), via, class, objects, bytes)
    }

    fn explain(self) -> (OneHeap, ExplainedHeap) {
        let least = self.0.reachable_bytes / 50;
        let heap = OneHeap::new(self.0);
        let explained = heap.explain(least, |_| false);
        (heap, explained)
    }
}

fn texts(heap: &OneHeap, explained: &ExplainedHeap) -> Vec<(String, u64)> {
    explained.places.iter().map(|one| (heap.description(one), one.retained_bytes)).collect()
}

#[test]
fn a_holder_is_passed_through_to_what_it_stores() {
    let mut heap = Heaped::new();
    let server =
        heap.place(None, Via::Static { class: "app.Main".into(), name: "S".into() }, "app.Server", 1, 1000);
    let orders = heap.field(server, "orders", "java.util.HashMap", 1, 600);
    heap.place(Some(orders), Via::Value, "app.Order", 100, 590);
    let users = heap.field(server, "users", "java.util.HashMap", 1, 300);
    heap.place(Some(users), Via::Value, "app.User", 100, 290);
    heap.field(server, "name", "java.lang.String", 1, 10);
    let (heap, explained) = heap.explain();
    let expected =
        [("HashMap orders of Server: 100 x Order", 600), ("HashMap users of Server: 100 x User", 300)];
    assert_eq!(texts(&heap, &explained), expected.map(|(text, bytes)| (text.to_owned(), bytes)));
    assert_eq!(explained.largest_left, 10);
}

#[test]
fn what_is_beside_the_elements_further_down_is_told() {
    let mut heap = Heaped::new();
    let tenants = heap.place(None, Via::Root("JNI global".into()), "java.util.ArrayList", 1, 1000);
    let tenant = heap.place(Some(tenants), Via::Unknown, "app.Tenant", 10, 990);
    let sessions = heap.field(tenant, "sessions", "java.util.HashMap", 10, 800);
    heap.place(Some(sessions), Via::Value, "app.Session", 5000, 780);
    heap.field(tenant, "settings", "app.Settings", 10, 180);
    let (heap, explained) = heap.explain();
    let told = texts(&heap, &explained);
    assert_eq!(told[0], ("HashMap sessions of Server: 5,000 x Session".to_owned(), 800));
    assert_eq!((told[1].1, told.len()), (180, 2), "{told:?}");
}

#[test]
fn places_with_one_title_are_one_row() {
    let mut heap = Heaped::new();
    for thread in 0..4 {
        let name = format!("worker-{}", char::from(b'a' + thread));
        let thread = heap.place(None, Via::Thread(name.into()), "app.Worker", 1, 250);
        heap.field(thread, "buffer", "byte[]", 1, 240);
    }
    let (heap, explained) = heap.explain();
    assert_eq!(texts(&heap, &explained), [("byte[] buffer of Server".to_owned(), 960)]);
    assert_eq!((explained.places[0].objects, explained.places[0].others.len()), (4, 3));
}

#[test]
fn no_row_contains_another() {
    let mut heap = Heaped::new();
    let mut parents = vec![heap.place(None, Via::Root("JNI global".into()), "app.A", 1, 1 << 20)];
    for depth in 1..6u32 {
        let bytes = (1u64 << 20) >> (2 * depth);
        parents = parents
            .into_iter()
            .flat_map(|parent| {
                (0..4)
                    .map(|at| {
                        heap.field(parent, &format!("f{at}"), &format!("app.C{depth}{at}"), 1 + at, bytes)
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    let (heap, explained) = heap.explain();
    let all: Vec<u32> =
        explained.places.iter().flat_map(|one| one.others.iter().chain([&one.place])).copied().collect();
    for place in &all {
        let path = heap.aligned.path(*place);
        assert_eq!(path.iter().filter(|above| all.contains(above)).count(), 1, "{path:?}");
    }
    let sum: u64 = explained.places.iter().map(|one| one.retained_bytes).sum();
    assert_eq!(sum, 1 << 20);
}

/// `E` has an `A` and a `B`, and each `A` another `E`: objects below `A` belong to the place of `B`.
#[test]
fn what_is_nested_counts_once() {
    let mut heap = Heaped::new();
    let outer = heap.place(None, Via::Root("JNI global".into()), "app.E", 1, 1000);
    let nesting = heap.field(outer, "a", "app.A", 1, 900);
    heap.0.places[nesting as usize].is_nesting = true;
    heap.field(outer, "b", "app.B", 8, 800);
    let (heap, explained) = heap.explain();
    assert_eq!(texts(&heap, &explained), [("E of a GC root (JNI global)".to_owned(), 1000)]);
}

#[test]
fn elements_below_a_nested_place_are_a_lower_bound() {
    let mut heap = Heaped::new();
    let outer = heap.place(None, Via::Root("JNI global".into()), "app.Group", 1, 1000);
    heap.0.places[outer as usize].is_nesting = true;
    heap.place(Some(outer), Via::Value, "app.Item", 20, 900);
    let (heap, explained) = heap.explain();
    assert_eq!(
        texts(&heap, &explained),
        [("Group of a GC root (JNI global): at least 20 x Item".to_owned(), 1000)]
    );
}
