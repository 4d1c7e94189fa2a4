//! JVM TI functions that the agent calls.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{NonNull, null, null_mut};

use jvmti_bindings::sys::jni::{JNIEnv, JavaVM, jobject};
use jvmti_bindings::sys::jvmti as sys;

use super::capability::Capability;
use super::jni::{Jni, Ref};
use super::{Error, Result};

/// JVM TI environment.
#[derive(Debug, Clone, Copy)]
pub struct Jvmti(NonNull<sys::jvmtiEnv>);

// SAFETY: an environment may be used by all threads (JVM TI specification, "Environments"), and it is never disposed.
unsafe impl Send for Jvmti {}
// SAFETY: All threads may use an environment at the same time (JVM TI specification, "Environments").
unsafe impl Sync for Jvmti {}

/// Identifier of a method in the JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId(pub usize);

/// Stack frame: a method, and the location in it (a bytecode index; -1 in native methods).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Method of the frame.
    pub method: MethodId,
    /// Bytecode index; -1 in native methods.
    pub location: i64,
}

const NO_FRAME: sys::jvmtiFrameInfo = sys::jvmtiFrameInfo { method: null_mut(), location: 0 };

/// Name and group of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Name of the thread.
    pub name: String,
    /// Name of the thread group; empty if the thread no longer has one.
    pub group: String,
    /// Name of the thread group's parent.
    pub parent_group: String,
}

/// State of a thread, as the bits of `GetThreadState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadState(pub i32);

impl ThreadState {
    /// Returns `true` if all the given bits are set.
    pub const fn has(self, bits: i32) -> bool {
        self.0 & bits == bits
    }

    /// JVMTI_THREAD_STATE_ALIVE.
    pub const ALIVE: i32 = 0x0001;
    /// JVMTI_THREAD_STATE_TERMINATED.
    pub const TERMINATED: i32 = 0x0002;
    /// JVMTI_THREAD_STATE_RUNNABLE.
    pub const RUNNABLE: i32 = 0x0004;
    /// JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER.
    pub const BLOCKED: i32 = 0x0400;
    /// JVMTI_THREAD_STATE_SLEEPING.
    pub const SLEEPING: i32 = 0x0040;
    /// JVMTI_THREAD_STATE_WAITING.
    pub const WAITING: i32 = 0x0080;
    /// JVMTI_THREAD_STATE_IN_OBJECT_WAIT.
    pub const IN_OBJECT_WAIT: i32 = 0x0100;
    /// JVMTI_THREAD_STATE_SUSPENDED.
    pub const SUSPENDED: i32 = 0x10_0000;
    /// JVMTI_THREAD_STATE_INTERRUPTED.
    pub const INTERRUPTED: i32 = 0x20_0000;
    /// JVMTI_THREAD_STATE_IN_NATIVE.
    pub const IN_NATIVE: i32 = 0x40_0000;
}

/// Owner of a monitor, and threads that wait for it.
#[derive(Debug, Clone, Default)]
pub struct Monitor<'j> {
    /// Owning thread, and the number of times that it has entered the monitor.
    pub owner: Option<(Ref<'j>, i32)>,
    /// Threads that wait to enter the monitor; before JDK 23, also those that wait to be notified.
    pub entering: Vec<Ref<'j>>,
    /// Threads that wait to be notified.
    pub notified: Vec<Ref<'j>>,
}

/// Field declared by a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JvmField {
    /// Name of the field.
    pub name: String,
    /// First character of the field's signature.
    pub kind: u8,
    /// `true` for a static field.
    pub is_static: bool,
}

/// Fields of a class, in the order in which JVM TI numbers them.
pub type Fields = Vec<JvmField>;

/// Calls a function of the function table.
macro_rules! call {
    ($env:expr, $name:ident $(, $argument:expr)* $(,)?) => {{
        let env = $env.0.as_ptr();
        // SAFETY: The environment was created by the JVM (see the module's documentation), and the arguments are as the
        // function's specification requires: pointers to memory that outlives the call, and references of this thread.
        match unsafe { (*(*env).functions).$name } {
            Some(function) => Error::check(unsafe { function(env $(, $argument)*) }),
            None => Err(Error::missing()),
        }
    }};
}

