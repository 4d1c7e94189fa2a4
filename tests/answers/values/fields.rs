//! Field values of real dumps against the program that was dumped (`samples/java/HeapZoo.java`), and Strings against a
//! reading that shares nothing with the library.

use hprof_cli::{ObjectId, ObjectIndex};
use std::collections::BTreeMap;

use super::naive;
use crate::kit::dump::{Dump, bytes, whole_dump};
use crate::kit::texts::sample_path as sample;
use hprof_index::{Heap, ObjectGraph};
use hprof_query::objects::meaning::Meanings;
use hprof_query::paths::steps::View;
use hprof_query::show::{
    ClassFound, Dominator, ObjectKind, ReferencedObject, Shower, ShownLoader, ShownObject, ShownPart,
    ShownValue, find_class,
};

const ZOOS: &[&str] = &["jdk8", "jdk17", "jdk25", "jdk25-compact"];

struct Zoo<'a> {
    name: &'a str,
    heap: &'a Heap,
    graph: &'a ObjectGraph,
    shower: Shower<'a>,
}

fn with_zoos(test: impl Fn(&Zoo<'_>)) {
    for name in ZOOS {
        let dump = Dump::sample(&sample(&format!("jdk/{name}.hprof.zst")));
        let (heap, graph) = dump.open_graph();
        let view = View::new(&whole_dump(&heap, &graph));
        let shower = Shower::new(&whole_dump(&heap, &graph), view);
        test(&Zoo { name, heap: &heap, graph: &graph, shower });
    }
}

fn refers(part: &ShownPart) -> ReferencedObject {
    match &part.value {
        ShownValue::Reference(Some(to)) => to.clone(),
        other => panic!("{}: {other:?}", part.name),
    }
}

fn field<'s>(shown: &'s ShownObject, name: &str) -> &'s ShownPart {
    shown.fields.iter().find(|part| part.name == name).unwrap_or_else(|| panic!("{name} of {shown:?}"))
}

/// Fields as `class.name type value`; of references what they refer to.
fn fields(shown: &ShownObject) -> BTreeMap<String, String> {
    let text = |part: &ShownPart| match &part.value {
        ShownValue::Reference(None) => "null".to_owned(),
        ShownValue::Reference(Some(to)) => format!("{:#x}", to.object),
        ShownValue::Integer(value) => value.to_string(),
        ShownValue::Boolean(value) => value.to_string(),
        ShownValue::Char(unit) => format!("'{unit:x}'"),
        ShownValue::Float(value) => format!("{value:?}f"),
        ShownValue::Double(value) => format!("{value:?}d"),
        ShownValue::Hidden => "hidden".to_owned(),
    };
    let of = |part: &ShownPart| {
        (
            format!("{}.{}", part.class.as_deref().unwrap(), part.name),
            format!("{} {}", part.kind.java_name(), text(part)),
        )
    };
    shown.fields.iter().map(of).collect()
}

impl Zoo<'_> {
    fn object(&self, id: u64) -> u32 {
        self.graph.objects.addresses.index_of(ObjectId(id)).unwrap().0
    }

    fn show(&self, id: u64) -> ShownObject {
        self.shower.show(ObjectIndex(self.object(id)))
    }

    fn class_object(&self, name: &str) -> u64 {
        match find_class(&whole_dump(self.heap, self.graph), name, &name.parse().unwrap()) {
            ClassFound::One(object) => self.graph.objects.addresses.id_of(object).unwrap().0,
            other => panic!("{}: {name}: {other:?}", self.name),
        }
    }

    fn static_field(&self, name: &str) -> u64 {
        refers(field(&self.show(self.class_object("HeapZoo")), name)).object.0
    }

    fn elements(&self, id: u64) -> Vec<ShownValue> {
        self.shower.elements(ObjectIndex(self.object(id)), 0, u64::MAX).map(|part| part.value).collect()
    }

    fn value(&self, id: u64) -> Option<String> {
        self.shower.meaning(ObjectIndex(self.object(id)), 1 << 20, 100).0.map(|value| value.text)
    }

    /// Returns the contents of `HeapZoo.keep`, in order.
    fn keep(&self) -> Vec<ReferencedObject> {
        let contents =
            self.shower.contents(ObjectIndex(self.object(self.static_field("keep"))), 0, u64::MAX).unwrap();
        let refer = |value: &ShownValue| match value {
            ShownValue::Reference(Some(to)) => to.clone(),
            other => panic!("{other:?}"),
        };
        contents.entries.iter().map(|entry| refer(&entry.value)).collect()
    }
}

