//! JNI functions that the agent calls.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use jvmti_bindings::sys::jni::{self, JNIEnv, JNINativeInterface_, jobject};

/// Maximum capacity of a local frame that HotSpot accepts (`MaxJNILocalCapacity`), although a frame can contain more
/// references. It is used for lists of all threads or classes, whose length is not known in advance. Capacity costs nothing: it
/// is a promise that `-Xcheck:jni` verifies.
pub const MAX_REFERENCES: usize = 65_536;

/// Local reference to an object. Two references to one object may differ: [`Jni::same`] compares them.
#[derive(Debug, Clone, Copy)]
pub struct Ref<'j>(NonNull<c_void>, PhantomData<&'j ()>);

impl<'j> Ref<'j> {
    pub(super) fn new(raw: jobject) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self(raw, PhantomData))
    }

    pub(super) fn raw(self) -> jobject {
        self.0.as_ptr()
    }
}

/// Weak global reference to an object: any thread can use it, and it does not keep the object alive.
#[derive(Debug)]
pub struct WeakRef(NonNull<c_void>);

// SAFETY: Global references are valid in all threads (JNI specification, "Global and Local References").
unsafe impl Send for WeakRef {}

/// JNI environment of the current thread.
#[derive(Debug, Clone, Copy)]
pub struct Jni<'j>(NonNull<JNIEnv>, PhantomData<&'j *mut ()>);

/// Argument of a method call.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'j> {
    /// Reference, or null.
    Object(Option<Ref<'j>>),
    /// Value of type `boolean`.
    Boolean(bool),
    /// Value of type `int`.
    Int(i32),
}

impl Argument<'_> {
    fn raw(self) -> jni::jvalue {
        match self {
            Self::Object(object) => jni::jvalue { l: object.map_or(null_mut(), Ref::raw) },
            Self::Boolean(value) => jni::jvalue { z: value.into() },
            Self::Int(value) => jni::jvalue { i: value },
        }
    }
}

