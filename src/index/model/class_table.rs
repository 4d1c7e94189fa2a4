//! Class table: superclasses, subclasses, and the number of bytes of an instance that each class declares.
//!
//! A dump can state cyclic superclasses, and chains of superclasses as long as the number of classes. Cycles
//! are cut here, once, at the first class visited; every traversal of the hierarchy uses this table and
//! terminates. Inherited members are not listed again for a class: for a long chain the lists would grow with
//! the square of its length.

use super::tables::{ClassNumber, NONE};

/// Class hierarchy by class number, without cycles.
#[derive(Debug, Clone)]
pub struct ClassTable {
    /// Superclass by class number; NONE if there is none, or if it would close a cycle.
    superclasses: Vec<u32>,
    /// All classes, superclasses before their subclasses.
    order: Vec<u32>,
    /// Subclasses of each class, concatenated.
    subclasses: Vec<u32>,
    /// Start of each class's subclasses in `subclasses`, by class number, followed by the end.
    starts: Vec<u32>,
    /// Nearest superclass that declares fields, by class number, or NONE.
    above: Vec<u32>,
    /// Size of the fields that a class declares, and of all its fields with inherited ones, in bytes, by
    /// class number.
    field_bytes: Vec<(u32, u64)>,
}

impl ClassTable {
    /// Creates the table of classes with these superclasses, as stated by the dump (NONE for none), and these
    /// sizes of declared fields, both by class number.
    pub(crate) fn new(mut superclasses: Vec<u32>, own_bytes: Vec<u32>) -> Self {
        let count = superclasses.len();
        superclasses.iter_mut().filter(|class| **class as usize >= count).for_each(|class| *class = NONE);
        let tops = (0u32..).zip(&superclasses).filter(|(_, superclass)| **superclass == NONE);
        let mut stack: Vec<u32> = tops.map(|(class, _)| class).collect();
        stack.extend(cut_circles(&mut superclasses));
        stack.reverse();
        let (subclasses, starts) = subclasses_of(&superclasses);
        let mut order = Vec::with_capacity(superclasses.len());
        while let Some(class) = stack.pop() {
            order.push(class);
            stack.extend(row(&subclasses, &starts, class).iter().rev());
        }
        let mut table =
            Self { superclasses, order, subclasses, starts, above: Vec::new(), field_bytes: Vec::new() };
        let own = |class: ClassNumber| own_bytes.get(class.0 as usize).copied().unwrap_or(0);
        table.field_bytes = table.derive(|class, above: Option<&(u32, u64)>| {
            let inherited = above.map_or(0, |(_, bytes)| *bytes);
            (own(class), inherited.saturating_add(own(class).into()))
        });
        // By class number: the class itself if it declares fields, or the nearest superclass that does.
        let nearest = table.derive(
            |class, above| {
                if own(class) > 0 { class.0 } else { above.copied().unwrap_or(NONE) }
            },
        );
        let nearest_of = |superclass: &u32| nearest.get(*superclass as usize).copied().unwrap_or(NONE);
        table.above = table.superclasses.iter().map(nearest_of).collect();
        table
    }

    /// Returns the superclass; `None` if it has none or was cut from a cycle.
    pub fn superclass(&self, class: ClassNumber) -> Option<ClassNumber> {
        number(&self.superclasses, class)
    }

    /// Returns the nearest superclass that declares fields: the class whose fields follow in an instance.
    #[inline]
    pub fn superclass_with_fields(&self, class: ClassNumber) -> Option<ClassNumber> {
        number(&self.above, class)
    }

    /// Returns the size in an instance of the fields that a class itself declares, in bytes.
    #[inline]
    pub fn own_field_bytes(&self, class: ClassNumber) -> u32 {
        self.field_bytes.get(class.0 as usize).map_or(0, |(own, _)| *own)
    }

    /// Returns the size in an instance of all fields of a class, including inherited ones, in bytes.
    #[inline]
    pub fn bytes(&self, class: ClassNumber) -> u64 {
        self.field_bytes.get(class.0 as usize).map_or(0, |(_, bytes)| *bytes)
    }