/// Positions in `keep`, as filled by `main` of HeapZoo: 500 times D, C, B, A, Empty; four references; 50
/// Finalizables; 1000 Strings that repeat; six others; 300 times six collections; then one by one.
const REFERENCES: usize = 2500;
const FINALIZABLES: usize = REFERENCES + 4;
const REPEATED: usize = FINALIZABLES + 50;
const STRINGS: usize = REPEATED + 1000;
const COLLECTIONS: usize = STRINGS + 6;
const ARRAYS: usize = COLLECTIONS + 1800;

#[test]
fn fields_of_every_type() {
    with_zoos(|zoo| {
        let keep = zoo.keep();
        let keep_id = zoo.static_field("keep");
        let colors: Vec<u64> = ["RED", "GREEN", "BLUE"]
            .map(|color| {
                let class = zoo.show(zoo.class_object("HeapZoo$Color"));
                refers(field(&class, color)).object.0
            })
            .into();
        for i in 0..500 {
            let five = &keep[i * 5..i * 5 + 5];
            let classes: Vec<&str> = five.iter().map(|object| object.class.as_deref().unwrap()).collect();
            assert_eq!(
                classes,
                ["HeapZoo$D", "HeapZoo$C", "HeapZoo$B", "HeapZoo$A", "HeapZoo$Empty"],
                "{} {i}",
                zoo.name
            );
            let a = [("HeapZoo$A.b", "byte 0")];
            let b = [("HeapZoo$B.i", "int 0"), ("HeapZoo$B.c", "byte 0")];
            let c = [("HeapZoo$C.s", "short 0")];
            let empty_c = [("HeapZoo$C.l", "long 0"), ("HeapZoo$C.o", "Object null")];
            let (l, o) = (format!("long {i}"), format!("Object {keep_id:#x}"));
            let (d_value, p) =
                (format!("double {:?}d", i as f64 * 0.5), format!("Object {:#x}", colors[i % 3]));
            let full_c = [("HeapZoo$C.l", l.as_str()), ("HeapZoo$C.o", o.as_str())];
            let d = [
                ("HeapZoo$D.z", "boolean false"),
                ("HeapZoo$D.ch", "char '0'"),
                ("HeapZoo$D.f", "float 0.0f"),
                ("HeapZoo$D.d", d_value.as_str()),
                ("HeapZoo$D.p", p.as_str()),
                ("HeapZoo$D.last", "byte 0"),
            ];
            let expected: [Vec<(&str, &str)>; 5] = [
                [&a[..], &b, &c, &full_c, &d].concat(),
                [&a[..], &b, &c, &empty_c].concat(),
                [&a[..], &b].concat(),
                a.to_vec(),
                Vec::new(),
            ];
            for (object, expected) in five.iter().zip(expected) {
                let expected: BTreeMap<String, String> =
                    expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                assert_eq!(fields(&zoo.show(object.object.0)), expected, "{} {i}", zoo.name);
            }
            // The class's own fields first, then those of its superclass.
            let shown = zoo.show(five[0].object.0);
            let mut groups: Vec<&str> =
                shown.fields.iter().map(|part| part.class.as_deref().unwrap()).collect();
            groups.dedup();
            assert_eq!(groups, ["HeapZoo$D", "HeapZoo$C", "HeapZoo$B", "HeapZoo$A"]);
        }
        assert_eq!(zoo.value(colors[1]).as_deref(), Some("GREEN"));
    });
}

