//! Text reports for tests: those of samples, and those that `convert` writes.

pub mod naive;

use std::path::{Path, PathBuf};
use std::process::Output;

use hprof_index::layout::sizes::Sizes;
use hprof_index::{Heap, Quiet};
use hprof_query::recordings::profile::binary::{self, Want};
use hprof_report::hprof_text::{ReportHeap, ReportInput, Sections};

use super::process::Folder;

/// The binary files of the agent.
pub const AGENT_BINARIES: [&str; 5] = [
    "agent/all-cpu.hprof.zst",
    "agent/all.hprof.zst",
    "agent/busy-cpu-samples.hprof.zst",
    "agent/sites.hprof.zst",
    "public/ahat-RI-agent.hprof.zst",
];

/// Binary files of others: HotSpot from JDK 6 on, and Android.
pub const OTHER_BINARIES: [&str; 6] = [
    "public/visualvm-small_heap.hprof.zst",
    "jdk/jdk8.hprof.zst",
    "jdk/jdk17.hprof.zst",
    "jdk/jdk25.hprof.zst",
    "jdk/jdk25-compact.hprof.zst",
    "public/android-leak_service_binder.hprof.zst",
];

/// The agent's own text files.
pub const AGENT_TEXTS: [&str; 12] = [
    "agent/all-threads.txt.zst",
    "agent/busy-cpu-samples.txt",
    "agent/cpu-old.txt.zst",
    "agent/cpu-samples.txt",
    "agent/cpu-times.txt",
    "agent/dump.txt.zst",
    "agent/monitor.txt",
    "agent/nolineno.txt.zst",
    "agent/sites.txt.zst",
    "public/cpu-samples-thread.txt.zst",
    "public/cpu-times.txt.zst",
    "public/xfvrp-cpu-samples.txt.zst",
];

/// Returns the path of a sample.
pub fn sample_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// Returns the unpacked bytes of a sample.
pub fn sample(name: &str) -> Vec<u8> {
    let packed = std::fs::read(sample_path(name)).unwrap();
    if name.ends_with(".zst") { zstd::decode_all(packed.as_slice()).unwrap() } else { packed }
}

impl Folder {
    /// Returns the output of `convert` for a dump.
    pub fn convert(&self, dump: &str, more: &[&str]) -> String {
        String::from_utf8(self.stdout(&[&["convert", dump], more].concat())).unwrap()
    }

    /// Returns the output of `convert` for a sample.
    pub fn convert_sample(&self, name: &str) -> String {
        self.convert(sample_path(name).to_str().unwrap(), &[])
    }
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Returns the output of `convert`, made by the library.
pub fn convert(heap: &Heap) -> Vec<u8> {
    let want = Want { sites: true, traces: true, ..Want::default() };
    let mut profile = binary::read(heap, want, &Quiet).unwrap();
    let sizes = Sizes::new(heap.summary(), None);
    if profile.sites.is_none() {
        profile.sites = binary::sites_of_objects(heap, &sizes, &Quiet).unwrap();
    }
    let thread_events = binary::thread_events(heap, &Quiet).unwrap();
    let report = ReportInput {
        heap: Some(ReportHeap { summary: heap.summary(), bytes: heap.bytes(&Quiet).unwrap(), sizes: &sizes }),
        profile: &profile,
        thread_events: &thread_events,
    };
    let all = Sections { threads: true, traces: true, heap: true, sites: true, cpu: true };
    let mut out = Vec::new();
    report.write(&mut out, all, &Quiet).unwrap();
    out
}
