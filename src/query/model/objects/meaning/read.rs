//! Conversion of the fields of each known class to text.

use std::borrow::Cow;

use crate::objects::reader::{Bits, Characters};
use hprof_values::{BasicType, ObjectId};

use super::known::ReadMethod;
use super::number::{self, Digits};
use super::text::Text;
use super::{Fields, Meanings, time};

/// Maximum number of cells of a LongAdder that are summed. The JVM creates no more than there are processors.
const MAX_CELLS: usize = 1 << 12;
/// Maximum number of leading zero words of a BigInteger that are skipped.
const MAX_ZEROS: usize = 64;
/// Maximum number of words of a BigInteger with the least significant word first, whose order is reversed.
const MAX_OLD_WORDS: usize = 1 << 12;
/// Number of empty words of a BitSet that are skipped per character of text.
const WORDS_OF_CHARACTER: usize = 64;

/// Fields in which class loaders of applications and their servers store their purpose.
const LOADER_NAMES: [&str; 4] = ["name", "contextName", "displayName", "id"];
/// Class loaders of JDK 8, and their names in later versions.
const LAUNCHERS: [(&str, &str); 2] =
    [("sun.misc.Launcher$AppClassLoader", "app"), ("sun.misc.Launcher$ExtClassLoader", "ext")];

