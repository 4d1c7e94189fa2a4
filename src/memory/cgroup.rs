//! The memory of a control group, from the files of its directory (Linux: Documentation/admin-guide/cgroup-v2.rst, and
//! cgroup-v1/memory.rst).

use serde::{Deserialize, Serialize};

use crate::numbers::bytes;

/// Contents of files of a control group's directory, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFiles {
    /// Path of the control group below the root of the hierarchy.
    pub path: String,
    /// Names and contents of the files that could be read.
    pub files: Vec<(String, String)>,
}

/// Names of the files that are read; the first eight are of version 2.
pub const FILES: [&str; 15] = [
    "memory.current",
    "memory.max",
    "memory.high",
    "memory.peak",
    "memory.swap.current",
    "memory.events",
    "memory.stat",
    "cgroup.procs",
    "memory.usage_in_bytes",
    "memory.limit_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.kmem.usage_in_bytes",
    "memory.memsw.usage_in_bytes",
    "memory.oom_control",
    "memory.failcnt",
];

/// Memory of a control group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Path of the control group below the root of the hierarchy.
    pub path: String,
    /// Bytes that count for the limit.
    pub current_bytes: Option<u64>,
    /// Limit; `None` if there is none.
    pub limit_bytes: Option<u64>,
    /// Bytes from which the kernel slows the processes down to reclaim memory (version 2).
    pub high_bytes: Option<u64>,
    /// Most bytes so far.
    pub peak_bytes: Option<u64>,
    /// Anonymous memory.
    pub anon_bytes: Option<u64>,
    /// Page cache, with shared memory.
    pub file_bytes: Option<u64>,
    /// Shared memory and tmpfs, part of `file_bytes`.
    pub shmem_bytes: Option<u64>,
    /// Page cache that the kernel can drop without writing it.
    pub reclaimable_bytes: Option<u64>,
    /// Memory of the kernel for the processes.
    pub kernel_bytes: Option<u64>,
    /// Kernel stacks, part of `kernel_bytes`.
    pub kernel_stack_bytes: Option<u64>,
    /// Page tables, part of `kernel_bytes`.
    pub page_table_bytes: Option<u64>,
    /// Slabs, part of `kernel_bytes`.
    pub slab_bytes: Option<u64>,
    /// Bytes in swap.
    pub swap_bytes: Option<u64>,
    /// Number of processes that the kernel ended for lack of memory, in the group or on the machine.
    pub oom_kills: Option<u64>,
    /// Number of times that the limit was reached.
    pub limit_hits: Option<u64>,
    /// Number of processes in this control group, without those in groups below it.
    pub processes: Option<u64>,
}

/// Limits of version 1 from which there is no limit: the largest multiple of a page in 63 bits is the default.
const NO_LIMIT: u64 = 1 << 56;

impl Cgroup {
    /// Parses the files of a process's control group and of those above it, innermost first. Returns the group that is nearest to
    /// its limit, as that one ends the process; the innermost one if none has a limit.
    pub fn of_levels(levels: &[CgroupFiles]) -> Option<Self> {
        let groups: Vec<Self> =
            levels.iter().map(Self::parse).filter(|group| group.current_bytes.is_some()).collect();
        let room = |group: &&Self| Some(group.limit_bytes?.saturating_sub(group.current_bytes?));
        let limited = groups.iter().filter(|group| group.limit_bytes.is_some());
        // Of several that are equally near, the outermost has all processes.
        if let Some(nearest) = limited.rev().min_by_key(|group| room(group)) {
            return Some(nearest.clone());
        }
        let mut inner = groups.into_iter().next()?;
        // The lowest limit of the groups above it (version 1), whose files cannot be read.
        let stat =
            levels.first().and_then(|level| level.files.iter().find(|(name, _)| name == "memory.stat"));
        let above = stat.and_then(|(_, text)| value(text, "hierarchical_memory_limit"));
        inner.limit_bytes = above.filter(|limit| *limit < NO_LIMIT);
        Some(inner)
    }

