//! Rewriting of class files for `cpu=times`: inserts calls at the entry and at each exit of methods.
//!
//! This module implements the class file format of the Java Virtual Machine Specification (JVMS), chapter 4, and its
//! instructions, chapter 6. Each selected method gets
//!
//! - at its entry `TRACKER.enter(number)`,
//! - before each return instruction `TRACKER.exit(number)`,
//! - unless it is a constructor, a handler for everything that its code throws: `TRACKER.exit(number)`,
//!   then the exception is rethrown.
//!
//! So the tracker is called on exit once for each entry, except that a constructor that throws has no exit. An additional exit
//! occurs if the return instruction itself throws, as it does after unbalanced locking (`IllegalMonitorStateException`), or if
//! the tracker throws after its work.
//!
//! Offsets into the code are replaced by new ones in branches, switches, exception tables, frames, lines and local variables.
//! Everything else is copied unchanged. A method that would exceed the limits of the format is not rewritten. This module is
//! independent of JVM TI.

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

pub use error::{RewriteError, UnexpectedContent};
pub use tracker::Tracker;
pub use tracker_class::tracker_class;

use code::Plan;
use layout::{ClassFileLayout, CodeAttribute, MAGIC, MethodLayout};
use method::ExceptionHandling;
use pool::Additions;
use reader::{put_u2, put_with_length};

/// Method that has code. All names are in modified UTF-8, as in the class file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassFileMethod<'a> {
    /// Internal name of the class, such as `java/lang/String`.
    pub class: &'a [u8],
    /// Name of the method; `<init>` for a constructor, `<clinit>` for the static initializer.
    pub name: &'a [u8],
    /// Descriptor, such as `(I)V`.
    pub descriptor: &'a [u8],
    /// Access flags (JVMS 4.6).
    pub access_flags: u16,
    /// Source file of the class.
    pub source_file: Option<&'a [u8]>,
    /// Line number of the first instruction that has one.
    pub first_line: Option<u16>,
}

/// Result of rewriting a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenClass {
    /// New class file; `None` if no method was changed.
    pub bytes: Option<Vec<u8>>,
    /// Number of changed methods.
    pub methods: usize,
    /// Numbers of the selected methods that were not rewritten because their code, a branch or the constant pool would exceed
    /// the limits of the format.
    pub skipped: Vec<u32>,
}

/// Reason why a method cannot be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The result would exceed the limits of the format.
    TooLong,
    /// The method is damaged, so the class cannot be rewritten.
    Damaged(RewriteError),
}

/// Returns `true` for a finalizer that does nothing. HotSpot recognizes it by its only instruction, and registers every object
/// that has any other finalizer. If `java.lang.Object.finalize` contained a call, all objects would have to be finalized, even
/// before the required classes are initialized, and the JVM would crash.
fn is_empty_finalizer(method: &MethodLayout<'_>, attribute: &CodeAttribute<'_>) -> bool {
    const RETURN: u8 = 177;
    method.name == b"finalize" && method.descriptor == b"()V" && attribute.code == [RETURN]
}

/// Inserts calls of `tracker` into the methods of `class`, a class file of version 45.3 to 69.
///
/// `number` is called once for each method with code, in file order. It returns the number that is passed to the tracker (as a
/// Java int with the same bits), or `None` if the method is to be left unchanged. It is not called for methods after a damaged
/// one, and not for finalizers that do nothing.
///
/// # Errors
///
/// If a part of the class file that is read is damaged, or if the version is unknown. The class is not verified, which is the
/// JVM's task.
pub fn rewrite(
    class: &[u8],
    tracker: &Tracker<'_>,
    number: &mut dyn FnMut(&ClassFileMethod<'_>) -> Option<u32>,
) -> Result<RewrittenClass, RewriteError> {
    let layout = ClassFileLayout::read(class)?;
    let mut additions = Additions::new(&layout.pool);
    let mut plan = Plan::default();
    // Content of the class file after the constant pool.
    let mut body = Vec::new();
    let mut copied = layout.pool_end;
    let mut methods = 0;
    let mut skipped = Vec::new();
    for method in &layout.methods {
        let attribute = CodeAttribute::read(&layout.pool, method.code.clone())?;
        if is_empty_finalizer(method, &attribute) {
            continue;
        }
        let asked = ClassFileMethod {
            class: layout.name,
            name: method.name,
            descriptor: method.descriptor,
            access_flags: method.access_flags,
            source_file: layout.source_file,
            first_line: attribute.first_line()?,
        };
        let Some(number) = number(&asked) else { continue };
        let constants = additions
            .inserted_constants(tracker)
            .and_then(|shared| Some((shared, method::calls(number, shared, &mut additions)?)));
        let Some((shared, calls)) = constants else {
            skipped.push(number);
            continue;
        };
        let handler =
            if method.name == b"<init>" { ExceptionHandling::Left } else { ExceptionHandling::Added };
        // The content of the attribute is preceded by its four-byte length.
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
        return Ok(RewrittenClass { bytes: None, methods, skipped });
    }
    body.extend_from_slice(class.get(copied..).unwrap_or_default());

    /// Size of magic number and version in bytes.
    const HEAD: usize = 8;
    let mut bytes = Vec::with_capacity(layout.pool_end + additions.bytes().len() + body.len());
    bytes.extend_from_slice(class.get(..HEAD).unwrap_or_default());
    put_u2(&mut bytes, additions.count());
    bytes.extend_from_slice(class.get(HEAD + 2..layout.pool_end).unwrap_or_default());
    bytes.extend_from_slice(additions.bytes());
    bytes.extend_from_slice(&body);
    Ok(RewrittenClass { bytes: Some(bytes), methods, skipped })
}