fn raw(arguments: &[Argument<'_>]) -> Vec<jni::jvalue> {
    arguments.iter().map(|argument| argument.raw()).collect()
}

impl<'j> Jni<'j> {
    pub(super) fn from_raw(env: *mut JNIEnv) -> Option<Self> {
        NonNull::new(env).map(|env| Self(env, PhantomData))
    }

    /// Returns the JVM's function table. In older JVMs the table is shorter than its type, so only single members are read.
    fn table(&self) -> *const JNINativeInterface_ {
        // SAFETY: The environment of a thread points to its function table.
        unsafe { *self.0.as_ptr() }
    }

    fn env(&self) -> *mut JNIEnv {
        self.0.as_ptr()
    }

    /// Clears a pending exception; returns whether there was one.
    pub fn clear_exception(&self) -> bool {
        // SAFETY: The function may be called at any time.
        let pending = unsafe { ((*self.table()).ExceptionCheck)(self.env()) } != 0;
        if pending {
            // SAFETY: The function may be called at any time.
            unsafe { ((*self.table()).ExceptionClear)(self.env()) };
        }
        pending
    }

    /// Converts a reference with `wrap`; `None` if an exception is pending, which is cleared.
    fn wrap<T>(&self, raw: jobject, wrap: impl FnOnce(jobject) -> Option<T>) -> Option<T> {
        if self.clear_exception() { None } else { wrap(raw) }
    }

    /// Calls `run` with a frame of local references, which are all deleted afterwards. `None` if there is not enough memory for
    /// the frame.
    pub fn frame<T>(&self, references: usize, run: impl FnOnce(&Jni<'_>) -> T) -> Option<T> {
        let capacity = i32::try_from(references.saturating_add(16).min(MAX_REFERENCES)).unwrap_or(i32::MAX);
        // SAFETY: The frame is popped below.
        if unsafe { ((*self.table()).PushLocalFrame)(self.env(), capacity) } != 0 {
            self.clear_exception();
            return None;
        }
        let result = run(self);
        // SAFETY: No reference of the frame outlives `run`, because its `Jni` has its own lifetime.
        unsafe { ((*self.table()).PopLocalFrame)(self.env(), null_mut()) };
        Some(result)
    }

    /// Deletes a local reference before its frame ends.
    pub fn delete(&self, object: Ref<'_>) {
        self.delete_raw(object.raw());
    }

    pub(super) fn delete_raw(&self, object: jobject) {
        if !object.is_null() {
            // SAFETY: The reference is a local one of this thread, and not used afterwards.
            unsafe { ((*self.table()).DeleteLocalRef)(self.env(), object) };
        }
    }

    /// Creates a weak global reference, which must be passed to [`Self::delete_weak`] later.
    pub fn weak(&self, object: Ref<'_>) -> Option<WeakRef> {
        // SAFETY: The object is a reference of this thread.
        let raw = unsafe { ((*self.table()).NewWeakGlobalRef)(self.env(), object.raw()) };
        self.wrap(raw, |raw| NonNull::new(raw).map(WeakRef))
    }

    /// Returns the object of a weak global reference; `None` if it was collected.
    pub fn upgrade(&self, weak: &WeakRef) -> Option<Ref<'j>> {
        // SAFETY: The reference is valid, because only `delete_weak` deletes it, which consumes it.
        Ref::new(unsafe { ((*self.table()).NewLocalRef)(self.env(), weak.0.as_ptr()) })
    }

    /// Deletes a weak global reference.
    pub fn delete_weak(&self, weak: WeakRef) {
        // SAFETY: as in `upgrade`.
        unsafe { ((*self.table()).DeleteWeakGlobalRef)(self.env(), weak.0.as_ptr()) };
    }

    /// Returns `true` if two references refer to the same object.
    pub fn same(&self, a: Ref<'_>, b: Ref<'_>) -> bool {
        // SAFETY: Both are references of this thread.
        unsafe { ((*self.table()).IsSameObject)(self.env(), a.raw(), b.raw()) != 0 }
    }

    /// Returns the class with an internal name such as `java/lang/Object`.
    pub fn find_class(&self, name: &CStr) -> Option<Ref<'j>> {
        // SAFETY: The name is NUL-terminated.
        let raw = unsafe { ((*self.table()).FindClass)(self.env(), name.as_ptr()) };
        self.wrap(raw, Ref::new)
    }

    /// Returns the class of an object.
    pub fn class_of(&self, object: Ref<'_>) -> Option<Ref<'j>> {
        // SAFETY: The object is a reference of this thread.
        Ref::new(unsafe { ((*self.table()).GetObjectClass)(self.env(), object.raw()) })
    }

    /// Returns the superclass of a class.
    pub fn superclass(&self, class: Ref<'_>) -> Option<Ref<'j>> {
        // SAFETY: The reference is a class.
        Ref::new(unsafe { ((*self.table()).GetSuperclass)(self.env(), class.raw()) })
    }

    /// Defines a class in the boot loader from the bytes of its class file.
    pub fn define_class(&self, name: &CStr, bytes: &[u8]) -> Option<Ref<'j>> {
        let length = i32::try_from(bytes.len()).ok()?;
        // SAFETY: `length` is the number of bytes; the JVM verifies the class file.
        let raw = unsafe {
            ((*self.table()).DefineClass)(
                self.env(),
                name.as_ptr(),
                null_mut(),
                bytes.as_ptr().cast(),
                length,
            )
        };
        self.wrap(raw, Ref::new)
    }

    /// Creates a `java.lang.String` from a text.
    pub fn string(&self, text: &str) -> Option<Ref<'j>> {
        let text = jvmti_bindings::mutf8::encode_cstring(text);
        // SAFETY: The text is NUL-terminated modified UTF-8.
        let raw = unsafe { ((*self.table()).NewStringUTF)(self.env(), text.as_ptr()) };
        self.wrap(raw, Ref::new)
    }

    /// Returns the ID of a method; `None` if the class does not have it.
    fn method(&self, class: Ref<'_>, name: &CStr, signature: &CStr) -> Option<jni::jmethodID> {
        // SAFETY: The reference is a class, and the texts are NUL-terminated.
        let method = unsafe {
            ((*self.table()).GetMethodID)(self.env(), class.raw(), name.as_ptr(), signature.as_ptr())
        };
        (!self.clear_exception() && !method.is_null()).then_some(method)
    }

    /// Returns the ID of a static method; `None` if the class does not have it.
    fn static_method(&self, class: Ref<'_>, name: &CStr, signature: &CStr) -> Option<jni::jmethodID> {
        // SAFETY: The reference is a class, and the texts are NUL-terminated.
        let method = unsafe {
            ((*self.table()).GetStaticMethodID)(self.env(), class.raw(), name.as_ptr(), signature.as_ptr())
        };
        (!self.clear_exception() && !method.is_null()).then_some(method)
    }

    /// Creates an object with the constructor of the given signature.
    pub fn new_object(
        &self,
        class: Ref<'_>,
        signature: &CStr,
        arguments: &[Argument<'_>],
    ) -> Option<Ref<'j>> {
        let method = self.method(class, c"<init>", signature)?;
        let arguments = raw(arguments);
        // SAFETY: The arguments match the signature; the callers ensure this.
        let raw =
            unsafe { ((*self.table()).NewObjectA)(self.env(), class.raw(), method, arguments.as_ptr()) };
        self.wrap(raw, Ref::new)
    }

    /// Calls a static method that returns an object.
    pub fn call_static(
        &self,
        class: Ref<'_>,
        name: &CStr,
        signature: &CStr,
        arguments: &[Argument<'_>],
    ) -> Option<Ref<'j>> {
        let method = self.static_method(class, name, signature)?;
        let arguments = raw(arguments);
        // SAFETY: The arguments match the signature; the callers ensure this.
        let raw = unsafe {
            ((*self.table()).CallStaticObjectMethodA)(self.env(), class.raw(), method, arguments.as_ptr())
        };
        self.wrap(raw, Ref::new)
    }

    /// Calls a static `void` method. Returns whether it completed without an exception.
    pub fn call_static_void(
        &self,
        class: Ref<'_>,
        name: &CStr,
        signature: &CStr,
        arguments: &[Argument<'_>],
    ) -> bool {
        let Some(method) = self.static_method(class, name, signature) else { return false };
        let arguments = raw(arguments);
        // SAFETY: The arguments match the signature; the callers ensure this.
        unsafe {
            ((*self.table()).CallStaticVoidMethodA)(self.env(), class.raw(), method, arguments.as_ptr());
        }
        !self.clear_exception()
    }

    /// Calls a `void` method. Returns whether it completed without an exception.
    pub fn call_void(
        &self,
        object: Ref<'_>,
        class: Ref<'_>,
        name: &CStr,
        signature: &CStr,
        arguments: &[Argument<'_>],
    ) -> bool {
        let Some(method) = self.method(class, name, signature) else { return false };
        let arguments = raw(arguments);
        // SAFETY: The arguments match the signature; the callers ensure this.
        unsafe { ((*self.table()).CallVoidMethodA)(self.env(), object.raw(), method, arguments.as_ptr()) };
        !self.clear_exception()
    }

    /// Calls a method without arguments that returns a `long`.
    fn call_long(&self, object: Ref<'_>, class: Ref<'_>, name: &CStr) -> Option<i64> {
        let method = self.method(class, name, c"()J")?;
        // SAFETY: The method was found by the signature `()J`, which has no arguments.
        let value =
            unsafe { ((*self.table()).CallLongMethodA)(self.env(), object.raw(), method, std::ptr::null()) };
        (!self.clear_exception()).then_some(value)
    }

    /// Returns the number of bytes that can be allocated without a garbage collection, according to `java.lang.Runtime`. The
    /// query itself allocates nothing.
    pub fn free_heap(&self) -> Option<u64> {
        self.frame(2, |jni| {
            let class = jni.find_class(c"java/lang/Runtime")?;
            let runtime = jni.call_static(class, c"getRuntime", c"()Ljava/lang/Runtime;", &[])?;
            let bytes = |name| jni.call_long(runtime, class, name);
            let free = bytes(c"maxMemory")?.saturating_sub(bytes(c"totalMemory")?);
            u64::try_from(free.saturating_add(bytes(c"freeMemory")?)).ok()
        })?
    }

    /// Creates an `Object[]` of the given objects. `class` must be `java.lang.Object`. `None` if there is not enough memory.
    pub fn object_array(&self, class: Ref<'_>, objects: &[Ref<'_>]) -> Option<Ref<'j>> {
        let length = i32::try_from(objects.len()).ok()?;
        // SAFETY: The reference is a class, and the initial element is null.
        let raw = unsafe { ((*self.table()).NewObjectArray)(self.env(), length, class.raw(), null_mut()) };
        let array = self.wrap(raw, Ref::new)?;
        for (index, object) in (0i32..).zip(objects) {
            // SAFETY: The index is less than the length.
            unsafe { ((*self.table()).SetObjectArrayElement)(self.env(), array.raw(), index, object.raw()) };
        }
        (!self.clear_exception()).then_some(array)
    }

    /// Returns the value of a static object field of an initialized class.
    pub fn static_field(&self, class: Ref<'_>, name: &CStr, signature: &CStr) -> Option<Ref<'j>> {
        // SAFETY: as in `new_object`.
        let raw = unsafe {
            let field = ((*self.table()).GetStaticFieldID)(
                self.env(),
                class.raw(),
                name.as_ptr(),
                signature.as_ptr(),
            );
            if self.clear_exception() || field.is_null() {
                return None;
            }
            ((*self.table()).GetStaticObjectField)(self.env(), class.raw(), field)
        };
        self.wrap(raw, Ref::new)
    }

    /// Returns `true` if a thread is virtual. JVMs before JDK 21 lack the function.
    pub fn is_virtual(&self, thread: Ref<'_>) -> bool {
        const JNI_VERSION_21: i32 = 0x0015_0000;
        // SAFETY: The function may be called at any time.
        if unsafe { ((*self.table()).GetVersion)(self.env()) } < JNI_VERSION_21 {
            return false;
        }
        // SAFETY: The table of this version has the function.
        unsafe { ((*self.table()).IsVirtualThread)(self.env(), thread.raw()) != 0 }
    }
}