impl Jvmti {
    /// Creates an environment; `None` if the JVM refuses the version (JVM TI of JDK 11).
    pub(super) fn new(vm: *mut JavaVM) -> Option<Self> {
        /// `JVMTI_VERSION_11`.
        const VERSION: i32 = 0x3000_0000 | 11 << 16;
        let mut env: *mut c_void = null_mut();
        // SAFETY: The JVM passed `vm` to an entry point that is still running.
        let code = unsafe { ((**vm).GetEnv)(vm, &mut env, VERSION) };
        if code == 0 { NonNull::new(env.cast()).map(Self) } else { None }
    }

    pub(super) fn from_raw(env: *mut sys::jvmtiEnv) -> Option<Self> {
        NonNull::new(env).map(Self)
    }

    /// Copies a text that the JVM allocated, and releases the memory.
    fn text(self, text: *mut c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: Texts of the JVM are NUL-terminated.
        let copy = unsafe { CStr::from_ptr(text) }.to_bytes().to_vec();
        self.give_back(text);
        jvmti_bindings::mutf8::decode_lossy(&copy)
    }

    /// Copies an array that the JVM allocated, and releases the memory.
    fn array<T: Copy>(self, array: *mut T, count: i32) -> Vec<T> {
        let count = usize::try_from(count).unwrap_or(0);
        if array.is_null() {
            return Vec::new();
        }
        // SAFETY: The array has as many elements as the JVM states.
        let copy = unsafe { std::slice::from_raw_parts(array, count) }.to_vec();
        self.give_back(array);
        copy
    }

    fn give_back<T>(self, memory: *mut T) {
        if !memory.is_null() {
            let _ = call!(self, Deallocate, memory.cast());
        }
    }

    /// Requests capabilities one by one, so that a capability which another agent already has does not prevent the others.
    /// Returns the granted ones.
    pub fn add_capabilities(self, wanted: &[Capability]) -> Vec<Capability> {
        let mut available = sys::jvmtiCapabilities::default();
        let _ = call!(self, GetPotentialCapabilities, &mut available);
        let mut given = Vec::new();
        for capability in wanted {
            let mut one = sys::jvmtiCapabilities::default();
            capability.set(&mut one);
            if capability.is_in(&available) && call!(self, AddCapabilities, &one).is_ok() {
                given.push(*capability);
            }
        }
        given
    }

    /// Relinquishes all capabilities, because only one agent can have some of them.
    pub fn relinquish_capabilities(self) {
        let mut all = sys::jvmtiCapabilities::default();
        if call!(self, GetCapabilities, &mut all).is_ok() {
            let _ = call!(self, RelinquishCapabilities, &all);
        }
    }

    pub(super) fn set_callbacks(self, callbacks: &sys::jvmtiEventCallbacks) -> Result<()> {
        let size = i32::try_from(size_of::<sys::jvmtiEventCallbacks>()).unwrap_or(i32::MAX);
        // JDK 11 to 20 have fewer events, and read only the callbacks of these.
        call!(self, SetEventCallbacks, callbacks, size)
    }

    pub(super) fn set_event(self, mode: u32, event: u32) -> Result<()> {
        call!(self, SetEventNotificationMode, mode as _, event as _, null_mut())
    }

    /// Sets the average number of bytes between sampled allocations; with 0, all allocations are sampled.
    pub fn set_sampling_interval(self, bytes: i32) -> Result<()> {
        call!(self, SetHeapSamplingInterval, bytes)
    }

    /// Returns the tag of an object; 0 for none.
    #[inline]
    pub fn tag(self, object: Ref<'_>) -> Result<i64> {
        let mut tag = 0;
        call!(self, GetTag, object.raw(), &mut tag)?;
        Ok(tag)
    }

    /// Sets the tag of an object.
    #[inline]
    pub fn set_tag(self, object: Ref<'_>, tag: i64) -> Result<()> {
        call!(self, SetTag, object.raw(), tag)
    }

