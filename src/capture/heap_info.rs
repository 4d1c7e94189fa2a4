//! Parser for the reply to `GC.heap_info`, which contains the used bytes of the heap.

use crate::jvms::size_of;

/// Returns the used bytes of all generations of the heap. Each garbage collector has its own format:
///
/// ```text
///  garbage-first heap   total 389120K, used 18069K [0x00000000e0000000, 0x0000000100000000)
///  def new generation   total 116160K, used 21310K [...)
///   eden space 103296K,  20% used [...)
///  ZHeap           used 38M, capacity 378M, max capacity 512M
///  512M max, 512M soft max, 100M committed, 7M used
/// ```
pub(crate) fn used_bytes(text: &str) -> Option<u64> {
    // From this line on, the lines are not about the heap.
    let lines = text.lines().take_while(|line| !line.trim_start().starts_with("Metaspace"));
    let mut used = None;
    for line in lines {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let at = words.iter().position(|word| *word == "used");
        let before =
            at.and_then(|at| at.checked_sub(1)).and_then(|at| words.get(at)).and_then(|word| size(word));
        let after = at.and_then(|at| words.get(at.saturating_add(1))).and_then(|word| size(word));
        if let Some(bytes) = after.or(before) {
            used = Some(used.unwrap_or(0u64).saturating_add(bytes));
        }
    }
    used
}

/// Parses a size with a unit; `None` without a unit.
fn size(word: &str) -> Option<u64> {
    word.ends_with(['K', 'M', 'G', 'T', 'B']).then(|| size_of(word.trim_end_matches('B'))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collector_says_how_much_is_used() {
        for (text, kib) in [
            (
                " garbage-first heap   total 389120K, used 18069K [0x00000000e0000000, 0x0000000100000000)\n  region size 1024K, 16 young (16384K), 0 survivors (0K)\n Metaspace       used 248K, committed 448K, reserved 1114112K\n  class space    used 13K, committed 128K\n",
                18069,
            ),
            (
                "garbage-first heap   total reserved 524288K, committed 389120K, used 18943K [0x0, 0x1)\n region size 1024K, 17 young (17408K)\n",
                18943,
            ),
            (
                "DefNew     total 116160K, used 24791K [0x0, 0x1)\n eden space 103296K,  24% used [0x0, 0x1)\nTenured    total 258048K, used 1166K [0x0)\n the  space 258048K,   0% used [0x0)\n",
                25957,
            ),
            (
                " PSYoungGen      total 113152K, used 21401K [0x0)\n  eden space 97280K, 22% used [0x0,0x0)\n ParOldGen       total 258048K, used 0K [0x0)\n",
                21401,
            ),
            (
                " ZHeap           used 38M, capacity 378M, max capacity 512M\n Metaspace       used 314K, committed 512K\n",
                38 << 10,
            ),
            (
                "ZHeap            used 38M, capacity 378M, max capacity 512M\n Cache           340M (1)\n  size classes   256M (1)\n",
                38 << 10,
            ),
            (
                "Shenandoah Heap\n 512M max, 512M soft max, 100M committed, 7M used\n 1024 x 512 K regions\nStatus: cancelled\n",
                7 << 10,
            ),
        ] {
            assert_eq!(used_bytes(text), Some(kib << 10), "{text}");
        }
        assert_eq!(used_bytes("java.lang.IllegalArgumentException: Unknown diagnostic command"), None);
        assert_eq!(used_bytes(""), None);
    }
}
