//! The entry points that the JVM calls.

use std::ffi::{CStr, c_char, c_void};
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};

use jvmti_bindings::sys::jni::{JNIEnv, JavaVM};

use super::env::Jvmti;
use super::jni::Jni;
use crate::start::{self, Start};

const JNI_OK: i32 = 0;
const JNI_ERR: i32 = -1;

/// Copies the agent's option string.
///
/// # Safety
/// `options` must be a NUL-terminated text or null.
unsafe fn options(options: *const c_char) -> String {
    if options.is_null() {
        return String::new();
    }
    // SAFETY: The function's caller guarantees a NUL-terminated text.
    String::from_utf8_lossy(unsafe { CStr::from_ptr(options) }.to_bytes()).into_owned()
}

fn start(vm: *mut JavaVM, options: &str, attached: bool) -> i32 {
    /// JVM TI environment for all recordings, which is never disposed.
    static ENVIRONMENT: Mutex<Option<Jvmti>> = Mutex::new(None);
    // Two recordings must not start at the same time.
    let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(jvmti) = environment.or_else(|| Jvmti::new(vm)) else {
        crate::messages::complain("this JVM does not support the JVM TI of JDK 11 or later");
        return JNI_ERR;
    };
    *environment = Some(jvmti);
    let jni = if attached { jni_of(vm) } else { None };
    match start::start_with_answer(jvmti, options, jni.as_ref()) {
        Start::Runs => JNI_OK,
        Start::Refuses => JNI_ERR,
        // In the old agent, too, `help` ends the JVM before it runs anything.
        Start::Exit(code) => std::process::exit(code),
    }
}

fn jni_of<'j>(vm: *mut JavaVM) -> Option<Jni<'j>> {
    const JNI_VERSION_1_8: i32 = 0x0001_0008;
    let mut env: *mut c_void = std::ptr::null_mut();
    // SAFETY: the JVM gave `vm` to an entry point that is running.
    let code = unsafe { ((**vm).GetEnv)(vm, &mut env, JNI_VERSION_1_8) };
    if code == JNI_OK { Jni::from_raw(env.cast::<JNIEnv>()) } else { None }
}

/// Starts the agent; called by the JVM when it starts with `-agentpath`.
///
/// # Safety
/// Only the JVM may call this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    text: *const c_char,
    _reserved: *mut c_void,
) -> i32 {
    // SAFETY: the JVM's options.
    let text = unsafe { options(text) };
    catch_unwind(|| start(vm, &text, false)).unwrap_or(JNI_ERR)
}

/// Starts the agent, or sends it a command; called by the JVM when the agent is loaded into a running JVM.
///
/// # Safety
/// Only the JVM may call this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    text: *const c_char,
    _reserved: *mut c_void,
) -> i32 {
    // SAFETY: the JVM's options.
    let text = unsafe { options(text) };
    catch_unwind(|| start(vm, &text, true)).unwrap_or(JNI_ERR)
}

/// Called by the JVM when it ends. Nothing is released, because threads of the JVM may still run the agent's code, and the
/// process ends anyway.
///
/// # Safety
/// Only the JVM may call this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnUnload(_vm: *mut JavaVM) {}
