//! Names of classes without a name record: from another dump of the same program, or from their fields.
//!
//! Object IDs of classes differ between two runs of a JVM, but their fields and superclasses do not. A class gets a name only
//! if exactly one class of the other dump can be the same class, and vice versa. Array classes are indistinguishable; `arrays`
//! finds them by the fields that refer to them.

use std::collections::BTreeMap;

use hprof_index::storage::id_map::IdSet;
use hprof_values::ObjectId;

use super::arrays;
use super::shapes::{ClassShape, DumpClasses, Member};

/// Maximum number of pairs of classes that are compared.
const MAX_COMPARED: u64 = 20_000_000;
/// Maximum number of rounds; each can use the matches of the previous round.
const ROUNDS: usize = 32;

/// Matcher of the classes of this dump with the classes of another dump.
struct Matcher<'s, 'a> {
    ours: &'s [ClassShape<'a>],
    theirs: &'s [ClassShape<'a>],
    /// By class number in this dump: number of the same class in the other dump.
    of_ours: Vec<Option<usize>>,
    of_theirs: Vec<Option<usize>>,
    compared: u64,
}

/// Returns, for each class of this dump, the number of the same class in the other dump, if exactly one can be the same.
fn match_classes(ours: &[ClassShape<'_>], theirs: &[ClassShape<'_>]) -> Vec<Option<usize>> {
    let mut matcher = Matcher {
        ours,
        theirs,
        of_ours: vec![None; ours.len()],
        of_theirs: vec![None; theirs.len()],
        compared: 0,
    };
    matcher.pair_named();
    for _ in 0..ROUNDS {
        if !(matcher.pair_unique() | matcher.pair_superclasses()) {
            break;
        }
    }
    matcher.of_ours
}

impl Matcher<'_, '_> {
    fn pair(&mut self, our: usize, their: usize) {
        if let (Some(of_our @ None), Some(of_their @ None)) =
            (self.of_ours.get_mut(our), self.of_theirs.get_mut(their))
        {
            *of_our = Some(their);
            *of_their = Some(our);
        }
    }

    /// Pairs classes whose name occurs once in each dump.
    fn pair_named(&mut self) {
        let unique = |shapes: &[ClassShape<'_>]| {
            let mut numbers: std::collections::HashMap<Vec<u8>, Option<usize>> = Default::default();
            for (number, name) in shapes.iter().enumerate().filter_map(|(n, shape)| Some((n, shape.name?))) {
                numbers.entry(name.to_vec()).and_modify(|one| *one = None).or_insert(Some(number));
            }
            numbers
        };
        let theirs = unique(self.theirs);
        let mut pairs: Vec<(usize, usize)> = (unique(self.ours).into_iter())
            .filter_map(|(name, our)| Some((our?, (*theirs.get(&name)?)?)))
            .collect();
        pairs.sort_unstable();
        pairs.into_iter().for_each(|(our, their)| self.pair(our, their));
    }

    /// Pairs unmatched classes that are each other's only candidate. Returns whether it paired any.
    fn pair_unique(&mut self) -> bool {
        // In a fixed order: the number of comparisons is limited.
        let mut groups: BTreeMap<u64, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (number, shape) in
            self.ours.iter().enumerate().filter(|(our, _)| self.of_ours.get(*our) == Some(&None))
        {
            groups.entry(types_hash(shape)).or_default().0.push(number);
        }
        for (number, shape) in self.theirs.iter().enumerate() {
            if self.of_theirs.get(number) == Some(&None) {
                groups.entry(types_hash(shape)).or_default().1.push(number);
            }
        }
        let mut pairs = Vec::new();
        for (ours, theirs) in groups.values() {
            for &our in ours {
                let Some(their) = self.single_candidate(theirs, |of, their| of.can_be(our, their)) else {
                    continue;
                };
                if self.single_candidate(ours, |of, our| of.can_be(our, their)) == Some(our) {
                    pairs.push((our, their));
                }
            }
        }
        // The order of groups has no effect: all pairs of a round are found before any is recorded.
        pairs.iter().for_each(|(our, their)| self.pair(*our, *their));
        !pairs.is_empty()
    }

    /// Returns the only candidate that is accepted.
    fn single_candidate(
        &mut self,
        candidates: &[usize],
        accepts: impl Fn(&Self, usize) -> bool,
    ) -> Option<usize> {
        let mut found = None;
        for &candidate in candidates {
            self.compared += 1;
            if self.compared > MAX_COMPARED {
                return None;
            }
            if accepts(self, candidate) && found.replace(candidate).is_some() {
                return None;
            }
        }
        found
    }