    /// Returns the objects that have one of the given tags.
    pub fn objects_with_tags<'j>(self, _jni: &'j Jni<'_>, tags: &[i64]) -> Result<Vec<Ref<'j>>> {
        let (mut count, mut objects) = (0, null_mut());
        let tag_count = i32::try_from(tags.len()).unwrap_or(i32::MAX);
        call!(self, GetObjectsWithTags, tag_count, tags.as_ptr(), &mut count, &mut objects, null_mut())?;
        Ok(refs(self.array(objects, count)))
    }

    /// Returns the size of an object in bytes.
    pub fn object_size(self, object: Ref<'_>) -> Result<u64> {
        let mut size = 0;
        call!(self, GetObjectSize, object.raw(), &mut size)?;
        Ok(u64::try_from(size).unwrap_or(0))
    }

    /// Runs a garbage collection and waits for it.
    pub fn collect_garbage(self) -> Result<()> {
        call!(self, ForceGarbageCollection)
    }

    /// Replaces `frames` by the innermost `depth` frames of a thread (`None` for the current thread).
    #[inline]
    pub fn stack(self, thread: Option<Ref<'_>>, frames: &mut Vec<Frame>, depth: usize) -> Result<()> {
        // Maximum number of frames that are read without allocating memory, as there are millions of allocation events.
        const ON_STACK: usize = 64;
        frames.clear();
        let thread = thread.map_or(null_mut(), Ref::raw);
        let mut small = [NO_FRAME; ON_STACK];
        let mut large = Vec::new();
        let buffer = if depth <= ON_STACK {
            small.get_mut(..depth).unwrap_or_default()
        } else {
            large.resize(depth, NO_FRAME);
            large.as_mut_slice()
        };
        let mut count = 0;
        let most = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        call!(self, GetStackTrace, thread, 0, most, buffer.as_mut_ptr(), &mut count)?;
        let count = usize::try_from(count).unwrap_or(0);
        frames.extend(
            (buffer.iter().take(count))
                .map(|frame| Frame { method: MethodId(frame.method as usize), location: frame.location }),
        );
        Ok(())
    }