impl<'a> Meanings<'a> {
    /// Appends the meaning of an instance. `fields` are those of the known class, `whole` all.
    pub(super) fn instance(
        &self,
        text: &mut Text,
        how: ReadMethod,
        fields: Fields<'a>,
        whole: Fields<'a>,
        steps: u32,
    ) -> Option<()> {
        let number = |name: &str| fields.integer(name);
        match how {
            ReadMethod::Field(name) => {
                let object = self.object(fields, name)?;
                // An empty name has no meaning; an empty String has.
                return text.grow(|text| self.append(text, object, steps).unwrap_or_default());
            }
            ReadMethod::Number(name) => self.append_number(text, fields.value(name)?),
            ReadMethod::Truth(name) => text.push(if number(name)? == 0 { "false" } else { "true" }),
            ReadMethod::Holder(name, null) => {
                return self.append_held(text, fields.value(name)?, null, steps);
            }
            ReadMethod::Referent => {
                if text.is_label() {
                    return None;
                }
                return self.append_held(text, fields.value("referent")?, "cleared", steps);
            }
            ReadMethod::OptionalNumber => match fields.value("isPresent")?.bits {
                0 => text.push("empty"),
                _ => self.append_number(text, fields.value("value")?),
            },
            ReadMethod::Loader => return self.append_loader(text, fields, whole, steps),
            ReadMethod::Text => return self.append_string(text, fields),
            // A class object without a class dump represents a primitive type; its name is set if it was ever
            // requested.
            ReadMethod::Class => return self.append_field(text, fields, "name", steps),
            ReadMethod::Member(class, name) => {
                let owner = self
                    .object(fields, class)
                    .and_then(|owner| self.objects.graph.class_of_class_object(owner));
                if let Some(owner) = owner.and_then(|owner| self.objects.summary.class(owner)) {
                    text.push(self.objects.summary.class_name(owner));
                    text.push(".");
                }
                return self.append_field(text, fields, name, steps);
            }
            ReadMethod::Url => {
                self.append_field(text, fields, "protocol", steps)?;
                return self.append_url(text, fields, steps);
            }
            ReadMethod::Uri => return self.append_uri(text, fields, steps),
            ReadMethod::Path => {
                let (BasicType::Byte, path) = self.primitives(fields, "path")? else { return None };
                push_utf8(text, path);
            }
            ReadMethod::Frame => {
                self.append_field(text, fields, "declaringClass", steps)?;
                text.push(".");
                self.append_field(text, fields, "methodName", steps)?;
                if let Some(file) = self.object(fields, "fileName") {
                    text.push("(");
                    self.append(text, file, steps)?;
                    match number("lineNumber") {
                        Some(line) if line >= 0 => text.push(&format!(":{line})")),
                        _ => text.push(")"),
                    }
                }
            }
            ReadMethod::Uuid => {
                let high = number("mostSigBits")?.cast_unsigned();
                let low = number("leastSigBits")?.cast_unsigned();
                let parts =
                    (high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff);
                let (a, b, c, d, e) = parts;
                text.push(&format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}"));
            }
            ReadMethod::BigInteger => {
                let (is_negative, words) = self.magnitude(fields)?;
                if is_negative {
                    text.push("-");
                }
                match number::digits(&words, text.room()) {
                    Digits::Decimal(digits) => text.push(&digits),
                    Digits::Hexadecimal => {
                        text.push("0x");
                        text.extend(number::hexadecimal(&words));
                    }
                }
            }
            ReadMethod::BigDecimal => text.push(&self.big_decimal(fields, text.room())?),
            ReadMethod::Millis(name) => {
                // A Calendar computes its time on demand.
                if fields.value("isTimeSet").is_some_and(|is_set| is_set.bits == 0) {
                    return None;
                }
                // A Date of Android up to 6 has `milliseconds`.
                let millis = number(name).or_else(|| number("milliseconds"))?;
                text.push(&time::instant_of_millis(millis)?);
            }
            ReadMethod::Timestamp => {
                text.push(&time::instant(number("fastTime")?.div_euclid(1000), number("nanos")?)?);
            }
            ReadMethod::Instant => text.push(&time::instant(number("seconds")?, number("nanos")?)?),
            ReadMethod::Duration => text.push(&time::duration(number("seconds")?, number("nanos")?)?),
            ReadMethod::Period => {
                text.push(&time::period(number("years")?, number("months")?, number("days")?))
            }
            ReadMethod::Date => text.push(&time::date(number("year")?, number("month")?, number("day")?)?),
            ReadMethod::Time => text.push(&time::time(
                number("hour")?,
                number("minute")?,
                number("second")?,
                number("nano")?,
            )?),
            ReadMethod::Year => text.push(&time::only_year(number("year")?)?),
            ReadMethod::YearMonth => text.push(&time::year_month(number("year")?, number("month")?)?),
            ReadMethod::MonthDay => text.push(&time::month_day(number("month")?, number("day")?)?),
            ReadMethod::Offset => text.push(&time::offset(number("totalSeconds")?)?),
            ReadMethod::Joined(parts) => {
                for (before, name) in parts {
                    text.push(before);
                    self.append_field(text, fields, name, steps)?;
                }
            }
            ReadMethod::Zoned => {
                self.append_field(text, fields, "dateTime", steps)?;
                self.append_field(text, fields, "offset", steps)?;
                let (offset, zone) = (self.object(fields, "offset"), self.object(fields, "zone")?);
                if offset != Some(zone) {
                    text.push("[");
                    self.append(text, zone, steps)?;
                    text.push("]");
                }
            }
            ReadMethod::LongSum => {
                text.push(&self.sum(fields, 0i64, |sum, cell| sum.wrapping_add(cell))?.to_string())
            }
            ReadMethod::DoubleSum => {
                let add = |sum: f64, cell: i64| sum + f64::from_bits(cell.cast_unsigned());
                text.push(&number::double(self.sum(fields, 0.0, add)?));
            }
            ReadMethod::Buffer => self.append_buffer(text, fields, whole)?,
            ReadMethod::Locale => return self.append_locale(text, fields, steps),
            ReadMethod::Bits => self.append_bits(text, fields)?,
            ReadMethod::Inet4 => {
                let holder = self.object(fields, "holder").and_then(|holder| self.objects.fields(holder));
                let fields = holder.unwrap_or(fields);
                let address = fields.integer("address")?.cast_unsigned();
                let name = self.text_of(text, fields, "hostName", steps);
                let [.., a, b, c, d] = address.to_be_bytes();
                text.push(&format!("{name}/{a}.{b}.{c}.{d}"));
            }
        }
        Some(())
    }

    /// Appends a value as Java prints it.
    fn append_number(&self, text: &mut Text, value: Bits) {
        match value.kind {
            BasicType::Boolean => text.push(if value.bits == 0 { "false" } else { "true" }),
            BasicType::Float => text.push(&number::float(value.as_float())),
            BasicType::Double => text.push(&number::double(f64::from_bits(value.bits))),
            BasicType::Char => {
                text.push_utf16(value.integer().and_then(|unit| u16::try_from(unit).ok()).into_iter())
            }
            BasicType::Object => text.add(format_args!("{:#x}", value.bits)),
            _ => text.add(value.integer().unwrap_or(0)),
        }
    }

