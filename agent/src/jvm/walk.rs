//! Walks over the heap.
//!
//! Walks run on the JVM's own thread while all other threads are suspended. A visitor must neither call the JVM nor wait for
//! anything that a thread of the program may hold.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jvmti_bindings::sys::jni::{jint, jlong, jvalue};
use jvmti_bindings::sys::jvmti as sys;

use super::env::Jvmti;
use super::jni::Ref;
use super::{Error, Result};

/// Kind of a reference or root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// Reference from an object to its class object.
    Class,
    /// Reference in an instance field, with the JVM TI number of the field.
    Field(i32),
    /// Reference in an array, with the index of the element.
    Element(i32),
    /// Reference from a class to its loader.
    ClassLoader,
    /// Reference from a class to its signers.
    Signers,
    /// Reference from a class to its protection domain.
    ProtectionDomain,
    /// Reference from a class to an interface.
    Interface,
    /// Reference in a static field, with the JVM TI number of the field.
    StaticField(i32),
    /// Reference in a constant pool, with the index of the entry.
    ConstantPool(i32),
    /// Reference from a class to its superclass.
    Superclass,
    /// Root: a global JNI reference.
    JniGlobal,
    /// Root: a class of the boot loader.
    SystemClass,
    /// Root: a monitor.
    Monitor,
    /// Root: a local variable, with the tag of its thread and the depth of the frame.
    StackLocal(i64, i32),
    /// Root: a local JNI reference, with the tag of its thread, the depth of the frame, and whether it belongs to a method.
    JniLocal(i64, i32, bool),
    /// Root: a thread.
    Thread,
    /// Root or reference of any other kind.
    Other,
}

/// Tag of an object that a callback can change; the JVM stores it.
#[derive(Debug)]
pub struct TagSlot(*mut jlong);

impl TagSlot {
    /// Returns the tag of the object; 0 for none.
    #[inline]
    pub fn get(&self) -> i64 {
        // SAFETY: The JVM provides the memory for the tag for the duration of the callback. Two slots may point to the same
        // memory, so it is not borrowed.
        unsafe { *self.0 }
    }

    /// Sets the tag of the object.
    #[inline]
    pub fn set(&self, tag: i64) {
        // SAFETY: As in `get`.
        unsafe { *self.0 = tag }
    }
}

/// Reference or root that a walk reports.
#[derive(Debug)]
pub struct Reference<'t> {
    /// Kind of the reference or root.
    pub kind: ReferenceKind,
    /// Tag of the referent.
    pub tag: &'t TagSlot,
    /// Tag of the referent's class.
    pub class: i64,
    /// Size of the referent in bytes.
    pub size: u64,
    /// Length of the referent, if it is an array.
    pub length: Option<u32>,
    /// Tag of the referrer; `None` for roots.
    pub referrer: Option<&'t TagSlot>,
    /// Tag of the referrer's class.
    pub referrer_class: i64,
}

/// Continuation of a walk after a reported object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkControl {
    /// Follow the references of the object, unless they were already followed.
    Visit,
    /// Do not follow the references of the object.
    Skip,
    /// End the walk.
    Abort,
}

impl WalkControl {
    const fn raw(self) -> jint {
        match self {
            Self::Visit => 0x100,
            Self::Skip => 0,
            Self::Abort => 0x8000,
        }
    }
}

/// Value of a primitive field: big-endian bytes at the start of the array, and their number.
pub type PrimitiveBytes = ([u8; 8], usize);

/// Receiver of the results of a walk. Methods that a visitor does not need have default implementations.
pub trait Visitor {
    /// Visits a reference or root.
    fn reference(&mut self, _reference: &Reference<'_>) -> WalkControl {
        WalkControl::Skip
    }

    /// Visits a primitive field, given whether it is static, its number, the tag of its object, the tag of the object's class,
    /// and its value.
    fn field(
        &mut self,
        _is_static: bool,
        _index: i32,
        _object: &TagSlot,
        _class: i64,
        _value: PrimitiveBytes,
    ) -> WalkControl {
        WalkControl::Skip
    }

    /// Visits an array of primitive values, given its tag, the signature of its elements, their number, and their bytes in
    /// native byte order.
    fn array(&mut self, _object: &TagSlot, _element: u8, _count: u32, _bytes: &[u8]) -> WalkControl {
        WalkControl::Skip
    }