    /// Returns the number of frames of a thread.
    pub fn frame_count(self, thread: Ref<'_>) -> Result<usize> {
        let mut count = 0;
        call!(self, GetFrameCount, thread.raw(), &mut count)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Returns name and signature of a method. The method must be on a stack, or its class be referenced.
    pub fn method_name(self, method: MethodId) -> Result<(String, String)> {
        let (mut name, mut signature) = (null_mut(), null_mut());
        call!(self, GetMethodName, method.0 as _, &mut name, &mut signature, null_mut())?;
        Ok((self.text(name), self.text(signature)))
    }

    /// Returns the class that declares a method.
    pub fn method_class<'j>(self, _jni: &'j Jni<'_>, method: MethodId) -> Result<Ref<'j>> {
        let mut class = null_mut();
        call!(self, GetMethodDeclaringClass, method.0 as _, &mut class)?;
        Ref::new(class).ok_or(Error::missing())
    }

    /// Returns `true` if a method is native.
    pub fn is_native(self, method: MethodId) -> bool {
        let mut native = 0;
        call!(self, IsMethodNative, method.0 as _, &mut native).is_ok() && native != 0
    }

    /// Returns the line table of a method: bytecode indexes at which lines start, with the line numbers.
    pub fn lines(self, method: MethodId) -> Result<Vec<(i64, i32)>> {
        let (mut count, mut table) = (0, null_mut());
        call!(self, GetLineNumberTable, method.0 as _, &mut count, &mut table)?;
        let lines = self.array(table, count);
        Ok(lines.into_iter().map(|entry| (entry.start_location, entry.line_number)).collect())
    }

    /// Returns the name of the source file of a class.
    pub fn source_file(self, class: Ref<'_>) -> Result<String> {
        let mut name = null_mut();
        call!(self, GetSourceFileName, class.raw(), &mut name)?;
        Ok(self.text(name))
    }

    /// Returns the signature of a class, such as `Ljava/lang/String;` or `[I`.
    pub fn class_signature(self, class: Ref<'_>) -> Result<String> {
        let mut signature = null_mut();
        call!(self, GetClassSignature, class.raw(), &mut signature, null_mut())?;
        Ok(self.text(signature))
    }

    /// Returns all loaded classes, including array classes.
    pub fn loaded_classes<'j>(self, _jni: &'j Jni<'_>) -> Result<Vec<Ref<'j>>> {
        let (mut count, mut classes) = (0, null_mut());
        call!(self, GetLoadedClasses, &mut count, &mut classes)?;
        Ok(refs(self.array(classes, count)))
    }

    /// Returns the loader of a class; `None` for the boot loader.
    pub fn class_loader<'j>(self, _jni: &'j Jni<'_>, class: Ref<'_>) -> Result<Option<Ref<'j>>> {
        let mut loader = null_mut();
        call!(self, GetClassLoader, class.raw(), &mut loader)?;
        Ok(Ref::new(loader))
    }

    /// Returns the interfaces that a class itself declares.
    pub fn interfaces<'j>(self, _jni: &'j Jni<'_>, class: Ref<'_>) -> Result<Vec<Ref<'j>>> {
        let (mut count, mut interfaces) = (0, null_mut());
        call!(self, GetImplementedInterfaces, class.raw(), &mut count, &mut interfaces)?;
        Ok(refs(self.array(interfaces, count)))
    }

    /// Returns the declared fields of a class. Fails if the class is not prepared yet.
    pub fn fields(self, class: Ref<'_>) -> Result<Fields> {
        const ACC_STATIC: i32 = 0x8;
        let (mut count, mut fields) = (0, null_mut());
        call!(self, GetClassFields, class.raw(), &mut count, &mut fields)?;
        let mut found = Vec::new();
        for field in self.array(fields, count) {
            let (mut name, mut signature, mut modifiers) = (null_mut(), null_mut(), 0);
            call!(self, GetFieldName, class.raw(), field, &mut name, &mut signature, null_mut())?;
            let (name, signature) = (self.text(name), self.text(signature));
            call!(self, GetFieldModifiers, class.raw(), field, &mut modifiers)?;
            let kind = signature.as_bytes().first().copied().unwrap_or(b'L');
            found.push(JvmField { name, kind, is_static: modifiers & ACC_STATIC != 0 });
        }
        Ok(found)
    }

    /// Returns all platform threads.
    pub fn threads<'j>(self, _jni: &'j Jni<'_>) -> Result<Vec<Ref<'j>>> {
        let (mut count, mut threads) = (0, null_mut());
        call!(self, GetAllThreads, &mut count, &mut threads)?;
        Ok(refs(self.array(threads, count)))
    }

    /// Returns the current thread.
    pub fn current_thread<'j>(self, _jni: &'j Jni<'_>) -> Result<Ref<'j>> {
        let mut thread = null_mut();
        call!(self, GetCurrentThread, &mut thread)?;
        Ref::new(thread).ok_or(Error::missing())
    }

    /// Returns name and group of a thread.
    pub fn thread_info(self, jni: &Jni<'_>, thread: Ref<'_>) -> Result<ThreadInfo> {
        let mut info = sys::jvmtiThreadInfo {
            name: null_mut(),
            priority: 0,
            is_daemon: 0,
            thread_group: null_mut(),
            context_class_loader: null_mut(),
        };
        call!(self, GetThreadInfo, thread.raw(), &mut info)?;
        let name = self.text(info.name);
        jni.delete_raw(info.context_class_loader);
        let (group, parent) = self.group(info.thread_group);
        let (parent_group, above) = self.group(parent);
        for reference in [info.thread_group, parent, above] {
            jni.delete_raw(reference);
        }
        Ok(ThreadInfo { name, group, parent_group })
    }

    /// Returns name and parent of a thread group.
    fn group(self, group: jobject) -> (String, jobject) {
        let mut info =
            sys::jvmtiThreadGroupInfo { parent: null_mut(), name: null_mut(), max_priority: 0, is_daemon: 0 };
        if group.is_null() || call!(self, GetThreadGroupInfo, group, &mut info).is_err() {
            return (String::new(), null_mut());
        }
        (self.text(info.name), info.parent)
    }

    /// Returns the state of a thread.
    pub fn thread_state(self, thread: Ref<'_>) -> Result<ThreadState> {
        let mut state = 0;
        call!(self, GetThreadState, thread.raw(), &mut state)?;
        Ok(ThreadState(state))
    }

    /// Returns the CPU time that a thread has used, in nanoseconds.
    #[inline]
    pub fn thread_cpu_time(self, thread: Ref<'_>) -> Result<u64> {
        let mut nanos = 0;
        call!(self, GetThreadCpuTime, thread.raw(), &mut nanos)?;
        Ok(u64::try_from(nanos).unwrap_or(0))
    }

    /// Suspends threads. Returns `true` for each thread that was suspended.
    pub fn suspend(self, threads: &[Ref<'_>]) -> Result<Vec<bool>> {
        let raw: Vec<_> = threads.iter().map(|thread| thread.raw()).collect();
        let mut results = vec![sys::jvmtiError::from_raw(0); raw.len()];
        let count = i32::try_from(raw.len()).unwrap_or(i32::MAX);
        call!(self, SuspendThreadList, count, raw.as_ptr(), results.as_mut_ptr())?;
        Ok(results.into_iter().map(|result| result.raw() == 0).collect())
    }

    /// Resumes suspended threads.
    pub fn resume(self, threads: &[Ref<'_>]) {
        let raw: Vec<_> = threads.iter().map(|thread| thread.raw()).collect();
        let mut results = vec![sys::jvmtiError::from_raw(0); raw.len()];
        let count = i32::try_from(raw.len()).unwrap_or(i32::MAX);
        if count > 0 {
            let _ = call!(self, ResumeThreadList, count, raw.as_ptr(), results.as_mut_ptr());
        }
    }

    /// Suspends all virtual threads except `spared` (JDK 21).
    pub fn suspend_virtual_threads(self, spared: Option<Ref<'_>>) -> Result<()> {
        let except = spared.map_or(null_mut(), Ref::raw);
        call!(self, SuspendAllVirtualThreads, i32::from(spared.is_some()), &raw const except)
    }

    /// Resumes all virtual threads.
    pub fn resume_virtual_threads(self) {
        let _ = call!(self, ResumeAllVirtualThreads, 0, null());
    }

    /// Returns the monitor that a thread waits to enter; before JDK 23, also one on which it waits to be notified.
    pub fn contended_monitor<'j>(self, _jni: &'j Jni<'_>, thread: Ref<'_>) -> Result<Option<Ref<'j>>> {
        let mut monitor = null_mut();
        call!(self, GetCurrentContendedMonitor, thread.raw(), &mut monitor)?;
        Ok(Ref::new(monitor))
    }

    /// Returns the monitors that a thread owns.
    pub fn owned_monitors<'j>(self, _jni: &'j Jni<'_>, thread: Ref<'_>) -> Result<Vec<Ref<'j>>> {
        let (mut count, mut monitors) = (0, null_mut());
        call!(self, GetOwnedMonitorInfo, thread.raw(), &mut count, &mut monitors)?;
        Ok(refs(self.array(monitors, count)))
    }

    /// Returns the owner of a monitor, and the threads that wait for it.
    pub fn monitor<'j>(self, _jni: &'j Jni<'_>, object: Ref<'_>) -> Result<Monitor<'j>> {
        let mut usage = sys::jvmtiMonitorUsage {
            owner: null_mut(),
            entry_count: 0,
            waiter_count: 0,
            waiters: null_mut(),
            notify_waiter_count: 0,
            notify_waiters: null_mut(),
        };
        call!(self, GetObjectMonitorUsage, object.raw(), &mut usage)?;
        Ok(Monitor {
            owner: Ref::new(usage.owner).map(|owner| (owner, usage.entry_count)),
            entering: refs(self.array(usage.waiters, usage.waiter_count)),
            notified: refs(self.array(usage.notify_waiters, usage.notify_waiter_count)),
        })
    }

    /// Returns a system property.
    pub fn system_property(self, name: &CStr) -> Option<String> {
        let mut value = null_mut();
        call!(self, GetSystemProperty, name.as_ptr(), &mut value).ok()?;
        Some(self.text(value))
    }

    /// Starts `run` on a daemon thread of the agent. `thread` must be a `java.lang.Thread` that was not started.
    pub fn run_agent_thread(self, thread: Ref<'_>, run: Box<dyn FnOnce(Jni<'_>) + Send>) -> Result<()> {
        unsafe extern "system" fn start(_: *mut sys::jvmtiEnv, jni: *mut JNIEnv, run: *mut c_void) {
            // SAFETY: The pointer is the box that was leaked below, and is passed here only once.
            let run = unsafe { Box::from_raw(run.cast::<Box<dyn FnOnce(Jni<'_>) + Send>>()) };
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                if let Some(jni) = Jni::from_raw(jni) {
                    run(jni);
                }
            }));
        }
        let run = Box::into_raw(Box::new(run));
        let started = call!(self, RunAgentThread, thread.raw(), Some(start), run.cast_const().cast(), 10);
        if started.is_err() {
            // SAFETY: No thread was started, so nothing else uses the box.
            drop(unsafe { Box::from_raw(run) });
        }
        started
    }

    /// Returns HotSpot's extension function `com.sun.hotspot.functions.GetVirtualThread` (JDK 21), which returns the virtual
    /// thread that is mounted on a carrier thread.
    pub fn virtual_thread_function(self) -> Option<VirtualThreadOf> {
        let (mut count, mut functions) = (0, null_mut());
        call!(self, GetExtensionFunctions, &mut count, &mut functions).ok()?;
        let mut found = None;
        for info in self.array(functions, count) {
            let id = self.text(info.id);
            self.give_back(info.short_description);
            for parameter in self.array(info.params, info.param_count) {
                self.give_back(parameter.name);
            }
            self.give_back(info.errors);
            if id == "com.sun.hotspot.functions.GetVirtualThread" {
                found = info.func.map(|function| VirtualThreadOf { env: self, function });
            }
        }
        found
    }

    pub(super) fn follow_references(
        self,
        filter: i32,
        from: Option<Ref<'_>>,
        callbacks: &sys::jvmtiHeapCallbacks,
        data: *mut c_void,
    ) -> Result<()> {
        let from = from.map_or(null_mut(), Ref::raw);
        call!(self, FollowReferences, filter, null_mut(), from, callbacks, data)
    }

    pub(super) fn iterate_through_heap(
        self,
        filter: i32,
        callbacks: &sys::jvmtiHeapCallbacks,
        data: *mut c_void,
    ) -> Result<()> {
        call!(self, IterateThroughHeap, filter, null_mut(), callbacks, data)
    }

    /// Copies bytes to memory of the JVM, for a class file that replaces another one. The JVM frees the memory.
    pub(super) fn allocate(self, bytes: &[u8]) -> Result<*mut u8> {
        let mut memory = null_mut();
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        call!(self, Allocate, size, &mut memory)?;
        // SAFETY: The memory has the size of `bytes`, and nothing else uses it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Ok(memory)
    }
}

/// Extension function returned by [`Jvmti::virtual_thread_function`].
#[derive(Debug, Clone, Copy)]
pub struct VirtualThreadOf {
    env: Jvmti,
    function: sys::jvmtiExtensionFunction,
}

impl VirtualThreadOf {
    /// Returns the virtual thread that is mounted on a carrier thread.
    pub fn get<'j>(&self, _jni: &'j Jni<'_>, carrier: Ref<'_>) -> Option<Ref<'j>> {
        let mut thread: jobject = null_mut();
        // SAFETY: The parameters are a thread and a pointer to a thread (`jvmtiExport.cpp`, `GetVirtualThread`).
        let code =
            unsafe { (self.function)(self.env.0.as_ptr(), carrier.raw(), &mut thread as *mut jobject) };
        Error::check(code).ok()?;
        Ref::new(thread)
    }
}

fn refs<'j>(raw: Vec<jobject>) -> Vec<Ref<'j>> {
    raw.into_iter().filter_map(Ref::new).collect()
}
