//! JVMs of this machine that are visible to this process: from `/proc`, and from the counters that they publish. Nothing is
//! sent to the JVMs, and files in their file systems are read with the rights of their users.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::perfdata::PerfData;
use crate::processes::{MappedFiles, Process};
use crate::user_files::{UserDir, UserFiles, UserFilesOpener};
use crate::users;
use crate::vm_kind::VmKind;

/// Running JVM with the facts that a list shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JvmRow {
    /// Process ID.
    pub pid: u32,
    /// Process ID in the PID namespace of the JVM.
    pub namespace_pid: u32,
    /// Name of the JVM's user; the user ID if the user has no name on this system.
    pub user: String,
    /// Kind of virtual machine.
    pub kind: VmKind,
    /// Main class, `MODULE/CLASS`, or JAR file; the name of the program for a native image.
    pub main_class: Option<String>,
    /// Version of the JDK.
    pub java_version: Option<String>,
    /// Garbage collector.
    pub collector: Option<String>,
    /// Bytes of the heap that were used after the last collection, or, for some collectors, at the last sample.
    pub heap_used_bytes: Option<u64>,
    /// Maximum size of the heap in bytes.
    pub heap_max_bytes: Option<u64>,
    /// Time since the process started.
    pub uptime: Option<Duration>,
    /// ID of the container in which the process runs.
    pub container: Option<String>,
    /// `true` if the JVM publishes counters.
    pub has_counters: bool,
}

/// Result of listing: the JVMs, and the processes that may be JVMs but cannot be inspected.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct JvmList {
    /// JVMs in order of their process IDs.
    pub jvms: Vec<JvmRow>,
    /// IDs of processes named `java` that cannot be inspected, such as processes of other users.
    pub hidden: Vec<u32>,
}

/// Lists the JVMs that this process can inspect.
pub fn list(opener: &UserFilesOpener) -> JvmList {
    let mut list = JvmList::default();
    for process in Process::all() {
        match process.mapped_files() {
            Ok(mapped) => {
                let files = process.vm(&mapped).and_then(|_| opener.reader_of_process(&process).ok());
                list.jvms.extend(row(&process, &mapped, files.map(Arc::new).as_ref()));
            }
            Err(Error::OtherUser { pid, .. } | Error::Hidden { pid }) if process.status().name == "java" => {
                list.hidden.push(pid)
            }
            Err(_) => {}
        }
    }
    list
}

/// Returns the row of a process; `None` if it is not a JVM. `files` opens the file system with the JVM's counters.
pub(crate) fn row(process: &Process, mapped: &MappedFiles, files: Option<&Arc<UserFiles>>) -> Option<JvmRow> {
    let kind = process.vm(mapped)?;
    let status = process.status();
    let arguments = process.arguments();
    let counters = files.and_then(|files| PerfData::read(files, process, mapped));
    let told = counters.clone().unwrap_or_default();
    let launched = LaunchArguments::parse(&arguments);
    let main_class = match kind {
        VmKind::NativeImage => arguments.first().cloned(),
        _ => told.text("sun.rt.javaCommand").map(main_class_of).or(launched.main_class),
    };
    let user = status.identity.user;
    Some(JvmRow {
        pid: process.pid(),
        namespace_pid: status.namespace_pid,
        user: users::name(user).unwrap_or_else(|| user.to_string()),
        kind,
        main_class,
        java_version: (told.text("java.property.java.version").map(str::to_owned))
            .or_else(|| version_of_files(process, mapped, files?)),
        collector: collector(&told).or(launched.collector).map(str::to_owned),
        heap_used_bytes: heap_used(&told),
        heap_max_bytes: heap_max(&told).or(launched.heap_max_bytes),
        uptime: process.uptime(),
        container: process.container(),
        has_counters: counters.is_some(),
    })
}

/// Returns the main class or JAR file from the beginning of a command with arguments. Names of JAR files may contain spaces.
fn main_class_of(command: &str) -> String {
    let jar = command.match_indices(".jar").map(|(at, end)| at + end.len());
    let mut jars =
        jar.filter(|end| command.get(*end..).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')));
    let first = command.split(' ').next().unwrap_or_default();
    let end = jars.next().filter(|_| command.starts_with('/') || first.ends_with(".jar"));
    end.and_then(|end| command.get(..end)).unwrap_or(first).to_owned()
}

/// Facts from the command-line arguments of `java`.
#[derive(Debug, Default, PartialEq, Eq)]
struct LaunchArguments {
    main_class: Option<String>,
    collector: Option<&'static str>,
    heap_max_bytes: Option<u64>,
}

/// Options of `java` whose value is the next argument.
const WITH_VALUE: [&str; 16] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
    "--limit-modules",
    "--patch-module",
    "--enable-native-access",
    "--source",
    "--describe-module",
    "-d",
];

/// Names of garbage collectors by the words for them in JVM options and in the names of counters.
const COLLECTORS: [(&str, &str); 13] = [
    ("G1", "G1"),
    ("Serial", "Serial"),
    // JDK 8 and 11: names for the young generation, then for the old one.
    ("Copy", "Serial"),
    ("MSC", "Serial"),
    ("ConcMarkSweep", "CMS"),
    ("PCopy", "CMS"),
    ("CMS", "CMS"),
    ("Parallel", "Parallel"),
    ("PSScavenge", "Parallel"),
    ("PSParallelCompact", "Parallel"),
    ("Shenandoah", "Shenandoah"),
    ("Epsilon", "Epsilon"),
    ("Z", "ZGC"),
];