    /// Returns a class and all its superclasses, from the class upwards.
    pub fn upwards(&self, class: ClassNumber) -> impl Iterator<Item = ClassNumber> + '_ {
        std::iter::successors(Some(class), |class| self.superclass(*class))
    }

    /// Returns the direct subclasses of a class, by class number.
    pub fn subclasses(&self, class: ClassNumber) -> impl ExactSizeIterator<Item = ClassNumber> + '_ {
        row(&self.subclasses, &self.starts, class.0).iter().copied().map(ClassNumber)
    }

    /// Returns all classes, superclasses before their subclasses.
    pub fn top_down(&self) -> impl DoubleEndedIterator<Item = ClassNumber> + '_ {
        self.order.iter().copied().map(ClassNumber)
    }

    /// Computes a value for each class from that of its superclass; by class number.
    pub fn derive<T>(&self, mut make: impl FnMut(ClassNumber, Option<&T>) -> T) -> Vec<T> {
        let mut made: Vec<Option<T>> = self.superclasses.iter().map(|_| None).collect();
        for class in self.top_down() {
            let above = self.superclass(class).and_then(|above| made.get(above.0 as usize)?.as_ref());
            let own = make(class, above);
            if let Some(place) = made.get_mut(class.0 as usize) {
                *place = Some(own);
            }
        }
        // Each class is in the order once.
        made.into_iter().flatten().collect()
    }

    /// Returns the value of each class, inherited from the nearest superclass with a value if it has none of
    /// its own; by class number.
    pub fn inherit<T: Copy>(&self, own: &[Option<T>]) -> Vec<Option<T>> {
        self.derive(|class, above: Option<&Option<T>>| {
            own.get(class.0 as usize).copied().flatten().or_else(|| above.copied().flatten())
        })
    }

    /// Adds all subclasses to a set of classes, by class number.
    pub fn add_subclasses(&self, classes: &mut [bool]) {
        for class in self.top_down() {
            let above = self.superclass(class).and_then(|above| classes.get(above.0 as usize)).copied();
            if let (Some(true), Some(class)) = (above, classes.get_mut(class.0 as usize)) {
                *class = true;
            }
        }
    }

    /// Returns the sum over each class and all its subclasses, by class number.
    pub fn totals(&self, mut own: Vec<u64>) -> Vec<u64> {
        for class in self.top_down().rev() {
            let sum = own.get(class.0 as usize).copied().unwrap_or(0);
            if let Some(above) = self.superclass(class).and_then(|above| own.get_mut(above.0 as usize)) {
                *above = above.saturating_add(sum);
            }
        }
        own
    }
}

#[inline]
fn number(column: &[u32], class: ClassNumber) -> Option<ClassNumber> {
    column.get(class.0 as usize).copied().filter(|number| *number != NONE).map(ClassNumber)
}

/// Removes the superclass of one class of each cycle, and returns those classes.
fn cut_circles(superclasses: &mut [u32]) -> Vec<u32> {
    // By class: the walk that visited it, from 1.
    let mut met = vec![0u32; superclasses.len()];
    let mut cut = Vec::new();
    for walk in (1u32..).take(superclasses.len()) {
        let mut class = walk - 1;
        while let Some(place) = met.get_mut(class as usize)
            && *place == 0
        {
            *place = walk;
            let above = superclasses.get(class as usize).copied().unwrap_or(NONE);
            if met.get(above as usize) == Some(&walk)
                && let Some(superclass) = superclasses.get_mut(above as usize)
            {
                *superclass = NONE;
                cut.push(above);
                break;
            }
            class = above;
        }
    }
    cut
}