#[test]
fn strings_as_the_source_has_them() {
    with_zoos(|zoo| {
        let keep = zoo.keep();
        for (i, object) in keep[REPEATED..STRINGS].iter().enumerate() {
            let expected = format!("duplicate string number {}", i % 10);
            assert_eq!(zoo.value(object.object.0), Some(expected), "{} {i}", zoo.name);
        }
        let expected = [
            "Grüße",
            "日本語テキスト",
            "emoji 😀 pair",
            "",
            "tab\tnewline\nquote\"back\\slash\0nul",
            "lone surrogate \\ud800 here",
        ];
        for (object, expected) in keep[STRINGS..COLLECTIONS].iter().zip(expected) {
            assert_eq!(object.class.as_deref(), Some("java.lang.String"));
            assert_eq!(zoo.value(object.object.0).as_deref(), Some(expected), "{}", zoo.name);
        }
        assert_eq!(refers_label(&keep[STRINGS + 5]), "lone surrogate \u{fffd} here");
    });
}

fn refers_label(to: &ReferencedObject) -> &str {
    to.label.as_deref().unwrap()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn arrays_of_every_type() {
    with_zoos(|zoo| {
        let keep = zoo.keep();
        let name = zoo.name;
        let array = |at: usize, class: &str, length: u64| {
            let shown = zoo.show(keep[ARRAYS + at].object.0);
            assert_eq!((shown.class.as_deref(), shown.length), (Some(class), Some(length)), "{name} {at}");
            zoo.elements(shown.object.0)
        };
        let null = ShownValue::Reference(None);
        assert_eq!(array(0, "boolean[]", 2), [ShownValue::Boolean(true), ShownValue::Boolean(false)]);
        assert_eq!(array(1, "char[]", 2), [ShownValue::Char(0x61), ShownValue::Char(0x20ac)]);
        let floats = array(2, "float[]", 3);
        assert_eq!(
            (&floats[0], &floats[2]),
            (&ShownValue::Float(1.5), &ShownValue::Float(f32::NEG_INFINITY))
        );
        assert!(matches!(floats[1], ShownValue::Float(value) if value.is_nan()), "{floats:?}");
        let doubles = array(3, "double[]", 3);
        assert_eq!(doubles[..2], [ShownValue::Double(std::f64::consts::PI), ShownValue::Double(5e-324)]);
        assert!(matches!(doubles[2], ShownValue::Double(value) if value.to_bits() == 1 << 63), "{doubles:?}");
        assert_eq!(array(4, "byte[]", 2), [ShownValue::Integer(-128), ShownValue::Integer(127)]);
        assert_eq!(array(5, "short[]", 1), [ShownValue::Integer(-32768)]);
        assert_eq!(array(6, "int[]", 1), [ShownValue::Integer(i32::MIN.into())]);
        assert_eq!(array(7, "long[]", 2), [ShownValue::Integer(i64::MIN), ShownValue::Integer(i64::MAX)]);
        assert_eq!(array(8, "int[]", 0), []);
        assert_eq!(array(9, "java.lang.Object[]", 0), []);
        // new String[2][3][4]
        let mut level = array(10, "java.lang.String[][][]", 2);
        for (class, length) in [("java.lang.String[][]", 3), ("java.lang.String[]", 4)] {
            let inner = level.iter().flat_map(|value| {
                let ShownValue::Reference(Some(to)) = value else { panic!("{value:?}") };
                assert_eq!((to.class.as_deref(), zoo.show(to.object.0).length), (Some(class), Some(length)));
                zoo.elements(to.object.0)
            });
            level = inner.collect();
        }
        assert_eq!(level, vec![null.clone(); 24]);
        assert_eq!(array(11, "int[][]", 10), vec![null.clone(); 10]);
        assert_eq!(array(12, "byte[]", 1 << 20), vec![ShownValue::Integer(0); 1 << 20]);
        assert_eq!(array(13, "long[]", 1 << 16), vec![ShownValue::Integer(0); 1 << 16]);
        let colors = array(14, "HeapZoo$Color[]", 2);
        assert!(matches!(&colors[0], ShownValue::Reference(Some(to)) if to.label.as_deref() == Some("RED")));
        assert_eq!(colors[1], null);
        // An array that holds itself.
        let own = array(15, "java.lang.Object[]", 1);
        assert!(matches!(&own[0], ShownValue::Reference(Some(to)) if to.object == keep[ARRAYS + 15].object));

        // Parts of arrays, and their bytes.
        let long = zoo.object(keep[ARRAYS + 7].object.0);
        let part: Vec<ShownPart> = zoo.shower.elements(ObjectIndex(long), 1, 2).collect();
        assert_eq!((part.len(), part[0].name.as_str()), (1, "[1]"));
        let data = zoo.shower.data(ObjectIndex(long), 0, 1).unwrap();
        assert_eq!((data.hexadecimal().as_str(), data.offset), ("8000000000000000", 0));
        let data = zoo.shower.data(ObjectIndex(long), 1, u64::MAX).unwrap();
        assert_eq!((data.hexadecimal().as_str(), data.offset), ("7fffffffffffffff", 8));
        assert!(zoo.shower.data(ObjectIndex(long), 5, 9).unwrap().bytes.is_empty());
        let chars = zoo.shower.data(ObjectIndex(zoo.object(keep[ARRAYS + 1].object.0)), 0, 2).unwrap();
        assert_eq!(chars.text().unwrap().0, "a€");
        assert!(
            zoo.shower.data(ObjectIndex(zoo.object(keep[ARRAYS + 9].object.0)), 0, 1).is_none(),
            "no primitives"
        );
    });
}

#[test]
fn what_known_objects_mean() {
    with_zoos(|zoo| {
        let keep = zoo.keep();
        let is = |at: usize, class: &str, value: &str| {
            let object = &keep[at];
            assert_eq!(object.class.as_deref(), Some(class), "{}", zoo.name);
            assert_eq!(zoo.value(object.object.0).as_deref(), Some(value), "{} {class}", zoo.name);
        };
        let one_by_one = ARRAYS + 16;
        let buffer = zoo.show(keep[one_by_one].object.0);
        let ShownValue::Integer(address) = field(&buffer, "address").value else { panic!("{buffer:?}") };
        is(
            one_by_one,
            "java.nio.DirectByteBuffer",
            &format!("pos=0 lim=4096 cap=4096, outside of the heap at {address:#x}"),
        );
        // The value of `new BigInteger(256, new Random(42))`, by java.math.BigInteger.toString.
        is(
            one_by_one + 1,
            "java.math.BigInteger",
            "24250429618215260598957696001935175135959229619080974590971174872813112994997",
        );
        is(one_by_one + 2, "java.util.Optional", "opt");
        let uuid = zoo.value(keep[one_by_one + 3].object.0).unwrap();
        let dashes: Vec<usize> = uuid.match_indices('-').map(|(at, _)| at).collect();
        // Random ones have version 4, variant 2.
        assert_eq!((uuid.len(), dashes, &uuid[14..15]), (36, vec![8, 13, 18, 23], "4"), "{uuid}");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        let shown = zoo.show(keep[one_by_one + 3].object.0);
        let ShownValue::Integer(low) = field(&shown, "leastSigBits").value else { panic!() };
        assert_eq!(uuid.replace('-', "")[16..], format!("{low:016x}"));
        let date = zoo.show(keep[one_by_one + 4].object.0);
        let ShownValue::Integer(millis) = field(&date, "fastTime").value else { panic!() };
        let millis = millis.cast_unsigned();
        let created = zoo.heap.summary().facts().created_ms.get();
        assert!(millis < created && created - millis < 3_600_000, "made within the hour");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis);
        let time = humantime::format_rfc3339_millis(time).to_string();
        is(one_by_one + 4, "java.util.Date", &time.replace(".000Z", "Z"));
        is(one_by_one + 5, "java.lang.Thread", "main");

        // Class objects of five loaders, and an instance of each.
        for i in 0..5 {
            let (instance, class) = (&keep[one_by_one + 6 + 2 * i], &keep[one_by_one + 7 + 2 * i]);
            assert_eq!(instance.class.as_deref(), Some("HeapZoo$Empty"));
            assert_eq!(class.label.as_deref(), Some("HeapZoo$Empty"));
            let shown = zoo.show(instance.object.0);
            assert_eq!(shown.class_object, Some(class.object));
            let Some(ShownLoader::Object(loader)) = shown.loader else { panic!("{:?}", shown.loader) };
            assert_eq!(loader.class.as_deref(), Some("HeapZoo$Loader"));
            let class = zoo.show(class.object.0);
            assert_eq!(class.loader, Some(ShownLoader::Object(loader)));
            assert_eq!(class.of_class.unwrap().instances, 1);
        }
        let found =
            find_class(&whole_dump(zoo.heap, zoo.graph), "HeapZoo$Empty", &"HeapZoo$Empty".parse().unwrap());
        let ClassFound::Several(classes, 6) = found else { panic!("{found:?}") };
        assert!(classes.iter().all(|class| class.name == "HeapZoo$Empty"));
        let anonymous = zoo.show(keep[one_by_one + 17].object.0);
        assert_eq!(field(&anonymous, "hidden").value, ShownValue::Integer(7));
    });
}

