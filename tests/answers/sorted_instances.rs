//! `instances --sort FIELD` and `--heap`, `histo --heap`, `oql --live`: against the values of all objects, sorted whole,
//! and a plain walk over the dump.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hprof_cli::ObjectIndex;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_writer::{HeapModel, Jdk, Options, Root, Type, Value};

use crate::kit::dump::{Dump, bytes, whole_dump};
use crate::kit::texts::sample_path;

struct Opened {
    dump: Dump,
    heap: Heap,
    graph: ObjectGraph,
}

impl Opened {
    fn of(dump: Dump) -> Self {
        let (heap, graph) = dump.open_graph();
        Self { dump, heap, graph }
    }

    fn sample(name: &str) -> Self {
        Self::of(Dump::sample(&sample_path(name)))
    }

    fn id(&self, object: u32) -> String {
        format!("{:#x}", self.graph.objects.addresses.id_of(ObjectIndex(object)).unwrap())
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.dump.run(arguments);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// Columns of a CSV answer.
    fn columns(&self, arguments: &[&str], columns: &[&str]) -> Vec<Vec<String>> {
        let (code, text, said) = self.run(&[arguments, &["--format", "csv"]].concat());
        assert!(matches!(code, Some(0 | 3)), "{arguments:?}: {said}");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let titles = reader.headers().unwrap().clone();
        let at = |title: &&str| titles.iter().position(|known| known == *title).unwrap();
        let at: Vec<usize> = columns.iter().map(at).collect();
        reader
            .records()
            .map(|row| at.iter().map(|at| row.as_ref().unwrap()[*at].to_owned()).collect())
            .collect()
    }

    fn ids(&self, arguments: &[&str]) -> Vec<String> {
        self.columns(arguments, &["object"]).into_iter().flatten().collect()
    }

    /// All objects of a class of this name, by address.
    fn instances(&self, class: &str) -> Vec<u32> {
        let summary = self.heap.summary();
        let is_of = |object: &u32| {
            let row = self.graph.objects.class(ObjectIndex(*object)).and_then(|class| summary.class(class));
            row.is_some_and(|row| summary.class_name(row) == class)
        };
        (0..self.graph.objects.len()).filter(is_of).collect()
    }
}

#[test]
fn numbers_and_texts_are_in_order() {
    for name in ["jdk/jdk17.hprof.zst", "jdk/jdk8.hprof.zst", "public/android-leak_service_binder.hprof.zst"]
    {
        let opened = Opened::sample(name);
        let objects = whole_dump(&opened.heap, &opened.graph).objects;
        let integer =
            |object: &u32, field| objects.fields(ObjectIndex(*object)).unwrap().integer(field).unwrap();
        let mut maps: Vec<(Reverse<i64>, u32)> = (opened.instances("java.util.HashMap").iter())
            .map(|object| (Reverse(integer(object, "size")), *object))
            .collect();
        assert!(maps.len() > 50, "{name}");
        maps.sort_unstable();
        let expected: Vec<Vec<String>> =
            maps.iter().map(|(size, object)| vec![opened.id(*object), size.0.to_string()]).collect();
        let question = ["instances", "java.util.HashMap", "--sort", "size"];
        let columns = ["object", "sort_value"];
        assert_eq!(opened.columns(&question, &columns), expected, "{name}");
        for top in [1, 7, 40] {
            let found = opened.columns(&[&question[..], &["--top", &top.to_string()]].concat(), &columns);
            assert_eq!(found, expected[..top], "{name}");
        }
        let mut live = maps.clone();
        live.retain(|(_, object)| opened.graph.tree.reachable_position(ObjectIndex(*object)).is_some());
        let live: Vec<String> = live.iter().map(|(_, object)| opened.id(*object)).collect();
        assert_eq!(opened.ids(&[&question[..], &["--live"]].concat()), live, "{name}");
        let few: Vec<&Vec<String>> =
            expected.iter().filter(|row| row[1].parse::<i64>().unwrap() < 3).collect();
        let found = opened.columns(&[&question[..], &["--where", "size < 3"]].concat(), &columns);
        assert_eq!(found.iter().collect::<Vec<_>>(), few, "{name}");
    }
    let opened = Opened::sample("jdk/jdk17.hprof.zst");
    let objects = whole_dump(&opened.heap, &opened.graph).objects;
    let text = |object: &u32| -> Option<Vec<u16>> {
        let name = objects.fields(ObjectIndex(*object))?.reference("name")?;
        let name = opened.graph.objects.addresses.index_of(name)?;
        Some(objects.string(name)?.units().collect())
    };
    let threads = opened.instances("java.lang.Thread").into_iter();
    let mut threads: Vec<(bool, Option<Vec<u16>>, u32)> =
        threads.map(|object| (text(&object).is_none(), text(&object), object)).collect();
    threads.sort_unstable();
    let expected: Vec<String> = threads.iter().map(|(_, _, object)| opened.id(*object)).collect();
    assert_eq!(opened.ids(&["instances", "java.lang.Thread", "--sort", "name"]), expected);
}

#[test]
fn values_of_all_kinds_have_a_place() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let number = model.class("java.lang.Number", Some(jdk.object), &[]);
    let integer = model.class("java.lang.Integer", Some(number), &[("value", Type::Int)]);
    let with = |model: &mut HeapModel, name: &str, ty| {
        model.class(name, Some(jdk.object), &[("it", ty), ("size", Type::Int)])
    };
    let whole = with(&mut model, "com.acme.Whole", Type::Long);
    let fraction = with(&mut model, "com.acme.Fraction", Type::Double);
    let object = with(&mut model, "com.acme.Object", Type::Object);
    let without = model.class("com.acme.Without", Some(jdk.object), &[]);
    let texts = ["b", "", "a"].map(|text| jdk.string(&mut model, text));
    let seven = model.instance(integer, &[Value::Int(7)]);
    let plain = model.instance(jdk.object, &[]);
    let mut add = |class, value: Value| model.instance(class, &[value, Value::Int(0)]);
    let expected = [
        add(whole, Value::Long(i64::MAX)),
        add(whole, Value::Long(i64::MAX - 1)),
        add(object, seven.into()),
        add(fraction, Value::Double(0.5)),
        add(whole, Value::Long(0)),
        add(fraction, Value::Double(-3.25)),
        add(whole, Value::Long(-4)),
        add(fraction, Value::Double(f64::NAN)),
        add(object, texts[1].into()),
        add(object, texts[2].into()),
        add(object, texts[0].into()),
        add(object, plain.into()),
        add(object, Value::Object(0)),
        model.instance(without, &[]),
    ];
    for object in expected {
        model.root(object, Root::Unknown);
    }
    let opened = Opened::of(Dump::written(&model.write(&Options::hotspot())));
    let expected = expected.map(|object| format!("{:#x}", object.0)).to_vec();
    assert_eq!(opened.ids(&["instances", "com.acme.*", "--sort", "it"]), expected);
    assert_eq!(opened.ids(&["instances", "com.acme.*", "--sort", "it", "--top", "3"]), expected[..3]);
    // A dot says that it is the field.
    let (code, _, said) = opened.run(&["instances", "com.acme.*", "--sort", ".shallow"]);
    assert!(code == Some(2) && said.contains("no field `shallow`"), "{said}");
    let (code, _, said) = opened.run(&["instances", "com.acme.*", "--sort", "a..b"]);
    assert!(code == Some(2) && said.contains("is not a field"), "{said}");
    assert_eq!(opened.ids(&["instances", "com.acme.Object", "--sort", "it", "--top", "1"]), [&*expected[2]]);
    let (code, _, said) = opened.run(&["instances", "com.acme.*", "--heap", "app"]);
    assert!(code == Some(2) && said.contains("which name the heaps of Android dumps"), "{said}");
}

