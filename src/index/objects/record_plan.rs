//! What is known of the record of an object by its class, before it is read: its size, and where its references are.

use crate::model::measurements::array_kind;
use hprof_parser::{BasicType, ObjectId, be_u32};

use crate::layout::fit;
use crate::layout::sizes::Sizes;
use crate::model::summary::{ClassNumber, Summary};
use crate::model::tables::{ClassKind, ClassRow};
use crate::storage::id_map::IdMap;

/// What is known of the instances of a class.
#[derive(Debug)]
pub struct ClassPlan {
    /// The class.
    pub class: ClassNumber,
    /// Where the reference fields that the class itself declares are in the bytes of its fields.
    pub references: Vec<u32>,
    /// Bytes of the fields that the class itself declares; those of superclasses follow.
    bytes: usize,
    /// The nearest superclass that has fields. What a class inherits is not listed again with it: of a hundred thousand
    /// classes, each the superclass of the next, that would be without end.
    above: Option<ClassNumber>,
    /// The size of an instance, if they do not vary.
    pub size: u64,
    /// Where an instance of varying size has the number of words that it is larger.
    pub words: Option<usize>,
}

impl ClassPlan {
    fn new(summary: &Summary, sizes: &Sizes, number: ClassNumber, class: &ClassRow) -> Self {
        let (mut references, mut words, mut bytes) = (Vec::new(), None, 0);
        let varies = fit::is_of_varying_size(summary, class);
        for (name, kind) in summary.fields(class) {
            if kind == BasicType::Object {
                references.push(u32::try_from(bytes).unwrap_or(u32::MAX));
            } else if varies && words.is_none() && kind == BasicType::Int && name == "size" {
                words = Some(bytes);
            }
            bytes += kind.dump_bytes(summary.id_size());
        }
        let above = summary.class_table().superclass_with_fields(number);
        Self { class: number, references, bytes, above, size: sizes.instance(number).0, words }
    }
}

/// The plans of all classes of a dump.
pub struct RecordPlans<'a> {
    summary: &'a Summary,
    sizes: &'a Sizes,
    numbers: IdMap<ObjectId, ClassNumber>,
    /// By class number.
    classes: Vec<ClassPlan>,
    /// Class numbers of primitive arrays, in the order of [`BasicType::PRIMITIVES`].
    primitive: [Option<ClassNumber>; 8],
}

impl<'a> RecordPlans<'a> {
    /// For the objects of a dump.
    pub fn new(summary: &'a Summary, sizes: &'a Sizes) -> Self {
        let primitive = BasicType::PRIMITIVES.map(|element| {
            let mut classes = summary.numbered_classes();
            let of_kind = |class: &ClassRow| class.kind() == ClassKind::PrimitiveArray(element);
            classes.find(|(_, class)| of_kind(class) && class.objects.get() > 0).map(|(number, _)| number)
        });
        let plan = |(number, class)| ClassPlan::new(summary, sizes, number, class);
        let mut classes: Vec<ClassPlan> = summary.numbered_classes().map(plan).collect();
        // There is one such class. Of several in a file that is not right, the first counts.
        let varying = classes.iter_mut().filter(|plan| plan.words.is_some());
        varying.skip(1).for_each(|plan| plan.words = None);
        Self { summary, sizes, numbers: summary.class_ids(), classes, primitive }
    }

    /// The class with this class object.
    #[inline]
    pub fn class(&self, id: ObjectId) -> Option<ClassNumber> {
        self.numbers.get(&id).copied()
    }

    /// The class of arrays of a primitive type.
    #[inline]
    pub fn primitive(&self, element: BasicType) -> Option<ClassNumber> {
        self.primitive.get(array_kind(element).checked_sub(1)?).copied().flatten()
    }

    /// What is known of the instances of a class.
    #[inline]
    pub fn plan(&self, class: ClassNumber) -> Option<&ClassPlan> {
        self.classes.get(class.0 as usize)
    }

    /// The plan of an instance's class, and those of its superclasses that have fields, from its own upwards; each with the
    /// bytes from its own fields on. Each takes some of the bytes, so a long chain of superclasses ends with them.
    #[inline]
    pub fn levels<'s, 'f>(
        &'s self,
        plan: &'s ClassPlan,
        fields: &'f [u8],
    ) -> impl Iterator<Item = (&'s ClassPlan, &'f [u8])> {
        std::iter::successors(Some((plan, fields)), |(plan, fields)| {
            let rest = fields.get(plan.bytes..).unwrap_or_default();
            let above = plan.above.filter(|_| !rest.is_empty())?;
            Some((self.plan(above)?, rest))
        })
    }

    /// The size of an instance with these fields.
    #[inline]
    pub fn instance(&self, plan: &ClassPlan, fields: &[u8]) -> u64 {
        match plan.words {
            Some(at) => self.sizes.stack_chunk(be_u32(fields, at).unwrap_or(0)),
            None => plan.size,
        }
    }

    /// The size of an array.
    #[inline]
    pub fn array(&self, element: BasicType, length: u32) -> u64 {
        self.sizes.layout().array_size(element, length.into())
    }

    /// Whether the CLASS DUMP at this offset is the one that counts: classes can be dumped again.
    pub fn is_counted(&self, class: ClassNumber, offset: usize) -> bool {
        self.summary.class(class).is_some_and(|row| row.offset.get() == offset as u64)
    }
}
