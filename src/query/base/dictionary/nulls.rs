//! Conditions for null that several columns share, so that each is worded once. Conditions of one column stand with it.

/// The dump does not contain the fact.
pub const UNSTATED: &str = "the dump does not say";
/// Nothing says it.
pub const UNKNOWN: &str = "it is unknown";
/// The row has no such thing.
pub const NONE: &str = "there is none";
/// The row has no such things.
pub const NONE_LISTED: &str = "there are none";
/// No GC root leads to the object, so it has no retained size and no dominator.
pub const UNREACHABLE: &str = "it is unreachable";
/// The dump does not contain the object's class.
pub const CLASS_MISSING: &str = "the class is not in the dump";
/// The dump does not contain the class object.
pub const NO_CLASS_OBJECT: &str = "the class has no class object in the dump";
/// The boot loader has no object.
pub const BOOT_LOADER: &str = "it is the boot loader";
/// The boot loader has no object, and an unknown loader none that is known.
pub const BOOT_LOADER_OR_UNKNOWN: &str = "the boot loader, or `loader` is null";
/// Nothing describes the object.
pub const NO_LABEL: &str = "the object has no label";
/// The row is about several objects.
pub const SEVERAL_OBJECTS: &str = "there are several objects";
/// No path leads to the object.
pub const NO_PATH: &str = "there is no path";
/// The row is a group of objects with different paths.
pub const NO_COMMON_PATH: &str = "the members of the group have no path in common";
/// The row is a large holder, not a suspect.
pub const IS_HOLDER: &str = "the verdict is `holder`";
/// The object is a GC root.
pub const IS_ROOT: &str = "it is a root";
/// The place has no parent.
pub const TOP_PLACE: &str = "it is at the top";
/// The stack is empty or unknown.
pub const NO_FRAME: &str = "the trace has no frame, or is not in the file";
/// Samples do not tell live objects, nor how many were allocated.
pub const SAMPLED: &str = "the site is estimated from samples";
/// The recording contains no allocation sites.
pub const NO_SITES: &str = "there are no sites";
/// Only recordings of Flight Recorder have it.
pub const ONLY_FLIGHT_RECORDER: &str = "unless the file is a recording of Flight Recorder";
/// Only comparisons of recordings of Flight Recorder have it.
pub const ONLY_FLIGHT_RECORDERS: &str = "unless the files are recordings of Flight Recorder";
/// The recording shows no trend of the heap.
pub const NO_HEAP_TREND: &str = "the recording contains no collections, or too many events";
/// No container is known.
pub const NO_CONTAINER: &str = "the process is in no container, or in one whose control group has no ID";
/// The problem is not at one offset of the file.
pub const SEVERAL_OFFSETS: &str = "no single offset";
/// The file is not compressed.
pub const UNCOMPRESSED: &str = "the file is not compressed";
/// The file does not contain it.
pub const NOT_STATED: &str = "not stated";
