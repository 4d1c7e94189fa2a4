//! The table of `cpu=old`, the format of JDK 1.1's `java -prof`.

use super::event::{MethodSignature, TextEvent};
use super::scan::{Scan, last_word, rsplit_once};
use super::trace::class_and_method;

/// Title line, which is the whole header.
pub(super) const TITLE: &[u8] = b"count callee caller time";

/// Parses `8360 Plain.fib(I)I Plain.fib(I)I 83`.
pub(super) fn call(line: &[u8]) -> TextEvent<'_> {
    let call = || {
        let mut scan = Scan::new(line);
        scan.spaces();
        let count = scan.serial()?;
        scan.literal(b" ")?;
        let (methods, time) = last_word(scan.remaining())?;
        let mut scan = Scan::new(time);
        let time = scan.signed_decimal()?;
        scan.done()?;
        let (callee, caller) = two_methods(methods)?;
        Some(TextEvent::Call { count: u64::from(count), callee, caller, time })
    };
    call().unwrap_or(TextEvent::Malformed { expected: "count callee caller time", text: line })
}

/// Parses callee and caller. A name may contain spaces, so every space is tried.
fn two_methods(text: &[u8]) -> Option<(Option<MethodSignature<'_>>, Option<MethodSignature<'_>>)> {
    // A line can be up to a megabyte long: this bounds the attempts.
    const MOST: usize = 64;
    let spaces = text.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
    spaces.take(MOST).find_map(|at| {
        let callee = method(text.get(..at)?, b"<unknown callee>")?;
        let caller = method(text.get(at + 1..)?, b"<unknown caller>")?;
        Some((callee, caller))
    })
}

/// Parses `Plain.fib(I)I`; `Some(None)` for a method that is unknown to the agent.
fn method<'a>(text: &'a [u8], unknown: &[u8]) -> Option<Option<MethodSignature<'a>>> {
    if text == unknown {
        return Some(None);
    }
    let at = text.iter().rposition(|byte| *byte == b'(')?;
    let (method, signature) = (text.get(..at)?, text.get(at..)?);
    let (_, result) = rsplit_once(signature, b")")?;
    let is_type = match result {
        [b'V'] => true,
        _ => is_type(result),
    };
    let (class, name) = class_and_method(method)?;
    is_type.then_some(Some(MethodSignature { class, name, signature }))
}

/// Returns `true` if a text is the signature of a type.
fn is_type(text: &[u8]) -> bool {
    let dimensions = text.iter().take_while(|byte| **byte == b'[').count();
    match text.get(dimensions..).unwrap_or_default() {
        [b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z'] => true,
        [b'L', name @ .., b';'] => !name.is_empty() && !name.contains(&b';'),
        _ => false,
    }
}
