//! Pass over all arrays of bytes and chars, which contain the texts of Strings, builders and buffers.

use std::ops::Range;

use hprof_index::graph::numbers::{ObjectIndex, chunks};
use hprof_index::model::tables::ClassKind;
use hprof_index::objects::object_table::BLOCK;
use hprof_values::BasicType;

use hprof_base::parallel;
use hprof_model::objects::reader::{ObjectReader, ObjectVisitor, PrimitiveArray};
use hprof_model::secret_rules::search::{Scratch, TextFinding, TextSearch};

/// Minimum number of objects per chunk.
const CHUNK: u32 = 1 << 16;
/// Maximum number of chunks.
const MAX_CHUNKS: u32 = 1 << 10;
/// Maximum number of findings in a chunk, and of names in it.
const MAX_FOUND: usize = 1 << 13;
/// Maximum number of names of all chunks that are looked up.
const MAX_NAMES: usize = 1 << 20;
/// Number of chunks for each thread that are searched before their findings are merged.
const BATCH: usize = 16;

/// Results of the pass over the arrays.
#[derive(Debug, Default)]
pub(super) struct SecretArrayFindings {
    /// Arrays that contain nothing but a name that indicates a secret value.
    pub(super) names: Vec<ObjectIndex>,
    /// Number of findings, names and parts of texts that were omitted because of limits.
    pub(super) omitted: u64,
    /// Secrets in a chunk, by array.
    found: Vec<TextFinding>,
}

/// Reads all arrays of bytes and chars, and calls `add` with the secrets, by array.
pub(super) fn read(
    objects: &ObjectReader<'_>,
    search: &TextSearch<'_>,
    mut add: impl FnMut(TextFinding),
) -> SecretArrayFindings {
    let graph = objects.graph;
    // The element type is in the record; the class alone is enough to skip the blocks without any.
    let is_array: Vec<bool> = objects
        .summary
        .classes()
        .iter()
        .map(|class| {
            let name = objects.summary.class_name(class);
            class.kind() != ClassKind::Instance && matches!(name, "byte[]" | "char[]")
        })
        .collect();
    let count = graph.objects.len();
    let all = chunks(0..count, CHUNK.max((count / MAX_CHUNKS).next_multiple_of(BLOCK)));
    let chunk = |chunk: Range<u32>| {
        let mut pass =
            ArrayVisitor { search, scratch: Scratch::default(), findings: SecretArrayFindings::default() };
        for block in chunk.start / BLOCK..chunk.end.div_ceil(BLOCK) {
            let first = ObjectIndex(block * BLOCK);
            let range = first..ObjectIndex(first.0.saturating_add(BLOCK).min(chunk.end));
            let mut wanted = 0u64;
            for (bit, class) in graph.objects.classes(range).enumerate() {
                let is_wanted = class.is_some_and(|class| is_array.get(class.0 as usize) == Some(&true));
                wanted |= u64::from(is_wanted) << bit;
            }
            if wanted != 0 {
                objects.visit_block(first, wanted, &mut pass);
            }
        }
        pass.findings.omitted += pass.scratch.omitted;
        pass.findings
    };
    let mut read = SecretArrayFindings::default();
    for batch in all.chunks(rayon::current_num_threads().saturating_mul(BATCH).max(1)) {
        for some in parallel::map(batch, chunk) {
            some.found.into_iter().for_each(&mut add);
            let room = MAX_NAMES.saturating_sub(read.names.len());
            read.omitted += some.omitted + some.names.len().saturating_sub(room) as u64;
            read.names.extend(some.names.into_iter().take(room));
        }
    }
    read
}

/// Visitor of arrays.
struct ArrayVisitor<'v> {
    search: &'v TextSearch<'v>,
    scratch: Scratch,
    findings: SecretArrayFindings,
}

impl<'a> ObjectVisitor<'a> for ArrayVisitor<'_> {
    #[inline(always)]
    fn primitive_array(&mut self, object: ObjectIndex, record: PrimitiveArray<'a>) {
        if !matches!(record.element, BasicType::Byte | BasicType::Char) {
            return;
        }
        let Some(elements) = record.elements else { return };
        let SecretArrayFindings { found, names, omitted } = &mut self.findings;
        // Findings of a chunk beyond the limit are dropped: searching for them would waste time.
        self.scratch.is_full = found.len() >= MAX_FOUND;
        let mut add = |finding| {
            if found.len() < MAX_FOUND {
                found.push(finding);
            } else {
                *omitted += 1;
            }
        };
        let is_name = self.search.array(record.element, elements, object.0, &mut self.scratch, &mut add);
        match is_name {
            true if names.len() < MAX_FOUND => names.push(object),
            // Its value is not searched.
            true => *omitted += 1,
            false => {}
        }
    }
}