/// Returns the subclasses of each class, concatenated, and the start of each class's subclasses.
fn subclasses_of(superclasses: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut pairs: Vec<(u32, u32)> =
        (0u32..).zip(superclasses).map(|(class, superclass)| (*superclass, class)).collect();
    pairs.retain(|(superclass, _)| *superclass != NONE);
    pairs.sort_unstable();
    let mut starts = Vec::with_capacity(superclasses.len() + 1);
    let mut at = 0u32;
    let mut rest = pairs.iter().peekable();
    for class in (0u32..).take(superclasses.len()) {
        starts.push(at);
        while rest.next_if(|(superclass, _)| *superclass == class).is_some() {
            at += 1;
        }
    }
    starts.push(at);
    (pairs.into_iter().map(|(_, class)| class).collect(), starts)
}

fn row<'a>(subclasses: &'a [u32], starts: &[u32], class: u32) -> &'a [u32] {
    let place = |at: usize| starts.get(at).map_or(0, |start| *start as usize);
    let at = class as usize;
    subclasses.get(place(at)..place(at.saturating_add(1))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(superclasses: Vec<u32>) -> ClassTable {
        let own_bytes = (0u32..).take(superclasses.len()).map(|class| class % 2).collect();
        ClassTable::new(superclasses, own_bytes)
    }

    #[test]
    fn circles_are_cut_and_chains_are_long() {
        // 0 <- 1 <- 2, 3 <-> 4 <- 5, 6 is its own superclass, the superclass of 7 does not exist.
        let hierarchy = table(vec![NONE, 0, 1, 4, 3, 4, 6, NONE]);
        let order: Vec<u32> = hierarchy.top_down().map(|class| class.0).collect();
        assert_eq!(order, [0, 1, 2, 7, 3, 4, 5, 6]);
        let parents: Vec<Option<u32>> =
            (0..8).map(|class| hierarchy.superclass(ClassNumber(class)).map(|class| class.0)).collect();
        assert_eq!(parents, [None, Some(0), Some(1), None, Some(3), Some(4), None, None]);
        assert_eq!(hierarchy.totals(vec![1; 8]), [3, 2, 1, 3, 2, 1, 1, 1]);
        let mut below = vec![false, false, false, false, true, false, false, false];
        hierarchy.add_subclasses(&mut below);
        assert_eq!(below, [false, false, false, false, true, true, false, false]);

        let chain = table((0..100_000u32).map(|class| class.checked_sub(1).unwrap_or(NONE)).collect());
        assert_eq!(chain.totals(vec![1; 100_000]).first(), Some(&100_000));
        let circle = table((0..100_000u32).map(|class| (class + 1) % 100_000).collect());
        assert_eq!((circle.order.len(), circle.superclass(ClassNumber(0))), (100_000, None));
    }

    #[test]
    fn only_circles_are_cut_and_superclasses_that_are_not_there_are_none() {
        // 0 is below the cycle of 2 and 3.
        for (stated, kept) in [
            (vec![1, 2, NONE], vec![1, 2, NONE]),
            (vec![1, 2, 0], vec![NONE, 2, 0]),
            (vec![0, 0, 1], vec![NONE, 0, 1]),
            (vec![2, NONE, 3, 2, 1], vec![2, NONE, NONE, 2, 1]),
            (vec![9, 0], vec![NONE, 0]),
        ] {
            let table = table(stated.clone());
            assert_eq!(table.superclasses, kept, "{stated:?}");
            assert_eq!(table.order.len(), stated.len(), "{stated:?}");
        }
    }

    #[test]
    fn fields_are_those_of_the_class_and_of_superclasses_that_have_some() {
        // 4 -> 3 -> 2 -> 1 -> 0; each class with an odd number has a byte.
        let table = table(vec![NONE, 0, 1, 2, 3]);
        let above = |class| table.superclass_with_fields(ClassNumber(class)).map(|class| class.0);
        assert_eq!([0, 1, 2, 3, 4].map(above), [None, None, Some(1), Some(1), Some(3)]);
        assert_eq!([0, 1, 2, 3, 4].map(|class| table.bytes(ClassNumber(class))), [0, 1, 1, 2, 2]);
        let own = [None, Some('a'), None, Some('b'), None];
        assert_eq!(table.inherit(&own), [None, Some('a'), Some('a'), Some('b'), Some('b')]);
    }
}