#[test]
fn references_collections_and_cycles() {
    with_zoos(|zoo| {
        let keep = zoo.keep();
        // SoftReference of byte[1000], WeakReference of `keep`, PhantomReference, WeakHashMap.
        let soft = zoo.show(keep[REFERENCES].object.0);
        let referent = zoo.show(refers(field(&soft, "referent")).object.0);
        assert_eq!((referent.class.as_deref(), referent.length), (Some("byte[]"), Some(1000)));
        let weak = zoo.show(keep[REFERENCES + 1].object.0);
        assert_eq!(refers(field(&weak, "referent")).object, ObjectId(zoo.static_field("keep")));
        for object in &keep[FINALIZABLES..REPEATED] {
            let data = refers(field(&zoo.show(object.object.0), "data")).object;
            assert_eq!(zoo.show(data.0).length, Some(64));
        }
        let value = |value: &ShownValue| match value {
            ShownValue::Reference(Some(to)) => to.label.clone().unwrap_or_default(),
            other => panic!("{other:?}"),
        };
        for (i, six) in keep[COLLECTIONS..ARRAYS].chunks(6).enumerate() {
            let contents = |at: usize| -> Vec<String> {
                let contents =
                    zoo.shower.contents(ObjectIndex(zoo.object(six[at].object.0)), 0, u64::MAX).unwrap();
                let text = |entry: &hprof_query::show::ContentEntry| {
                    let key = entry.key.as_ref().map(|key| format!("{}=", value(key)));
                    key.unwrap_or_default() + &value(&entry.value)
                };
                contents.entries.iter().map(text).collect()
            };
            let none: [&str; 0] = [];
            assert_eq!(contents(0), none, "ArrayList");
            assert_eq!(contents(1), none, "HashMap");
            assert_eq!(contents(2), ["1", "2", "3"], "LinkedList");
            let tree: Vec<String> = (0..5).map(|j| format!("k{j}={}", j * 1000 + i)).collect();
            assert_eq!(contents(3), tree, "TreeMap");
            assert_eq!(contents(4), none, "ArrayDeque");
            assert_eq!(contents(5), ["a=1"], "LinkedHashMap");
        }
        // A diamond, and a cycle.
        let shared = zoo.elements(zoo.static_field("shared"));
        let id = |value: &ShownValue| match value {
            ShownValue::Reference(Some(to)) => to.object,
            other => panic!("{other:?}"),
        };
        let r = |object: u64| refers(field(&zoo.show(object), "r")).object;
        assert_eq!(shared[2..], [ShownValue::Reference(None), ShownValue::Reference(None)]);
        let sides = zoo.elements(r(id(&shared[0]).0).0);
        let bottom = r(id(&sides[0]).0);
        assert_eq!((sides.len(), r(id(&sides[1]).0)), (2, bottom));
        assert_eq!(zoo.value(r(bottom.0).0).as_deref(), Some("diamond bottom"));
        let x = id(&shared[1]);
        assert_eq!(r(r(x.0).0), x);
        // A chain of 100,000.
        let mut link = zoo.static_field("chain");
        for v in (99_000..100_000).rev() {
            let shown = zoo.show(link);
            assert_eq!(field(&shown, "v").value, ShownValue::Integer(v));
            link = refers(field(&shown, "next")).object.0;
        }
    });
}

