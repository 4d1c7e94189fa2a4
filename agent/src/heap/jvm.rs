//! `dump=jvm`: the JVM writes the dump, and the agent appends its records.
//!
//! JVM TI provides no addresses, so the objects of such a dump have no traces. SITES, traces and samples are recorded at the
//! same time: their classes have the serial numbers that the JVM assigned, matched by name.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use hprof_format::binary::tag;
use rustc_hash::FxHashMap;

use crate::jvm::{Argument, Jni};
use crate::output::sink::{Sink, only_a_file, partial_of};
use crate::output::{JvmClasses, Output};

/// Lets the JVM write a dump, and returns an output that appends to it.
///
/// # Errors
/// A description of the failed call, write or read.
pub fn dump(jni: &Jni<'_>, path: &Path) -> Result<Output, String> {
    only_a_file(path)?;
    let partial = partial_of(path);
    // HotSpot writes only to new files, and only if their names end with `.hprof`.
    let mut by_jvm = partial.as_os_str().to_owned();
    by_jvm.push(format!(".{}.hprof", std::process::id()));
    let by_jvm = std::path::PathBuf::from(by_jvm);
    let called = jni.frame(16, |jni| call(jni, &by_jvm)).flatten();
    if called.is_some() {
        std::fs::rename(&by_jvm, &partial)
            .map_err(|error| format!("cannot rename {}: {error}", by_jvm.display()))?;
    }
    called.ok_or(
        "HotSpotDiagnosticMXBean.dumpHeap cannot be called (is the module jdk.management available?)",
    )?;
    let (started, classes) =
        classes(&partial).map_err(|error| format!("cannot read {}: {error}", partial.display()))?;
    Ok(Output::after_jvm_dump(Sink::append(path.to_owned())?, started, classes))
}

/// Calls `ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(path, false)`. `false` includes
/// unreachable objects, because garbage was collected before, and at the end of the JVM another collection may never finish.
fn call(jni: &Jni<'_>, path: &Path) -> Option<()> {
    let factory = jni.find_class(c"java/lang/management/ManagementFactory")?;
    let class = jni.find_class(c"com/sun/management/HotSpotDiagnosticMXBean")?;
    let bean = jni.call_static(
        factory,
        c"getPlatformMXBean",
        c"(Ljava/lang/Class;)Ljava/lang/management/PlatformManagedObject;",
        &[Argument::Object(Some(class))],
    )?;
    let path = jni.string(&path.to_string_lossy())?;
    let arguments = [Argument::Object(Some(path)), Argument::Boolean(false)];
    jni.call_void(bean, class, c"dumpHeap", c"(Ljava/lang/String;Z)V", &arguments).then_some(())
}

/// Returns the time in the header of a dump, and its classes, which HotSpot writes before the heap.
fn classes(path: &Path) -> io::Result<(std::time::SystemTime, JvmClasses)> {
    let mut file = BufReader::new(File::open(path)?);
    // Skips "JAVA PROFILE 1.0.2" and a NUL.
    for _ in 0..32 {
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        if byte == [0] {
            break;
        }
    }
    let (mut ids, mut millis) = ([0; 4], [0; 8]);
    file.read_exact(&mut ids)?;
    file.read_exact(&mut millis)?;
    if u32::from_be_bytes(ids) != 8 {
        return Err(io::Error::other("its object IDs do not have 8 bytes"));
    }
    let started = UNIX_EPOCH + Duration::from_millis(u64::from_be_bytes(millis));
    let mut strings: FxHashMap<u64, String> = FxHashMap::default();
    let mut classes = JvmClasses::default();
    let mut head = [0; 9];
    while file.read_exact(&mut head).is_ok() {
        let [kind, _, _, _, _, l0, l1, l2, l3] = head;
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        match kind {
            tag::STRING if length >= 8 => {
                let mut body = vec![0; length as usize];
                file.read_exact(&mut body)?;
                if let Some((id, text)) = body.split_first_chunk() {
                    let text = String::from_utf8_lossy(text).into_owned();
                    strings.insert(u64::from_be_bytes(*id), text);
                }
            }
            tag::LOAD_CLASS if length == 24 => {
                let (mut serial, mut rest, mut name) = ([0; 4], [0; 12], [0; 8]);
                file.read_exact(&mut serial)?;
                file.read_exact(&mut rest)?;
                file.read_exact(&mut name)?;
                let serial = u32::from_be_bytes(serial);
                classes.last = classes.last.max(serial);
                if let Some(name) = strings.get(&u64::from_be_bytes(name)) {
                    classes.by_name.entry(name.clone()).or_insert(serial);
                }
            }
            _ => {
                file.seek(SeekFrom::Current(i64::from(length)))?;
            }
        }
    }
    Ok((started, classes))
}
