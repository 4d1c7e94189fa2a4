//! Output of the `StackMapTable` attribute (JVMS 4.7.4).

use super::Stop;
use super::code::Plan;
use super::error::RewriteError;
use super::layout::CodeTable;
use super::reader::{ClassFileReader, TooLong, patch, put_u2};

/// Exception handler at the end of the method's code, which needs a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandlerFrame {
    /// No handler.
    None,
    /// A handler for everything that is thrown, with the index of the class `java/lang/Throwable`.
    Throwable(u16),
}

const SAME_LOCALS_1: u8 = 64;
const SAME_LOCALS_1_EXTENDED: u8 = 247;
const SAME_EXTENDED: u8 = 251;
const FULL: u8 = 255;
const OBJECT: u8 = 7;
const UNINITIALIZED: u8 = 8;

/// Appends the content of a `StackMapTable` with the new offsets of `plan`.
pub(super) fn write(
    table: Option<&CodeTable<'_>>,
    handler: HandlerFrame,
    plan: &Plan,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let count_at = out.len();
    let mut count = table.map_or(0, |table| table.count);
    put_u2(out, count);
    let mut deltas = Deltas { last: None };
    if let Some(table) = table {
        write_frames(table, plan, &mut deltas, out)?;
    }
    if let HandlerFrame::Throwable(class) = handler {
        // The frame has no local variables, so it is valid for every instruction that the handler covers.
        out.push(FULL);
        let end = u32::try_from(plan.end()).map_err(|_| TooLong)?;
        put_u2(out, deltas.next(end)?);
        put_u2(out, 0);
        put_u2(out, 1);
        out.push(OBJECT);
        put_u2(out, class);
        count = count.checked_add(1).ok_or(TooLong)?;
    }
    patch(out, count_at, &count.to_be_bytes());
    Ok(())
}

fn write_frames(
    table: &CodeTable<'_>,
    plan: &Plan,
    deltas: &mut Deltas,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let mut reader = table.entries.clone();
    let mut old = None;
    for _ in 0..table.count {
        let at = reader.offset();
        let tag = reader.u1("a frame")?;
        let old_delta = match tag {
            0..=63 => u16::from(tag),
            64..=127 => u16::from(tag - SAME_LOCALS_1),
            SAME_LOCALS_1_EXTENDED..=FULL => reader.u2("a frame")?,
            128..=246 => return Err(RewriteError::number(at, "the type of a frame", tag).into()),
        };
        let offset = match old {
            None => usize::from(old_delta),
            Some(old) => usize::from(old_delta) + old + 1,
        };
        old = Some(offset);
        let delta = deltas.next(plan.instruction(offset, at)?)?;
        let short = u8::try_from(delta).ok().filter(|&delta| delta < SAME_LOCALS_1);
        match (tag, short) {
            (0..=63 | SAME_EXTENDED, Some(short)) => out.push(short),
            (0..=63 | SAME_EXTENDED, None) => put_tag(out, SAME_EXTENDED, delta),
            (64..=127 | SAME_LOCALS_1_EXTENDED, Some(short)) => out.push(SAME_LOCALS_1 + short),
            (64..=127 | SAME_LOCALS_1_EXTENDED, None) => put_tag(out, SAME_LOCALS_1_EXTENDED, delta),
            _ => put_tag(out, tag, delta),
        }
        match tag {
            64..=127 | SAME_LOCALS_1_EXTENDED => copy_types(&mut reader, 1, plan, out)?,
            // append_frame: 252 adds one local variable.
            252..=254 => copy_types(&mut reader, u16::from(tag - SAME_EXTENDED), plan, out)?,
            FULL => {
                for _ in ["local variables", "operand stack"] {
                    let count = reader.u2("a frame")?;
                    put_u2(out, count);
                    copy_types(&mut reader, count, plan, out)?;
                }
            }
            _ => {}
        }
    }
    Ok(reader.finish("the end of the StackMapTable attribute")?)
}

fn put_tag(out: &mut Vec<u8>, tag: u8, delta: u16) {
    out.push(tag);
    put_u2(out, delta);
}

/// Copies `count` verification types.
fn copy_types(
    reader: &mut ClassFileReader<'_>,
    count: u16,
    plan: &Plan,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    for _ in 0..count {
        let at = reader.offset();
        let tag = reader.u1("a verification type")?;
        out.push(tag);
        match tag {
            0..=6 => {}
            OBJECT => put_u2(out, reader.u2("a verification type")?),
            UNINITIALIZED => {
                // Position of the offset of the `new` instruction that created the object.
                let at = reader.offset();
                let new = plan.instruction(usize::from(reader.u2("a verification type")?), at)?;
                put_u2(out, u16::try_from(new).map_err(|_| TooLong)?);
            }
            _ => return Err(RewriteError::number(at, "a verification type", tag).into()),
        }
    }
    Ok(())
}

/// Calculator of the `offset_delta` of frames.
struct Deltas {
    /// Offset of the previous frame.
    last: Option<u32>,
}

impl Deltas {
    fn next(&mut self, offset: u32) -> Result<u16, TooLong> {
        let from = self.last.map_or(0, |last| last + 1);
        self.last = Some(offset);
        offset.checked_sub(from).and_then(|delta| u16::try_from(delta).ok()).ok_or(TooLong)
    }
}
