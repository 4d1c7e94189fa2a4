//! Signals: a process that is asked to end removes its temporary files first; a dump that is truncated while it is
//! mapped causes an error, not a crash.
//! Handlers only record the signal and wake a thread, which is started as soon as there is something to clean up;
//! that thread cleans up and ends the process, and may use locks and memory as usual. SIGINT, SIGTERM and SIGHUP still end
//! the process by that signal, so that shells and scripts can detect it. A second signal ends the process at once, unless the
//! terminal has to be restored first. Signals that were ignored when the program started stay ignored (`nohup`).
//!
//! All `unsafe` code for signals is here.

#[cfg(all(unix, feature = "browse"))]
pub(crate) use unix::{end_now, instead_restoring, is_ending, on_stop, stop_now};
#[cfg(unix)]
pub(crate) use unix::{install, instead, uninstall};

/// Does nothing: this platform has no such signals.
#[cfg(not(unix))]
pub(crate) fn install() {}

/// Does nothing: this platform has no such signals.
#[cfg(not(unix))]
pub(crate) fn uninstall() {}

/// Does nothing: this platform has no such signals.
#[cfg(not(unix))]
pub(crate) fn instead(_: impl Fn() + Send + Sync + 'static) {}

/// Does nothing: this platform has no such signals.
#[cfg(all(not(unix), feature = "browse"))]
pub(crate) fn instead_restoring(_: impl Fn() + Send + Sync + 'static, _: impl Fn() + Send + Sync + 'static) {}

/// Returns `false`: this platform has no such signals.
#[cfg(all(not(unix), feature = "browse"))]
pub(crate) fn is_ending() -> bool {
    false
}

/// Does nothing: this platform has no such signals.
#[cfg(all(not(unix), feature = "browse"))]
pub(crate) fn on_stop(_: impl Fn() + Send + Sync + 'static) {}

/// Does nothing: this platform has no such signals.
#[cfg(all(not(unix), feature = "browse"))]
pub(crate) fn stop_now() {}

/// Does nothing: this platform has no such signals.
#[cfg(all(not(unix), feature = "browse"))]
pub(crate) fn end_now() {}

#[cfg(unix)]
#[allow(unsafe_code)]
mod unix {
    use std::cell::Cell;
    use std::fs::File;
    use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering, fence};
    use std::sync::{Once, OnceLock};
    use std::time::Duration;

    use libc::{c_int, c_void, sigaction, siginfo_t};

    use hprof_index::storage::temporary_files;
    use hprof_input::mapped_files::{self, Content};
    use hprof_report::escape;

    /// State that signal handlers need.
    struct HandlerState {
        stderr: Option<File>,
        /// Previous action for SIGBUS.
        bus: sigaction,
    }

    static STATE: OnceLock<HandlerState> = OnceLock::new();
    /// Pipe that wakes the thread that ends the process. The thread is started late: most commands create no file, and
    /// starting a thread takes longer than many queries.
    static WAKE: OnceLock<PipeWriter> = OnceLock::new();
    /// The signal that ends the process; 0 if none has been received.
    static CAUSE: AtomicI32 = AtomicI32::new(0);
    /// `true` if stderr is a terminal, so that a progress bar may occupy the line of a message.
    static TERMINAL: AtomicBool = AtomicBool::new(false);

    /// Maximum time that a thread that hit a bus error waits for the process to end.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Maximum time that a command of [`instead_restoring`] takes to end by itself.
    const LONGEST_END: Duration = Duration::from_secs(5);

    type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

    /// Installs the handlers, once per process. Handlers that cannot be installed are left as they were.
    pub(crate) fn install() {
        static INSTALLED: AtomicBool = AtomicBool::new(false);
        if INSTALLED.swap(true, Ordering::Relaxed) {
            return;
        }
        // The file-size limit was reached: the write returns an error, which is sufficient.
        if let Ok(old) = get(libc::SIGXFSZ) {
            let _ = LIMIT.set(old);
        }
        let _ = set(libc::SIGXFSZ, libc::SIG_IGN);
        let Ok(bus) = get(libc::SIGBUS) else { return };
        let stderr = io::stderr().as_fd().try_clone_to_owned().ok().map(File::from);
        if STATE.set(HandlerState { stderr, bus }).is_err() {
            return;
        }
        temporary_files::watch(start);
        TERMINAL.store(io::stderr().is_terminal(), Ordering::Relaxed);
        mapped_files::watch(describe);
        let _ = set(libc::SIGBUS, on_bus_error as Handler as libc::sighandler_t);
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(end_at);
    }

    /// Makes a signal end the process as described above, unless it is ignored.
    fn end_at(signal: c_int) {
        if is_default(signal) {
            let _ = set(signal, on_end as Handler as libc::sighandler_t);
        }
    }

    fn is_default(signal: c_int) -> bool {
        get(signal).is_ok_and(|old| old.sa_sigaction == libc::SIG_DFL)
    }

    /// Function called at the first signal that would end the process.
    static INSTEAD: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

    /// Calls `end` at the first SIGINT, SIGTERM or SIGHUP on a separate thread. `end` has to end the process: for commands that
    /// usually end by a signal. A second signal ends the process at once. Only the first call of this function has an effect.
    pub(crate) fn instead(end: impl Fn() + Send + Sync + 'static) {
        let _ = INSTEAD.set(Box::new(end));
        start();
    }

    /// Function that restores the terminal, for a command that has changed its state.
    static RESTORE: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

    /// Calls `end` like [`instead`], for a command that has changed the state of the terminal. It is called for other signals
    /// that would end the process as well, and a second signal has no effect. If the process has not ended after some
    /// seconds, or when it aborts, `restore` is called before it ends.
    #[cfg(feature = "browse")]
    pub(crate) fn instead_restoring(
        end: impl Fn() + Send + Sync + 'static,
        restore: impl Fn() + Send + Sync + 'static,
    ) {
        let _ = RESTORE.set(Box::new(restore));
        instead(end);
        let others = [
            libc::SIGQUIT,
            libc::SIGALRM,
            libc::SIGVTALRM,
            libc::SIGPROF,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGXCPU,
        ];
        others.into_iter().for_each(end_at);
        // Faults of the program itself are not included: handlers cannot return from them.
        #[cfg(target_os = "linux")]
        [libc::SIGIO, libc::SIGPWR].into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).for_each(end_at);
        if is_default(libc::SIGABRT) {
            let _ = set(libc::SIGABRT, on_abort as Handler as libc::sighandler_t);
        }
    }

    /// Returns whether a signal ends the process.
    #[cfg(feature = "browse")]
    pub(crate) fn is_ending() -> bool {
        CAUSE.load(Ordering::SeqCst) != 0
    }

    /// Restores the handling of signals that this process ignores, for a program that replaces it: handlers end with the
    /// process image, but ignored signals stay ignored.
    pub(crate) fn uninstall() {
        if let Some(old) = LIMIT.get() {
            let _ = restore(libc::SIGXFSZ, old);
        }
    }

    /// Previous action for SIGXFSZ.
    static LIMIT: OnceLock<sigaction> = OnceLock::new();

    /// Returns the action for a signal.
    fn get(signal: c_int) -> io::Result<sigaction> {
        // SAFETY: A zeroed `sigaction` is valid; the kernel fills it, and changes nothing as no new action is given.
        let mut old: sigaction = unsafe { std::mem::zeroed() };
        let done = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) };
        if done == 0 { Ok(old) } else { Err(io::Error::last_os_error()) }
    }

    /// Sets the action for a signal: a [`Handler`], `SIG_DFL` or `SIG_IGN`.
    fn set(signal: c_int, action: libc::sighandler_t) -> io::Result<()> {
        // SAFETY: As above.
        let mut new: sigaction = unsafe { std::mem::zeroed() };
        new.sa_sigaction = action;
        // Uses the stack that Rust allocates per thread for signals, where it does.
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        restore(signal, &new)
    }

    fn restore(signal: c_int, action: &sigaction) -> io::Result<()> {
        // SAFETY: The handlers set here call only async-signal-safe functions: they access atomics, write to files
        // that stay open, sleep, and end the process.
        let done = unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Starts the thread that ends the process. Without it, signals end the process at once and leave files in place.
    fn start() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            let Ok((woken, wake)) = io::pipe() else { return };
            let thread = std::thread::Builder::new().name("signals".to_owned()).stack_size(1 << 17);
            if thread.spawn(move || end(woken)).is_ok() {
                let _ = WAKE.set(wake);
            }
            // A handler that did not find the thread ends the process now: no more files are created. Both sides look
            // after a fence, so that one of them sees the other.
            fence(Ordering::SeqCst);
            if CAUSE.load(Ordering::SeqCst) != 0 && INSTEAD.get().is_none() {
                std::thread::sleep(PATIENCE);
            }
        });
    }

    thread_local! {
        /// `true` on the thread that ends the process.
        static IS_ENDING_THREAD: Cell<bool> = const { Cell::new(false) };
    }

    /// Waits until a handler wakes it, then ends the process.
    fn end(mut woken: PipeReader) {
        IS_ENDING_THREAD.set(true);
        if woken.read_exact(&mut [0]).is_err() {
            return;
        }
        let cause = CAUSE.load(Ordering::SeqCst);
        if ![libc::SIGBUS, libc::SIGABRT].contains(&cause)
            && let Some(instead) = INSTEAD.get()
        {
            instead();
            if RESTORE.get().is_none() {
                return;
            }
            std::thread::sleep(LONGEST_END);
        }
        if let Some(restore) = RESTORE.get() {
            restore();
        }
        // Held to the end, so that no file is created and no thread notices that its file is gone.
        let _ending = temporary_files::remove_all();
        if cause != libc::SIGBUS {
            die(cause);
        }
        exit(2);
    }

    /// Ends the process as the first signal would have done without [`instead`]; returns if there was no signal.
    #[cfg(feature = "browse")]
    pub(crate) fn end_now() {
        let cause = CAUSE.load(Ordering::SeqCst);
        if cause != 0 {
            let _ending = temporary_files::remove_all();
            die(cause);
        }
    }

    /// Pipe that wakes the thread that calls the function of [`on_stop`].
    #[cfg(feature = "browse")]
    static STOP: OnceLock<PipeWriter> = OnceLock::new();

    /// Calls `stop` at each SIGTSTP on a separate thread, instead of stopping the process. Only the first call of this function
    /// has an effect; none has one if the signal is ignored.
    #[cfg(feature = "browse")]
    pub(crate) fn on_stop(stop: impl Fn() + Send + Sync + 'static) {
        let Ok((mut woken, wake)) = io::pipe() else { return };
        if is_default(libc::SIGTSTP) && STOP.set(wake).is_ok() {
            std::thread::spawn(move || {
                while woken.read_exact(&mut [0]).is_ok() {
                    stop();
                }
            });
            let _ = set(libc::SIGTSTP, on_stopped as Handler as libc::sighandler_t);
        }
    }

    #[cfg(feature = "browse")]
    extern "C" fn on_stopped(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
        if let Some(mut wake) = STOP.get() {
            let _ = wake.write_all(&[1]);
        }
    }

    /// Stops the process and its job, as the terminal would, until it is continued. Does nothing if nobody could continue the
    /// process: then the kernel ignores the signal, or the parent process does.
    #[cfg(feature = "browse")]
    pub(crate) fn stop_now() {
        let Ok(old) = get(libc::SIGTSTP) else { return };
        if old.sa_sigaction == libc::SIG_IGN || set(libc::SIGTSTP, libc::SIG_DFL).is_err() {
            return;
        }
        // SAFETY: The call accepts any number.
        unsafe {
            libc::kill(0, libc::SIGTSTP);
        }
        // Another thread may receive it.
        std::thread::sleep(Duration::from_millis(20));
        let _ = restore(libc::SIGTSTP, &old);
    }

    /// Ends the process by this signal; with an exit code where the signal has no effect, as in the first process of
    /// a container.
    fn die(signal: c_int) -> ! {
        if set(signal, libc::SIG_DFL).is_ok() {
            // SAFETY: A zeroed `sigset_t` is valid and then emptied. The calls accept any number and are
            // async-signal-safe; the handler unblocks the signal so that it is delivered now.
            unsafe {
                let mut signals: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&raw mut signals);
                libc::sigaddset(&raw mut signals, signal);
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut());
                libc::raise(signal);
            }
        }
        exit(2);
    }

    /// Ends the process now. Buffered output is discarded: it would be an incomplete result.
    fn exit(code: c_int) -> ! {
        // SAFETY: `_exit` may be called anywhere, and nothing runs after it.
        unsafe { libc::_exit(code) }
    }

    extern "C" fn on_end(signal: c_int, _: *mut siginfo_t, _: *mut c_void) {
        let first = CAUSE.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        fence(Ordering::SeqCst);
        let woken = WAKE.get().is_some_and(|mut wake| first && wake.write_all(&[1]).is_ok());
        // The thread that was woken by the first signal restores the terminal.
        if !woken && (first || RESTORE.get().is_none()) {
            die(signal);
        }
    }

    /// Handler for SIGABRT: restores the terminal. The process aborts when it returns.
    #[cfg(feature = "browse")]
    extern "C" fn on_abort(signal: c_int, _: *mut siginfo_t, _: *mut c_void) {
        CAUSE.store(signal, Ordering::SeqCst);
        // The thread that restores the terminal would wait for itself.
        if !IS_ENDING_THREAD.get() && WAKE.get().is_some_and(|mut wake| wake.write_all(&[1]).is_ok()) {
            std::thread::sleep(PATIENCE);
        }
        die(signal);
    }

    extern "C" fn on_bus_error(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        let Some(state) = STATE.get() else { return };
        // SAFETY: The kernel passes a `siginfo_t` to a handler of this kind, and SIGBUS sets the address.
        let address = unsafe { (*info).si_addr() }.addr();
        let mut text = [0; mapped_files::TEXT];
        let Some(len) = mapped_files::copy_map_text(address, &mut text) else {
            // Not a mapped file: the fault occurs again at once, with the previous action.
            let _ = restore(libc::SIGBUS, &state.bus);
            return;
        };
        let first = CAUSE.compare_exchange(0, libc::SIGBUS, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        fence(Ordering::SeqCst);
        if first {
            if let Some(mut stderr) = state.stderr.as_ref() {
                if TERMINAL.load(Ordering::Relaxed) {
                    let _ = stderr.write_all(b"\r\x1b[K");
                }
                let _ = stderr.write_all(text.get(..len).unwrap_or_default());
            }
            if WAKE.get().is_none_or(|mut wake| wake.write_all(&[1]).is_err()) {
                exit(2);
            }
        }
        // The data does not exist: this thread cannot continue.
        std::thread::sleep(PATIENCE);
        exit(2);
    }

    /// Describes a mapped file that was truncated or cannot be accessed.
    fn describe(path: &Path, content: Content) -> String {
        let path = path.display().to_string();
        let path = escape::text(&path);
        let (error, hint) = match content {
            Content::File => (
                "was truncated or replaced while it was read (or its disk cannot be read)",
                "run this again when nothing writes to the file; to replace it, write a new file and rename it",
            ),
            Content::Scratch => (
                "contains a scratch file that can no longer be written (its disk is full or broken)",
                "free space there, or name another directory with --index-dir",
            ),
        };
        format!("hprof-cli: error: {path} {error}\nhprof-cli: hint: {hint}\n")
    }
}
