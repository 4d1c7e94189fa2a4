//! The terminal of the browser: set up, read and drawn; restored at the end, after panics, and while the process is suspended.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, Event as TerminalEvent, KeyCode, KeyEventKind,
    KeyModifiers, MouseButton, MouseEventKind,
};
use ratatui_crossterm::crossterm::terminal::{
    self, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui_crossterm::crossterm::{cursor, execute};

use super::core::{Browser, Effect, Key, ScreenAnswer};
use super::link::{EventSink, Link, ScreenEvent};
use crate::cli::shared::context::lock;
use crate::cli::shared::signals;

/// An event that the browser waits for.
enum BrowserEvent {
    Terminal(TerminalEvent),
    Worker(ScreenEvent),
    /// The terminal is gone, or a signal ends the process.
    End,
    /// The process must stop, because of Ctrl-Z or SIGTSTP.
    Stop,
}

/// Runs the browser until it quits.
pub(super) fn run(words: Vec<OsString>, browser: impl FnOnce((u16, u16)) -> Browser) -> anyhow::Result<()> {
    let (sender, events) = channel();
    watch_signals(&sender);
    let _hook = PanicHook::install();
    let Some(session) = TerminalSession::enter()? else {
        signals::end_now();
        return Ok(());
    };
    let (has_ended, failure) = {
        let mut browser = browser(terminal::size()?);
        let (done, keys_done) = channel();
        let screen = BrowserLoop {
            terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?,
            done,
            link: Link::new(std::env::current_exe()?, words, worker_event_sink(sender.clone())),
            has_color: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        watch_terminal(sender.clone());
        read_keys(sender, keys_done);
        (screen.run(&mut browser, &events), browser.failure())
    };
    drop(session);
    if has_ended? {
        signals::end_now();
    }
    // Messages on the screen are gone with it.
    match failure {
        Some(text) => anyhow::bail!("{}", text.strip_prefix("error: ").unwrap_or(&text).to_owned()),
        None => Ok(()),
    }
}

fn worker_event_sink(sender: Sender<BrowserEvent>) -> EventSink {
    let sender = Mutex::new(sender);
    // Sending fails only at the end, when nothing receives.
    Arc::new(move |heard| drop(lock(&sender).send(BrowserEvent::Worker(heard))))
}

/// Reads keys on a separate thread, each after the previous one has taken effect: anything typed after the last key is left
/// for the shell.
fn read_keys(sender: Sender<BrowserEvent>, done: Receiver<()>) {
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(BrowserEvent::Terminal(event)).is_err() || done.recv().is_err() {
                return;
            }
        }
        // The terminal is gone.
        let _ = sender.send(BrowserEvent::End);
    });
}

/// Ends the browser when the terminal is closed, even if SIGHUP is ignored: reading keys would neither fail nor wait.
fn watch_terminal(sender: Sender<BrowserEvent>) {
    std::thread::spawn(move || {
        while io::stdin().is_terminal() {
            std::thread::sleep(Duration::from_millis(500));
        }
        let _ = sender.send(BrowserEvent::End);
    });
}

fn watch_signals(sender: &Sender<BrowserEvent>) {
    let end = Mutex::new(sender.clone());
    signals::instead_restoring(
        move || {
            let _ = lock(&end).send(BrowserEvent::End);
        },
        leave_anyhow,
    );
    let stop = Mutex::new(sender.clone());
    signals::on_stop(move || {
        let _ = lock(&stop).send(BrowserEvent::Stop);
    });
}

/// The event loop, with the terminal and the connection to the worker.
struct BrowserLoop {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
    link: Link,
    /// Allows the next key to be read.
    done: Sender<()>,
    has_color: bool,
}

impl BrowserLoop {
    /// Handles events until the browser quits; returns `true` if a signal ends it.
    fn run(mut self, browser: &mut Browser, events: &Receiver<BrowserEvent>) -> anyhow::Result<bool> {
        let is_ended = self.take_events(browser, events);
        // Immediately: the worker process may take a moment to end, and anything typed meanwhile is for the shell.
        leave();
        is_ended
    }