    fn parse(level: &CgroupFiles) -> Self {
        let file = |name: &str| level.files.iter().find(|(of, _)| of == name).map(|(_, text)| text.as_str());
        let number = |name: &str| file(name)?.trim().parse().ok();
        let limit =
            |name: &str| file(name).and_then(|text| bytes(text.trim())).filter(|limit| *limit < NO_LIMIT);
        let stat = |name: &str| value(file("memory.stat")?, name);
        let processes = file("cgroup.procs").map(|text| text.lines().count() as u64);
        let page_cache = |prefix: &str| {
            let of = |name: &str| stat(&format!("{prefix}{name}"));
            let dirty = of("dirty").or_else(|| of("file_dirty")).unwrap_or(0);
            let writeback = of("writeback").or_else(|| of("file_writeback")).unwrap_or(0);
            let cache = of("active_file")?.saturating_add(of("inactive_file")?);
            Some(cache.saturating_sub(dirty).saturating_sub(writeback))
        };
        let base = Self { path: level.path.clone(), processes, ..Self::default() };
        if let Some(current_bytes) = number("memory.current") {
            let parts = ["kernel_stack", "pagetables", "slab", "percpu", "sock"];
            let kernel = stat("kernel").or_else(|| {
                let known: Vec<u64> = parts.iter().filter_map(|name| stat(name)).collect();
                (!known.is_empty()).then(|| crate::mappings::sum(known.into_iter()))
            });
            let event = |name: &str| value(file("memory.events")?, name);
            return Self {
                current_bytes: Some(current_bytes),
                limit_bytes: limit("memory.max"),
                high_bytes: limit("memory.high"),
                peak_bytes: number("memory.peak"),
                anon_bytes: stat("anon"),
                file_bytes: stat("file"),
                shmem_bytes: stat("shmem"),
                reclaimable_bytes: page_cache(""),
                kernel_bytes: kernel,
                kernel_stack_bytes: stat("kernel_stack"),
                page_table_bytes: stat("pagetables"),
                slab_bytes: stat("slab"),
                swap_bytes: number("memory.swap.current"),
                oom_kills: event("oom_kill"),
                limit_hits: event("max"),
                ..base
            };
        }
        let current_bytes: Option<u64> = number("memory.usage_in_bytes");
        let swap = number("memory.memsw.usage_in_bytes").zip(current_bytes);
        Self {
            current_bytes,
            limit_bytes: limit("memory.limit_in_bytes"),
            peak_bytes: number("memory.max_usage_in_bytes"),
            anon_bytes: stat("total_rss").or_else(|| stat("rss")),
            file_bytes: stat("total_cache").or_else(|| stat("cache")),
            shmem_bytes: stat("total_shmem").or_else(|| stat("shmem")),
            reclaimable_bytes: page_cache("total_").or_else(|| page_cache("")),
            kernel_bytes: number("memory.kmem.usage_in_bytes"),
            swap_bytes: swap.map(|(both, memory): (u64, u64)| both.saturating_sub(memory)),
            oom_kills: value(file("memory.oom_control").unwrap_or_default(), "oom_kill"),
            limit_hits: number("memory.failcnt"),
            ..base
        }
    }
}

/// Returns the number after a name at the start of a line: `anon 4096`.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, number) = line.split_once(' ')?;
        (key == name).then(|| number.trim().parse().ok()).flatten()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn level(path: &str, files: &[(&str, &str)]) -> CgroupFiles {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        CgroupFiles { path: path.to_owned(), files }
    }

    #[test]
    fn the_group_with_the_lowest_limit_counts() {
        let inner = level("/pod/c", &[("memory.current", "100\n"), ("memory.max", "max\n")]);
        let outer = level(
            "/pod",
            &[
                ("memory.current", "300\n"),
                ("memory.max", "400\n"),
                (
                    "memory.stat",
                    "anon 200\nfile 50\nkernel 50\nactive_file 30\ninactive_file 20\nfile_dirty 5\n",
                ),
                ("memory.events", "low 0\nmax 7\noom_kill 2\n"),
                ("cgroup.procs", "1\n2\n"),
            ],
        );
        let found = Cgroup::of_levels(&[inner.clone(), outer]).unwrap();
        assert_eq!(
            (found.path.as_str(), found.limit_bytes, found.reclaimable_bytes),
            ("/pod", Some(400), Some(45))
        );
        assert_eq!((found.oom_kills, found.limit_hits, found.processes), (Some(2), Some(7), Some(2)));
        // A group below that has more room does not matter, one that has less does.
        let near = level("/pod/c", &[("memory.current", "199"), ("memory.max", "200")]);
        let far = level("/pod", &[("memory.current", "300"), ("memory.max", "402")]);
        assert_eq!(Cgroup::of_levels(&[near, far]).unwrap().path, "/pod/c");
        let found = Cgroup::of_levels(&[inner]).unwrap();
        assert_eq!((found.current_bytes, found.limit_bytes), (Some(100), None));
        assert_eq!(Cgroup::of_levels(&[]), None);
    }

    #[test]
    fn version_1_has_other_names() {
        let group = level(
            "/x",
            &[
                ("memory.usage_in_bytes", "1000"),
                ("memory.limit_in_bytes", "9223372036854771712"),
                (
                    "memory.stat",
                    "cache 1\nrss 2\nhierarchical_memory_limit 5000\ntotal_cache 10\ntotal_rss 20\ntotal_active_file 4\ntotal_inactive_file 6\n",
                ),
                ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
            ],
        );
        let found = Cgroup::of_levels(&[group]).unwrap();
        assert_eq!((found.limit_bytes, found.anon_bytes, found.file_bytes), (Some(5000), Some(20), Some(10)));
        assert_eq!((found.reclaimable_bytes, found.oom_kills), (Some(10), Some(1)));
    }
}
