//! Structure of a class file (JVMS 4.1, 4.6, 4.7.3): its methods and their code.

use super::error::RewriteError;
use super::pool::Pool;
use super::reader::ClassFileReader;

/// First four bytes of every class file.
pub(super) const MAGIC: u32 = 0xcafe_babe;

/// Lowest version of class files that are rewritten (JDK 1.1). Lower ones have a different `Code` attribute.
const OLDEST: (u16, u16) = (45, 3);
/// Highest major version of class files that are rewritten (JDK 25).
const NEWEST_MAJOR: u16 = 69;

/// First version whose classes are verified with `StackMapTable` (JVMS 4.10).
const FIRST_WITH_FRAMES: u16 = 50;

/// Use of `StackMapTable` attributes in a version of class files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frames {
    /// The attribute is ignored, up to version 49.
    Ignored,
    /// The attribute is used, from version 50 on.
    Used,
}

/// Class file, parsed down to the attributes of its methods.
#[derive(Debug)]
pub(super) struct ClassFileLayout<'a> {
    pub(super) frames: Frames,
    pub(super) pool: Pool<'a>,
    /// End of the constant pool (exclusive).
    pub(super) pool_end: usize,
    /// Internal name of the class.
    pub(super) name: &'a [u8],
    /// Value of the `SourceFile` attribute.
    pub(super) source_file: Option<&'a [u8]>,
    /// Methods that have code, in file order.
    pub(super) methods: Vec<MethodLayout<'a>>,
}

/// Method that has code.
#[derive(Debug)]
pub(super) struct MethodLayout<'a> {
    pub(super) access_flags: u16,
    pub(super) name: &'a [u8],
    pub(super) descriptor: &'a [u8],
    /// Content of the `Code` attribute, after its length.
    pub(super) code: ClassFileReader<'a>,
    /// Offset of the end of the `Code` attribute.
    pub(super) code_end: usize,
}

impl<'a> ClassFileLayout<'a> {
    /// Parses a class file.
    pub(super) fn read(class: &'a [u8]) -> Result<ClassFileLayout<'a>, RewriteError> {
        let mut reader = ClassFileReader::new(class);
        let magic = reader.u4("a class file")?;
        if magic != MAGIC {
            return Err(RewriteError::number(0, "0xcafebabe", magic));
        }
        let minor = reader.u2("the version")?;
        let at = reader.offset();
        let major = reader.u2("the version")?;
        if (major, minor) < OLDEST || major > NEWEST_MAJOR {
            return Err(RewriteError::number(at, "a version between 45.3 and 69", major));
        }
        let pool = Pool::read(class, &mut reader)?;
        let pool_end = reader.offset();
        reader.u2("the access flags")?;
        let at = reader.offset();
        let name = pool.class_name(reader.u2("the class")?, at)?;
        reader.u2("the super class")?;
        let interfaces = reader.u2("the number of interfaces")?;
        reader.take(usize::from(interfaces) * 2, "interfaces")?;
        for _ in 0..reader.u2("the number of fields")? {
            reader.take(6, "a field")?;
            for _ in 0..reader.u2("the number of attributes")? {
                reader.u2("an attribute")?;
                reader.attribute()?;
            }
        }
        let mut methods = Vec::new();
        for _ in 0..reader.u2("the number of methods")? {
            methods.extend(read_method(&pool, &mut reader)?);
        }
        let mut source_file = None;
        for _ in 0..reader.u2("the number of attributes")? {
            let at = reader.offset();
            let name = pool.utf8(reader.u2("an attribute")?, at)?;
            let mut content = reader.attribute()?;
            if name == b"SourceFile" {
                let at = content.offset();
                source_file = Some(pool.utf8(content.u2("the name of the source file")?, at)?);
            }
        }
        reader.finish("the end of the class file")?;
        let frames = if major < FIRST_WITH_FRAMES { Frames::Ignored } else { Frames::Used };
        Ok(ClassFileLayout { frames, pool, pool_end, name, source_file, methods })
    }
}

/// Parses a method; `None` if it has no code.
fn read_method<'a>(
    pool: &Pool<'a>,
    reader: &mut ClassFileReader<'a>,
) -> Result<Option<MethodLayout<'a>>, RewriteError> {
    const NATIVE: u16 = 0x0100;
    const ABSTRACT: u16 = 0x0400;

    let access_flags = reader.u2("a method")?;
    let at = reader.offset();
    let name = pool.utf8(reader.u2("a method")?, at)?;
    let at = reader.offset();
    let descriptor = pool.utf8(reader.u2("a method")?, at)?;
    let mut code = None;
    for _ in 0..reader.u2("the number of attributes")? {
        let at = reader.offset();
        let attribute = pool.utf8(reader.u2("an attribute")?, at)?;
        let content = reader.attribute()?;
        if attribute != b"Code" {
            continue;
        }
        if code.is_some() {
            return Err(RewriteError::number(at, "one Code attribute", 2));
        }
        code = Some((content, reader.offset()));
    }
    Ok(code.filter(|_| access_flags & (NATIVE | ABSTRACT) == 0).map(|(code, code_end)| MethodLayout {
        access_flags,
        name,
        descriptor,
        code,
        code_end,
    }))
}

