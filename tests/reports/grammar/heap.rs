//! HEAP DUMP: roots, classes, instances and arrays.

use super::line::{Line, is_text};
use super::{Counted, Reader, Writer, class_name, is_java_name};

const PRIMITIVES: [&str; 8] =
    ["boolean[]", "char[]", "float[]", "double[]", "byte[]", "short[]", "int[]", "long[]"];

impl Reader<'_> {
    pub(super) fn heap_dump(&mut self) -> Result<(), String> {
        self.take("HEAP DUMP BEGIN", |line, counted| {
            line.lit("HEAP DUMP BEGIN (")?;
            let objects = line.dec()?;
            line.lit(" objects, ")?;
            counted.stated = (objects, line.dec()?);
            line.lit(" bytes) ")?;
            line.ctime()
        })?;
        self.counted.sections.push("HEAP DUMP");
        loop {
            match self.peek() {
                Some("HEAP DUMP END") => return self.exactly("HEAP DUMP END"),
                Some(line) if line.starts_with("ROOT ") => self.take("ROOT", root)?,
                Some(line) if line.starts_with("CLS ") => self.class()?,
                Some(line) if line.starts_with("OBJ ") => self.instance()?,
                Some(line) if line.starts_with("ARR ") => self.array()?,
                _ => return self.error("ROOT, CLS, OBJ, ARR or HEAP DUMP END"),
            }
        }
    }

    /// `CLS %x (name=%s, trace=%u)`, then what it refers to: superclass, loader, signers, domain, statics, constants.
    fn class(&mut self) -> Result<(), String> {
        self.take("CLS", |line, counted| {
            line.lit("CLS ")?;
            line.hex()?;
            line.lit(" (name=")?;
            let name = line.until_last(", trace=")?;
            class_name(name, line.writer, counted)?;
            line.dec()?;
            counted.classes += 1;
            line.lit(")")
        })?;
        const ORDER: [&str; 6] =
            ["super\t\t", "loader\t\t", "signers\t\t", "domain\t\t", "static ", "constant pool entry "];
        let mut next = 0;
        while self.peek().is_some_and(|line| line.starts_with('\t')) {
            next = self.take("a reference of a class, in order", |line, counted| {
                line.lit("\t")?;
                let kind = ORDER.iter().position(|word| line.lit(word).is_some())?;
                match kind {
                    4 => {
                        is_name(line.until("\t")?, line.writer)?;
                    }
                    5 => {
                        line.int()?;
                        line.lit("\t")?;
                    }
                    _ => {}
                }
                line.hex().filter(|id| *id != 0)?;
                counted.references += 1;
                (kind >= next).then_some(if kind < 4 { kind + 1 } else { kind })
            })?;
        }
        Ok(())
    }

    /// `OBJ %x (sz=%u, trace=%u, class=%s@%x)`, then its fields: `\t%s\t%s%x`, with a second tab behind names of fewer
    /// than eight bytes.
    fn instance(&mut self) -> Result<(), String> {
        self.take("OBJ", |line, counted| {
            line.lit("OBJ ")?;
            line.hex()?;
            line.lit(" (sz=")?;
            counted.sz += line.dec()?;
            line.lit(", trace=")?;
            line.dec()?;
            line.lit(", class=")?;
            class_name(line.until_last("@")?, line.writer, counted)?;
            line.hex()?;
            counted.instances += 1;
            line.lit(")")
        })?;
        while self.peek().is_some_and(|line| line.starts_with('\t')) {
            self.take("a field", |line, counted| {
                line.lit("\t")?;
                let name = is_name(line.until("\t")?, line.writer)?;
                if name.len() < 8 {
                    line.lit("\t")?;
                }
                line.hex().filter(|id| *id != 0)?;
                counted.references += 1;
                Some(())
            })?;
        }
        Ok(())
    }

    /// `ARR %x (sz=%u, trace=%u, nelems=%u, elem type=%s@%x)`, then its elements: `\t[%u]\t\t%x`; arrays of primitive
    /// types have neither.
    fn array(&mut self) -> Result<(), String> {
        let length = self.take("ARR", |line, counted| {
            line.lit("ARR ")?;
            line.hex()?;
            line.lit(" (sz=")?;
            counted.sz += line.dec()?;
            line.lit(", trace=")?;
            line.dec()?;
            line.lit(", nelems=")?;
            let length = line.dec()?;
            line.lit(", elem type=")?;
            counted.arrays += 1;
            if PRIMITIVES.iter().any(|name| line.lit(&format!("{name})")).is_some()) {
                return Some(0);
            }
            let name = line.until_last("@")?;
            class_name(name, line.writer, counted)?;
            let of_references = name.ends_with("[]") && !PRIMITIVES.contains(&name);
            (line.writer == Writer::Convert || of_references).then_some(())?;
            line.hex()?;
            line.lit(")")?;
            Some(length)
        })?;
        let mut next = 0;
        while self.peek().is_some_and(|line| line.starts_with('\t')) {
            next = self.take("an element, in order", |line, counted| {
                line.lit("\t[")?;
                let index = line.dec()?;
                line.lit("]\t\t")?;
                line.hex().filter(|id| *id != 0)?;
                counted.references += 1;
                (next..length).contains(&index).then_some(index + 1)
            })?;
        }
        Ok(())
    }
}

/// A field's name.
fn is_name(name: &str, writer: Writer) -> Option<&str> {
    let good = writer == Writer::Convert && !name.is_empty() || is_java_name(name);
    is_text(name).filter(|_| good)
}

fn root(line: &mut Line<'_>, counted: &mut Counted) -> Option<()> {
    line.lit("ROOT ")?;
    line.hex()?;
    line.lit(" (kind=")?;
    counted.roots += 1;
    if line.lit("<system class>, name=").is_some() {
        let name = line.until_last(")")?;
        return class_name(name, line.writer, counted);
    }
    let known = ["<unknown>", "<busy monitor>"].iter().any(|kind| line.lit(kind).is_some());
    if known {
    } else if line.lit("<thread>, id=").is_some() {
        line.dec()?;
        line.lit(", trace=")?;
        line.dec()?;
    } else if line.lit("<JNI global ref>, id=").is_some() {
        line.hex()?;
        line.lit(", trace=")?;
        line.dec()?;
    } else if line.lit("<thread block>, thread=").or_else(|| line.lit("<native stack>, thread=")).is_some() {
        line.dec()?;
    } else if line.lit("<JNI local ref>").or_else(|| line.lit("<Java stack>")).is_some() {
        in_frame(line)?;
    } else if line.writer == Writer::Convert {
        let word = super::EXTENSIONS[..7].iter().find(|kind| line.lit(kind).is_some())?;
        if *word == "<JNI monitor>" {
            in_frame(line)?;
        }
        *counted.extensions.entry(word).or_default() += 1;
    } else {
        return None;
    }
    line.lit(")")
}

/// `, thread=%u, frame=%d`.
fn in_frame(line: &mut Line<'_>) -> Option<()> {
    line.lit(", thread=")?;
    line.dec()?;
    line.lit(", frame=")?;
    line.int().map(|_| ())
}