/// Objects by heap and class, as a walk from the first sub-record to the last sees them.
#[derive(Default)]
struct ByHeap {
    heap: u32,
    objects: BTreeMap<(u32, u64), u64>,
    strings: Vec<(u32, String)>,
    string: u64,
}

impl ByHeap {
    fn count(&mut self, class: u64) {
        *self.objects.entry((self.heap, class)).or_default() += 1;
    }
}

impl<'a> HeapVisitor<'a> for ByHeap {
    fn instance(&mut self, record: Instance<'a>) {
        self.count(record.class.0);
        if record.class.0 == self.string {
            self.strings.push((self.heap, format!("{:#x}", record.id)));
        }
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.count(record.class.0);
    }
    fn primitive_array(&mut self, _: PrimitiveArray<'a>) {
        self.count(0);
    }
    fn class(&mut self, _: ClassDump<'a>) {
        self.count(1);
    }
    fn heap_info(&mut self, _: usize, heap: u32, _: u64) {
        self.heap = heap;
    }
}

#[test]
fn heaps_of_android_are_told_apart() {
    let opened = Opened::sample("public/android-leak_service_binder.hprof.zst");
    let (summary, bytes) = (opened.heap.summary(), bytes(&opened.heap));
    let string =
        summary.classes().iter().find(|class| summary.class_name(class) == "java.lang.String").unwrap();
    let mut seen = ByHeap { string: string.id.get(), ..ByHeap::default() };
    for segment in summary.segments() {
        let (start, end) = (segment.start.get() as usize, segment.end.get() as usize);
        assert!(heap::walk(bytes, summary.id_size(), start, end, end, &mut seen).error.is_none());
    }
    let heaps: Vec<(u32, &str)> = summary.heaps().collect();
    assert_eq!(heaps.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["zygote", "app"]);
    for (number, name) in heaps {
        let rows = opened.columns(&["histo", "--heap", name], &["class_object", "class", "instances"]);
        let mut total = 0;
        for row in &rows {
            let (id, class, instances) = (&row[0], &row[1], row[2].parse::<u64>().unwrap());
            total += instances;
            if class.ends_with("[]") && !class.contains('.') || class == "java.lang.Class" {
                continue;
            }
            let id = u64::from_str_radix(id.trim_start_matches("0x"), 16).unwrap();
            assert_eq!(seen.objects.get(&(number, id)), Some(&instances), "{name}: {class}");
        }
        let of_heap = seen.objects.iter().filter(|((heap, _), _)| *heap == number);
        assert_eq!(of_heap.map(|(_, count)| count).sum::<u64>(), total, "{name}");
        let strings = seen.strings.iter().filter(|(heap, _)| *heap == number);
        let mut strings: Vec<&String> = strings.map(|(_, id)| id).collect();
        strings.sort_unstable_by_key(|id| (id.len(), *id));
        let question = ["instances", "java.lang.String", "--sort", "address", "--heap", name];
        assert_eq!(opened.ids(&question).iter().collect::<Vec<_>>(), strings, "{name}");
    }
    let (code, _, said) = opened.run(&["histo", "--heap", "image"]);
    assert!(code == Some(2) && said.contains("the heaps are zygote, app"), "{said}");
}

