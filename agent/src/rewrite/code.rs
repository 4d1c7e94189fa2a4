//! Instructions of a method (JVMS 6.5): their new lengths, new offsets, and output.
//!
//! One pass computes the new offset of each instruction and lists the instructions that change. A second pass copies the code
//! between these. The new offset of a return instruction is the offset of the call inserted before it, so that branches to the
//! return reach the call. The new offset of the first instruction is after the call at the method's entry, so that a loop to
//! the method's beginning does not make this call again.

use super::Stop;
use super::error::RewriteError;
use super::reader::{TooLong, put_u4};

/// Bit in `Plan::offsets` for bytes that do not start an instruction. Code is shorter than 64 KiB, and an instruction grows by
/// at most seven bytes.
const INSIDE: u32 = 1 << 31;

/// New offsets of the instructions of one method. It is reused for the next method, to avoid allocations.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// New offset of each byte of the code, and of the end of the code.
    offsets: Vec<u32>,
    /// Instructions that change, with their offsets, in code order.
    edits: Vec<(usize, Edit)>,
}

/// Change of an instruction that cannot simply be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// A return, before which a call is inserted.
    Return,
    /// A branch with a two-byte distance.
    Branch,
    /// `goto_w` or `jsr_w`, with a four-byte distance.
    WideBranch,
    /// `tableswitch` with this number of targets, not including the default.
    TableSwitch(usize),
    /// `lookupswitch` with this number of pairs.
    LookupSwitch(usize),
}

/// Code that is inserted into a method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls<'a> {
    /// Instructions inserted at the entry.
    pub(super) enter: &'a [u8],
    /// Instructions inserted before each return.
    pub(super) exit: &'a [u8],
}

const TABLE_SWITCH: u8 = 170;
const LOOKUP_SWITCH: u8 = 171;
const WIDE: u8 = 196;

/// Length of each instruction in bytes; 0 if the length does not follow from the opcode, or if the opcode is invalid.
static LENGTHS: [u8; 256] = lengths();

// Evaluated by the compiler, which does not support iterators in constants.
#[allow(clippy::indexing_slicing)]
const fn lengths() -> [u8; 256] {
    let mut lengths = [0; 256];
    let mut opcode = 0;
    while opcode <= 201 {
        lengths[opcode] = match opcode {
            // bipush; ldc; loads and stores; ret; newarray
            16 | 18 | 21..=25 | 54..=58 | 169 | 188 => 2,
            // sipush; ldc_w, ldc2_w; iinc; branches; fields, methods, new; anewarray, checkcast, instanceof; ifnull,
            // ifnonnull
            17 | 19 | 20 | 132 | 153..=168 | 178..=184 | 187 | 189 | 192 | 193 | 198 | 199 => 3,
            // multianewarray
            197 => 4,
            // invokeinterface, invokedynamic, goto_w, jsr_w
            185 | 186 | 200 | 201 => 5,
            // tableswitch, lookupswitch, wide
            170 | 171 | 196 => 0,
            _ => 1,
        };
        opcode += 1;
    }
    lengths
}

/// Returns the four bytes of `code` at `at` as a number.
fn int(code: &[u8], at: usize) -> Option<i32> {
    code.get(at..)?.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
}

/// Returns the offset of the operands of a switch whose opcode is at `at`: the next multiple of four
/// (JVMS 6.5).
fn switch_operands(at: usize) -> usize {
    (at + 4) & !3
}

/// Returns the number of targets of a switch, which is limited because code is shorter than 64 KiB.
fn targets(count: i64) -> Option<usize> {
    u16::try_from(count).ok().map(usize::from)
}