    fn take_events(
        &mut self,
        browser: &mut Browser,
        events: &Receiver<BrowserEvent>,
    ) -> anyhow::Result<bool> {
        let mut keys = 0;
        loop {
            for effect in browser.effects() {
                match effect {
                    Effect::Ask(question) => {
                        let (number, width) = (question.number, question.width);
                        if let Err(error) = self.link.ask(question) {
                            let text = format!("{error:#}");
                            browser.answer(number, ScreenAnswer::for_failure(&text, None, width));
                        }
                    }
                    Effect::Cancel => self.link.cancel(),
                    Effect::Copy(text) => copy(&text)?,
                    Effect::Suspend => {
                        if self.stop()? {
                            return Ok(true);
                        }
                    }
                    Effect::Quit => return Ok(false),
                }
            }
            for _ in 0..std::mem::take(&mut keys) {
                // The thread that reads keys may have ended.
                let _ = self.done.send(());
            }
            let has_color = self.has_color;
            self.terminal.draw(|frame| browser.draw(frame.buffer_mut(), has_color))?;
            let Ok(event) = events.recv() else { return Ok(true) };
            // Further pending events are handled before drawing.
            for event in std::iter::once(event).chain(events.try_iter()) {
                match event {
                    BrowserEvent::Terminal(event) => {
                        take(browser, &event);
                        keys += 1;
                    }
                    BrowserEvent::Worker(heard) => self.hear(browser, heard),
                    BrowserEvent::End => return Ok(true),
                    BrowserEvent::Stop => {
                        if self.stop()? {
                            return Ok(true);
                        }
                    }
                }
            }
        }
    }

    fn hear(&mut self, browser: &mut Browser, heard: ScreenEvent) {
        match heard {
            ScreenEvent::Answer(number, answer) => {
                self.link.note_answer(number);
                browser.answer(number, answer);
            }
            ScreenEvent::Early(number, answer) => {
                self.link.note_index();
                self.link.note_read(number);
                browser.early(number, answer);
            }
            ScreenEvent::Progress(number, stage) => {
                self.link.note_read(number);
                browser.progress(number, &stage);
            }
            ScreenEvent::Ended(number) => {
                if let Some(number) = self.link.note_end(number) {
                    let text = "the worker process ended unexpectedly; it may have run out of memory";
                    browser.answer(number, ScreenAnswer::for_failure(text, None, u16::MAX));
                }
            }
        }
    }

    /// Stops the process, and sets up the terminal again when it continues. Returns `true` if a signal is about to end the
    /// process: it may be in the background then, where using the terminal would stop it again.
    fn stop(&mut self) -> anyhow::Result<bool> {
        leave();
        signals::stop_now();
        if signals::is_ending() {
            return Ok(true);
        }
        if !enter()? {
            return Ok(true);
        }
        // A new one draws everything. `Terminal::clear` would ask the terminal for its cursor, and the thread that reads keys
        // would take the reply.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(false)
    }
}

/// Passes a terminal event to the browser.
fn take(browser: &mut Browser, event: &TerminalEvent) {
    match event {
        TerminalEvent::Resize(columns, lines) => browser.resize((*columns, *lines)),
        TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => {
            let has = |modifier| key.modifiers.contains(modifier);
            let key = match key.code {
                KeyCode::Char('c') if has(KeyModifiers::CONTROL) => Key::Interrupt,
                KeyCode::Char('z') if has(KeyModifiers::CONTROL) => Key::Suspend,
                KeyCode::Char('u') if has(KeyModifiers::CONTROL) => Key::Clear,
                KeyCode::Char('h') if has(KeyModifiers::CONTROL) => Key::Backspace,
                KeyCode::Char(_) if has(KeyModifiers::CONTROL) || has(KeyModifiers::ALT) => return,
                KeyCode::Char(c) => Key::Char(c),
                KeyCode::Enter => Key::Enter,
                KeyCode::Backspace => Key::Backspace,
                KeyCode::Esc => Key::Esc,
                KeyCode::Tab => Key::Tab,
                KeyCode::Up => Key::Up,
                KeyCode::Down => Key::Down,
                KeyCode::Left => Key::Left,
                KeyCode::Right => Key::Right,
                KeyCode::PageUp => Key::PageUp,
                KeyCode::PageDown => Key::PageDown,
                KeyCode::Home => Key::Home,
                KeyCode::End => Key::End,
                _ => return,
            };
            browser.key(key);
        }
        TerminalEvent::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => browser.key(Key::Click(mouse.row)),
            MouseEventKind::ScrollUp => (0..3).for_each(|_| browser.key(Key::Up)),
            MouseEventKind::ScrollDown => (0..3).for_each(|_| browser.key(Key::Down)),
            _ => {}
        },
        _ => {}
    }
}

/// `true` while the terminal is in the state of the browser.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// Guard that restores the terminal when it is dropped.
struct TerminalSession;

impl TerminalSession {
    /// Sets up the terminal. Returns `None` if the process must end.
    fn enter() -> anyhow::Result<Option<Self>> {
        Ok(enter()?.then_some(Self))
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        leave();
    }
}

/// Maximum number of stops while another job uses the terminal. A stop has no effect if nobody could continue the process.
const MAX_STOPS: usize = 50;

