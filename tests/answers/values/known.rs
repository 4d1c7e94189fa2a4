//! Values of objects of well-known classes, in dumps written with the fields that the JDK gives these classes.
//! Expected texts are the results of `toString` in OpenJDK 17 and 25 for the same values.

use std::time::{Duration, Instant};

use super::made::{Made, contents, int, long};
use crate::kit::dump::{Dump, whole_dump};
use hprof_query::objects::collections::CollectionKind;
use hprof_query::objects::label::{Labels, MAX_CHARS};
use hprof_query::objects::meaning::Meanings;
use hprof_writer::{Elements, ObjectId, Options, Root, Type, Value};

#[test]
fn dates_and_times() {
    use Type::{Byte, Int, Long, Object, Short};
    let mut made = Made::new();
    let instant = made.class("java.time.Instant", &[("seconds", Long), ("nanos", Int)]);
    made.means(instant, &[long(1_709_209_800), int(1000)], "2024-02-29T12:30:00.000001Z");
    made.means(instant, &[long(-1), int(5)], "1969-12-31T23:59:59.000000005Z");
    made.means(instant, &[long(253_402_300_800), int(0)], "+10000-01-01T00:00:00Z");
    made.means(instant, &[long(-99_999_999_999), int(0)], "-1199-02-15T14:13:21Z");
    made.means(instant, &[long(-31_557_014_167_219_200), int(0)], "-1000000000-01-01T00:00:00Z");
    let impossible = made.object(instant, &[long(i64::MAX), int(0)]);
    made.is_nothing(impossible);

    let date = made.class("java.time.LocalDate", &[("year", Int), ("month", Short), ("day", Short)]);
    let leap = made.means(date, &[int(2024), Value::Short(2), Value::Short(29)], "2024-02-29");
    made.means(date, &[int(999_999_999), Value::Short(12), Value::Short(31)], "+999999999-12-31");
    made.means(date, &[int(-1), Value::Short(1), Value::Short(2)], "-0001-01-02");
    let month_77 = made.object(date, &[int(2024), Value::Short(77), Value::Short(1)]);
    made.is_nothing(month_77);
    let day_minus_1 = made.object(date, &[int(2024), Value::Short(1), Value::Short(-1)]);
    made.is_nothing(day_minus_1);

    let time = made
        .class("java.time.LocalTime", &[("nano", Int), ("hour", Byte), ("minute", Byte), ("second", Byte)]);
    let bytes = |hour, minute, second| [Value::Byte(hour), Value::Byte(minute), Value::Byte(second)];
    let of_time = |nano, [hour, minute, second]: [Value; 3]| [int(nano), hour, minute, second];
    made.means(time, &of_time(0, bytes(1, 2, 0)), "01:02");
    made.means(time, &of_time(120_000_000, bytes(1, 2, 3)), "01:02:03.120");
    made.means(time, &of_time(999_999_999, bytes(23, 59, 59)), "23:59:59.999999999");
    let second = made.means(time, &of_time(0, bytes(3, 4, 5)), "03:04:05");
    let impossible = made.object(time, &of_time(0, bytes(25, 0, 0)));
    made.is_nothing(impossible);

    let date_time = made.class("java.time.LocalDateTime", &[("date", Object), ("time", Object)]);
    let both = made.means(date_time, &[leap.into(), second.into()], "2024-02-29T03:04:05");
    let zone_id = made.class("java.time.ZoneId", &[]);
    let offset = made.below("java.time.ZoneOffset", zone_id, &[("totalSeconds", Int), ("id", Object)]);
    let null = Value::Object(0);
    let utc = made.means(offset, &[int(0), null], "Z");
    let two = made.means(offset, &[int(7200), null], "+02:00");
    made.means(offset, &[int(-1815), null], "-00:30:15");
    let region = made.below("java.time.ZoneRegion", zone_id, &[("id", Object), ("rules", Object)]);
    let zurich = made.string("Europe/Zurich");
    let zurich = made.means(region, &[zurich.into(), null], "Europe/Zurich");
    let zoned =
        made.class("java.time.ZonedDateTime", &[("dateTime", Object), ("offset", Object), ("zone", Object)]);
    made.means(zoned, &[both.into(), two.into(), zurich.into()], "2024-02-29T03:04:05+02:00[Europe/Zurich]");
    made.means(zoned, &[both.into(), utc.into(), utc.into()], "2024-02-29T03:04:05Z");
    let of_date = made.class("java.time.OffsetDateTime", &[("dateTime", Object), ("offset", Object)]);
    made.means(of_date, &[both.into(), two.into()], "2024-02-29T03:04:05+02:00");
    let of_time = made.class("java.time.OffsetTime", &[("time", Object), ("offset", Object)]);
    made.means(of_time, &[second.into(), utc.into()], "03:04:05Z");

    let duration = made.class("java.time.Duration", &[("seconds", Long), ("nanos", Int)]);
    made.means(duration, &[long(29_172), int(345_000_000)], "PT8H6M12.345S");
    made.means(duration, &[long(-1), int(999_000_000)], "PT-0.001S");
    made.means(duration, &[long(-62), int(500_000_000)], "PT-1M-1.5S");
    made.means(duration, &[long(i64::MIN), int(0)], "PT-2562047788015215H-30M-8S");
    let period = made.class("java.time.Period", &[("years", Int), ("months", Int), ("days", Int)]);
    made.means(period, &[int(1), int(-2), int(30)], "P1Y-2M30D");
    made.means(period, &[int(0), int(0), int(0)], "P0D");
    let year = made.class("java.time.Year", &[("year", Int)]);
    made.means(year, &[int(-5)], "-5");
    let month = made.class("java.time.YearMonth", &[("year", Int), ("month", Int)]);
    made.means(month, &[int(12_345), int(3)], "12345-03");

    // `java.util.Date.toString` is in local time; here it is an Instant.
    let old = made.class("java.util.Date", &[("fastTime", Long), ("cdate", Object)]);
    made.means(old, &[long(1_700_000_000_123), null], "2023-11-14T22:13:20.123Z");
    made.means(old, &[long(-1), null], "1969-12-31T23:59:59.999Z");
    let timestamp = made.below("java.sql.Timestamp", old, &[("nanos", Int)]);
    made.means(
        timestamp,
        &[int(123_456_789), long(1_709_209_800_000), null],
        "2024-02-29T12:30:00.123456789Z",
    );
    made.check();
}

