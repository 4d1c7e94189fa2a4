//! Events of JVM TI: dispatch from the JVM's callbacks to a [`Handler`].

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jclass, jobject, jthread};
use jvmti_bindings::sys::jvmti as sys;

use super::env::Jvmti;
use super::jni::{Jni, Ref};
use super::latest::Latest;
use super::{Error, Result};

/// Event that can be enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The JVM can run Java code.
    VmStart,
    /// The JVM is initialized.
    VmInit,
    /// The JVM is ending.
    VmDeath,
    /// A platform thread starts.
    ThreadStart,
    /// A platform thread ends.
    ThreadEnd,
    /// A class file is loaded.
    ClassFileLoad,
    /// The JVM received SIGQUIT.
    DataDumpRequest,
    /// An allocation was sampled.
    SampledObjectAlloc,
    /// The JVM itself allocated an object.
    VmObjectAlloc,
    /// A thread waits to enter a monitor.
    ContendedEnter,
    /// A thread has entered a monitor after waiting.
    ContendedEntered,
    /// A thread starts to wait in `Object.wait`.
    MonitorWait,
    /// A thread has finished waiting in `Object.wait`.
    MonitorWaited,
    /// A pause for garbage collection starts.
    CollectionStart,
    /// A pause for garbage collection ends.
    CollectionFinish,
}

impl Event {
    const fn number(self) -> u32 {
        match self {
            Self::VmStart => sys::JVMTI_EVENT_VM_START,
            Self::VmInit => sys::JVMTI_EVENT_VM_INIT,
            Self::VmDeath => sys::JVMTI_EVENT_VM_DEATH,
            Self::ThreadStart => sys::JVMTI_EVENT_THREAD_START,
            Self::ThreadEnd => sys::JVMTI_EVENT_THREAD_END,
            Self::ClassFileLoad => sys::JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
            Self::DataDumpRequest => sys::JVMTI_EVENT_DATA_DUMP_REQUEST,
            Self::SampledObjectAlloc => sys::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC,
            Self::VmObjectAlloc => sys::JVMTI_EVENT_VM_OBJECT_ALLOC,
            Self::ContendedEnter => sys::JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
            Self::ContendedEntered => sys::JVMTI_EVENT_MONITOR_CONTENDED_ENTERED,
            Self::MonitorWait => sys::JVMTI_EVENT_MONITOR_WAIT,
            Self::MonitorWaited => sys::JVMTI_EVENT_MONITOR_WAITED,
            Self::CollectionStart => sys::JVMTI_EVENT_GARBAGE_COLLECTION_START,
            Self::CollectionFinish => sys::JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
        }
    }
}

