//! `cpu=times`: selection of the methods to rewrite, and installation of the tracker that they call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hprof_format::escape;
use hprof_format::names::is_of_jdk;

use crate::jvm::{Argument, Jni};
use crate::messages::complain;
use crate::options::Options;
use crate::record::times::Times;
use crate::record::traces::Method;
use crate::rewrite::{self, Tracker};

/// The tracker is in a package that every module reads, because classes of named modules do not read the boot loader's unnamed
/// module.
const TRACKER: Tracker<'static> = Tracker::new("java/lang/HprofTracker", "enter", "exit");

/// `true` if the tracker's class is defined.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Defines the tracker's class, which rewritten methods call. Classes that were loaded before are not changed.
///
/// If the JVM started with the agent, it finds the tracker's native methods at once. Otherwise it finds them only after
/// `Agent_OnAttach` has returned: [`wait_until_found`] must be called then.
pub fn install(times: &Times, jni: &Jni<'_>, attached: bool) {
    // Its native methods are found by name in the agent's library, because the JVM prints a warning if a class in a package of
    // the JDK registers native methods.
    let install = || {
        jni.frame(4, |jni| {
            jni.define_class(c"java/lang/HprofTracker", &rewrite::tracker_class(&TRACKER)).map(|_| ())
        })
    };
    // It may already be defined, for example by an earlier recording. A tracker that another copy of the library defined calls
    // that copy.
    let installed = if INSTALLED.load(Ordering::Acquire) { Some(()) } else { install().flatten() };
    match installed {
        Some(()) => {
            INSTALLED.store(true, Ordering::Release);
            times.ready.store(!attached, Ordering::Release);
        }
        None => complain("cannot define the class that measures methods: no CPU times are recorded"),
    }
}

/// Waits until the tracker's methods can be called, and starts measuring.
pub fn wait_until_found(times: &Times, jni: &Jni<'_>) {
    const ATTEMPTS: u32 = 100;
    for _ in 0..ATTEMPTS {
        let found = jni.frame(4, |jni| {
            let class = jni.find_class(c"java/lang/HprofTracker")?;
            // No method has the number -1.
            jni.call_static_void(class, c"exit", c"(I)V", &[Argument::Int(-1)]).then_some(())
        });
        if found.flatten().is_some() {
            times.ready.store(true, Ordering::Release);
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    complain("the JVM does not find the agent's native methods: no CPU times are recorded");
}

/// Returns `true` if the methods of a class are measured. The JDK's own classes are measured only if `filter=` names them.
/// `name` is in Java source form.
pub fn is_wanted(filter: &[String], name: &str, boot: bool) -> bool {
    if filter.is_empty() {
        return !boot && !is_of_jdk(name);
    }
    filter.iter().any(|wanted| {
        let rest = name.strip_prefix(wanted.as_str());
        rest.is_some_and(|rest| rest.is_empty() || wanted.ends_with('.') || rest.starts_with(['.', '$']))
    })
}

/// Returns the replacement for a class file that is being loaded; `None` if its methods are not measured.
pub fn instrument(
    options: &Options,
    times: &Times,
    name: &[u8],
    boot: bool,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    if !times.ready.load(Ordering::Acquire) {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let name = text(name).replace('/', ".");
    // Calls of the agent must not interrupt code that mounts virtual threads.
    let mounts =
        name.starts_with("jdk.internal.vm.Continuation") || name.starts_with("java.lang.VirtualThread");
    if mounts || !is_wanted(&options.filter, &name, boot) {
        return None;
    }
    let mut number = |method: &rewrite::ClassFileMethod<'_>| {
        let source = method.source_file.map(text);
        let method = Method::from_names(name.clone(), text(method.name), text(method.descriptor), source);
        Some(times.method(method, boot))
    };
    match rewrite::rewrite(bytes, &TRACKER, &mut number) {
        Ok(rewritten) => {
            if !rewritten.skipped.is_empty() && options.verbose {
                let count = rewritten.skipped.len();
                let name = escape::text(&name);
                let methods = if count == 1 { "method is" } else { "methods are" };
                complain(&format!("{name}: {count} {methods} too long to be measured"));
            }
            rewritten.bytes
        }
        Err(error) => {
            complain(&format!("{} is not measured: {error}", escape::text(&name)));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_packages_and_classes() {
        let filter = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(is_wanted(&[], "com.acme.Foo", false) && is_wanted(&[], "Busy", false));
        assert!(is_wanted(&[], "javassist.Foo", false) && is_wanted(&[], "sunny.Foo", false));
        assert!(!is_wanted(&[], "java.util.Map", false) && !is_wanted(&[], "com.acme.Foo", true));
        let acme = filter(&["com.acme", "java.util.HashMap"]);
        assert!(is_wanted(&acme, "com.acme.Foo", false) && is_wanted(&acme, "com.acme.a.B$C", false));
        assert!(
            is_wanted(&acme, "java.util.HashMap", true) && is_wanted(&acme, "java.util.HashMap$Node", true)
        );
        assert!(
            !is_wanted(&acme, "com.acmeother.Foo", false) && !is_wanted(&acme, "java.util.HashMaps", true)
        );
    }
}