#[test]
fn live_queries_are_of_reachable_objects() {
    let opened = Opened::sample("jdk/jdk17.hprof.zst");
    let is_live = |object: &u32| opened.graph.tree.reachable_position(ObjectIndex(*object)).is_some();
    let strings = opened.instances("java.lang.String");
    let live: Vec<String> =
        strings.iter().filter(|object| is_live(object)).map(|object| opened.id(*object)).collect();
    assert!(live.len() < strings.len());
    assert_eq!(opened.ids(&["oql", "--live", "SELECT * FROM java.lang.String s"]), live);
    let count =
        |live: &[&str], query: &str| opened.columns(&[&["oql", query], live].concat(), &["n"])[0][0].clone();
    let query = "SELECT count(*) AS n FROM java.lang.String s";
    assert_eq!(count(&["--live"], query), live.len().to_string());
    assert_eq!(count(&[], query), strings.len().to_string());
    let dead = strings.iter().find(|object| !is_live(object)).unwrap();
    let query = format!("SELECT count(*) AS n FROM OBJECTS {} s", opened.id(*dead));
    assert_eq!((count(&["--live"], &query), count(&[], &query)), ("0".to_owned(), "1".to_owned()));
    let query = format!("SELECT OBJECTS outbounds(s) FROM OBJECTS {} s", opened.id(*dead));
    assert_eq!(opened.run(&["oql", "--live", &query]).0, Some(1));
}