#[test]
fn numbers() {
    use Type::{Boolean, Double, Int, Long, Object};
    let mut made = Made::new();
    let null = Value::Object(0);
    let integer = made.class("java.math.BigInteger", &[("mag", Object), ("signum", Int)]);
    let none = made.ints(&[]);
    made.means(integer, &[none.into(), int(0)], "0");
    let words = made.ints(&[1, 0]);
    made.means(integer, &[words.into(), int(1)], "4294967296");
    made.means(integer, &[words.into(), int(-1)], "-4294967296");
    // 2^128 - 1
    let words = made.ints(&[u32::MAX; 4]);
    let big = made.means(integer, &[words.into(), int(1)], "340282366920938463463374607431768211455");
    // 16^8000, which has 9633 digits.
    let words = made.ints(&[[1].as_slice(), &[0; 1000]].concat());
    let large = made.object(integer, &[words.into(), int(1)]);
    // More words than are turned into decimals: 16^8192.
    let words = made.ints(&[[1].as_slice(), &[0; 1024]].concat());
    made.means(integer, &[words.into(), int(-1)], &format!("-0x1{}", "0".repeat(8192)));
    let decimal =
        made.class("java.math.BigDecimal", &[("intVal", Object), ("scale", Int), ("intCompact", Long)]);
    for (compact, scale, text) in [
        (123, 0, "123"),
        (123, -5, "1.23E+7"),
        (-15, 1, "-1.5"),
        (1, 10, "1E-10"),
        (1, 6, "0.000001"),
        (1, 7, "1E-7"),
        (0, 2, "0.00"),
        (0, -3, "0E+3"),
        (1, i32::MIN, "1E+2147483648"),
    ] {
        made.means(decimal, &[null, int(scale), long(compact)], text);
    }
    let text = "340282366920938463463374607431.768211455";
    made.means(decimal, &[big.into(), int(9), long(i64::MIN)], text);

    let optional = made.class("java.util.OptionalDouble", &[("isPresent", Boolean), ("value", Double)]);
    made.means(optional, &[Value::Boolean(true), Value::Double(0.1)], "0.1");
    made.means(optional, &[Value::Boolean(false), Value::Double(0.0)], "empty");
    let boxed = made.class("java.lang.Double", &[("value", Double)]);
    for (value, text) in [
        (5e-324, "4.9E-324"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
        (-0.0, "-0.0"),
    ] {
        made.means(boxed, &[Value::Double(value)], text);
    }
    let atomic = made.class("java.util.concurrent.atomic.AtomicBoolean", &[("value", Int)]);
    made.means(atomic, &[int(1)], "true");
    let atomic = made.class("java.util.concurrent.atomic.AtomicLong", &[("value", Long)]);
    made.means(atomic, &[long(i64::MIN)], "-9223372036854775808");
    // `base` and what the threads have added in cells of their own.
    let striped = made.class("java.util.concurrent.atomic.Striped64", &[("cells", Object), ("base", Long)]);
    let cell = made.class("java.util.concurrent.atomic.Striped64$Cell", &[("value", Long)]);
    let (a, b) = (made.object(cell, &[long(40)]), made.object(cell, &[long(-3)]));
    let cells = made.model.array_class(cell);
    let cells = made.model.object_array(cells, &[a, ObjectId::NULL, b]);
    let adder = made.below("java.util.concurrent.atomic.LongAdder", striped, &[]);
    made.means(adder, &[cells.into(), long(5)], "42");
    made.means(adder, &[null, long(5)], "5");

    let dump = {
        made.expected.push((large, None));
        made.dump()
    };
    made.expected.pop();
    let (heap, graph) = dump.open_graph();
    let index = graph.objects.addresses.index_of(hprof_cli::ObjectId(large.0)).unwrap();
    let meanings = Meanings::new(&whole_dump(&heap, &graph));
    let text = meanings.meaning(index, 1 << 20).unwrap().text;
    // BigInteger.ONE.shiftLeft(32000).toString()
    assert_eq!((text.len(), &text[..20], &text[text.len() - 10..]), (9633, BIG_START, BIG_END));
    let label = Labels::new(&whole_dump(&heap, &graph)).label(index).unwrap();
    assert_eq!(label, format!("0x1{}…", "0".repeat(MAX_CHARS - 4)));
    made.check();
}

const BIG_START: &str = "91171950785279002509";
const BIG_END: &str = "9577829376";

/// Fields as the core library of Android 6 has them; the texts are those of `toString` there.
#[test]
fn old_android() {
    use Type::{Boolean, Int, Long, Object};
    let mut made = Made::new();
    let null = Value::Object(0);
    let date = made.class("java.util.Date", &[("milliseconds", Long)]);
    made.means(date, &[long(1_700_000_000_123)], "2023-11-14T22:13:20.123Z");
    let names = ["cachedToStringResult", "countryCode", "languageCode", "variantCode"];
    let locale = made.class("java.util.Locale", &names.map(|name| (name, Object)));
    let text = made.string("en_US");
    made.means(locale, &[text.into(), null, null, null], "en_US");
    let integer = made.class(
        "java.math.BigInteger",
        &[("digits", Object), ("javaIsValid", Boolean), ("numberLength", Int), ("sign", Int)],
    );
    // The least significant word first, with room behind.
    let digits = made.ints(&[7, 1, 99]);
    let number = made.means(integer, &[digits.into(), true.into(), int(2), int(-1)], "-4294967303");
    let native = made.object(integer, &[digits.into(), false.into(), int(2), int(-1)]);
    made.is_nothing(native);
    let decimal = made.class(
        "java.math.BigDecimal",
        &[("intVal", Object), ("smallValue", Long), ("scale", Int), ("bitLength", Int)],
    );
    made.means(decimal, &[null, long(-15), int(1), int(4)], "-1.5");
    made.means(decimal, &[number.into(), long(0), int(2), int(64)], "-42949673.03");
    let bits = made.class("java.util.BitSet", &[("bits", Object), ("longCount", Int)]);
    let words = made.model.prim_array(Elements::Long(vec![3, 1]));
    made.means(bits, &[words.into(), int(1)], "{0, 1}");
    made.check();

    // A list is a ring.
    let mut made = Made::new();
    let list = made.class("java.util.LinkedList", &[("voidLink", Object), ("size", Int)]);
    let link = made.class("java.util.LinkedList$Link", &[("data", Object), ("next", Object)]);
    let ring = made.object(link, &[null, null]);
    let mut next = ring;
    for text in ["d", "c", "b", "a"] {
        let text = made.string(text);
        next = made.object(link, &[text.into(), next.into()]);
    }
    made.model.set_field(ring, "next", next);
    let list = made.object(list, &[ring.into(), int(4)]);
    made.model.root(list, Root::Unknown);
    let dump = made.dump();
    let (heap, graph) = dump.open_graph();
    let elements = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    assert_eq!(contents(&heap, &graph, list), Some((CollectionKind::List, Some(4), elements)));
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn names_places_and_buffers() {
    use Type::{Boolean, Int, Long, Object};
    let mut made = Made::new();
    let null = Value::Object(0);
    let uuid = made.class("java.util.UUID", &[("mostSigBits", Long), ("leastSigBits", Long)]);
    made.means(
        uuid,
        &[long(0x0011_2233_4455_6677), long(0x8899_aabb_ccdd_eeff_u64.cast_signed())],
        "00112233-4455-6677-8899-aabbccddeeff",
    );
    let base = made.class(
        "sun.util.locale.BaseLocale",
        &[("language", Object), ("script", Object), ("region", Object), ("variant", Object)],
    );
    let locale = made.class("java.util.Locale", &[("baseLocale", Object), ("localeExtensions", Object)]);
    let extensions = made.class("sun.util.locale.LocaleExtensions", &[("id", Object)]);
    let id = made.string("u-ca-buddhist");
    let extensions = made.object(extensions, &[id.into()]);
    for (parts, extensions, text) in [
        (["de", "", "CH", ""], null, "de_CH"),
        (["zh", "Hant", "TW", ""], null, "zh_TW_#Hant"),
        (["es", "", "ES", "Traditional_WIN"], null, "es_ES_Traditional_WIN"),
        (["th", "", "TH", ""], extensions.into(), "th_TH_#u-ca-buddhist"),
        (["en", "", "", ""], null, "en"),
        (["", "", "", ""], null, ""),
    ] {
        let parts: Vec<Value> = parts.iter().map(|part| made.string(part).into()).collect();
        let base = made.object(base, &parts);
        made.means(locale, &[base.into(), extensions], text);
    }
    let names = ["scheme", "schemeSpecificPart", "userInfo", "host", "path", "query", "fragment", "string"];
    let mut fields = names.map(|name| (name, Object)).to_vec();
    fields.push(("port", Int));
    let uri = made.class("java.net.URI", &fields);
    for (parts, port, text) in [
        (["http", "", "u", "h", "/p", "q=1", "f", ""], 80, "http://u@h:80/p?q=1#f"),
        (["mailto", "a@b.c", "", "", "", "", "", ""], -1, "mailto:a@b.c"),
        (["", "", "", "", "d", "", "", ""], -1, "d"),
        (["x", "", "", "", "", "", "", "http://kept/"], -1, "http://kept/"),
    ] {
        let mut parts: Vec<Value> =
            parts.iter().map(|part| if part.is_empty() { null } else { made.string(part).into() }).collect();
        parts.push(int(port));
        made.means(uri, &parts, text);
    }
    let names = ["protocol", "host", "file", "authority", "ref"];
    let mut fields = names.map(|name| (name, Object)).to_vec();
    fields.push(("port", Int));
    let url = made.class("java.net.URL", &fields);
    for (parts, port, text) in [
        (
            ["http", "example.com", "/a/b?q=1", "user@example.com:8080", "frag"],
            8080,
            "http://user@example.com:8080/a/b?q=1#frag",
        ),
        (["http", "example.com", "/", "", ""], 8080, "http://example.com:8080/"),
        (["file", "", "/tmp/x", "", ""], -1, "file:/tmp/x"),
    ] {
        let mut parts: Vec<Value> =
            parts.iter().map(|part| if part.is_empty() { null } else { made.string(part).into() }).collect();
        parts.push(int(port));
        made.means(url, &parts, text);
    }
    let path = made.class("sun.nio.fs.UnixPath", &[("path", Object), ("stringValue", Object)]);
    let text = made.model.prim_array(Elements::of_bytes("/tmp/Grüße".as_bytes()));
    made.means(path, &[text.into(), null], "/tmp/Grüße");
    let inet = made.class("java.net.Inet4Address", &[("holder", Object)]);
    let holder =
        made.class("java.net.InetAddress$InetAddressHolder", &[("hostName", Object), ("address", Int)]);
    let name = made.string("host");
    let named = made.object(holder, &[name.into(), int(0xc0a8_0102_u32.cast_signed())]);
    made.means(inet, &[named.into()], "host/192.168.1.2");

    let buffer = made
        .class("java.nio.Buffer", &[("position", Int), ("limit", Int), ("capacity", Int), ("address", Long)]);
    let buffer = made.below("java.nio.ByteBuffer", buffer, &[("hb", Object), ("offset", Int)]);
    let heap = made.below("java.nio.HeapByteBuffer", buffer, &[]);
    let mapped = made.below("java.nio.MappedByteBuffer", buffer, &[("fd", Object), ("isSync", Boolean)]);
    let direct = made.below("java.nio.DirectByteBuffer", mapped, &[("att", Object), ("cleaner", Object)]);
    let array = made.model.prim_array(Elements::Zeros(Type::Byte, 10));
    // A heap buffer's address is a number within its array.
    made.means(heap, &[array.into(), int(0), int(1), int(10), int(10), long(16)], "pos=1 lim=10 cap=10");
    made.means(
        direct,
        &[null, null, null, false.into(), null, int(0), int(4), int(100), int(4096), long(0x7fec_9413_b860)],
        "pos=4 lim=100 cap=4096, outside of the heap at 0x7fec9413b860",
    );
    let bits = made.class("java.util.BitSet", &[("words", Object), ("wordsInUse", Int)]);
    let words = made.model.prim_array(Elements::Long(vec![5, 1, 0, -1]));
    made.means(bits, &[words.into(), int(2)], "{0, 2, 64}");
    made.means(bits, &[words.into(), int(0)], "{}");
    let builder = made.class(
        "java.lang.AbstractStringBuilder",
        &[("value", Object), ("coder", Type::Byte), ("count", Int)],
    );
    let builder = made.below("java.lang.StringBuilder", builder, &[]);
    let room = made.model.prim_array(Elements::of_bytes(b"built\0\0\0\0"));
    made.means(builder, &[room.into(), Value::Byte(0), int(5)], "built");
    made.check();
}

#[test]
fn throwables_have_their_stacks() {
    use Type::{Int, Object};
    let mut made = Made::new();
    let null = Value::Object(0);
    let throwable = made.class(
        "java.lang.Throwable",
        &[("backtrace", Object), ("detailMessage", Object), ("stackTrace", Object)],
    );
    let element = made.class(
        "java.lang.StackTraceElement",
        &[("declaringClass", Object), ("methodName", Object), ("fileName", Object), ("lineNumber", Int)],
    );
    let frame = |made: &mut Made, class: &str, method: &str, file: Option<&str>, line| {
        let [class, method] = [class, method].map(|text| made.string(text));
        let file = file.map_or(null, |file| made.string(file).into());
        made.object(element, &[class.into(), method.into(), file, int(line)])
    };
    let first = frame(&mut made, "com.acme.Main", "run", Some("Main.java"), 5);
    let second = frame(&mut made, "com.acme.Main", "main", None, -2);
    let elements = made.model.array_class(element);
    let elements = made.model.object_array(elements, &[first, second]);
    let message = made.string("bad");
    let error = made.below("java.lang.IllegalStateException", throwable, &[]);
    let seen = made.means(error, &[null, message.into(), elements.into()], "bad");
    // As stored by HotSpot until it is used: methods, lines, classes, names, the next chunk.
    let classes = made.model.object_array(made.jdk.object_array, &[throwable.into(), error.into()]);
    let chunk = [ObjectId::NULL, ObjectId::NULL, classes, ObjectId::NULL, ObjectId::NULL];
    let backtrace = made.model.object_array(made.jdk.object_array, &chunk);
    let unseen = made.object(error, &[backtrace.into(), null, null]);
    // Chunks that lead in a circle end somewhere.
    made.model.set_elements(backtrace, &[ObjectId::NULL, ObjectId::NULL, classes, ObjectId::NULL, backtrace]);
    made.is_nothing(unseen);
    let dump = made.dump();
    let (heap, graph) = dump.open_graph();
    let meanings = Meanings::new(&whole_dump(&heap, &graph));
    let stack = |object: ObjectId, most| {
        meanings
            .stack(graph.objects.addresses.index_of(hprof_cli::ObjectId(object.0)).unwrap(), most)
            .unwrap()
    };
    let found = stack(seen, 10);
    assert_eq!(found.frames, ["com.acme.Main.run(Main.java:5)", "com.acme.Main.main"]);
    assert!(!found.classes_only);
    assert_eq!((stack(seen, 1).frames.len(), stack(seen, 1).more), (1, 1));
    let found = stack(unseen, 3);
    assert!(found.classes_only && found.more > 0);
    let names = ["java.lang.Throwable", "java.lang.IllegalStateException", "java.lang.Throwable"];
    assert_eq!(found.frames, names);
    made.check();
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn hostile_objects_are_read_in_bounded_time() {
    use Type::{Int, Object};
    let mut made = Made::new();
    // A BigInteger and a BitSet of a gigabyte, all zeros.
    let gigabyte = made.model.prim_array(Elements::Zeros(Type::Int, 1 << 28));
    let longs = made.model.prim_array(Elements::Zeros(Type::Long, 1 << 27));
    let integer = made.class("java.math.BigInteger", &[("mag", Object), ("signum", Int)]);
    let huge = made.object(integer, &[gigabyte.into(), int(1)]);
    let bits = made.class("java.util.BitSet", &[("words", Object), ("wordsInUse", Int)]);
    let zeros = made.object(bits, &[longs.into(), int(1 << 27)]);
    let negative = made.object(bits, &[longs.into(), int(-1)]);
    let optional = made.class("java.util.Optional", &[("value", Object)]);
    let own = made.object(optional, &[Value::Object(0)]);
    made.model.set_field(own, "value", own);
    let reference = made.class("java.util.concurrent.atomic.AtomicReference", &[("value", Object)]);
    let first = made.object(reference, &[Value::Object(0)]);
    let second = made.object(reference, &[first.into()]);
    made.model.set_field(first, "value", second);
    // Each part of it is the whole again.
    let zoned =
        made.class("java.time.ZonedDateTime", &[("dateTime", Object), ("offset", Object), ("zone", Object)]);
    let parts = made.object(zoned, &[Value::Object(0); 3]);
    made.model.set_values(parts, &[parts.into(); 3]);
    let missing = made.object(optional, &[Value::Object(0x000d_eadb_eef0)]);
    let stale = made.class("java.util.BitSet", &[("words", Object)]);
    let fieldless = made.object(stale, &[longs.into()]);
    let objects = [huge, zeros, negative, own, first, second, parts, missing, fieldless];
    for object in objects {
        made.model.root(object, Root::Unknown);
    }
    let dump = Dump::written(&made.model.write(&Options::hotspot()));
    let (heap, graph) = dump.open_graph();
    let meanings = Meanings::new(&whole_dump(&heap, &graph));
    let labels = Labels::new(&whole_dump(&heap, &graph));
    let start = Instant::now();
    let found = objects.map(|object| {
        let index = graph.objects.addresses.index_of(hprof_cli::ObjectId(object.0)).unwrap();
        let label = labels.label(index);
        // Collections go in circles, too.
        let held = contents(&heap, &graph, object).map_or(0, |(_, _, entries)| entries.len());
        assert!(held <= 1000);
        (meanings.meaning(index, 1000).map(|meaning| (meaning.text, meaning.is_cut)), label)
    });
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(found[0], (None, None), "no BigInteger has zeros in front");
    assert_eq!(found[1], (Some(("{".to_owned(), true)), Some("{…".to_owned())));
    assert_eq!(found[2], (None, None));
    for at in [3, 4, 5] {
        let (Some((text, false)), None) = &found[at] else { panic!("{:?}", found[at]) };
        assert!(text.starts_with("java.util.") && text.contains(" 0x"), "{text}");
    }
    assert_eq!(found[6], (None, None));
    assert_eq!(found[7], (Some(("0xdeadbeef0".to_owned(), false)), None));
    assert_eq!(found[8], (None, None));
}