#[test]
fn classes_as_the_source_and_the_jvm_have_them() {
    with_zoos(|zoo| {
        let histogram =
            std::fs::read_to_string(sample(&format!("jdk/{}.class_histogram.txt", zoo.name))).unwrap();
        for (name, above, declared) in [
            ("HeapZoo$A", "java.lang.Object", vec!["b byte"]),
            ("HeapZoo$B", "HeapZoo$A", vec!["c byte", "i int"]),
            ("HeapZoo$C", "HeapZoo$B", vec!["l long", "o Object", "s short"]),
            (
                "HeapZoo$D",
                "HeapZoo$C",
                vec!["ch char", "d double", "f float", "last byte", "p Object", "z boolean"],
            ),
        ] {
            let shown = zoo.show(zoo.class_object(name));
            assert_eq!((shown.kind, shown.label.as_deref()), (ObjectKind::ClassObject, Some(name)));
            let class = shown.of_class.unwrap();
            assert_eq!(class.superclass.unwrap().label.as_deref(), Some(above));
            let mut fields: Vec<String> = class
                .fields
                .iter()
                .map(|field| format!("{} {}", field.name, field.kind.java_name()))
                .collect();
            fields.sort_unstable();
            assert_eq!(fields, declared, "{} {name}", zoo.name);
            // The JVM's count: `number: instances bytes class`.
            let line = histogram.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let line = line.into_iter().find(|line| line.get(3) == Some(&name)).unwrap();
            let (instances, bytes): (u64, u64) = (line[1].parse().unwrap(), line[2].parse().unwrap());
            assert_eq!((class.instances, class.shallow_bytes), (instances, bytes), "{} {name}", zoo.name);
            assert_eq!(class.instance_bytes, Some(bytes / instances), "{} {name}", zoo.name);
            let ShownLoader::Object(loader) = class.loader else { panic!("{name}") };
            assert!(loader.class.unwrap().ends_with("$AppClassLoader"));
        }
        let string = zoo.show(zoo.class_object("java.lang.String"));
        assert_eq!(string.loader, Some(ShownLoader::Boot));
        let array = zoo.show(zoo.class_object("byte[]")).of_class.unwrap();
        assert_eq!(array.instance_bytes, None, "arrays differ");
        // `String` is the name behind the last dot, too.
        assert_eq!(zoo.class_object("String"), string.object.0);
        let main = zoo.show(zoo.class_object("HeapZoo"));
        let keep = zoo.show(zoo.static_field("keep"));
        let Some(Dominator::Object(above)) = keep.dominator else { panic!("{:?}", keep.dominator) };
        assert_eq!(above.object, main.object);
        // A session's buffer is its own.
        let cache =
            zoo.shower.contents(ObjectIndex(zoo.object(zoo.static_field("SESSION_CACHE"))), 0, 10).unwrap();
        for entry in cache.entries {
            let ShownValue::Reference(Some(session)) = entry.value else { panic!() };
            let buffer = zoo.show(refers(field(&zoo.show(session.object.0), "buffer")).object.0);
            let Some(Dominator::Object(above)) = buffer.dominator else { panic!() };
            assert_eq!((above.object, buffer.length), (session.object, Some(512)));
        }
    });
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn all_strings_read_naively() {
    for (name, at_least) in [
        ("jdk/jdk8.hprof.zst", 5_000),
        ("jdk/jdk17.hprof.zst", 10_000),
        ("jdk/jdk25.hprof.zst", 10_000),
        ("jdk/jdk25-compact.hprof.zst", 10_000),
        ("public/android-leak_service_binder.hprof.zst", 11_000),
        ("public/ahat-RI-agent.hprof.zst", 100),
    ] {
        let dump = Dump::sample(&sample(name));
        let (heap, graph) = dump.open_graph();
        let meanings = Meanings::new(&whole_dump(&heap, &graph));
        let naive = naive::strings(bytes(&heap));
        assert!(naive.len() >= at_least, "{name}: {}", naive.len());
        let mut characters = 0;
        for (id, units) in naive {
            let object = graph.objects.addresses.index_of(ObjectId(id)).unwrap();
            let found = meanings.meaning(object, usize::MAX).unwrap();
            assert_eq!(found.text, naive::text(&units), "{name}: {id:#x}");
            assert!(!found.is_cut);
            characters += units.len();
        }
        assert!(characters > at_least * 3, "{name}: {characters}");
    }
}