impl LaunchArguments {
    fn parse(arguments: &[String]) -> Self {
        let mut launched = Self::default();
        let mut words = arguments.iter().skip(1).map(String::as_str);
        while let Some(word) = words.next() {
            let collector = word.strip_prefix("-XX:+Use").and_then(|word| word.strip_suffix("GC"));
            if let Some(collector) = collector {
                launched.collector =
                    COLLECTORS.iter().find(|(name, _)| *name == collector).map(|(_, name)| *name);
            } else if let Some(size) =
                word.strip_prefix("-Xmx").or_else(|| word.strip_prefix("-XX:MaxHeapSize="))
            {
                launched.heap_max_bytes = size_of(size);
            } else if word == "-jar" || word == "-m" || word == "--module" {
                launched.main_class = words.next().map(str::to_owned);
                break;
            } else if WITH_VALUE.contains(&word) {
                words.next();
            } else if !word.starts_with('-') && !word.starts_with('@') {
                launched.main_class = Some(word.to_owned());
                break;
            }
        }
        launched
    }
}

/// Parses a size in the form of JVM options: 512m, 4G.
pub(crate) fn size_of(text: &str) -> Option<u64> {
    let unit = match text.bytes().last()? {
        b'k' | b'K' => 10,
        b'm' | b'M' => 20,
        b'g' | b'G' => 30,
        b't' | b'T' => 40,
        _ => return text.parse().ok(),
    };
    let number: u64 = text.get(..text.len().saturating_sub(1))?.parse().ok()?;
    number.checked_mul(1 << unit)
}

fn collector(told: &PerfData) -> Option<&'static str> {
    let name = (0..3).find_map(|at| told.text(&format!("sun.gc.collector.{at}.name")))?;
    COLLECTORS.iter().find(|(word, _)| name.starts_with(word)).map(|(_, collector)| *collector)
}

/// Returns the values of a counter for all generations.
fn generations(told: &PerfData, counter: &str) -> Vec<u64> {
    (0..3).filter_map(|at| told.number(&format!("sun.gc.generation.{at}.{counter}"))).collect()
}

fn heap_max(told: &PerfData) -> Option<u64> {
    let sizes = generations(told, "maxCapacity");
    match collector(told)? {
        // The generations share the heap.
        "Serial" | "Parallel" | "CMS" => Some(sizes.into_iter().fold(0, u64::saturating_add)),
        // Each generation may take the entire heap.
        _ => sizes.into_iter().max(),
    }
    .filter(|bytes| *bytes > 0)
}

/// Returns the used bytes of the heap; `None` if the JVM has not published any yet. Some collectors publish them only when they
/// collect.
fn heap_used(told: &PerfData) -> Option<u64> {
    let spaces = (0..3).flat_map(|generation| {
        (0..5).map(move |space| format!("sun.gc.generation.{generation}.space.{space}.used"))
    });
    let used: u64 = spaces.filter_map(|name| told.number(&name)).fold(0, u64::saturating_add);
    (used > 0).then_some(used)
}

/// Returns the version in the JDK's file `release`, which is two or three directories above the JVM's library.
fn version_of_files(process: &Process, mapped: &MappedFiles, files: &Arc<UserFiles>) -> Option<String> {
    let library = mapped.libjvm.as_deref()?;
    // The path of the library is relative to this process's view, unless the JVM has other mounts.
    let outside = fs::read_link(process.proc_path("root")).ok();
    let library = outside.and_then(|outside| library.strip_prefix(outside).ok()).unwrap_or(library);
    let root = files.root().ok()?;
    let homes = library.ancestors().skip(3).take(3);
    homes.filter_map(|home| version_in(&root, home)).next()
}

fn version_in(root: &UserDir, home: &Path) -> Option<String> {
    let path = home.join("release");
    let (bytes, _) = root.bytes(path.to_str()?.trim_start_matches('/'), 1 << 16).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let version = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    Some(version.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_class_is_the_first_word_of_the_command() {
        for (command, class) in [
            ("app.Main --port 80", "app.Main"),
            ("app.Main", "app.Main"),
            ("/opt/my app/app.jar --x", "/opt/my app/app.jar"),
            ("app.jar a b.jar", "app.jar"),
            ("app.mod/app.Main x.jar", "app.mod/app.Main"),
            ("", ""),
        ] {
            assert_eq!(main_class_of(command), class, "{command}");
        }
    }

    #[test]
    fn arguments_tell_what_a_jvm_without_counters_does_not() {
        let of = |line: &str| LaunchArguments::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let launched = of(
            "/jdk/bin/java -Xmx512m -XX:+UseZGC -cp a:b --add-opens java.base/java.lang=ALL-UNNAMED app.Main x",
        );
        assert_eq!(launched.main_class.as_deref(), Some("app.Main"));
        assert_eq!((launched.collector, launched.heap_max_bytes), (Some("ZGC"), Some(512 << 20)));
        assert_eq!(
            of("java -XX:MaxHeapSize=1024 -jar /a.jar app.Other").main_class.as_deref(),
            Some("/a.jar")
        );
        assert_eq!(of("java -m mod/app.Main").main_class.as_deref(), Some("mod/app.Main"));
        for option in WITH_VALUE {
            let launched = of(&format!("java {option} value app.Main value"));
            assert_eq!(launched.main_class.as_deref(), Some("app.Main"), "{option}");
        }
        assert_eq!(of("java -XX:+UseConcMarkSweepGC app.Main").collector, Some("CMS"));
        assert_eq!(of("java"), LaunchArguments::default());
        assert_eq!(
            (size_of("4G"), size_of("1k"), size_of("12"), size_of("x"), size_of("")),
            (Some(4 << 30), Some(1024), Some(12), None, None)
        );
    }
}