    /// Appends the object that a reference refers to; if it has no meaning, its class and ID. `null` is the text for null.
    fn append_held(&self, text: &mut Text, held: Bits, null: &str, steps: u32) -> Option<()> {
        if held.kind != BasicType::Object {
            return None;
        }
        if held.bits == 0 {
            text.push(null);
            return Some(());
        }
        let object = self.objects.graph.objects.addresses.index_of(ObjectId(held.bits));
        let mut part = text.part();
        let found = object.and_then(|object| self.append(&mut part, object, steps));
        text.look_as(&part);
        if found.is_some() {
            text.take(part);
            return Some(());
        }
        // In a label, the referent adds nothing to the reference.
        if text.is_label() {
            return None;
        }
        let class =
            object.and_then(|object| self.objects.summary.class(self.objects.graph.objects.class(object)?));
        if let Some(class) = class {
            text.push(self.objects.summary.class_name(class));
            text.push(" ");
        }
        text.add(format_args!("{:#x}", held.bits));
        Some(())
    }

    /// Appends the part of a URL after the protocol.
    fn append_url(&self, text: &mut Text, fields: Fields<'a>, steps: u32) -> Option<()> {
        text.push(":");
        let authority = self.text_of(text, fields, "authority", steps);
        let host = self.text_of(text, fields, "host", steps);
        // `file:` and `jrt:` have an empty host.
        if !authority.is_empty() {
            text.push("//");
            text.push(&authority);
        } else if !host.is_empty() {
            text.push("//");
            text.push(&host);
            match fields.integer("port") {
                Some(port) if (1..=65_535).contains(&port) => text.push(&format!(":{port}")),
                _ => {}
            }
        }
        self.append_field(text, fields, "file", steps)?;
        self.append_after(text, fields, "#", "ref", steps);
        Some(())
    }

    /// Appends `before` and an object, if the field is not null.
    fn append_after(&self, text: &mut Text, fields: Fields<'a>, before: &str, name: &str, steps: u32) {
        if let Some(object) = self.object(fields, name) {
            text.push(before);
            // Anything unreadable is omitted.
            let _ = self.append(text, object, steps);
        }
    }

    /// Appends a URI that does not store its text, assembled from its parts.
    fn append_uri(&self, text: &mut Text, fields: Fields<'a>, steps: u32) -> Option<()> {
        if let Some(whole) = self.object(fields, "string") {
            return self.append(text, whole, steps);
        }
        let before = text.room();
        if let Some(scheme) = self.object(fields, "scheme") {
            self.append(text, scheme, steps)?;
            text.push(":");
        }
        if self.object(fields, "path").is_none() {
            self.append_field(text, fields, "schemeSpecificPart", steps)?;
        } else {
            if self.object(fields, "host").is_some() {
                text.push("//");
                let user = self.text_of(text, fields, "userInfo", steps);
                if !user.is_empty() {
                    text.push(&user);
                    text.push("@");
                }
                self.append_field(text, fields, "host", steps)?;
                if let Some(port) = fields.integer("port").filter(|port| *port != -1) {
                    text.push(&format!(":{port}"));
                }
            } else {
                self.append_after(text, fields, "//", "authority", steps);
            }
            self.append_field(text, fields, "path", steps)?;
            self.append_after(text, fields, "?", "query", steps);
        }
        self.append_after(text, fields, "#", "fragment", steps);
        (text.room() < before).then_some(())
    }

