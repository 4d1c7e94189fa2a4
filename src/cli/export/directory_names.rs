//! Directory names for dumps and tables, valid for any name of a file or class.

use std::collections::HashSet;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// Maximum length in bytes; a longer name is shortened and ends with its hash. Most file systems allow 255 bytes.
const MAX_NAME_BYTES: usize = 180;

/// File extensions of dumps, outermost first.
const ENDINGS: &[&[&str]] =
    &[&[".gz", ".zst", ".zip", ".tar", ".tgz"], &[".tar"], &[".hprof", ".bin", ".txt"]];

/// Returns the names of dumps: the file names without their extensions. A name that equals an earlier one, ignoring
/// case, gets `-2`, `-3` and so on.
pub(super) fn of_dumps<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut names = Vec::new();
    for path in paths {
        let base = of_dump(path);
        let numbered = (2u64..).map(|number| format!("{base}-{number}"));
        let mut all = std::iter::once(base.clone()).chain(numbered);
        // One of these numbers is free.
        let name = all.find(|name| taken.insert(name.to_lowercase())).unwrap_or(base);
        names.push(name);
    }
    names
}

fn of_dump(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut stem = name.as_str();
    for endings in ENDINGS {
        let shorter = endings.iter().find_map(|ending| stem.strip_suffix(ending));
        stem = shorter.filter(|shorter| !shorter.is_empty()).unwrap_or(stem);
    }
    stem.to_owned()
}

/// Encodes a directory name: letters, digits, `.`, `_` and `-` are kept, everything else is percent-encoded, as in Hive.
/// A leading `.` or `_` is encoded as well, as engines ignore such directories.
pub(super) fn directory(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        let is_plain = c.is_alphanumeric() || c == '-' || (at > 0 && matches!(c, '.' | '_'));
        let mut bytes = [0; 4];
        let encoded: String = if is_plain {
            c.to_string()
        } else {
            c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect()
        };
        if out.len() + encoded.len() > MAX_NAME_BYTES {
            out.push_str(&format!("-{:016x}", xxh3_64(name.as_bytes())));
            return out;
        }
        out.push_str(&encoded);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_dumps_are_those_of_files_and_none_comes_twice() {
        let paths = ["a/cart.hprof.zst", "b/cart.hprof", "Cart", "cart-2", ".hprof", "x.tar.gz", "..", "/"];
        assert_eq!(
            of_dumps(paths.map(Path::new)),
            ["cart", "cart-2", "Cart-3", "cart-2-2", ".hprof", "x", "..", "/"]
        );
    }

    #[test]
    fn no_name_leads_elsewhere_or_hides() {
        assert_eq!(directory("../a b"), "%2E.%2Fa%20b");
        assert_eq!(directory("_x.y_z-1é"), "%5Fx.y_z-1é");
        assert_eq!(directory("a\u{202e}=%\0"), "a%E2%80%AE%3D%25%00");
        assert_eq!(directory(""), "");
        let long = directory(&"/".repeat(1000));
        assert!(long.len() < 200 && long != directory(&"/".repeat(999)), "{long}");
    }
}
