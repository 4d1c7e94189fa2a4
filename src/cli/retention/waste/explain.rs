//! `--explain`: the definition of a kind of waste, when it is harmless, and how to avoid it.

use std::io::Write;

use hprof_query::waste::WasteKind;
use hprof_report::fit;

use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;

/// Prints the explanation of a kind.
pub(super) fn show(cx: &RunContext, kind: WasteKind) -> anyhow::Result<()> {
    let [what, harmless, mend] = text(kind);
    let mut out = cx.out();
    writeln!(out, "{}\n\nWhat it is\n{}\n", kind.name(), indented(what))?;
    writeln!(out, "When it is harmless\n{}\n", indented(harmless))?;
    writeln!(out, "What to do\n{}", indented(mend))?;
    output::finish_if(out, Ok(()))
}

/// Maximum line width; a terminal of this width breaks none.
const WIDTH: usize = 80;

/// Wraps a paragraph into lines of at most [`WIDTH`] columns.
fn indented(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    fit::wrap(&format!("  {}", words.join(" ")), WIDTH, 0).join("\n")
}

/// Returns the definition, when it is harmless, and how to avoid it.
fn text(kind: WasteKind) -> [&'static str; 3] {
    match kind {
        WasteKind::DuplicateStrings => [
            "Strings with the text of an earlier String, compared character by character.\n\
             Freed: each String but the first, and its array if nothing else refers to it.",
            "If the Strings are short-lived: a heap dump shows a moment.",
            "Read the values once and keep them: a map from text to String where they are\n\
             parsed, an enum for a fixed set, String.intern() for few values. With G1,\n\
             -XX:+UseStringDeduplication shares the arrays, not the Strings.",
        ],
        WasteKind::DuplicateArrays => [
            "Primitive arrays of the type and content of an earlier one, compared byte by\n\
             byte; not those of Strings. Freed: each but the first.",
            "If the arrays are written to later: equal now does not mean the same.",
            "Share arrays that are never written to: load a resource once, cache what was\n\
             decoded.",
        ],
        WasteKind::ConstantArrays => [
            "Primitive arrays of two or more elements, all of one value: mostly zero, so\n\
             nothing was ever written to them. Freed: the arrays.",
            "If they are buffers that wait for data, or if zero is a real measurement.",
            "Allocate an array when there is something to put into it; keep one number\n\
             where all are the same.",
        ],
        WasteKind::UnusedArrayEnds => [
            "Buffers longer than what is used, by the field that says how much that is\n\
             (StringBuilder.count, ByteArrayOutputStream.count and so on), or, in other\n\
             byte[] and char[], by zeros in at least the second half. Freed: the rest.",
            "If the buffer is about to be filled, as those of open streams are. Zeros can be\n\
             data.",
            "Drop a StringBuilder after toString(), trim with trimToSize() or Arrays.copyOf(),\n\
             choose an initial capacity that fits.",
        ],
        WasteKind::EmptyCollections => [
            "Lists, sets, maps and deques without elements, with or without a table. Freed:\n\
             the collection with all that it retains.",
            "If they are few, or about to be filled.",
            "Create a collection when the first element comes, use Collections.emptyList()\n\
             and the like where nothing is ever added, set the field to null when the last\n\
             element is gone: remove() and clear() keep the table.",
        ],
        WasteKind::SingleElementCollections => [
            "Collections of one element, or one key and value. Freed: the collection, its\n\
             table and node, as if the field referred to the element itself.",
            "If most grow later.",
            "Keep the first element in a field of its own; List.of(x), Set.of(x), Map.of(k, v)\n\
             and Collections.singletonList(x) take far less where nothing is added later.",
        ],
        WasteKind::SparseCollections => [
            "Collections that need at most half of the table that they have. `ratio` is the\n\
             fill ratio: elements by slots. Freed: what a table of the needed size would save.",
            "If they are about to be filled: capacity was reserved on purpose.",
            "Give the expected number of elements to the constructor and no more,\n\
             trimToSize() an ArrayList that is complete, copy a map that has shrunk.",
        ],
        WasteKind::CollidingMaps => [
            "Hash maps of 8 or more entries of which more than half follow another one in\n\
             their bucket. `ratio` is the collision ratio, as in Eclipse MAT. Freed: what tree\n\
             nodes take beyond plain ones. The larger cost is time.",
            "If the map is small and seldom read.",
            "Fix hashCode() of the keys: it must differ where equals() does.",
        ],
        WasteKind::LinkedLists => [
            "Elements in nodes of 24 bytes or more each. Freed: what the nodes take beyond\n\
             an ArrayList with an array of exactly that length.",
            "If they are few.",
            "Use ArrayList for lists, ArrayDeque for queues: they are also faster.",
        ],
        WasteKind::ZeroLengthArrays => [
            "Arrays of length 0. Freed: all but one of each type, which can be shared.",
            "If they are few: 16 bytes each.",
            "Keep one in a static final field and return that.",
        ],
        WasteKind::EmptyArrays => [
            "Arrays of references in which all elements are null; except tables of collections.\n\
             Freed: the arrays.",
            "If they are about to be filled.",
            "Allocate an array when there is something to put into it.",
        ],
        WasteKind::SingleElementArrays => [
            "Arrays of references of which one is not null; except tables of collections. Freed:\n\
             the arrays, as if the field referred to the element itself.",
            "If they are about to be filled, or where an interface asks for an array.",
            "Keep the first element in a field of its own, shorten the array.",
        ],
        WasteKind::BoxedNumbers => [
            "Integer, Long and other boxes outside of the JVM's caches. Freed: the boxes,\n\
minus what a long or double takes beyond a reference. `in the range of the caches`\n\
             are those that valueOf() would have shared.",
            "If they are keys of a small map, or null has a meaning.",
            "Use fields and arrays of primitive type, IntStream and OptionalInt, collections\n\
             of primitives (fastutil, Eclipse Collections); valueOf() instead of new.",
        ],
        WasteKind::ConstantFields => [
            "Fields of the program's own classes that are null, zero or equal in at least 99 of\n\
             100 instances, of 100 or more. Freed: what the instances shrink by without these fields, by\n\
             the JVM's layout and alignment. `ratio` is what is left of them.",
            "If the field is filled later, or in other deployments.",
            "Move fields that are seldom set to an object of their own, or to a subclass; make\n\
             a field static that is equal everywhere.",
        ],
        WasteKind::Finalizable => [
            "Objects that are garbage, but wait for finalize(). Freed: what their Finalizers\n\
             retain.",
            "If the finalizer thread is only behind for a moment: `hprof-cli leaks` shows what\n\
             it is doing.",
            "Replace finalize() by close() and java.lang.ref.Cleaner; do not block in it.",
        ],
        WasteKind::DuplicateClasses => [
            "Classes of a name that another class loader has defined before. Freed: what the\n\
             class objects retain, their static fields above all; metaspace is not in the\n\
             dump.",
            "If the applications are separate on purpose.",
            "Put shared libraries into a parent loader. Several loaders of one application are\n\
             a leak after a redeployment: `hprof-cli loaders --duplicates`.",
        ],
        WasteKind::Unreachable => [
            "Unreachable objects: garbage that is not collected yet.",
            "Always, except for the collector's work: it is freed anyway.",
            "Dump live objects only (`jcmd PID GC.heap_dump` without -all); where much garbage\n\
             is normal, look for what allocates it: `hprof-cli sites`, a JFR recording.",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_word_is_broken() {
        for text in WasteKind::ALL.iter().flat_map(|kind| text(*kind)) {
            let lines = indented(text);
            assert!(lines.lines().all(|line| fit::width(line) <= WIDTH), "{lines}");
            assert!(lines.split_whitespace().eq(text.split_whitespace()), "{lines}");
        }
    }
}