/// Returns whether this process is in the foreground. Changing the terminal from the background would stop the process, and a
/// signal could not end it then.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    use rustix::{process, termios};
    // A terminal without job control may be changed by any process.
    termios::tcgetpgrp(io::stdin()).map_or(true, |group| group == process::getpgrp())
}

/// Returns `true`: this platform has no jobs.
#[cfg(not(unix))]
fn is_in_foreground() -> bool {
    true
}

/// Sets up the terminal for the browser; in the background, stops the process first. Returns `false` if the process must end.
fn enter() -> anyhow::Result<bool> {
    for _ in 0..MAX_STOPS {
        if signals::is_ending() {
            return Ok(false);
        }
        if is_in_foreground() {
            break;
        }
        signals::stop_now();
    }
    IS_ENTERED.store(true, Ordering::SeqCst);
    let entered = enable_raw_mode()
        .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, cursor::Hide));
    if entered.is_err() {
        leave();
    }
    entered?;
    Ok(true)
}

/// Restores the terminal, unless it was restored already, is closed, or is used by another job.
fn leave() {
    leave_by(&mut io::stdout());
}

/// Restores the terminal by writing to `out`, unless it was restored already.
fn leave_by(out: &mut impl Write) {
    if IS_ENTERED.swap(false, Ordering::SeqCst) && is_in_foreground() {
        // Its mode first: a terminal that was halted by Ctrl-S takes no output.
        let _ = disable_raw_mode();
        let _ = execute!(out, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    }
}

/// Returns stdout without its lock and its buffer, which another thread may hold.
#[cfg(unix)]
fn unlocked_stdout() -> io::Result<impl Write> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from)
}

/// Returns stdout. On this platform, no signal calls [`leave_anyhow`].
#[cfg(not(unix))]
fn unlocked_stdout() -> io::Result<impl Write> {
    Ok(io::stdout())
}

/// Restores the terminal while the main thread hangs, possibly while drawing. Gives up after a moment if the terminal accepts
/// no output.
fn leave_anyhow() {
    if !is_in_foreground() {
        return;
    }
    let (done, left) = channel();
    std::thread::spawn(move || {
        let _ = disable_raw_mode();
        if let Ok(mut out) = unlocked_stdout() {
            leave_by(&mut out);
        }
        let _ = done.send(());
    });
    let _ = left.recv_timeout(Duration::from_millis(500));
}

/// Copies a text to the clipboard of the terminal (OSC 52).
fn copy(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "\u{1b}]52;c;{}\u{7}", base64(text.as_bytes()))?;
    out.flush()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS.get((bits >> (18 - 6 * at) & 63) as usize).filter(|_| at <= chunk.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

/// A panic hook.
type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

/// Guard with the previous panic hook. The hook that it sets restores the terminal before a panic of this thread is reported.
struct PanicHook(Arc<Mutex<Option<Hook>>>);

impl PanicHook {
    fn install() -> Self {
        Self::with(leave)
    }

    fn with(restore: impl Fn() + Send + Sync + 'static) -> Self {
        let previous = Arc::new(Mutex::new(Some(panic::take_hook())));
        let (shared, main) = (previous.clone(), std::thread::current().id());
        panic::set_hook(Box::new(move |info| {
            if std::thread::current().id() == main {
                restore();
                if let Some(hook) = &*lock(&shared) {
                    hook(info);
                }
            }
        }));
        Self(previous)
    }
}

impl Drop for PanicHook {
    fn drop(&mut self) {
        // A hook cannot be set while its thread panics.
        if !std::thread::panicking()
            && let Some(hook) = lock(&self.0).take()
        {
            panic::set_hook(hook);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_restores_the_terminal_before_it_is_reported() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let outer = panic::take_hook();
        let (first, then) = (order.clone(), order.clone());
        // Other tests may panic at the same time.
        let this = std::thread::current().id();
        panic::set_hook(Box::new(move |_| {
            if std::thread::current().id() == this {
                lock(&then).push("reported");
            }
        }));
        // A hook applies to all threads: only panics of this one restore, and none after the browser has ended.
        let hook = PanicHook::with(move || lock(&first).push("restored"));
        let _ = panic::catch_unwind(|| panic!("here"));
        let _ = std::thread::spawn(|| panic!("elsewhere")).join();
        drop(hook);
        let _ = panic::catch_unwind(|| panic!("later"));
        panic::set_hook(outer);
        assert_eq!(*lock(&order), ["restored", "reported", "reported"]);
    }

    #[test]
    fn copied_texts_are_base64() {
        for (text, expected) in
            [("", ""), ("0", "MA=="), ("0x", "MHg="), ("0x7", "MHg3"), ("0xff", "MHhmZg==")]
        {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