/// Returns the length of the instruction at `at`, and its change if it cannot be copied.
fn instruction(code: &[u8], at: usize, opcode: u8) -> Option<(usize, Option<Edit>)> {
    let operands = switch_operands(at);
    Some(match opcode {
        TABLE_SWITCH => {
            let low = int(code, operands + 4)?;
            let high = int(code, operands + 8)?;
            let count = targets(i64::from(high) - i64::from(low) + 1).filter(|&count| count > 0)?;
            (operands + 12 + 4 * count - at, Some(Edit::TableSwitch(count)))
        }
        LOOKUP_SWITCH => {
            let count = targets(i64::from(int(code, operands + 4)?))?;
            (operands + 8 + 8 * count - at, Some(Edit::LookupSwitch(count)))
        }
        WIDE => match code.get(at + 1)? {
            // iinc; loads, stores, ret
            132 => (6, None),
            21..=25 | 54..=58 | 169 => (4, None),
            _ => return None,
        },
        _ => {
            let edit = match opcode {
                153..=168 | 198 | 199 => Some(Edit::Branch),
                172..=177 => Some(Edit::Return),
                200 | 201 => Some(Edit::WideBranch),
                _ => None,
            };
            match LENGTHS.get(usize::from(opcode))? {
                0 => return None,
                &length => (usize::from(length), edit),
            }
        }
    })
}

impl Plan {
    /// Computes the new offsets of the instructions of `code`. `code_at` is the offset of the code in the class file.
    pub(super) fn make(&mut self, code: &[u8], code_at: usize, calls: Calls<'_>) -> Result<(), RewriteError> {
        self.offsets.clear();
        self.offsets.reserve(code.len() + 1);
        self.edits.clear();
        let mut at = 0;
        let mut new = calls.enter.len();
        while let Some(&opcode) = code.get(at) {
            let found = instruction(code, at, opcode).filter(|(length, _)| *length <= code.len() - at);
            let (length, edit) =
                found.ok_or_else(|| RewriteError::number(code_at + at, "an instruction", opcode))?;
            // At most 64 KiB of code, with seven new bytes for each byte: far below 2^31.
            let offset = u32::try_from(new).unwrap_or(INSIDE);
            self.offsets.push(offset);
            self.offsets.resize(at + length, offset | INSIDE);
            let mut new_length = length;
            if let Some(edit) = edit {
                self.edits.push((at, edit));
                match edit {
                    Edit::Return => new_length += calls.exit.len(),
                    Edit::TableSwitch(_) | Edit::LookupSwitch(_) => {
                        new_length -= switch_operands(at) - at;
                        new_length += switch_operands(new) - new;
                    }
                    Edit::Branch | Edit::WideBranch => {}
                }
            }
            at += length;
            new += new_length;
        }
        self.offsets.push(u32::try_from(new).unwrap_or(INSIDE));
        Ok(())
    }

    /// Returns the new offset of the end of the code.
    pub(super) fn end(&self) -> usize {
        self.offsets.last().map_or(0, |&end| usize::try_from(end & !INSIDE).unwrap_or_default())
    }