    /// Appends the text of `Locale.toString`: `de_CH_POSIX_#Latn`.
    fn append_locale(&self, text: &mut Text, fields: Fields<'a>, steps: u32) -> Option<()> {
        let Some(base) = self.object(fields, "baseLocale").and_then(|base| self.objects.fields(base)) else {
            // Android up to 6.
            return self.append_field(text, fields, "cachedToStringResult", steps);
        };
        let mut part = |name| self.text_of(text, base, name, steps);
        let [language, script, region, variant] = ["language", "script", "region", "variant"].map(&mut part);
        let extensions =
            self.object(fields, "localeExtensions").and_then(|object| self.objects.fields(object));
        let extensions = extensions.map(|fields| self.text_of(text, fields, "id", steps)).unwrap_or_default();
        text.push(&language);
        let is_placed = !language.is_empty() || !region.is_empty();
        let more = [&variant, &script, &extensions].iter().any(|part| !part.is_empty());
        if !region.is_empty() || (!language.is_empty() && more) {
            text.push("_");
            text.push(&region);
        }
        if !variant.is_empty() && is_placed {
            text.push("_");
            text.push(&variant);
        }
        if !script.is_empty() && is_placed {
            text.push("_#");
            text.push(&script);
        }
        if !extensions.is_empty() && is_placed {
            text.push(if script.is_empty() { "_#" } else { "_" });
            text.push(&extensions);
        }
        // Locale.ROOT is empty.
        Some(())
    }

    /// Returns whether a BigInteger is negative, and the words of its magnitude.
    fn magnitude(&self, fields: Fields<'a>) -> Option<(bool, Cow<'a, [u8]>)> {
        let (signum, words) = match fields.integer("signum").zip(self.primitives(fields, "mag")) {
            Some((signum, (BasicType::Int, words))) => (signum, Cow::Borrowed(words)),
            Some(_) => return None,
            None => self.old_magnitude(fields)?,
        };
        // Java stores no leading zero words: a gigabyte of them is not a number.
        let zeros = words.chunks_exact(4).take(MAX_ZEROS).take_while(|word| **word == [0; 4]).count();
        let words = match words {
            Cow::Borrowed(words) => Cow::Borrowed(words.get(zeros * 4..).unwrap_or_default()),
            owned => owned,
        };
        (zeros < MAX_ZEROS).then_some((signum < 0, words))
    }

    /// Returns a number of Android up to 10: the least significant word first, unless it is stored off-heap.
    fn old_magnitude(&self, fields: Fields<'a>) -> Option<(i64, Cow<'a, [u8]>)> {
        let is_valid = fields.value("javaIsValid").is_some_and(|is_valid| is_valid.bits != 0);
        let (BasicType::Int, digits) = self.primitives(fields, "digits").filter(|_| is_valid)? else {
            return None;
        };
        let count = usize::try_from(fields.integer("numberLength")?).ok()?;
        let words: Vec<&[u8]> = digits.chunks_exact(4).take(count.min(MAX_OLD_WORDS + 1)).collect();
        let words =
            (words.len() <= MAX_OLD_WORDS).then(|| words.into_iter().rev().flatten().copied().collect())?;
        Some((fields.integer("sign")?, Cow::Owned(words)))
    }

    /// Returns the text of a BigDecimal; `None` if it has more than `most` digits, or too many to be useful.
    fn big_decimal(&self, fields: Fields<'a>, most: usize) -> Option<String> {
        let scale = fields.integer("scale")?;
        // A number that does not fit into a long is in `intVal`.
        let compact = fields.integer("intCompact").filter(|compact| *compact != i64::MIN);
        // Android up to 10.
        let is_small = fields.integer("bitLength").is_some_and(|bits| bits < 64);
        let small = fields.integer("smallValue").filter(|_| is_small);
        match compact.or(small) {
            Some(compact) => Some(number::decimal(compact < 0, &compact.unsigned_abs().to_string(), scale)),
            None => {
                let unscaled = self.objects.fields(self.object(fields, "intVal")?)?;
                let (is_negative, words) = self.magnitude(unscaled)?;
                match number::digits(&words, most) {
                    Digits::Decimal(digits) => Some(number::decimal(is_negative, &digits, scale)),
                    Digits::Hexadecimal => None,
                }
            }
        }
    }

    /// Returns the sum of a LongAdder or a DoubleAdder.
    fn sum<T>(&self, fields: Fields<'a>, zero: T, add: impl Fn(T, i64) -> T) -> Option<T> {
        let mut sum = add(zero, fields.integer("base")?);
        let cells = self.object(fields, "cells").and_then(|cells| self.objects.ids(cells));
        if cells.as_ref().is_some_and(|cells| cells.len() > MAX_CELLS) {
            return None;
        }
        for id in cells.into_iter().flatten().filter(|id| !id.is_null()) {
            let cell = self.objects.fields(self.objects.graph.objects.addresses.index_of(id)?)?;
            sum = add(sum, cell.integer("value")?);
        }
        Some(sum)
    }

