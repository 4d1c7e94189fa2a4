//! HEAP DUMP: ROOT, CLS, OBJ, ARR and the lines below them.

use super::event::{ClassReference, TextArray, TextEvent, TextObject, TextRoot};
use super::scan::{Scan, last_word, rsplit_once, trim_start, whole_id};
use crate::ObjectId;
use crate::RootKind;

/// Kind of the line to which the following indented lines belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// No owner: after the first line, or after a ROOT.
    Nothing,
    /// Lines below a CLS.
    Class,
    /// Lines below an OBJ, or below a line that cannot be parsed.
    Object,
    /// Lines below an ARR.
    Array,
}

/// Parses `HEAP DUMP BEGIN (8080 objects, 561520 bytes) Sat Nov 21 01:58:24 2026`.
pub(super) fn begin(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"HEAP DUMP BEGIN (")?;
    let objects = scan.decimal()?;
    scan.literal(b" objects, ")?;
    let bytes = scan.decimal()?;
    scan.literal(b" bytes)")?;
    scan.spaces();
    Some(TextEvent::HeapBegin { objects, bytes, date: scan.remaining() })
}

/// Parses a line that is not the first or last one of the section.
#[inline]
pub(super) fn line<'a>(body: &mut Body, line: &'a [u8]) -> TextEvent<'a> {
    let (expected, event, next) = match line {
        [b' ' | b'\t', ..] => {
            let (expected, event) = indented_line(*body, line);
            return event.unwrap_or(TextEvent::Malformed { expected, text: line });
        }
        [b'O', ..] => ("OBJ id (sz=N, trace=N, class=NAME@id)", object(line), Body::Object),
        [b'A', ..] => ("ARR id (sz=N, trace=N, nelems=N, elem type=NAME)", array(line), Body::Array),
        [b'C', ..] => ("CLS id (name=NAME, trace=N)", class(line), Body::Class),
        [b'R', ..] => ("ROOT id (kind=<KIND>)", root(line), Body::Nothing),
        _ => ("a line of a HEAP DUMP", None, Body::Object),
    };
    match event {
        Some(event) => {
            *body = next;
            event
        }
        None => {
            *body = Body::Object;
            TextEvent::Malformed { expected, text: line }
        }
    }
}

#[inline]
fn indented_line(body: Body, line: &[u8]) -> (&'static str, Option<TextEvent<'_>>) {
    match body {
        Body::Object => ("a field and an object ID", field(line)),
        Body::Array => ("[index] and an object ID", element(line)),
        Body::Class => ("a reference from a class and an object ID", class_reference(line)),
        Body::Nothing => ("CLS, OBJ or ARR", None),
    }
}

#[inline]
fn field(line: &[u8]) -> Option<TextEvent<'_>> {
    let (name, id) = last_word(trim_start(line))?;
    Some(TextEvent::Field { name, object: whole_id(id)? })
}

#[inline]
fn element(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.spaces();
    scan.literal(b"[")?;
    let index = scan.decimal()?;
    scan.literal(b"]")?;
    scan.spaces();
    let object = scan.id()?;
    scan.done()?;
    Some(TextEvent::Element { index, object })
}

fn class_reference(line: &[u8]) -> Option<TextEvent<'_>> {
    let (name, id) = last_word(trim_start(line))?;
    let object = whole_id(id)?;
    let what = match name {
        b"super" => ClassReference::Super,
        b"loader" => ClassReference::Loader,
        b"signers" => ClassReference::Signers,
        b"domain" => ClassReference::Domain,
        _ => {
            let mut scan = Scan::new(name);
            if scan.maybe(b"static") {
                let [b' ' | b'\t', field @ ..] = scan.remaining() else { return None };
                ClassReference::Static(trim_start(field))
            } else {
                scan.literal(b"constant")?;
                let number = if scan.maybe(b"[") {
                    let number = scan.decimal()?;
                    scan.literal(b"]")?;
                    number
                } else {
                    scan.literal(b" pool entry ")?;
                    scan.decimal()?
                };
                scan.done()?;
                ClassReference::Constant(number)
            }
        }
    };
    Some(TextEvent::ClassReference { what, object })
}

#[inline]
fn object(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"OBJ ")?;
    let object = scan.id()?;
    scan.literal(b" (sz=")?;
    let size = scan.decimal()?;
    scan.literal(b", trace=")?;
    let trace = scan.trace()?;
    scan.literal(b", class=")?;
    let (class, class_object) = class_and_id(scan.remaining().strip_suffix(b")")?);
    Some(TextEvent::Object(TextObject { object, size, trace, class, class_object }))
}

#[inline]
fn array(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"ARR ")?;
    let object = scan.id()?;
    scan.literal(b" (sz=")?;
    let size = scan.decimal()?;
    scan.literal(b", trace=")?;
    let trace = scan.trace()?;
    scan.literal(b", nelems=")?;
    let length = scan.decimal()?;
    scan.literal(b", elem type=")?;
    let (class, class_object) = class_and_id(scan.remaining().strip_suffix(b")")?);
    Some(TextEvent::Array(TextArray { object, size, trace, length, class, class_object }))
}

/// Splits `Plain$Node@500001ae`; without an ID for primitive types.
#[inline]
fn class_and_id(text: &[u8]) -> (&[u8], Option<ObjectId>) {
    let at = text.iter().rposition(|byte| *byte == b'@');
    let parts = at.and_then(|at| Some((text.get(..at)?, whole_id(text.get(at + 1..)?)?)));
    parts.map_or((text, None), |(name, id)| (name, Some(id)))
}

fn class(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"CLS ")?;
    let object = scan.id()?;
    scan.literal(b" (name=")?;
    let (name, trace) = rsplit_once(scan.remaining().strip_suffix(b")")?, b", trace=")?;
    let mut scan = Scan::new(trace);
    let trace = scan.trace()?;
    scan.done()?;
    Some(TextEvent::Class { object, name, trace })
}

fn root(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"ROOT ")?;
    let object = scan.id()?;
    scan.literal(b" (kind=<")?;
    let kind = kind(scan.until(b'>')?)?;
    let mut root =
        TextRoot { object, kind, thread: None, trace: None, frame: None, reference: None, class: None };
    while !scan.maybe(b")") {
        scan.literal(b", ")?;
        if scan.maybe(b"name=") {
            // A name may contain anything; nothing follows it.
            root.class = Some(scan.remaining().strip_suffix(b")")?);
            return Some(TextEvent::Root(root));
        }
        match scan.until(b'=')? {
            b"id" if kind == RootKind::JniGlobal => root.reference = Some(scan.hex()?),
            b"id" | b"thread" => root.thread = Some(scan.serial()?),
            b"trace" => root.trace = Some(scan.trace()?),
            b"frame" => root.frame = Some(scan.signed_decimal()?),
            _ => return None,
        }
    }
    scan.done()?;
    Some(TextEvent::Root(root))
}

/// Returns the kind for a name: the agent's names, and this project's for Android's kinds, which the
/// agent did not know.
fn kind(text: &[u8]) -> Option<RootKind> {
    Some(match text {
        b"unknown" => RootKind::Unknown,
        b"thread" => RootKind::ThreadObject,
        b"JNI global ref" => RootKind::JniGlobal,
        b"JNI local ref" => RootKind::JniLocal,
        b"system class" => RootKind::StickyClass,
        b"busy monitor" => RootKind::MonitorUsed,
        b"thread block" => RootKind::ThreadBlock,
        b"Java stack" => RootKind::JavaFrame,
        b"native stack" => RootKind::NativeStack,
        _ => return RootKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == text),
    })
}
