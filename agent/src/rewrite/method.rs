//! Rewriting of one method: output of its `Code` attribute with inserted calls.

use super::Stop;
use super::code::{Calls, Plan};
use super::error::RewriteError;
use super::frames::{self, HandlerFrame};
use super::layout::{CodeAttribute, CodeTable, Debug, Frames};
use super::pool::{Additions, InsertedConstants};
use super::reader::{TooLong, put_u2, put_u4, put_with_length};

/// Opcode of an inserted instruction that pushes 0; the following opcodes push 1 to 5.
const ICONST_0: u8 = 3;
/// Opcode of an inserted instruction that pushes an int of one byte.
const BIPUSH: u8 = 16;
/// Opcode of an inserted instruction that pushes an int of two bytes.
const SIPUSH: u8 = 17;
/// Opcode of an inserted instruction that pushes a constant.
const LDC_W: u8 = 19;
/// Opcode of an inserted instruction that calls a static method.
const INVOKESTATIC: u8 = 184;
/// Opcode of an inserted instruction that throws an exception.
const ATHROW: u8 = 191;

/// Handling of exceptions that leave a rewritten method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExceptionHandling {
    /// A handler is added for everything that the original code throws.
    Added,
    /// No handler is added, in constructors: before another constructor is called, `this` is uninitialized, and the flag
    /// `flagThisUninit` makes such a frame unassignable to the frame of a handler that has no `this` (JVMS 4.10.1.2).
    Left,
}

/// Code of a call: an instruction that pushes an int, and a call of a static method with this argument.
#[derive(Debug)]
pub(super) struct TrackerCall {
    bytes: [u8; 6],
    length: usize,
}

impl TrackerCall {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn append(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + bytes.len()) {
            place.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }
}

/// Returns the calls for the entry and the exit of the method with this number; `None` if the constant pool is full.
pub(super) fn calls(
    number: u32,
    shared: InsertedConstants,
    additions: &mut Additions,
) -> Option<[TrackerCall; 2]> {
    let value = number.cast_signed();
    let mut push = TrackerCall { bytes: [0; 6], length: 0 };
    match (u8::try_from(value), i8::try_from(value), i16::try_from(value)) {
        (Ok(small @ 0..=5), _, _) => push.append(&[ICONST_0 + small]),
        (_, Ok(byte), _) => push.append(&[BIPUSH, byte.cast_unsigned()]),
        (_, _, Ok(short)) => {
            let [high, low] = short.to_be_bytes();
            push.append(&[SIPUSH, high, low]);
        }
        _ => {
            let [high, low] = additions.integer(value)?.to_be_bytes();
            push.append(&[LDC_W, high, low]);
        }
    }
    Some([shared.enter, shared.exit].map(|method| {
        let [high, low] = method.to_be_bytes();
        let mut call = TrackerCall { ..push };
        call.append(&[INVOKESTATIC, high, low]);
        call
    }))
}

/// Appends the content of a method's `Code` attribute with the calls inserted.
pub(super) fn write(
    attribute: &CodeAttribute<'_>,
    [enter, exit]: &[TrackerCall; 2],
    handler: ExceptionHandling,
    frames: Frames,
    shared: InsertedConstants,
    plan: &mut Plan,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let calls = Calls { enter: enter.bytes(), exit: exit.bytes() };
    plan.make(attribute.code, attribute.code_at, calls)?;
    let handler_length = if handler == ExceptionHandling::Added { calls.exit.len() + 1 } else { 0 };
    let length = plan.end() + handler_length;
    let length = u16::try_from(length).map_err(|_| TooLong)?;

    // One more int than the old maximum; the handler needs space for the exception and an int.
    put_u2(out, attribute.max_stack.checked_add(1).ok_or(TooLong)?.max(2));
    put_u2(out, attribute.max_locals);
    put_u4(out, u32::from(length));
    plan.write(attribute.code, attribute.code_at, calls, out)?;
    if handler == ExceptionHandling::Added {
        out.extend_from_slice(calls.exit);
        out.push(ATHROW);
    }
    write_handlers(attribute, handler, plan, calls, out)?;
    write_tables(attribute, handler, frames, shared, plan, out)
}

