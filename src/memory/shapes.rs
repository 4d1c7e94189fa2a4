//! Mappings known by their shape: thread stacks and the arenas of glibc's `malloc`.

use crate::mappings::{Mapping, Mappings};

/// Alignment and maximum size of an arena of glibc (HEAP_MAX_SIZE in malloc/arena.c) on 64-bit systems.
const ARENA_BYTES: u64 = 64 << 20;
/// Maximum size of the guard below a stack. Those of Java threads have 16 KiB, those of other threads one page.
const MAX_GUARD: u64 = 1 << 20;
/// Minimum size of a stack of which only the number of mappings tells that it is one.
const MIN_STACK: u64 = 128 << 10;
/// Maximum size of a stack.
const MAX_STACK: u64 = 1 << 30;
/// Difference in size that two stacks of one kind may have, because of guards and alignment.
const SLACK: u64 = 32 << 10;
/// Sizes of stacks that are common: of Java threads, and of other threads (`ulimit -s`).
const COMMON: [u64; 3] = [1 << 20, 2 << 20, 8 << 20];

/// Kind of a mapping by its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A thread's stack.
    Stack,
    /// An arena of glibc's `malloc`.
    Arena,
    /// None of these.
    Other,
}

/// Returns the shape of each mapping. `stack_pointers` are addresses in the stacks of threads, sorted; `stack_bytes` is the
/// size of the stacks of Java threads, if it is known.
pub fn shapes(mappings: &Mappings, stack_pointers: &[u64], stack_bytes: Option<u64>) -> Vec<Shape> {
    let all = || mappings.all.iter().enumerate();
    let has_pointer = |mapping: &Mapping| {
        let at = stack_pointers.partition_point(|pointer| *pointer < mapping.range.start);
        stack_pointers.get(at).is_some_and(|pointer| mapping.range.contains(*pointer))
    };
    let mut sizes: Vec<u64> = all()
        .filter(|(_, mapping)| has_pointer(mapping))
        .filter_map(|(at, _)| stack_size(mappings, at))
        .collect();
    sizes.extend(stack_bytes);
    sizes.extend(frequent_sizes(mappings));
    sizes.extend(COMMON);
    sizes.sort_unstable();
    sizes.dedup();
    let is_known = |size: u64| {
        let at = sizes.partition_point(|known| known.saturating_add(SLACK) < size);
        sizes.get(at).is_some_and(|known| size.abs_diff(*known) <= SLACK)
    };
    all()
        .map(|(at, mapping)| {
            if mapping.path.as_deref().is_some_and(|path| path.starts_with("[stack")) {
                return Shape::Stack;
            }
            match stack_size(mappings, at) {
                Some(size) if is_known(size) => Shape::Stack,
                _ if is_arena(mappings, at) => Shape::Arena,
                _ => Shape::Other,
            }
        })
        .collect()
}

/// Minimum number of mappings of one size that are stacks for it: a pool of threads with stacks of their own size.
const FREQUENT: usize = 8;

/// Returns the sizes that many mappings of the shape of a stack have.
fn frequent_sizes(mappings: &Mappings) -> Vec<u64> {
    let mut sizes: Vec<u64> = (0..mappings.all.len())
        .filter_map(|at| stack_size(mappings, at))
        .filter(|size| *size >= MIN_STACK)
        .collect();
    sizes.sort_unstable();
    let same = sizes.chunk_by(|a, b| a == b);
    same.filter(|same| same.len() >= FREQUENT).filter_map(|same| same.first().copied()).collect()
}

/// Returns the size of a mapping with its guard, if the mapping may be a stack: anonymous, writable, directly above a small
/// mapping without access.
fn stack_size(mappings: &Mappings, at: usize) -> Option<u64> {
    let mapping = mappings.all.get(at)?;
    let is_plain = mapping.path.is_none() && mapping.access.is_writable && !mapping.access.is_shared;
    let guard = mappings
        .before(at)
        .filter(|guard| guard.path.is_none() && guard.access.is_none() && guard.range.bytes() <= MAX_GUARD)?;
    let size = mapping.range.bytes().saturating_add(guard.range.bytes());
    (is_plain && size <= MAX_STACK).then_some(size)
}

/// Returns whether a mapping is the used part of an arena: it begins at a multiple of the arenas' size, and a mapping without
/// access fills the rest.
fn is_arena(mappings: &Mappings, at: usize) -> bool {
    let Some(mapping) = mappings.all.get(at) else { return false };
    if mapping.path.is_some()
        || !mapping.access.is_writable
        || !mapping.range.start.is_multiple_of(ARENA_BYTES)
    {
        return false;
    }
    let is_full = mapping.range.bytes() == ARENA_BYTES;
    is_full
        || mappings.after(at).is_some_and(|rest| {
            let bytes = rest.range.end.saturating_sub(mapping.range.start);
            rest.access.is_none() && rest.path.is_none() && bytes == ARENA_BYTES
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_have_guards_and_arenas_are_aligned() {
        let text = "7f0000000000-7f0000004000 ---p 0 00:00 0\n7f0000004000-7f0000100000 rw-p 0 00:00 0\n\
            7f0000100000-7f0002000000 rw-p 0 00:00 0\n7f0004000000-7f0004021000 rw-p 0 00:00 0\n\
            7f0004021000-7f0008000000 ---p 0 00:00 0\n7f0009000000-7f0009001000 ---p 0 00:00 0\n\
            7f0009001000-7f0009301000 rw-p 0 00:00 0\n7ffc00000000-7ffc00021000 rw-p 0 00:00 0 [stack]\n";
        let mappings = Mappings::parse(text.as_bytes());
        let found = shapes(&mappings, &[], None);
        use Shape::{Arena, Other, Stack};
        assert_eq!(found, [Other, Stack, Other, Arena, Other, Other, Other, Stack]);
        // A stack of an unusual size is known by a stack pointer in it.
        let found = shapes(&mappings, &[0x7f00_0930_0f00], None);
        assert_eq!(found[6], Stack);
    }
}
