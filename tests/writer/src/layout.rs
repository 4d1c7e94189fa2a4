//! Sizes of objects in a JVM, so that the distances of a model's addresses are realistic.
//!
//! Similar to HotSpot since JDK 15: of each class, the larger primitives first and references last, each
//! at the lowest free offset that is aligned for it, gaps of superclasses included. Fields that the VM
//! injects are ignored. A test that depends on a size states it.

use super::basic::{IdSize, Type};

/// Parameters of object layout in a JVM's heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    /// Offset of an instance's first field.
    pub header: u64,
    /// Offset of an array's first element, before aligning it for the element.
    pub array_header: u64,
    /// Size of a reference in the heap in bytes (in the dump, it is that of an identifier).
    pub reference: u64,
    /// Alignment of objects in bytes.
    pub alignment: u64,
}

impl Layout {
    /// 64-bit with compressed references and class pointers: nearly every server.
    pub const COMPRESSED: Self = Self { header: 12, array_header: 16, reference: 4, alignment: 8 };
    /// 64-bit without compression.
    pub const UNCOMPRESSED: Self = Self { header: 16, array_header: 24, reference: 8, alignment: 8 };
    /// Compressed, with compact object headers (JDK 24 and later).
    pub const COMPACT: Self = Self { header: 8, array_header: 12, reference: 4, alignment: 8 };
    /// A heap of 32 GiB or more with compressed references, which requires alignment to 16 bytes.
    pub const ALIGNED_16: Self = Self { alignment: 16, ..Self::COMPRESSED };
    /// 32-bit.
    pub const BITS_32: Self = Self { header: 8, array_header: 12, reference: 4, alignment: 8 };

    /// Returns the size of a value in the heap in bytes.
    pub fn value_bytes(&self, ty: Type) -> u64 {
        match ty {
            Type::Object => self.reference,
            primitive => u64::from(primitive.bytes(IdSize::Eight)),
        }
    }

    /// Returns the size of an instance in bytes. `chain`: the fields of each class, the topmost
    /// superclass first.
    pub fn instance_bytes(&self, chain: &[&[Type]]) -> u64 {
        let mut used: Vec<bool> = vec![true; usize::try_from(self.header).expect("a small header")];
        for fields in chain {
            let mut sorted: Vec<(bool, u64)> =
                fields.iter().map(|ty| (*ty == Type::Object, self.value_bytes(*ty))).collect();
            sorted.sort_by_key(|&(is_reference, bytes)| (is_reference, std::cmp::Reverse(bytes)));
            for (_, bytes) in sorted {
                place(&mut used, usize::try_from(bytes).expect("at most eight bytes"));
            }
        }
        self.align(used.len() as u64)
    }

    /// Returns the size of an array in bytes.
    pub fn array_bytes(&self, element: Type, count: u32) -> u64 {
        let bytes = self.value_bytes(element);
        self.align(self.array_header.next_multiple_of(bytes) + u64::from(count) * bytes)
    }

    /// Rounds up to the alignment.
    pub fn align(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.alignment)
    }
}

/// Takes the lowest aligned offset with `bytes` free bytes.
fn place(used: &mut Vec<bool>, bytes: usize) {
    let free = |used: &[bool], at: usize| (at..at + bytes).all(|i| used.get(i).is_none_or(|taken| !taken));
    let at = (0..).step_by(bytes).find(|&at| free(used, at)).expect("there is room at the end");
    if used.len() < at + bytes {
        used.resize(at + bytes, false);
    }
    used[at..at + bytes].fill(true);
}