    /// Returns the old offset of the end of the code.
    fn old_end(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns the new offset of the instruction at `old`. `at` is the position of the value `old` in the class file, for error
    /// messages.
    pub(super) fn instruction(&self, old: usize, at: usize) -> Result<u32, RewriteError> {
        match self.offsets.get(old) {
            Some(&new) if new & INSIDE == 0 && old < self.old_end() => Ok(new),
            _ => Err(wrong_offset(at, "the offset of an instruction", old)),
        }
    }

    /// Returns the new offset of the instruction at `old`, or of the end of the code. `at` is the position of the value
    /// `old` in the class file, for error messages.
    pub(super) fn boundary(&self, old: usize, at: usize) -> Result<u32, RewriteError> {
        match self.offsets.get(old) {
            Some(&new) if new & INSIDE == 0 => Ok(new),
            _ => Err(wrong_offset(at, "the offset of an instruction, or of the end of the code", old)),
        }
    }

    /// Returns the new offset for debug tables. The offset of the first instruction becomes the offset of the method's
    /// beginning. An offset inside of an instruction, which compilers have written and JVMs accept, becomes the offset of this
    /// instruction.
    pub(super) fn debug(&self, old: usize, at: usize) -> Result<u32, RewriteError> {
        match self.offsets.get(old) {
            Some(_) if old == 0 => Ok(0),
            Some(&new) => Ok(new & !INSIDE),
            None => Err(wrong_offset(at, "an offset in the code", old)),
        }
    }

    /// Appends the changed code. `plan` must have been made from the same code and calls.
    pub(super) fn write(
        &self,
        code: &[u8],
        code_at: usize,
        calls: Calls<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let start = out.len();
        let mut copied = 0;
        let mut copy_to = |out: &mut Vec<u8>, end: usize, next: usize| {
            out.extend_from_slice(code.get(copied..end).unwrap_or_default());
            copied = next;
        };
        out.extend_from_slice(calls.enter);
        for &(at, edit) in &self.edits {
            match edit {
                Edit::Return => {
                    copy_to(out, at, at);
                    out.extend_from_slice(calls.exit);
                }
                Edit::Branch => {
                    copy_to(out, at + 1, at + 3);
                    let bytes = code.get(at + 1..).and_then(|rest| rest.first_chunk());
                    let distance = bytes.map_or(0, |bytes| i32::from(i16::from_be_bytes(*bytes)));
                    let distance = self.distance(at, distance, code_at + at + 1)?;
                    let distance = i16::try_from(distance).map_err(|_| TooLong)?;
                    out.extend_from_slice(&distance.to_be_bytes());
                }
                Edit::WideBranch => {
                    copy_to(out, at + 1, at + 5);
                    self.target(code, at, at + 1, code_at, out)?;
                }
                Edit::TableSwitch(count) => {
                    let operands = switch_operands(at);
                    let targets = operands + 12;
                    copy_to(out, at + 1, targets + 4 * count);
                    pad(start, out);
                    self.target(code, at, operands, code_at, out)?;
                    out.extend_from_slice(code.get(operands + 4..targets).unwrap_or_default());
                    for index in 0..count {
                        self.target(code, at, targets + 4 * index, code_at, out)?;
                    }
                }
                Edit::LookupSwitch(count) => {
                    let operands = switch_operands(at);
                    let pairs = operands + 8;
                    copy_to(out, at + 1, pairs + 8 * count);
                    pad(start, out);
                    self.target(code, at, operands, code_at, out)?;
                    out.extend_from_slice(code.get(operands + 4..pairs).unwrap_or_default());
                    for pair in (0..count).map(|index| pairs + 8 * index) {
                        out.extend_from_slice(code.get(pair..pair + 4).unwrap_or_default());
                        self.target(code, at, pair + 4, code_at, out)?;
                    }
                }
            }
        }
        copy_to(out, code.len(), code.len());
        debug_assert_eq!(out.len() - start, self.end(), "the lengths of both passes");
        Ok(())
    }

    /// Appends the new four-byte distance of the instruction at `from` for the old distance at `operand`.
    fn target(
        &self,
        code: &[u8],
        from: usize,
        operand: usize,
        code_at: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), RewriteError> {
        let distance = self.distance(from, int(code, operand).unwrap_or_default(), code_at + operand)?;
        put_u4(out, distance.cast_unsigned());
        Ok(())
    }

    /// Returns the new distance of a branch at `from`. `at` is the position of the old distance in the class file, for errors.
    fn distance(&self, from: usize, distance: i32, at: usize) -> Result<i32, RewriteError> {
        let wrong = || RewriteError::number(at, "the distance to an instruction", distance);
        let reach = isize::try_from(distance).map_err(|_| wrong())?;
        let target = from.checked_add_signed(reach).ok_or_else(wrong)?;
        let target = self.instruction(target, at).map_err(|_| wrong())?;
        let from = self.instruction(from, at)?;
        // Both offsets are below 2^31.
        Ok(target.wrapping_sub(from).cast_signed())
    }
}

/// Pads the operands of a switch to a multiple of four from the method's beginning. The opcode of the switch must have been
/// written last.
fn pad(start: usize, out: &mut Vec<u8>) {
    let operands = switch_operands(out.len() - start - 1);
    out.resize(start + operands, 0);
}

fn wrong_offset(at: usize, expected: &'static str, found: usize) -> RewriteError {
    RewriteError::number(at, expected, i64::try_from(found).unwrap_or(i64::MAX))
}
