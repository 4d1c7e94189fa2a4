//! Options of the JVM on the command line of a Java tool: `-J-mx512m`.

/// Returns whether a word is an option for the JVM that a tool runs in.
pub(super) fn is_jvm_option(word: &str) -> bool {
    word.starts_with("-J") || word.starts_with("-XX:") || word.starts_with("-D") && word.contains('=')
}

/// Returns the maximum size of the heap that such an option sets, as `--memory` takes it.
pub(super) fn heap_size(word: &str) -> Option<String> {
    let option = word.strip_prefix("-J").unwrap_or(word);
    let prefixes = ["-Xmx", "-mx", "-XX:MaxHeapSize="];
    let size = prefixes.iter().find_map(|prefix| option.strip_prefix(prefix))?;
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unit = match size.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => "",
        "k" => "KiB",
        "m" => "MiB",
        "g" => "GiB",
        "t" => "TiB",
        _ => return None,
    };
    Some(format!("{digits}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_size_is_a_size_here() {
        for (option, size) in [
            ("-J-mx512m", Some("512MiB")),
            ("-J-Xmx4g", Some("4GiB")),
            ("-Xmx4G", Some("4GiB")),
            ("-J-Xmx1000", Some("1000")),
            ("-J-Xmx", None),
            ("-J-Xms1g", None),
            ("-Xmx4x", None),
        ] {
            assert_eq!(heap_size(option).as_deref(), size, "{option}");
        }
    }
}