    /// Visits an object of an iteration, given its tag, the tag of its class, its size in bytes, and its length if it is an
    /// array.
    fn object(&mut self, object: &TagSlot, class: i64, size: u64, length: Option<u32>) -> WalkControl;
}

/// State of a walk, which callbacks receive as a pointer.
struct CallbackData<'v> {
    visitor: &'v mut dyn Visitor,
    panic: Option<Box<dyn Any + Send>>,
}

impl CallbackData<'_> {
    /// Calls the visitor. A panic ends the walk, and is resumed afterwards.
    fn run(&mut self, visit: impl FnOnce(&mut dyn Visitor) -> WalkControl) -> jint {
        match catch_unwind(AssertUnwindSafe(|| visit(self.visitor))) {
            Ok(then) => then.raw(),
            Err(panic) => {
                self.panic = Some(panic);
                WalkControl::Abort.raw()
            }
        }
    }
}

impl Jvmti {
    /// Follows references from the roots, or from one object.
    ///
    /// # Errors
    /// Errors of JVM TI.
    pub fn follow(self, from: Option<Ref<'_>>, visitor: &mut dyn Visitor) -> Result<()> {
        let callbacks = sys::jvmtiHeapCallbacks {
            heap_reference_callback: Some(reference),
            primitive_field_callback: Some(primitive_field),
            array_primitive_value_callback: Some(primitive_array),
            ..Default::default()
        };
        walk(visitor, |data| self.follow_references(0, from, &callbacks, data))
    }

    /// Removes the tags of all objects.
    ///
    /// # Errors
    /// Errors of JVM TI.
    pub fn clear_tags(self) -> Result<()> {
        /// `JVMTI_HEAP_FILTER_UNTAGGED`: reports only objects with tags.
        const UNTAGGED: i32 = 0x8;
        struct Clear;
        impl Visitor for Clear {
            fn object(&mut self, object: &TagSlot, _: i64, _: u64, _: Option<u32>) -> WalkControl {
                object.set(0);
                WalkControl::Visit
            }
        }
        let callbacks =
            sys::jvmtiHeapCallbacks { heap_iteration_callback: Some(iteration), ..Default::default() };
        walk(&mut Clear, |data| self.iterate_through_heap(UNTAGGED, &callbacks, data))
    }

    /// Visits all objects of the heap, including unreachable ones.
    ///
    /// # Errors
    /// Errors of JVM TI.
    pub fn iterate(self, visitor: &mut dyn Visitor) -> Result<()> {
        let callbacks =
            sys::jvmtiHeapCallbacks { heap_iteration_callback: Some(iteration), ..Default::default() };
        walk(visitor, |data| self.iterate_through_heap(0, &callbacks, data))
    }
}

fn walk(visitor: &mut dyn Visitor, run: impl FnOnce(*mut c_void) -> Result<()>) -> Result<()> {
    let mut walk = CallbackData { visitor, panic: None };
    let done: std::result::Result<(), Error> = run((&raw mut walk).cast());
    if let Some(panic) = walk.panic {
        std::panic::resume_unwind(panic);
    }
    done
}

/// Returns the walk to which a callback belongs.
///
/// # Safety
/// `data` must be the pointer passed by [`walk`], whose call must still be running. Callbacks of one walk do not overlap.
unsafe fn walk_of<'w>(data: *mut c_void) -> &'w mut CallbackData<'w> {
    // SAFETY: The function's caller guarantees a valid pointer.
    unsafe { &mut *data.cast::<CallbackData<'w>>() }
}

