//! Lines of the HEAP DUMP of a text report, appended to bytes: one for each reference of a heap.

use crate::digits::{push_decimal, push_hex};

/// Returns `HEAP DUMP BEGIN (N objects, N bytes) DATE`.
pub fn begin(objects: u64, bytes: u64, date: &str) -> String {
    format!("HEAP DUMP BEGIN ({objects} objects, {bytes} bytes) {date}\n")
}

/// Last line of the section.
pub const END: &str = "HEAP DUMP END\n";

/// Kind of a GC root, with its details in the text. Unknown frames are -1.
#[derive(Debug, Clone, Copy)]
pub enum RootLine<'a> {
    /// Of unknown kind.
    Unknown,
    /// A global JNI reference: its ID, and the trace of its creation.
    JniGlobal(u64, u32),
    /// A local JNI reference: thread and frame.
    JniLocal(u32, i32),
    /// A local variable: thread and frame.
    JavaFrame(u32, i32),
    /// On a thread's native stack.
    NativeStack(u32),
    /// A class that is never unloaded: its name, already escaped.
    SystemClass(&'a str),
    /// Referenced from a thread block.
    ThreadBlock(u32),
    /// A monitor in use.
    BusyMonitor,
    /// A thread: its serial number and its trace.
    Thread(u32, u32),
    /// A kind that the agent does not know: its name.
    Other(&'a str),
}

/// Appends `ROOT %x (kind=...)`.
pub fn root(out: &mut Vec<u8>, id: u64, kind: RootLine<'_>) {
    let kind = match kind {
        RootLine::Unknown => "<unknown>".to_owned(),
        RootLine::JniGlobal(reference, trace) => format!("<JNI global ref>, id={reference:x}, trace={trace}"),
        RootLine::JniLocal(thread, frame) => format!("<JNI local ref>, thread={thread}, frame={frame}"),
        RootLine::JavaFrame(thread, frame) => format!("<Java stack>, thread={thread}, frame={frame}"),
        RootLine::NativeStack(thread) => format!("<native stack>, thread={thread}"),
        RootLine::SystemClass(name) => format!("<system class>, name={name}"),
        RootLine::ThreadBlock(thread) => format!("<thread block>, thread={thread}"),
        RootLine::BusyMonitor => "<busy monitor>".to_owned(),
        RootLine::Thread(thread, trace) => format!("<thread>, id={thread}, trace={trace}"),
        RootLine::Other(words) => words.to_owned(),
    };
    out.extend_from_slice(b"ROOT ");
    push_hex(out, id);
    out.extend_from_slice(format!(" (kind={kind})\n").as_bytes());
}

/// Appends `CLS %x (name=%s, trace=%u)`; the name is already escaped.
pub fn class(out: &mut Vec<u8>, id: u64, name: &str, trace: u32) {
    out.extend_from_slice(b"CLS ");
    push_hex(out, id);
    out.extend_from_slice(format!(" (name={name}, trace={trace})\n").as_bytes());
}

/// Kind of reference of a class object. The variants are in the order in which a report lists them.
#[derive(Debug, Clone, Copy)]
pub enum ClassReference<'a> {
    /// Superclass.
    Super,
    /// Class loader.
    Loader,
    /// Signers.
    Signers,
    /// Protection domain.
    Domain,
    /// A static field: its name, already escaped.
    Static(&'a str),
    /// An entry of the constant pool: its index.
    Constant(u32),
}

/// Appends a line of a class object; nothing for a null reference.
pub fn class_reference(out: &mut Vec<u8>, reference: ClassReference<'_>, id: u64) {
    if id == 0 {
        return;
    }
    match reference {
        ClassReference::Super => out.extend_from_slice(b"\tsuper\t\t"),
        ClassReference::Loader => out.extend_from_slice(b"\tloader\t\t"),
        ClassReference::Signers => out.extend_from_slice(b"\tsigners\t\t"),
        ClassReference::Domain => out.extend_from_slice(b"\tdomain\t\t"),
        ClassReference::Static(name) => out.extend_from_slice(format!("\tstatic {name}\t").as_bytes()),
        ClassReference::Constant(index) => {
            out.extend_from_slice(format!("\tconstant pool entry {index}\t").as_bytes());
        }
    }
    push_hex(out, id);
    out.push(b'\n');
}

/// Appends `WORD %x (sz=%u, trace=%u`: the head of an object's line.
#[inline(always)]
fn head(out: &mut Vec<u8>, word: &[u8], id: u64, size: u64, trace: u32) {
    out.extend_from_slice(word);
    push_hex(out, id);
    out.extend_from_slice(b" (sz=");
    push_decimal(out, size);
    out.extend_from_slice(b", trace=");
    push_decimal(out, trace);
}

/// Appends `OBJ %x (sz=%u, trace=%u, class=`; [`end_of_class`] must follow.
pub fn object(out: &mut Vec<u8>, id: u64, size: u64, trace: u32) {
    head(out, b"OBJ ", id, size, trace);
    out.extend_from_slice(b", class=");
}

/// Appends `%s@%x)`: a class, and the end of the line; the name is already escaped.
pub fn end_of_class(out: &mut Vec<u8>, name: &str, id: u64) {
    out.extend_from_slice(name.as_bytes());
    out.push(b'@');
    push_hex(out, id);
    out.extend_from_slice(b")\n");
}

/// Appends the name of a field with the surrounding tabs, two after names of up to seven bytes; already
/// escaped.
pub fn field_name(out: &mut Vec<u8>, name: &str) {
    out.push(b'\t');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(if name.len() < 8 { b"\t\t" } else { b"\t" });
}

/// Appends the end of a line that refers to an object.
#[inline(always)]
pub fn target(out: &mut Vec<u8>, id: u64) {
    push_hex(out, id);
    out.push(b'\n');
}

/// Appends `ARR %x (sz=%u, trace=%u, nelems=%u, elem type=`; [`end_of_class`] or [`end_of_primitive`]
/// must follow.
pub fn array(out: &mut Vec<u8>, id: u64, size: u64, trace: u32, length: u32) {
    head(out, b"ARR ", id, size, trace);
    out.extend_from_slice(b", nelems=");
    push_decimal(out, length);
    out.extend_from_slice(b", elem type=");
}

/// Appends `int[])`: the class of an array of a primitive type, and the end of the line.
pub fn end_of_primitive(out: &mut Vec<u8>, element: &str) {
    out.extend_from_slice(element.as_bytes());
    out.extend_from_slice(b"[])\n");
}

/// Appends `\t[%u]\t\t%x`: an element of an array.
#[inline(always)]
pub fn element(out: &mut Vec<u8>, index: u32, id: u64) {
    out.extend_from_slice(b"\t[");
    push_decimal(out, index);
    out.extend_from_slice(b"]\t\t");
    target(out, id);
}