/// Receiver of events. Each method handles one event.
pub trait Handler: Sync {
    /// The JVM can run Java code.
    fn vm_start(&self, jni: &Jni<'_>);

    /// The JVM is initialized.
    fn vm_init(&self, jni: &Jni<'_>, thread: Ref<'_>);

    /// The JVM is ending.
    fn vm_death(&self, jni: &Jni<'_>);

    /// A platform thread starts.
    fn thread_start(&self, jni: &Jni<'_>, thread: Ref<'_>);

    /// A platform thread ends.
    fn thread_end(&self, _: &Jni<'_>, thread: Ref<'_>);

    /// The JVM received SIGQUIT.
    fn data_dump_request(&self);

    /// An allocation was sampled.
    fn sampled_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64);

    /// The JVM itself allocated an object. HotSpot also sends a sampling event for some of these objects.
    fn vm_object_alloc(&self, jni: &Jni<'_>, object: Ref<'_>, class: Ref<'_>, size: u64);

    /// A thread waits to enter a monitor.
    fn contended_enter(&self, jni: &Jni<'_>, _: Ref<'_>, object: Ref<'_>);

    /// A thread has entered a monitor after waiting.
    fn contended_entered(&self, _: &Jni<'_>, _: Ref<'_>, thread: Ref<'_>);

    /// A thread starts to wait in `Object.wait`.
    fn monitor_wait(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>, timeout: i64);

    /// A thread has finished waiting in `Object.wait`.
    fn monitor_waited(&self, jni: &Jni<'_>, thread: Ref<'_>, object: Ref<'_>);

    /// A class file is loaded. Returns a replacement for it, or `None`.
    fn class_file(&self, name: &[u8], boot: bool, bytes: &[u8]) -> Option<Vec<u8>>;

    /// A thread entered a rewritten method.
    fn method_entered(&self, method: i32);

    /// A thread left a rewritten method.
    fn method_left(&self, method: i32);

    /// A pause for garbage collection starts. The handler must not call the JVM.
    fn collection_started(&self);

    /// A pause for garbage collection ends. The handler must not call the JVM.
    fn collection_finished(&self);
}

static HANDLER: Latest<&'static dyn Handler> = Latest::empty();

fn handler() -> Option<&'static dyn Handler> {
    HANDLER.get().copied()
}

/// Registration and enabling of JVM TI events.
pub trait Events {
    /// Sets the receiver of events, replacing any previous one. Must be called before an event is enabled.
    ///
    /// # Errors
    /// Errors of JVM TI.
    fn register(&self, handler: &'static dyn Handler) -> Result<()>;
    /// Enables an event.
    ///
    /// # Errors
    /// If the required capability is missing.
    fn enable(&self, event: Event) -> Result<()>;
    /// Disables an event.
    fn disable(&self, event: Event);
}

impl Events for Jvmti {
    fn register(&self, handler: &'static dyn Handler) -> Result<()> {
        HANDLER.set(handler);
        let mut callbacks = sys::jvmtiEventCallbacks::default();
        callbacks.VMStart = Some(vm_start);
        callbacks.VMInit = Some(vm_init);
        callbacks.VMDeath = Some(vm_death);
        callbacks.ThreadStart = Some(thread_start);
        callbacks.ThreadEnd = Some(thread_end);
        callbacks.ClassFileLoadHook = Some(class_file_load);
        callbacks.DataDumpRequest = Some(data_dump_request);
        callbacks.SampledObjectAlloc = Some(sampled_object_alloc);
        callbacks.VMObjectAlloc = Some(vm_object_alloc);
        callbacks.MonitorContendedEnter = Some(contended_enter);
        callbacks.MonitorContendedEntered = Some(contended_entered);
        callbacks.MonitorWait = Some(monitor_wait);
        callbacks.MonitorWaited = Some(monitor_waited);
        callbacks.GarbageCollectionStart = Some(collection_start);
        callbacks.GarbageCollectionFinish = Some(collection_finish);
        self.set_callbacks(&callbacks)
    }

    fn enable(&self, event: Event) -> Result<()> {
        self.set_event(sys::JVMTI_ENABLE, event.number())
    }

    fn disable(&self, event: Event) {
        let _: std::result::Result<(), Error> = self.set_event(sys::JVMTI_DISABLE, event.number());
    }
}

/// Calls the handler, if there is one. A panic does not unwind into the JVM; the standard library's hook reports it on stderr.
fn tell(run: impl FnOnce(&dyn Handler)) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Some(handler) = handler() {
            run(handler);
        }
    }));
}

/// Calls the handler for an event of a thread that may call JNI. See [`tell`].
fn tell_with_jni(jni: *mut JNIEnv, run: impl FnOnce(&dyn Handler, &Jni<'_>)) {
    tell(|handler| {
        if let Some(jni) = Jni::from_raw(jni) {
            run(handler, &jni);
        }
    });
}

/// Calls the handler for an event with one object, such as a thread. See [`tell_with_jni`].
fn tell_of(jni: *mut JNIEnv, object: jobject, run: impl FnOnce(&dyn Handler, &Jni<'_>, Ref<'_>)) {
    tell_with_jni(jni, |handler, jni| {
        if let Some(object) = Ref::new(object) {
            run(handler, jni, object);
        }
    });
}

/// Calls the handler for an event with two objects: a thread and a monitor, or an object and its class. See [`tell_of`].
fn tell_of_two(
    jni: *mut JNIEnv,
    one: jobject,
    other: jobject,
    run: impl FnOnce(&dyn Handler, &Jni<'_>, Ref<'_>, Ref<'_>),
) {
    tell_of(jni, one, |handler, jni, one| {
        if let Some(other) = Ref::new(other) {
            run(handler, jni, one, other);
        }
    });
}

unsafe extern "system" fn vm_start(_: *mut sys::jvmtiEnv, jni: *mut JNIEnv) {
    tell_with_jni(jni, |handler, jni| handler.vm_start(jni));
}

unsafe extern "system" fn vm_init(_: *mut sys::jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    tell_of(jni, thread, |handler, jni, thread| handler.vm_init(jni, thread));
}

unsafe extern "system" fn vm_death(_: *mut sys::jvmtiEnv, jni: *mut JNIEnv) {
    tell_with_jni(jni, |handler, jni| handler.vm_death(jni));
}

unsafe extern "system" fn thread_start(_: *mut sys::jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    tell_of(jni, thread, |handler, jni, thread| handler.thread_start(jni, thread));
}

unsafe extern "system" fn thread_end(_: *mut sys::jvmtiEnv, jni: *mut JNIEnv, thread: jthread) {
    tell_of(jni, thread, |handler, jni, thread| handler.thread_end(jni, thread));
}

unsafe extern "system" fn data_dump_request(_: *mut sys::jvmtiEnv) {
    tell(|handler| handler.data_dump_request());
}

unsafe extern "system" fn collection_start(_: *mut sys::jvmtiEnv) {
    tell(|handler| handler.collection_started());
}

unsafe extern "system" fn collection_finish(_: *mut sys::jvmtiEnv) {
    tell(|handler| handler.collection_finished());
}

unsafe extern "system" fn sampled_object_alloc(
    _: *mut sys::jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let size = u64::try_from(size).unwrap_or(0);
    tell_of_two(jni, object, class, |handler, jni, object, class| {
        handler.sampled_object_alloc(jni, object, class, size);
    });
}

unsafe extern "system" fn vm_object_alloc(
    _: *mut sys::jvmtiEnv,
    jni: *mut JNIEnv,
    _: jthread,
    object: jobject,
    class: jclass,
    size: i64,
) {
    let size = u64::try_from(size).unwrap_or(0);
    tell_of_two(jni, object, class, |handler, jni, object, class| {
        handler.vm_object_alloc(jni, object, class, size);
    });
}

unsafe extern "system" fn contended_enter(
    _: *mut sys::jvmtiEnv,
    jni: *mut JNIEnv,
    thread: jthread,
    object: jobject,
) {
    tell_of_two(jni, thread, object, |handler, jni, thread, object| {
        handler.contended_enter(jni, thread, object);
    });
}

unsafe extern "system" fn contended_entered(
    _: *mut sys::jvmtiEnv,
    jni: *mut JNIEnv,
    thread: jthread,
    object: jobject,
) {
    tell_of_two(jni, thread, object, |handler, jni, thread, object| {
        handler.contended_entered(jni, thread, object);
    });
}

unsafe extern "system" fn monitor_wait(
    _: *mut sys::jvmtiEnv,
    jni: *mut JNIEnv,
    thread: jthread,
    object: jobject,
    timeout: i64,
) {
    tell_of_two(jni, thread, object, |handler, jni, thread, object| {
        handler.monitor_wait(jni, thread, object, timeout);
    });
}

unsafe extern "system" fn monitor_waited(
    _: *mut sys::jvmtiEnv,
    jni: *mut JNIEnv,
    thread: jthread,
    object: jobject,
    _: jboolean,
) {
    tell_of_two(jni, thread, object, |handler, jni, thread, object| {
        handler.monitor_waited(jni, thread, object);
    });
}

unsafe extern "system" fn class_file_load(
    env: *mut sys::jvmtiEnv,
    _: *mut JNIEnv,
    _: jclass,
    loader: jobject,
    name: *const c_char,
    _: jobject,
    length: i32,
    bytes: *const u8,
    new_length: *mut i32,
    new_bytes: *mut *mut u8,
) {
    let replace = || {
        let agent = handler()?;
        let length = usize::try_from(length).ok()?;
        if bytes.is_null() {
            return None;
        }
        // SAFETY: There are as many bytes as the JVM states, for the duration of the call.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, length) };
        let name = if name.is_null() {
            &[][..]
        } else {
            // SAFETY: The JVM's names are NUL-terminated.
            unsafe { CStr::from_ptr(name) }.to_bytes()
        };
        let replaced = agent.class_file(name, loader.is_null(), bytes)?;
        let memory = Jvmti::from_raw(env)?.allocate(&replaced).ok()?;
        Some((i32::try_from(replaced.len()).ok()?, memory))
    };
    if let Ok(Some((length, memory))) = catch_unwind(AssertUnwindSafe(replace)) {
        // SAFETY: The JVM passed these pointers for the results, and frees the memory itself.
        unsafe {
            *new_length = length;
            *new_bytes = memory;
        }
    }
}

/// Implementation of the tracker's method `enter(int)` ([`crate::tracker`]). The JVM finds it by name (JNI specification,
/// "Resolving Native Method Names").
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_enter(_: *mut c_void, _: *mut c_void, method: i32) {
    tell(|handler| handler.method_entered(method));
}

/// Implementation of the tracker's method `exit(int)`, which the JVM also finds by name.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_exit(_: *mut c_void, _: *mut c_void, method: i32) {
    tell(|handler| handler.method_left(method));
}
