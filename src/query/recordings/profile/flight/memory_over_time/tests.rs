//! Tests on recordings made by the tests' own writer, against sums over a list of all samples.
#![allow(clippy::unwrap_used)]

use hprof_jfr::Recording;
use hprof_writer::flight::{FlightField, FlightWriter, LONG, TEXT};

use super::*;
use crate::profile::flight::{FlightReport, Want, read};

const CATEGORY: i64 = 30;
const SEGMENT: i64 = 31;
const SIZES: i64 = 32;

/// Returns a chunk in which `write` writes events: 40 native memory of a category, 41 the resident set, 42 metaspace, 43 the code
/// cache, 44 the container's limits.
fn chunk(start_ticks: i64, write: impl FnOnce(&mut FlightWriter)) -> Vec<u8> {
    let mut out = FlightWriter::starting_at(true, start_ticks);
    out.checkpoint(CATEGORY, &[(1, &|body| body.text("Java Heap")), (2, &|body| body.text("Arena"))]);
    out.checkpoint(SEGMENT, &[(1, &|body| body.text("CodeHeap"))]);
    write(&mut out);
    let (constant, sizes) = (FlightField::constant, FlightField::value(SIZES));
    let start = ("startTime", LONG);
    out.metadata(&[
        (CATEGORY, "jdk.types.NMTType", &[("name", TEXT)]),
        (SEGMENT, "jdk.types.CodeBlobType", &[("type", TEXT)]),
        (SIZES, "jdk.types.MetaspaceSizes", &["committed", "used", "reserved"].map(|name| (name, LONG))),
        (
            40,
            "jdk.NativeMemoryUsage",
            &[start, ("type", constant(CATEGORY)), ("reserved", LONG), ("committed", LONG)],
        ),
        (41, "jdk.ResidentSetSize", &[start, ("size", LONG), ("peak", LONG)]),
        (42, "jdk.MetaspaceSummary", &[start, ("metaspace", sizes), ("dataSpace", sizes)]),
        (
            43,
            "jdk.CodeCacheStatistics",
            &[
                start,
                ("codeBlobType", constant(SEGMENT)),
                ("startAddress", LONG),
                ("reservedTopAddress", LONG),
                ("unallocatedCapacity", LONG),
            ],
        ),
        (44, "jdk.ContainerConfiguration", &[start, ("memoryLimit", LONG), ("hostTotalMemory", LONG)]),
    ]);
    out.finish()
}

fn event(out: &mut FlightWriter, type_id: i64, values: &[i64]) {
    out.event(type_id, |body| values.iter().for_each(|value| body.long(*value)));
}

fn report(bytes: &[u8]) -> FlightReport {
    read(&Recording::new(bytes).unwrap(), None, Want::default())
}

/// Returns the name, category, first, last and highest value, and number of samples of each figure.
fn figure_rows(memory: &MemoryOverTime) -> Vec<(&str, Option<&str>, [u64; 3], u64)> {
    let figure = |of: &'_ FigureOverTime| [of.first.value, of.last.value, of.highest.value];
    memory
        .figures
        .iter()
        .map(|of| (of.figure.name(), of.category.as_deref(), figure(of), of.samples))
        .collect()
}

#[test]
fn figures_have_their_fields_and_names() {
    for (at, figure) in MemoryFigure::ALL.into_iter().enumerate() {
        assert_eq!(FIELDS[at].figure, figure);
        assert_eq!(figure as usize, at);
        assert_eq!(MemoryFigure::ALL.iter().filter(|of| of.name() == figure.name()).count(), 1);
    }
}

#[test]
fn events_of_all_kinds() {
    let first = chunk(100, |out| {
        event(out, 40, &[110, 1, 5000, 1000]);
        event(out, 40, &[110, 2, 70, 60]);
        // A category that the chunk does not contain.
        event(out, 40, &[110, 9, 8, 7]);
        event(out, 41, &[110, 300, 350]);
        event(out, 42, &[110, 30, 20, 40, 3, 2, 4]);
        event(out, 43, &[110, 1, 0x1000, 0x3000, 0x800]);
        // A top below the start, and more unallocated bytes than there are.
        event(out, 43, &[111, 1, 0x3000, 0x1000, 0]);
        event(out, 43, &[112, 1, 0x1000, 0x1100, 0x101]);
        // No limit.
        event(out, 44, &[110, -1, 1 << 40]);
        event(out, 44, &[111, i64::MAX, -1]);
    });
    let second = chunk(200, |out| {
        event(out, 40, &[210, 1, 5000, 900]);
        event(out, 41, &[210, -4, 360]);
    });
    let report = report(&[first, second].concat());
    let expected = [
        ("resident_set", None, [300; 3], 1),
        ("resident_set_peak", None, [350, 360, 360], 2),
        ("native_reserved_by_category", Some(""), [8; 3], 1),
        ("native_reserved_by_category", Some("Arena"), [70; 3], 1),
        ("native_reserved_by_category", Some("Java Heap"), [5000; 3], 2),
        ("native_committed_by_category", Some(""), [7; 3], 1),
        ("native_committed_by_category", Some("Arena"), [60; 3], 1),
        ("native_committed_by_category", Some("Java Heap"), [1000, 900, 1000], 2),
        ("metaspace_used", None, [20; 3], 1),
        ("metaspace_committed", None, [30; 3], 1),
        ("metaspace_reserved", None, [40; 3], 1),
        ("data_space_used", None, [2; 3], 1),
        ("data_space_committed", None, [3; 3], 1),
        ("data_space_reserved", None, [4; 3], 1),
        ("code_cache_used", Some("CodeHeap"), [0x1800; 3], 1),
        ("code_cache_reserved", Some("CodeHeap"), [0x2000, 0x100, 0x2000], 2),
        ("host_memory", None, [1 << 40; 3], 1),
    ];
    assert_eq!(figure_rows(&report.memory), expected);
    let heap = report.memory.of_figure(MemoryFigure::NativeCommittedByCategory).nth(2).unwrap();
    let sample = |nanos, value| FigureSample { nanos, value };
    assert_eq!(
        (heap.first, heap.last, heap.highest),
        (sample(1_010_000_000, 1000), sample(1_110_000_000, 900), sample(1_010_000_000, 1000))
    );
    // 100 bytes less in a tenth of a second.
    assert_eq!(heap.growth_per_hour, Some(-3_600_000));
    let resident = report.memory.figure(MemoryFigure::ResidentSet).unwrap();
    assert_eq!((resident.growth_per_hour, resident.figure.event()), (None, "jdk.ResidentSetSize"));
    assert_eq!(report.facts.problem_count, 0);
}