    /// Appends the name of a class loader. Those of JDK 8 and many of applications have none: then the text comes from
    /// the loader's own fields, or is the first location that it loads from.
    fn append_loader(
        &self,
        text: &mut Text,
        fields: Fields<'a>,
        whole: Fields<'a>,
        steps: u32,
    ) -> Option<()> {
        let names = LOADER_NAMES.iter().filter_map(|name| self.object(whole, name));
        for name in self.object(fields, "name").into_iter().chain(names) {
            if self.objects.string(name).is_some() {
                return text.grow(|text| self.append(text, name, steps).unwrap_or_default());
            }
        }
        let class = self.class_name(whole.class())?;
        if let Some((_, name)) = LAUNCHERS.iter().find(|(launcher, _)| *launcher == class) {
            text.push(name);
            return Some(());
        }
        let path = self.objects.reference(self.object(whole, "ucp")?, "path")?;
        let first = self.objects.ids(self.objects.reference(path, "elementData")?)?.next()?;
        self.append(text, self.objects.graph.objects.addresses.index_of(first)?, steps)
    }

    /// Appends `pos=0 lim=10 cap=10`, and the address of the bytes if they are off-heap.
    fn append_buffer(&self, text: &mut Text, fields: Fields<'a>, whole: Fields<'a>) -> Option<()> {
        let number = |name| fields.integer(name);
        let (position, limit, capacity) = (number("position")?, number("limit")?, number("capacity")?);
        text.push(&format!("pos={position} lim={limit} cap={capacity}"));
        let is_there = |name| whole.value(name).is_some_and(|value| value.bits != 0);
        // `hb` is the array, `bb` the buffer that this one is a view of; older char buffers have a text.
        let is_outside = !["hb", "bb", "str"].into_iter().any(is_there);
        let address = fields.value("address").or_else(|| fields.value("effectiveDirectAddress"));
        if let Some(address) = address.filter(|address| is_outside && address.bits != 0) {
            text.push(&format!(", outside of the heap at {:#x}", address.bits));
        }
        Some(())
    }

    /// Appends the bits as `{0, 2, 5}`.
    fn append_bits(&self, text: &mut Text, fields: Fields<'a>) -> Option<()> {
        // Android up to 6 has other names.
        let words = self.primitives(fields, "words").or_else(|| self.primitives(fields, "bits"));
        let Some((BasicType::Long, words)) = words else { return None };
        let used = fields.integer("wordsInUse").or_else(|| fields.integer("longCount"))?;
        let used = usize::try_from(used).ok()?;
        // Zeros take no space in the text: without a limit, a gigabyte of them would be read for nothing.
        let most = text.room().saturating_mul(WORDS_OF_CHARACTER);
        let mut first = true;
        text.push("{");
        for (at, word) in words.chunks_exact(8).take(used).enumerate() {
            if at >= most || text.is_cut() {
                text.cut();
                return Some(());
            }
            let mut left = word.first_chunk().map_or(0, |word| u64::from_be_bytes(*word));
            while left != 0 && !text.is_cut() {
                if !std::mem::take(&mut first) {
                    text.push(", ");
                }
                text.add(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
        text.push("}");
        Some(())
    }

    /// Appends the characters of a String or of a builder.
    fn append_string(&self, text: &mut Text, fields: Fields<'a>) -> Option<()> {
        let characters = self.objects.characters(&fields)?;
        // A builder has spare capacity after its text. A String of Android stores other bits in `count`.
        let count = fields.integer("count").and_then(|count| usize::try_from(count).ok());
        let count = match characters {
            Characters::Removed(_) => usize::MAX,
            _ => count.filter(|count| *count <= characters.len()).unwrap_or(characters.len()),
        };
        text.push_utf16(characters.units().take(count));
        Some(())
    }
}

/// Appends bytes as UTF-8, up to the first invalid one.
fn push_utf8(text: &mut Text, bytes: &[u8]) {
    // A character has up to four bytes; one more shows that the text is truncated.
    let bytes = bytes.get(..text.room().saturating_mul(4).saturating_add(4)).unwrap_or(bytes);
    text.push(&String::from_utf8_lossy(bytes));
}