    /// Pairs the superclasses of paired classes. Returns whether it paired any.
    fn pair_superclasses(&mut self) -> bool {
        let mut pairs = Vec::new();
        for (our, their) in self.of_ours.iter().enumerate().filter_map(|(our, their)| Some((our, (*their)?)))
        {
            let above = |shapes: &[ClassShape<'_>], number: usize| shapes.get(number)?.superclass;
            let (Some(our), Some(their)) = (above(self.ours, our), above(self.theirs, their)) else {
                continue;
            };
            let is_free = self.of_ours.get(our) == Some(&None) && self.of_theirs.get(their) == Some(&None);
            if is_free && self.are_alike(our, their) {
                pairs.push((our, their));
            }
        }
        pairs.iter().for_each(|(our, their)| self.pair(*our, *their));
        !pairs.is_empty()
    }

    /// Returns `true` if two classes can be the same, including their superclasses.
    fn can_be(&self, our: usize, their: usize) -> bool {
        if !self.are_alike(our, their) {
            return false;
        }
        let (Some(ours), Some(theirs)) = (self.ours.get(our), self.theirs.get(their)) else { return false };
        match (ours.superclass, theirs.superclass) {
            (None, None) => ours.super_id.is_null() == theirs.super_id.is_null(),
            (Some(our), Some(their)) => match self.of_ours.get(our) {
                Some(Some(known)) => *known == their,
                _ => self.of_theirs.get(their) == Some(&None) && self.are_alike(our, their),
            },
            _ => false,
        }
    }

    /// Returns `true` if two classes are alike, regardless of their superclasses.
    fn are_alike(&self, our: usize, their: usize) -> bool {
        let (Some(ours), Some(theirs)) = (self.ours.get(our), self.theirs.get(their)) else { return false };
        let Some(name) = theirs.name else { return false };
        // A class without arrays may still be an array class.
        (ours.is_listed && theirs.is_listed)
            && ours.is_of_boot_loader == theirs.is_of_boot_loader
            && (!ours.is_array || name.starts_with(b"["))
            && ours.serial_version == theirs.serial_version
            && are_same(&ours.fields, &theirs.fields)
            && are_same(&ours.statics, &theirs.statics)
    }
}

/// Returns `true` if the members are the same; a missing name matches any name.
fn are_same(ours: &[Member<'_>], theirs: &[Member<'_>]) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(our, their)| {
            our.kind == their.kind && (our.name.is_none() || their.name.is_none() || our.name == their.name)
        })
}

/// Returns a hash of the types of a class's members.
fn types_hash(shape: &ClassShape<'_>) -> u64 {
    let mut types: Vec<u8> = vec![u8::from(shape.is_of_boot_loader)];
    types.extend(shape.fields.iter().map(|field| field.kind.code()));
    types.push(0);
    types.extend(shape.statics.iter().map(|field| field.kind.code()));
    xxhash_rust::xxh3::xxh3_64(&types)
}

/// Names that are added to a recovered dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NewNames {
    /// Classes without a name, and their names as stored in a dump.
    pub(super) classes: Vec<(ObjectId, Vec<u8>)>,
    /// String IDs of members whose name is missing, and their new names.
    pub(super) members: Vec<(u64, Vec<u8>)>,
    /// Number of classes that are named after their fields.
    pub(super) by_shape: u64,
    /// Number of classes whose names were taken from another dump.
    pub(super) by_other: u64,
}

/// Returns names for the classes that have none, and for their fields.
pub(super) fn new_names(ours: &DumpClasses<'_, '_>, theirs: Option<&DumpClasses<'_, '_>>) -> NewNames {
    let mut new = NewNames::default();
    let pairs = theirs.map_or_else(Vec::new, |theirs| {
        let mut pairs = match_classes(&ours.shapes, &theirs.shapes);
        arrays::add_arrays(ours, theirs, &mut pairs);
        pairs
    });
    let theirs_of = |our: usize| theirs?.shapes.get((*pairs.get(our)?)?);
    let ours = &ours.shapes;
    let mut topmost = ours.iter().filter(|shape| shape.super_id.is_null());
    let object = topmost.next().filter(|_| topmost.next().is_none()).map(|shape| shape.id);
    let mut known_members: IdSet<u64> = IdSet::default();
    for (number, shape) in ours.iter().enumerate() {
        let other = theirs_of(number);
        if let Some(other) = other {
            let members = [(&shape.fields, &other.fields), (&shape.statics, &other.statics)];
            for (our, their) in members.into_iter().flat_map(|(ours, theirs)| ours.iter().zip(theirs)) {
                if let (None, Some(name)) = (our.name, their.name)
                    && known_members.insert(our.string)
                {
                    new.members.push((our.string, name.to_vec()));
                }
            }
        }
        if shape.name.is_some() {
            continue;
        }
        let name = if let Some(name) = other.and_then(|other| other.name) {
            new.by_other += 1;
            name.to_vec()
        } else if object == Some(shape.id) {
            // The only class without a superclass.
            b"java/lang/Object".to_vec()
        } else {
            new.by_shape += 1;
            shape_name(shape, new.by_shape)
        };
        new.classes.push((shape.id, name));
    }
    for member in ours.iter().flat_map(|shape| shape.fields.iter().chain(&shape.statics)) {
        if member.name.is_none() && member.string != 0 && known_members.insert(member.string) {
            let name = format!("unnamed{}", known_members.len());
            new.members.push((member.string, name.into_bytes()));
        }
    }
    new
}

/// Maximum number of fields in the name of a class.
const NAMED_FIELDS: usize = 6;
/// Maximum number of characters of a field's name in it.
const NAMED_CHARS: usize = 24;

/// Returns a name after the fields of a class, which no program uses: `unnamed.ClassN_FIELD_FIELD`.
fn shape_name(shape: &ClassShape<'_>, number: u64) -> Vec<u8> {
    let mut name = format!("unnamed/Class{number}");
    for field in shape.fields.iter().take(NAMED_FIELDS) {
        let known = field.name.map(|name| hprof_parser::mutf8::decode(name));
        let text = known.as_deref().unwrap_or(field.kind.java_name());
        name.push('_');
        name.extend(text.chars().filter(char::is_ascii_alphanumeric).take(NAMED_CHARS));
    }
    if shape.is_array { format!("[L{name};").into_bytes() } else { name.into_bytes() }
}
