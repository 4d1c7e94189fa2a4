//! Rewriting of class files for `cpu=times`: calls at the entry and at each exit of methods.
//!
//! What is written is the class file format of the Java Virtual Machine Specification (JVMS), chapter 4, and its
//! instructions, chapter 6. Each method that is wanted gets
//!
//! - at its entry `TRACKER.enter(number)`,
//! - before each return instruction `TRACKER.exit(number)`,
//! - unless it is a constructor, a handler of everything that its code throws: `TRACKER.exit(number)`, and the
//!   exception is thrown again.
//!
//! So whoever counts the calls sees an exit for each entry, but for a constructor that throws; and an exit too many if
//! the return instruction itself throws, as it does after unbalanced locking (`IllegalMonitorStateException`), or if
//! the tracker throws when it has returned from its work.
//!
//! What holds offsets into the code is mapped to the new ones: branches, switches, exception tables, frames, lines and
//! local variables. All else is copied byte by byte. A method that would become longer than the format allows is left
//! as it was. Nothing here knows JVMTI.

mod code;
mod error;
mod frames;
mod layout;
mod method;
mod pool;
mod reader;
#[cfg(test)]
mod tests;
mod tracker;
mod tracker_class;

pub use error::{Error, Unexpected};
pub use tracker::Tracker;
pub use tracker_class::tracker_class;

use code::Plan;
use layout::{CodeAttribute, Layout, MAGIC, MethodLayout};
use method::Handler;
use pool::Additions;
use reader::{put_u2, put_with_length};

/// A method that has code. All names are in modified UTF-8, as in the class file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method<'a> {
    /// Internal name of the class: `java/lang/String`.
    pub class: &'a [u8],
    /// Name, `<init>` for a constructor, `<clinit>` for the static initializer.
    pub name: &'a [u8],
    /// Descriptor: `(I)V`.
    pub descriptor: &'a [u8],
    /// Access flags (JVMS 4.6).
    pub access_flags: u16,
    /// Source file of the class.
    pub source_file: Option<&'a [u8]>,
    /// Line of the first instruction that has one.
    pub first_line: Option<u16>,
}

/// What became of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new class file; `None` if no method was changed.
    pub bytes: Option<Vec<u8>>,
    /// Number of changed methods.
    pub methods: usize,
    /// Numbers of the methods that were wanted and left as they were, because their code, a branch or the constant
    /// pool would be longer than the format allows.
    pub skipped: Vec<u32>,
}

/// Why a method is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The format has no space for what it would become.
    TooLong,
    /// It is damaged, and so is the class.
    Damaged(Error),
}

/// Whether a method is a finalizer that does nothing: HotSpot knows it by its only instruction, and registers every
/// object with any other finalizer. With a call in the one of `java.lang.Object`, all objects would have to be
/// finalized, before the classes that do so are initialized: the JVM crashes.
fn is_empty_finalizer(method: &MethodLayout<'_>, attribute: &CodeAttribute<'_>) -> bool {
    const RETURN: u8 = 177;
    method.name == b"finalize" && method.descriptor == b"()V" && attribute.code == [RETURN]
}

/// Inserts calls of `tracker` into the methods of `class`, a class file of version 45.3 to 69.
///
/// `number` is asked once for each method that has code, in the order of the file; it returns the number that is given
/// to the tracker (as a Java int of the same bits), or `None` if the method is to be left as it is. It is not asked for
/// methods behind one that is damaged, nor for finalizers that do nothing.
///
/// # Errors
///
/// If the class file is damaged, in a place that has to be read, or of another version. Verification is up to the JVM.
pub fn rewrite(
    class: &[u8],
    tracker: &Tracker<'_>,
    number: &mut dyn FnMut(&Method<'_>) -> Option<u32>,
) -> Result<Rewritten, Error> {
    let layout = Layout::read(class)?;
    let mut additions = Additions::new(&layout.pool);
    let mut plan = Plan::default();
    // What follows the constant pool.
    let mut body = Vec::new();
    let mut copied = layout.pool_end;
    let mut methods = 0;
    let mut skipped = Vec::new();
    for method in &layout.methods {
        let attribute = CodeAttribute::read(&layout.pool, method.code.clone())?;
        if is_empty_finalizer(method, &attribute) {
            continue;
        }
        let asked = Method {
            class: layout.name,
            name: method.name,
            descriptor: method.descriptor,
            access_flags: method.access_flags,
            source_file: layout.source_file,
            first_line: attribute.first_line()?,
        };
        let Some(number) = number(&asked) else { continue };
        let constants = additions
            .shared(tracker)
            .and_then(|shared| Some((shared, method::calls(number, shared, &mut additions)?)));
        let Some((shared, calls)) = constants else {
            skipped.push(number);
            continue;
        };
        let handler = if method.name == b"<init>" { Handler::Left } else { Handler::Added };
        // The content of the attribute follows its length, of four bytes.
        let length_at = method.code.offset() - 4;
        if body.capacity() == 0 {
            body.reserve(class.len() + class.len() / 2);
        }
        let before = body.len();
        body.extend_from_slice(class.get(copied..length_at).unwrap_or_default());
        let written = put_with_length(&mut body, |out| {
            method::write(&attribute, &calls, handler, layout.frames, shared, &mut plan, out)
        });
        match written {
            Ok(()) => {
                copied = method.code_end;
                methods += 1;
            }
            Err(Stop::TooLong) => {
                body.truncate(before);
                skipped.push(number);
            }
            Err(Stop::Damaged(error)) => return Err(error),
        }
    }
    if methods == 0 {
        return Ok(Rewritten { bytes: None, methods, skipped });
    }
    body.extend_from_slice(class.get(copied..).unwrap_or_default());

    /// Magic number and version.
    const HEAD: usize = 8;
    let mut bytes = Vec::with_capacity(layout.pool_end + additions.bytes().len() + body.len());
    bytes.extend_from_slice(class.get(..HEAD).unwrap_or_default());
    put_u2(&mut bytes, additions.count());
    bytes.extend_from_slice(class.get(HEAD + 2..layout.pool_end).unwrap_or_default());
    bytes.extend_from_slice(additions.bytes());
    bytes.extend_from_slice(&body);
    Ok(Rewritten { bytes: Some(bytes), methods, skipped })
}
