//! A class of the model, and the handles of classes and objects in tests.

use super::basic::{Type, Value};
use super::layout::Layout;

/// A class of a model: the ID of its class object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u64);

/// An object of a model, which can be a class object: its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The null ID.
    pub const NULL: Self = Self(0);
}

impl From<ClassId> for ObjectId {
    fn from(class: ClassId) -> Self {
        Self(class.0)
    }
}

impl From<ObjectId> for Value {
    fn from(object: ObjectId) -> Self {
        Self::Object(object.0)
    }
}

impl From<ClassId> for Value {
    fn from(class: ClassId) -> Self {
        Self::Object(class.0)
    }
}

/// A class: properties that a test may change after adding it, without changing its address or the sizes
/// of its instances.
#[derive(Debug, Clone)]
pub struct ClassDef {
    /// ID.
    pub id: ClassId,
    /// Name in Java source form, which a reader should show.
    pub name: String,
    /// Bytes to write as the name instead of `name`: hidden classes, invalid UTF-8.
    pub stored_name: Option<Vec<u8>>,
    /// Superclass.
    pub superclass: Option<ClassId>,
    /// ID of the class loader, 0 for the boot loader.
    pub loader: u64,
    /// ID of the signers.
    pub signers: u64,
    /// ID of the protection domain.
    pub domain: u64,
    /// The two reserved IDs.
    pub reserved: [u64; 2],
    /// Constant-pool entries.
    pub constants: Vec<(u16, Value)>,
    /// Static fields. Names may repeat, and may be those of VMs: `<resolved_references>`,
    /// `$classOverhead`.
    pub statics: Vec<(String, Value)>,
    /// Instance fields, without those of the superclass.
    pub fields: Vec<(String, Type)>,
    /// Instance size to state instead of that of [`InstanceSize`](super::InstanceSize).
    pub instance_size: Option<u32>,
    /// Stack trace serial number.
    pub trace: u32,
    /// Number of LOAD CLASS records, each with its own serial number.
    pub loads: u32,
    /// Number of CLASS DUMP sub-records.
    pub dumps: u32,
    /// Size of the class object in the heap in bytes.
    pub size: u64,
}

impl ClassDef {
    /// Creates a class that is loaded once and dumped once.
    pub(super) fn new(
        id: ClassId,
        name: &str,
        superclass: Option<ClassId>,
        fields: &[(&str, Type)],
        size: u64,
    ) -> Self {
        Self {
            id,
            name: name.to_owned(),
            stored_name: None,
            superclass,
            loader: 0,
            signers: 0,
            domain: 0,
            reserved: [0; 2],
            constants: Vec::new(),
            statics: Vec::new(),
            fields: fields.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect(),
            instance_size: None,
            trace: 0,
            loads: 1,
            dumps: 1,
            size,
        }
    }

    /// Returns `true` for an array class.
    pub fn is_array(&self) -> bool {
        self.name.ends_with("[]")
    }

    /// Returns the approximate size of a class object with these static fields on JDK 17, in bytes.
    pub(super) fn mirror_bytes(layout: &Layout, statics: &[(&str, Value)]) -> u64 {
        let fixed = if layout.reference == 4 { 112 } else { 160 };
        layout.align(fixed + statics.iter().map(|(_, value)| layout.value_bytes(value.ty())).sum::<u64>())
    }
}