/// Appends the exception table. The handler for everything is the last one, because the JVM takes the first that matches.
fn write_handlers(
    attribute: &CodeAttribute<'_>,
    handler: ExceptionHandling,
    plan: &Plan,
    calls: Calls<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let added = u16::from(handler == ExceptionHandling::Added);
    put_u2(out, attribute.handler_count.checked_add(added).ok_or(TooLong)?);
    let mut reader = attribute.handlers.clone();
    while !reader.is_at_end() {
        let at = reader.offset();
        let start = plan.boundary(usize::from(reader.u2("an exception handler")?), at)?;
        let end = plan.boundary(usize::from(reader.u2("an exception handler")?), at + 2)?;
        let target = plan.instruction(usize::from(reader.u2("an exception handler")?), at + 4)?;
        for offset in [start, end, target] {
            put_offset(out, offset)?;
        }
        put_u2(out, reader.u2("an exception handler")?);
    }
    if handler == ExceptionHandling::Added {
        let end = u16::try_from(plan.end()).map_err(|_| TooLong)?;
        let start = u16::try_from(calls.enter.len()).map_err(|_| TooLong)?;
        for part in [start, end, end, 0] {
            put_u2(out, part);
        }
    }
    Ok(())
}

/// Appends the attributes inside of the `Code` attribute.
fn write_tables(
    attribute: &CodeAttribute<'_>,
    handler: ExceptionHandling,
    frames: Frames,
    shared: InsertedConstants,
    plan: &Plan,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let handler_frame = match handler {
        ExceptionHandling::Added => HandlerFrame::Throwable(shared.throwable),
        ExceptionHandling::Left => HandlerFrame::None,
    };
    let has_frames =
        frames == Frames::Used && (attribute.frames.is_some() || handler == ExceptionHandling::Added);
    let count = attribute.debug.len() + usize::from(has_frames);
    put_u2(out, u16::try_from(count).map_err(|_| TooLong)?);
    if has_frames {
        put_u2(out, attribute.frames.as_ref().map_or(shared.frames, |table| table.name));
        put_with_length::<Stop>(out, |out| {
            frames::write(attribute.frames.as_ref(), handler_frame, plan, out)
        })?;
    }
    for (kind, table) in &attribute.debug {
        put_u2(out, table.name);
        put_with_length::<Stop>(out, |out| write_debug(*kind, table, plan, out))?;
    }
    Ok(())
}

/// Appends the content of a `LineNumberTable`, `LocalVariableTable` or `LocalVariableTypeTable`.
fn write_debug(kind: Debug, table: &CodeTable<'_>, plan: &Plan, out: &mut Vec<u8>) -> Result<(), Stop> {
    put_u2(out, table.count);
    let mut reader = table.entries.clone();
    for _ in 0..table.count {
        let at = reader.offset();
        let old = usize::from(reader.u2("an entry of a table")?);
        let start = plan.debug(old, at)?;
        put_offset(out, start)?;
        match kind {
            Debug::Lines => put_u2(out, reader.u2("a line number")?),
            Debug::Variables => {
                let length = usize::from(reader.u2("a local variable")?);
                let end = plan.debug(old + length, at)?;
                put_offset(out, end.saturating_sub(start))?;
                out.extend_from_slice(reader.take(6, "a local variable")?);
            }
        }
    }
    Ok(reader.finish("the end of a table")?)
}

fn put_offset(out: &mut Vec<u8>, offset: u32) -> Result<(), TooLong> {
    put_u2(out, u16::try_from(offset).map_err(|_| TooLong)?);
    Ok(())
}

impl From<TooLong> for Stop {
    fn from(_: TooLong) -> Stop {
        Stop::TooLong
    }
}

impl From<RewriteError> for Stop {
    fn from(error: RewriteError) -> Stop {
        Stop::Damaged(error)
    }
}
