//! THREAD START, THREAD END, TRACE and frames.

use super::event::{TextEvent, TextFrame};
use super::scan::{Scan, rsplit_once, trim_end, trim_start};

/// Parses `THREAD START (obj=50001f82, id = 200004, name="holder", group="main")`.
pub(super) fn thread_start(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"THREAD START (obj=")?;
    let object = scan.id()?;
    scan.literal(b", id = ")?;
    let serial = scan.serial()?;
    scan.literal(b", name=\"")?;
    // Names may contain quotes.
    let (name, group) = rsplit_once(scan.remaining(), b"\", group=\"")?;
    Some(TextEvent::ThreadStart { object, serial, name, group: group.strip_suffix(b"\")")? })
}

/// Parses `THREAD END (id = 200004)`.
pub(super) fn thread_end(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"THREAD END (id = ")?;
    let serial = scan.serial()?;
    scan.literal(b")")?;
    scan.done()?;
    Some(TextEvent::ThreadEnd { serial })
}

/// Parses `TRACE 300001: (thread=200001) (from VM_START phase of JVM)`.
pub(super) fn trace(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"TRACE ")?;
    let serial = scan.trace()?;
    scan.literal(b":")?;
    scan.spaces();
    let mut thread = 0;
    if scan.maybe(b"(thread=") {
        thread = scan.serial()?;
        scan.literal(b")")?;
        scan.spaces();
    }
    let mut phase = None;
    if scan.maybe(b"(from ") {
        phase = Some(scan.remaining().strip_suffix(b" phase of JVM)")?);
    } else {
        scan.done()?;
    }
    Some(TextEvent::Trace { serial, thread, phase })
}

/// Parses a frame, or `<empty>`.
pub(super) fn frame(line: &[u8]) -> Option<TextEvent<'_>> {
    let text = trim_start(line);
    if matches!(text, b"<empty>" | b"<empty trace>") {
        return Some(TextEvent::Nothing);
    }
    // Method names of languages other than Java may contain parentheses.
    let (method, place) = rsplit_once(text.strip_suffix(b")")?, b"(")?;
    let (class, method) = class_and_method(trim_end(method))?;
    let (source, line) = self::place(place);
    Some(TextEvent::Frame(TextFrame { class, method, source, line }))
}

/// Splits `java.lang.String.<init>`.
pub(super) fn class_and_method(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (class, method) = rsplit_once(text, b".")?;
    // A method name contains no slash: the dot belongs to a hidden class (`a/B$$Lambda.0x12/run` is not
    // one).
    (!class.is_empty() && !method.is_empty()).then_some((class, method))
}

/// Parses the text in parentheses: `String.java:12`, `String.java:Unknown line`, `String.java`, `Native
/// Method`.
fn place(text: &[u8]) -> (Option<&[u8]>, i32) {
    if let Some(line) = line_number(text) {
        return (None, line);
    }
    let (source, line) = match rsplit_once(text, b":") {
        Some((source, line)) => match line_number(line) {
            Some(line) => (source, line),
            None => (text, 0),
        },
        None => (text, 0),
    };
    let is_known = !matches!(source, b"" | b"<Unknown Source>" | b"Unknown Source");
    (is_known.then_some(source), line)
}

/// Parses a line number, in the notation of the agent or of Java.
fn line_number(text: &[u8]) -> Option<i32> {
    Some(match text {
        b"Unknown line" => -1,
        b"Compiled method" | b"Compiled Code" => -2,
        b"Native method" | b"Native Method" => -3,
        _ => {
            let mut scan = Scan::new(text);
            let line = i32::try_from(scan.signed_decimal()?).ok()?;
            scan.done()?;
            line
        }
    })
}