unsafe extern "system" fn reference(
    kind: u32,
    info: *const sys::jvmtiHeapReferenceInfo,
    class: jlong,
    referrer_class: jlong,
    size: jlong,
    tag: *mut jlong,
    referrer: *mut jlong,
    length: jint,
    data: *mut c_void,
) -> jint {
    // SAFETY: The member of the union that is read belongs to the kind (JVM TI specification, "Heap Reference Info").
    let kind = unsafe {
        match kind {
            1 => ReferenceKind::Class,
            2 => ReferenceKind::Field((*info).field.index),
            3 => ReferenceKind::Element((*info).array.index),
            4 => ReferenceKind::ClassLoader,
            5 => ReferenceKind::Signers,
            6 => ReferenceKind::ProtectionDomain,
            7 => ReferenceKind::Interface,
            8 => ReferenceKind::StaticField((*info).field.index),
            9 => ReferenceKind::ConstantPool((*info).constant_pool.index),
            10 => ReferenceKind::Superclass,
            21 => ReferenceKind::JniGlobal,
            22 => ReferenceKind::SystemClass,
            23 => ReferenceKind::Monitor,
            24 => ReferenceKind::StackLocal((*info).stack_local.thread_tag, (*info).stack_local.depth),
            25 => ReferenceKind::JniLocal(
                (*info).jni_local.thread_tag,
                (*info).jni_local.depth,
                !(*info).jni_local.method.is_null(),
            ),
            26 => ReferenceKind::Thread,
            _ => ReferenceKind::Other,
        }
    };
    let referrer = (!referrer.is_null()).then_some(TagSlot(referrer));
    let reference = Reference {
        kind,
        tag: &TagSlot(tag),
        class,
        size: u64::try_from(size).unwrap_or(0),
        length: u32::try_from(length).ok(),
        referrer: referrer.as_ref(),
        referrer_class,
    };
    // SAFETY: `data` is the pointer passed by `walk`.
    unsafe { walk_of(data) }.run(|visitor| visitor.reference(&reference))
}

unsafe extern "system" fn primitive_field(
    kind: u32,
    info: *const sys::jvmtiHeapReferenceInfo,
    class: jlong,
    tag: *mut jlong,
    value: jvalue,
    value_type: u32,
    data: *mut c_void,
) -> jint {
    // SAFETY: The member of the union that is read belongs to the value's type; the info is that of a field.
    let (value, index) = unsafe {
        let value = match u8::try_from(value_type).unwrap_or(0) {
            b'Z' => wide(&[value.z]),
            b'B' => wide(&value.b.to_be_bytes()),
            b'C' => wide(&value.c.to_be_bytes()),
            b'S' => wide(&value.s.to_be_bytes()),
            b'I' => wide(&value.i.to_be_bytes()),
            b'J' => wide(&value.j.to_be_bytes()),
            b'F' => wide(&value.f.to_be_bytes()),
            b'D' => wide(&value.d.to_be_bytes()),
            _ => wide(&[]),
        };
        (value, (*info).field.index)
    };
    // SAFETY: `data` is the pointer passed by `walk`.
    unsafe { walk_of(data) }.run(|visitor| visitor.field(kind == 8, index, &TagSlot(tag), class, value))
}

fn wide(bytes: &[u8]) -> PrimitiveBytes {
    let mut value = [0; 8];
    for (to, from) in value.iter_mut().zip(bytes) {
        *to = *from;
    }
    (value, bytes.len())
}

/// Returns the size in bytes of a primitive value, by the signature of its type.
pub const fn bytes_of(element: u8) -> usize {
    match element {
        b'Z' | b'B' => 1,
        b'C' | b'S' => 2,
        b'I' | b'F' => 4,
        _ => 8,
    }
}

unsafe extern "system" fn primitive_array(
    _: jlong,
    _: jlong,
    tag: *mut jlong,
    count: jint,
    element: u32,
    elements: *const c_void,
    data: *mut c_void,
) -> jint {
    let element = u8::try_from(element).unwrap_or(0);
    let count = u32::try_from(count).unwrap_or(0);
    let bytes = if elements.is_null() {
        &[][..]
    } else {
        // SAFETY: There are `count` elements of this type, for the duration of the call.
        unsafe { std::slice::from_raw_parts(elements.cast::<u8>(), count as usize * bytes_of(element)) }
    };
    // SAFETY: `data` is the pointer passed by `walk`.
    unsafe { walk_of(data) }.run(|visitor| visitor.array(&TagSlot(tag), element, count, bytes))
}

unsafe extern "system" fn iteration(
    class: jlong,
    size: jlong,
    tag: *mut jlong,
    length: jint,
    data: *mut c_void,
) -> jint {
    let (size, length) = (u64::try_from(size).unwrap_or(0), u32::try_from(length).ok());
    // SAFETY: `data` is the pointer passed by `walk`.
    unsafe { walk_of(data) }.run(|visitor| visitor.object(&TagSlot(tag), class, size, length))
}
