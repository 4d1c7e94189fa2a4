//! A class of the model, and the handles by which tests name classes and objects.

use super::basic::{Type, Value};
use super::layout::Layout;

/// A class of a model: its class object's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u64);

/// An object of a model (a class object, too): its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// No object.
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

/// A class: what a test may change after adding it, without changing its address or its instances' sizes.
#[derive(Debug, Clone)]
pub struct ClassDef {
    /// Object ID of the class object.
    pub id: ClassId,
    /// Name in Java source form, which a reader should show.
    pub name: String,
    /// The bytes to write as its name instead of spelling `name`: hidden classes, invalid UTF-8.
    pub stored_name: Option<Vec<u8>>,
    /// Superclass.
    pub superclass: Option<ClassId>,
    /// The class loader's id, 0 for the boot loader.
    pub loader: u64,
    /// The signers' id.
    pub signers: u64,
    /// The protection domain's id.
    pub domain: u64,
    /// The two reserved ids.
    pub reserved: [u64; 2],
    /// Constant-pool entries.
    pub constants: Vec<(u16, Value)>,
    /// Statics. Names may repeat, and may be those of VMs: `<resolved_references>`, `$classOverhead`.
    pub statics: Vec<(String, Value)>,
    /// Instance fields, the superclass's not included.
    pub fields: Vec<(String, Type)>,
    /// The instance size to state instead of the one that [`InstanceSize`](super::InstanceSize) says.
    pub instance_size: Option<u32>,
    /// Stack trace serial number.
    pub trace: u32,
    /// Number of LOAD CLASS records, each with a serial number of its own.
    pub loads: u32,
    /// Number of CLASS DUMP sub-records.
    pub dumps: u32,
    /// Bytes that its class object takes in the heap.
    pub size: u64,
}

impl ClassDef {
    /// A class that is loaded once and dumped once.
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

    /// Returns whether it is the class of arrays.
    pub fn is_array(&self) -> bool {
        self.name.ends_with("[]")
    }

    /// Bytes that a class object with these statics takes, roughly as on JDK 17.
    pub(super) fn mirror_bytes(layout: &Layout, statics: &[(&str, Value)]) -> u64 {
        let fixed = if layout.reference == 4 { 112 } else { 160 };
        layout.align(fixed + statics.iter().map(|(_, value)| layout.value_bytes(value.ty())).sum::<u64>())
    }
}