/// Returns the slope per hour, computed from the differences to the means.
#[allow(clippy::cast_precision_loss)]
fn slope(samples: &[(i64, i64)]) -> f64 {
    let count = samples.len() as f64;
    let mean =
        |of: fn(&(i64, i64)) -> i64| samples.iter().map(|sample| of(sample) as f64).sum::<f64>() / count;
    let (time, value) = (mean(|sample| sample.0), mean(|sample| sample.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        samples.iter().map(|sample| of(sample.0 as f64 - time, sample.1 as f64 - value)).sum::<f64>()
    };
    sum(&|time, value| time * value) / sum(&|time, _| time * time) * 3_600_000.0
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn the_growth_is_that_of_the_line_through_all_samples() {
    let mut seed = 7u64;
    let mut below = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((seed >> 33) % most).unwrap()
    };
    for case in 0..100 {
        let slow = below(50);
        let samples: Vec<(i64, i64)> = (0..2 + below(60))
            .map(|_| {
                let ticks = 100 + below(1 << 30);
                (ticks, 200_000_000 + slow * (ticks >> 10) + below(100_000))
            })
            .collect();
        let (first, second) = samples.split_at(samples.len() / 2);
        let part = |samples: &[(i64, i64)]| {
            chunk(100, |out| samples.iter().for_each(|(ticks, size)| event(out, 41, &[*ticks, *size, *size])))
        };
        let bytes = [part(first), part(second)].concat();
        let memory = report(&bytes).memory;
        let found = memory.figure(MemoryFigure::ResidentSet).unwrap();
        let expected = slope(&samples);
        let difference = found.growth_per_hour.unwrap() as f64 - expected;
        assert!(difference.abs() <= 0.6 + expected.abs() * 1e-6, "case {case}: {found:?}, {expected}");
        let by_time = |of: fn(&(i64, i64)) -> i64| samples.iter().map(of).max().unwrap();
        assert_eq!(found.highest.value, u64::try_from(by_time(|sample| sample.1)).unwrap());
        assert_eq!(found.last.nanos, 1_000_000_000 + (by_time(|sample| sample.0) - 100) * 1_000_000);
    }
}

#[test]
fn values_at_the_limits_do_not_overflow() {
    let bytes = chunk(100, |out| {
        for ticks in [i64::MIN, -1, 0, i64::MAX] {
            event(out, 41, &[ticks, i64::MAX, i64::MAX]);
        }
    });
    let memory = report(&bytes).memory;
    let found = memory.figure(MemoryFigure::ResidentSet).unwrap();
    assert_eq!((found.samples, found.highest.value), (4, i64::MAX.unsigned_abs()));
}

#[test]
fn too_many_figures_are_left_out() {
    let names: Vec<String> = (0..MAX_FIGURES + 3).map(|number| format!("category {number}")).collect();
    let write: Vec<_> = names
        .iter()
        .map(|name| move |body: &mut hprof_writer::flight::FlightValues| body.text(name))
        .collect();
    let constants: Vec<_> = (100..)
        .zip(&write)
        .map(|(key, write)| (key, write as hprof_writer::flight::FlightConstant<'_>))
        .collect();
    let bytes = chunk(100, |out| {
        out.checkpoint(CATEGORY, &constants);
        constants.iter().for_each(|(key, _)| event(out, 40, &[110, *key, 1, 1]));
    });
    let report = report(&bytes);
    let left_out = 2 * (MAX_FIGURES as u64 + 3) - MAX_FIGURES as u64;
    assert_eq!((report.memory.figures.len(), report.memory.left_out), (MAX_FIGURES, left_out));
    let problem = format!("too many events about memory: {} were skipped", group_digits(left_out));
    assert_eq!(report.facts.problems, [problem]);
}
