//! Strategies for random dumps, which are legal and can shrink, and the configuration of property tests.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use hprof_writer::{
    ArbClass, ArbDump, ArbObject, ArbObjectKind, ArbRoot, ArbTrace, ArbValue, Between, EndRecord, IdSize,
    InstanceSize, Layout, NameStyle, Options, Order, Place, Root, StatedLength, Type, Version,
};

use super::portion;

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::ClassesFirst),
        Just(Order::ClassesLast),
        Just(Order::AsAdded),
        any::<u64>().prop_map(Order::Shuffled),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let segments = prop_oneof![Just(None), Just(Some(1)), Just(Some(300)), Just(Some(1 << 20))];
    let places = prop::sample::select(vec![Place::First, Place::Last]);
    let between = prop::sample::select(vec![Between::Nothing, Between::EmptySegments, Between::OtherRecords]);
    // A missing end is damage, tested in `reading/damaged.rs`.
    let ends = Just(EndRecord::Written);
    let sizes = prop::sample::select(vec![InstanceSize::FieldBytes, InstanceSize::Real]);
    (
        (
            prop::sample::select(Version::ALL.to_vec()),
            prop::sample::select(IdSize::ALL.to_vec()),
            any::<u32>(),
        ),
        (segments, order(), places.clone(), places, any::<bool>()),
        (ends, between, prop::sample::select(NameStyle::ALL.to_vec()), sizes),
    )
        .prop_map(|((version, id_size, ms), (segment_bytes, order, strings, loads, zero), rest)| {
            let (end, between, names, instance_size) = rest;
            // A heap dump of length 0 is one to the end of the file: nothing can follow it.
            let to_the_end = segment_bytes.is_none()
                && strings == Place::First
                && loads == Place::First
                && between == Between::Nothing;
            Options {
                version,
                id_size,
                created_ms: u64::from(ms),
                segment_bytes,
                order,
                strings,
                loads,
                heap_length: if zero && to_the_end { StatedLength::Zero } else { StatedLength::Real },
                end,
                between,
                names,
                instance_size,
                ..Options::hotspot()
            }
        })
}

fn layout() -> impl Strategy<Value = Layout> {
    let unaligned = Layout { alignment: 1, ..Layout::BITS_32 };
    let known = [Layout::COMPRESSED, Layout::UNCOMPRESSED, Layout::COMPACT, Layout::ALIGNED_16, unaligned];
    prop::sample::select(known.to_vec())
}

fn ty() -> impl Strategy<Value = Type> {
    prop::sample::select(Type::ALL.to_vec())
}

fn value() -> impl Strategy<Value = ArbValue> {
    (ty(), any::<u64>()).prop_map(|(ty, bits)| ArbValue { ty, bits })
}

fn class() -> impl Strategy<Value = ArbClass> {
    let names = ["twice.Named", "a.Ünïcödé$1", "b.\u{1F600}", "NoPackage"];
    let name = prop_oneof![4 => Just(None), 2 => prop::sample::select(names.to_vec()).prop_map(|n| Some(n.to_owned()))];
    let members = (
        prop::collection::vec(ty(), 0..6),
        prop::collection::vec(value(), 0..4),
        prop::collection::vec(value(), 0..3),
    );
    let times = prop_oneof![6 => Just(1u8), 1 => Just(0), 1 => Just(2), 1 => Just(3)];
    let loader = prop_oneof![2 => Just(0), 1 => any::<u64>()];
    (name, 0u64..20, members, loader, times.clone(), times).prop_map(
        |(name, superclass, (fields, statics, constants), loader, loads, dumps)| ArbClass {
            name,
            superclass,
            fields,
            statics,
            constants,
            loader,
            loads,
            dumps,
        },
    )
}

fn object() -> impl Strategy<Value = ArbObject> {
    let kind = prop_oneof![
        3 => (0u64..20, prop::collection::vec(0u64..500, 0..8))
            .prop_map(|(class, values)| ArbObjectKind::Instance { class, values }),
        2 => (0u64..20, prop::collection::vec(0u64..500, 0..9))
            .prop_map(|(element, elements)| ArbObjectKind::ObjectArray { element, elements }),
        2 => (ty(), prop::collection::vec(any::<u64>(), 0..40))
            .prop_map(|(ty, bits)| ArbObjectKind::PrimArray { ty, bits }),
        1 => (ty(), any::<u16>()).prop_map(|(ty, count)| ArbObjectKind::NoData { ty, count }),
    ];
    let gap = prop_oneof![4 => Just(0u16), 1 => 0..5u16, 1 => any::<u16>()];
    (kind, gap, 0..4u32).prop_map(|(kind, gap, trace)| ArbObject { kind, gap, trace })
}

/// Returns the root with another thread, if it is the root of a thread.
fn of_thread(root: Root, thread: u32) -> Root {
    match root {
        Root::JniLocal { frame, .. } => Root::JniLocal { thread, frame },
        Root::JavaFrame { frame, .. } => Root::JavaFrame { thread, frame },
        Root::NativeStack { .. } => Root::NativeStack { thread },
        Root::ThreadBlock { .. } => Root::ThreadBlock { thread },
        Root::ThreadObject { trace, .. } => Root::ThreadObject { thread, trace },
        Root::JniMonitor { depth, .. } => Root::JniMonitor { thread, depth },
        other => other,
    }
}

fn root() -> impl Strategy<Value = ArbRoot> {
    (any::<u64>(), prop::sample::select(Root::EXAMPLES.to_vec()), 1..4u32)
        .prop_map(|(target, root, thread)| ArbRoot { target, root: of_thread(root, thread) })
}

/// Generates a dump in any form.
pub fn dump() -> impl Strategy<Value = ArbDump> {
    let trace = (0..3u32, prop::collection::vec((0u64..20, -3..100i32), 0..4))
        .prop_map(|(thread, frames)| ArbTrace { thread, frames });
    (
        options(),
        layout(),
        prop::collection::vec(class(), 0..12),
        prop::collection::vec(object(), 0..200),
        prop::collection::vec(root(), 0..12),
        prop::collection::vec(trace, 0..3),
    )
        .prop_map(|(options, layout, classes, objects, roots, traces)| ArbDump {
            options,
            layout,
            classes,
            objects,
            roots,
            traces,
        })
}

/// Returns the configuration of a property test: a portion of `cases` cases, the same in every run, so that a failure
/// indicates a change. For a soak, choose others: `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=5000 cargo test`.
pub fn property(cases: u32) -> Config {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(20_261_121);
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = portion::cases(cases.into()).try_into().unwrap();
    }
    config
}
