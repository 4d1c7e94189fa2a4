//! Names of files in the kernel's lists of mounts.

/// Decodes the escapes in `/proc/self/mounts` and `/proc/self/mountinfo`.
pub(crate) fn unescape_mount(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}
