//! Concatenation of adjacency lists that were encoded separately.

use std::io;

use super::adjacency::{EncodedLists, GROUP, GROUP_BYTES};

/// Joins separately encoded lists into whole groups, so that the output does not depend on where they were
/// split.
#[derive(Debug, Default)]
pub(crate) struct Stitcher {
    /// Bytes of the incomplete group that the next lists continue; empty if all lists so far are.
    open: Vec<u8>,
    is_open: bool,
}

impl Stitcher {
    /// Appends the next lists. Passes the completed groups to `take`: the bytes of one or several, and the
    /// length of each.
    pub(crate) fn append(
        &mut self,
        lists: &EncodedLists,
        mut take: impl FnMut(&[u8], &[u64]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut bytes, mut groups) = (&*lists.bytes, &*lists.groups);
        if lists.first == lists.end {
            return Ok(());
        }
        let length = |group: &u64| usize::try_from(*group).unwrap_or(usize::MAX);
        if !lists.first.is_multiple_of(GROUP)
            && let Some((first, others)) = groups.split_first()
        {
            let (part, rest) = bytes.split_at_checked(length(first)).unwrap_or_default();
            (bytes, groups) = (rest, others);
            self.join(part);
            if groups.is_empty() && !lists.end.is_multiple_of(GROUP) {
                return Ok(());
            }
            self.finish(&mut take)?;
        }
        let mut last: &[u8] = &[];
        if !lists.end.is_multiple_of(GROUP)
            && let Some((group, others)) = groups.split_last()
        {
            let (whole, part) =
                bytes.split_at_checked(bytes.len().saturating_sub(length(group))).unwrap_or_default();
            (bytes, groups, last) = (whole, others, part);
        }
        take(bytes, groups)?;
        if !lists.end.is_multiple_of(GROUP) {
            self.join(last);
        }
        Ok(())
    }

    /// Adds lists to the incomplete group: the lengths of other lists are 0 in their head.
    fn join(&mut self, part: &[u8]) {
        self.is_open = true;
        let Some((head, lists)) = part.split_first_chunk::<GROUP_BYTES>() else { return };
        if self.open.is_empty() {
            self.open.extend_from_slice(part);
            return;
        }
        self.open.iter_mut().zip(head).for_each(|(length, more)| *length |= more);
        self.open.extend_from_slice(lists);
    }

    /// Passes the incomplete group to `take`.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&[u8], &[u64]) -> io::Result<()>) -> io::Result<()> {
        if std::mem::take(&mut self.is_open) {
            take(&self.open, &[self.open.len() as u64])?;
            self.open.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::ops::Range;

    use super::super::adjacency::Encoder;
    use super::*;

    #[test]
    fn lists_encoded_in_parts_are_those_encoded_at_once() {
        let nodes = 500u32;
        let row = |node: u32| -> Vec<u32> {
            match node % 7 {
                _ if (96..160).contains(&node) => Vec::new(),
                0 => (0..nodes).filter(|target| (target ^ node).is_multiple_of(3)).collect(),
                many => (0..many / 2).map(|at| (node * 31 + at * 77) % nodes).collect(),
            }
        };
        let encoded = |nodes: Range<u32>| {
            let mut encoder = Encoder::new(nodes.start, 0);
            nodes.for_each(|node| encoder.push(&mut row(node)));
            encoder.finish()
        };
        let whole = encoded(0..nodes);
        // Runs of one node, of less than a group, of several groups; that end with a group and do not; empty
        // ones.
        for sizes in [&[1][..], &[3], &[16], &[40, 8], &[7, 0, 9, 100, 1, 15, 17]] {
            let (mut stitcher, mut bytes, mut lengths, mut edges) = (Stitcher::default(), vec![], vec![], 0);
            let mut take = |part: &[u8], groups: &[u64]| {
                bytes.extend_from_slice(part);
                lengths.extend_from_slice(groups);
                Ok(())
            };
            let mut at = 0;
            for size in sizes.iter().cycle() {
                let part = encoded(at..nodes.min(at + size));
                at = nodes.min(at + size);
                edges += part.edges;
                stitcher.append(&part, &mut take).unwrap();
                if at == nodes {
                    break;
                }
            }
            stitcher.finish(&mut take).unwrap();
            assert!((&bytes, &lengths, edges) == (&whole.bytes, &whole.groups, whole.edges), "{sizes:?}");
        }
    }
}