/// Parsed `Code` attribute.
#[derive(Debug)]
pub(super) struct CodeAttribute<'a> {
    pub(super) max_stack: u16,
    pub(super) max_locals: u16,
    pub(super) code: &'a [u8],
    /// Offset of the first instruction in the class file.
    pub(super) code_at: usize,
    pub(super) handler_count: u16,
    /// Entries of the exception table.
    pub(super) handlers: ClassFileReader<'a>,
    pub(super) frames: Option<CodeTable<'a>>,
    /// Tables of lines and of local variables; several of the same kind are permitted.
    pub(super) debug: Vec<(Debug, CodeTable<'a>)>,
}

/// Attribute of a `Code` attribute: a table with offsets into the code.
#[derive(Debug, Clone)]
pub(super) struct CodeTable<'a> {
    /// Index of the attribute's name.
    pub(super) name: u16,
    pub(super) count: u16,
    /// Entries of the table.
    pub(super) entries: ClassFileReader<'a>,
}

/// Kind of a debug table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Debug {
    /// `LineNumberTable`, whose entries have an offset and a line number.
    Lines,
    /// `LocalVariableTable` or `LocalVariableTypeTable`, whose entries have an offset, a length, and three other numbers.
    Variables,
}

impl<'a> CodeAttribute<'a> {
    /// Parses a `Code` attribute.
    ///
    /// Unknown attributes are dropped, because they may contain offsets. Type annotations of code are dropped, too (JVMS
    /// 4.7.20): many contain offsets of instructions, and the JVM exposes only the annotations of classes, fields and methods.
    pub(super) fn read(
        pool: &Pool<'a>,
        mut reader: ClassFileReader<'a>,
    ) -> Result<CodeAttribute<'a>, RewriteError> {
        let max_stack = reader.u2("the size of the operand stack")?;
        let max_locals = reader.u2("the number of local variables")?;
        let at = reader.offset();
        let length = reader.u4("the length of code")?;
        let length = match u16::try_from(length) {
            Ok(length) if length > 0 => usize::from(length),
            _ => return Err(RewriteError::number(at, "a length of code between 1 and 65535", length)),
        };
        let code_at = reader.offset();
        let code = reader.take(length, "code")?;
        let handler_count = reader.u2("the length of an exception table")?;
        let handlers = reader.section(usize::from(handler_count) * 8, "an exception table")?;
        let mut frames = None;
        let mut debug = Vec::new();
        for _ in 0..reader.u2("the number of attributes")? {
            let at = reader.offset();
            let name = reader.u2("an attribute")?;
            let text = pool.utf8(name, at)?;
            let mut entries = reader.attribute()?;
            let kind = match text {
                b"StackMapTable" => None,
                b"LineNumberTable" => Some(Debug::Lines),
                b"LocalVariableTable" | b"LocalVariableTypeTable" => Some(Debug::Variables),
                _ => continue,
            };
            let table = CodeTable { name, count: entries.u2("the length of a table")?, entries };
            match kind {
                Some(kind) => debug.push((kind, table)),
                None if frames.is_some() => {
                    return Err(RewriteError::number(at, "one StackMapTable attribute", 2));
                }
                None => frames = Some(table),
            }
        }
        reader.finish("the end of the Code attribute")?;
        Ok(CodeAttribute { max_stack, max_locals, code, code_at, handler_count, handlers, frames, debug })
    }

    /// Returns the line number of the first instruction that has one.
    pub(super) fn first_line(&self) -> Result<Option<u16>, RewriteError> {
        let mut first = None;
        for (kind, table) in &self.debug {
            if *kind != Debug::Lines {
                continue;
            }
            let mut entries = table.entries.clone();
            for _ in 0..table.count {
                let offset = entries.u2("a line number")?;
                let line = entries.u2("a line number")?;
                if first.is_none_or(|(earliest, _)| offset < earliest) {
                    first = Some((offset, line));
                }
            }
        }
        Ok(first.map(|(_, line)| line))
    }
}
