//! Strings, arrays, boxes, fields, what is garbage: what counts, what it frees, which field holds it.

use hprof_writer::{Elements, ObjectId, Type, Value};

use super::Waste;
use super::made::Shop;

#[test]
fn strings_go_with_the_arrays_that_are_theirs_alone() {
    let mut shop = Shop::new();
    let row = shop.class("acme.Row", &[("currency", Type::Object)]);
    let (string, array) = (shop.size(shop.jdk.string), shop.array_size(Type::Byte, 3));
    let mut strings = Vec::new();
    for _ in 0..4 {
        let text = shop.string("EUR");
        strings.push(text);
        shop.in_field(row, "currency", text);
    }
    // The array of the second is held by something else too; the third and the fourth share one.
    let value = |shop: &Shop, string| match shop.model.values(string).unwrap()[0] {
        Value::Object(id) => ObjectId(id),
        _ => unreachable!(),
    };
    let (second, third) = (value(&shop, strings[1]), value(&shop, strings[2]));
    shop.keep(second);
    shop.model.set_field(strings[3], "value", third);
    // Another text, and one that nothing refers to.
    let other = shop.string("USD");
    shop.keep(other);
    shop.string("EUR");
    let waste = shop.waste();
    assert_eq!(waste.sum("duplicate_strings"), (3, 3 * string + array));
    assert_eq!(waste.field("duplicate_strings", "acme.Row.currency"), (3, 3 * string + array));
    let example = &waste.row("duplicate_strings").unwrap()["examples"][0];
    assert_eq!((&example["label"], example["copies"].as_u64()), (&"EUR".into(), Some(3)));
    // The String without a referrer, its array, and the array that the fourth does not use.
    assert_eq!(waste.sum("unreachable"), (3, string + 2 * array));
    assert_eq!(waste.sum("duplicate_arrays"), (0, 0), "arrays of Strings are no arrays of their own");
}

#[test]
fn texts_are_the_same_however_they_are_stored() {
    let mut shop = Shop::new();
    let latin = shop.string("abc");
    let wide = shop.string("日本");
    let chars = shop.model.prim_array(Elements::of_chars("abc"));
    let fields = [("value", chars.into()), ("coder", Value::Byte(0))];
    let of_chars = shop.model.instance_with(shop.jdk.string, &fields);
    for string in [latin, wide, of_chars] {
        shop.keep(string);
    }
    let bytes = shop.size(shop.jdk.string) + shop.array_size(Type::Char, 3);
    assert_eq!(shop.waste().sum("duplicate_strings"), (1, bytes));
}

#[test]
fn arrays_are_the_same_by_type_and_content() {
    let mut shop = Shop::new();
    for elements in [
        Elements::of_bits(Type::Int, &[1, 2, 3]),
        Elements::of_bits(Type::Int, &[1, 2, 3]),
        Elements::of_bits(Type::Int, &[1, 2, 3]),
        Elements::of_bits(Type::Int, &[1, 2, 4]),
        Elements::of_bits(Type::Float, &[1, 2, 3]),
        Elements::of_bits(Type::Byte, &[0, 1]),
        Elements::of_bits(Type::Boolean, &[0, 1]),
    ] {
        let array = shop.model.prim_array(elements);
        shop.keep(array);
    }
    let bytes = shop.array_size(Type::Int, 3);
    let waste = shop.waste();
    assert_eq!(waste.sum("duplicate_arrays"), (2, 2 * bytes));
    assert_eq!(waste.part("duplicate_arrays", "int[]"), (2, 2 * bytes));
    assert_eq!(
        waste.field("duplicate_arrays", "acme.Shop.keep"),
        (2, 2 * bytes),
        "past the array that holds them"
    );
    assert_eq!(waste.sum("constant_arrays"), (0, 0));
}

#[test]
fn nothing_counts_twice_in_the_total() {
    let mut shop = Shop::new();
    for _ in 0..3 {
        let zeros = shop.model.prim_array(Elements::Zeros(Type::Long, 100));
        shop.keep(zeros);
    }
    let ones = shop.model.prim_array(Elements::of_bits(Type::Short, &[7; 50]));
    shop.keep(ones);
    let one = shop.model.prim_array(Elements::of_bits(Type::Long, &[9]));
    shop.keep(one);
    let (zeros, ones) = (shop.array_size(Type::Long, 100), shop.array_size(Type::Short, 50));
    let waste = shop.waste();
    assert_eq!(waste.sum("duplicate_arrays"), (2, 2 * zeros));
    assert_eq!(waste.sum("constant_arrays"), (4, 3 * zeros + ones), "not the array of one element");
    assert_eq!(waste.added("constant_arrays"), zeros + ones);
    let added: u64 = waste.rows.iter().map(|row| row["added_bytes"].as_u64().unwrap()).sum();
    assert_eq!(waste.total["wasted_bytes"].as_u64(), Some(added));
    assert!(waste.code == 0 && added >= 3 * zeros + ones);
}

#[test]
fn memory_that_a_framework_hands_out_in_parts_is_no_waste() {
    let mut shop = Shop::new();
    let chunk = shop.class("io.netty.buffer.PoolChunk", &[("memory", Type::Object), ("other", Type::Object)]);
    for field in ["memory", "memory", "other"] {
        // As good as unused, and all equal.
        let memory = shop.model.prim_array(Elements::Zeros(Type::Byte, 4096));
        shop.in_field(chunk, field, memory);
    }
    let one = shop.array_size(Type::Byte, 4096);
    let waste = shop.waste();
    assert_eq!(waste.sum("constant_arrays"), (1, one));
    assert_eq!(waste.sum("duplicate_arrays"), (0, 0));
}

#[test]
fn the_unused_ends_of_buffers() {
    let mut shop = Shop::new();
    let fields = |array: ObjectId, coder, count| {
        [("value", Value::from(array)), ("coder", Value::Byte(coder)), ("count", Value::Int(count))]
    };
    let text: Vec<u8> = (1..=100).collect();
    for (coder, count) in [(0, 10), (1, 10), (0, 100), (0, -5)] {
        let array = shop.bytes(&text);
        let builder = shop.model.instance_with(shop.builder, &fields(array, coder, count));
        shop.keep(builder);
    }
    // Zeros: in more than half, in less, everywhere, and in an array of numbers.
    for (used, length) in [(30, 100), (51, 100)] {
        let bytes: Vec<u8> = (0..length).map(|at| if at < used { at + 100 } else { 0 }).collect();
        let array = shop.bytes(&bytes);
        shop.keep(array);
    }
    let zeros = shop.model.prim_array(Elements::Zeros(Type::Byte, 100));
    shop.keep(zeros);
    let ints = shop.model.prim_array(Elements::of_bits(Type::Int, &[1, 2, 0, 0, 0, 0, 0, 0]));
    shop.keep(ints);
    let size = |length| shop.array_size(Type::Byte, length);
    let by_count = (size(100) - size(10)) + (size(100) - size(20));
    let by_zeros = size(100) - size(30);
    let waste = shop.waste();
    assert_eq!(
        waste.part("unused_array_ends", "beyond the length stored in java.lang.AbstractStringBuilder"),
        (2, by_count)
    );
    assert_eq!(waste.part("unused_array_ends", "zeros at the end of byte[]"), (1, by_zeros));
    assert_eq!(waste.sum("unused_array_ends"), (3, by_count + by_zeros));
}

#[test]
fn arrays_of_nothing_and_of_one() {
    let mut shop = Shop::new();
    let null = ObjectId::NULL;
    let object = shop.model.instance_with(shop.jdk.object, &[]);
    // One of each type stays: of byte[] the one in the static field, though it is not the first.
    let byte_arrays: Vec<ObjectId> = (0..3).map(|_| shop.bytes(&[])).collect();
    let kept = byte_arrays[1];
    shop.model.class_with_statics("acme.Empty", Some(shop.jdk.object), &[], &[("BYTES", kept.into())]);
    let object_arrays: Vec<ObjectId> = (0..2).map(|_| shop.array(&[])).collect();
    let none = shop.array(&[null, null, null]);
    let one = shop.array(&[null, object, null]);
    let two = shop.array(&[object, object]);
    for array in byte_arrays.into_iter().chain(object_arrays).chain([none, one, two]) {
        shop.keep(array);
    }
    let (empty, three) = (shop.array_size(Type::Byte, 0), shop.array_size(Type::Object, 3));
    let waste = shop.waste();
    assert_eq!(waste.sum("zero_length_arrays"), (3, 3 * empty));
    assert_eq!(waste.part("zero_length_arrays", "byte[]"), (2, 2 * empty));
    assert_eq!(waste.field("zero_length_arrays", "acme.Empty.BYTES"), (0, 0), "it stays");
    assert_eq!(waste.sum("empty_arrays"), (1, three));
    assert_eq!(waste.sum("single_element_arrays"), (1, three));
}

#[test]
fn boxes_but_those_that_the_jvm_shares() {
    let mut shop = Shop::new();
    let account = shop.class("acme.Account", &[("number", Type::Object), ("parent", Type::Object)]);
    let cached = shop.model.instance_with(shop.integer, &[("value", Value::Int(5))]);
    let cache = shop.array(&[cached, cached]);
    let name = "java.lang.Integer$IntegerCache";
    shop.model.class_with_statics(name, Some(shop.jdk.object), &[], &[("cache", cache.into())]);
    for value in [5, 127, 128, -128, -129] {
        let number = shop.model.instance_with(shop.integer, &[("value", Value::Int(value))]);
        shop.in_field(account, "number", number);
    }
    shop.in_field(account, "number", cached);
    // A long takes four bytes more than a reference, in each of its places; in many places it is no waste.
    let long = shop.model.instance_with(shop.long, &[("value", Value::Long(7))]);
    shop.in_field(account, "number", long);
    shop.in_field(account, "parent", long);
    let popular = shop.model.instance_with(shop.long, &[("value", Value::Long(8000))]);
    for _ in 0..10 {
        shop.in_field(account, "number", popular);
    }
    let (integer, long) = (shop.size(shop.integer), shop.size(shop.long) - 2 * 4);
    let waste = shop.waste();
    assert_eq!(waste.sum("boxed_numbers"), (6, 5 * integer + long));
    assert_eq!(waste.part("boxed_numbers", "java.lang.Integer"), (5, 5 * integer));
    assert_eq!(waste.part("boxed_numbers", "within the range of the caches"), (4, 3 * integer + long));
    assert_eq!(waste.field("boxed_numbers", "acme.Account.number"), (6, 5 * integer + long));
}

#[test]
fn instances_shrink_by_fields_that_are_the_same_everywhere() {
    let mut shop = Shop::new();
    let text = shop.string("shared");
    let base_fields = [("id", Type::Int), ("fax", Type::Object), ("points", Type::Int)];
    let base = shop.class("acme.Person", &base_fields);
    let fields = [("owner", Type::Object), ("rare", Type::Object), ("flag", Type::Boolean)];
    let customer = shop.model.class("acme.Customer", Some(base), &fields);
    for number in 0..300 {
        // One in three hundred has something in `rare`; one in four has a flag.
        let rare = if number == 77 { text } else { ObjectId::NULL };
        let values: [(&str, Value); 4] = [
            ("id", Value::Int(number)),
            ("owner", text.into()),
            ("rare", rare.into()),
            ("flag", Value::Boolean(number % 4 == 0)),
        ];
        let customer = shop.model.instance_with(customer, &values);
        shop.keep(customer);
    }
    // Too few for a verdict.
    let few = shop.class("acme.Few", &[("nothing", Type::Long)]);
    for _ in 0..99 {
        let few = shop.model.instance_with(few, &[]);
        shop.keep(few);
    }
    let layout = shop.model.layout();
    let size = |base: &[Type], own: &[Type]| layout.instance_bytes(&[&[], base, own]);
    use Type::{Boolean, Int, Object};
    let full = size(&[Int, Object, Int], &[Object, Object, Boolean]);
    let without_nulls = size(&[Int, Int], &[Object, Boolean]);
    let without_zeros = size(&[Int], &[Object, Boolean]);
    let without = size(&[Int], &[Boolean]);
    assert!(full > without_nulls && without_nulls > without, "the test is to tell");
    let waste = shop.waste();
    assert_eq!(waste.sum("constant_fields"), (300, 300 * (full - without)));
    let of = |field: &str| waste.field("constant_fields", field).1;
    assert_eq!(of("acme.Person.fax") + of("acme.Customer.rare"), 300 * (full - without_nulls));
    assert_eq!(of("acme.Person.points"), 300 * (without_nulls - without_zeros));
    assert_eq!(of("acme.Customer.owner"), 300 * (without_zeros - without));
    assert_eq!(waste.part("constant_fields", "acme.Customer").0, 300);
}

#[test]
fn a_field_that_two_in_a_hundred_use_is_no_waste() {
    let mut shop = Shop::new();
    let class = shop.class("acme.Order", &[("note", Type::Object), ("total", Type::Long)]);
    let text = shop.string("note");
    for number in 0..500i64 {
        let note = if number % 50 == 0 { text } else { ObjectId::NULL };
        let order = shop.model.instance_with(class, &[("note", note.into()), ("total", Value::Long(number))]);
        shop.keep(order);
    }
    assert_eq!(shop.waste().sum("constant_fields"), (0, 0));
}

#[test]
fn classes_that_two_loaders_define() {
    let mut shop = Shop::new();
    let loader = shop.class("acme.Loader", &[("name", Type::Object)]);
    let mut kept = Vec::new();
    for (at, name) in
        ["acme.Plugin", "acme.Plugin", "acme.Other", "$Proxy7", "$Proxy7"].into_iter().enumerate()
    {
        let data = shop.bytes(&[u8::try_from(at).unwrap() + 1; 100]);
        let class = shop.model.class_with_statics(name, Some(shop.jdk.object), &[], &[("DATA", data.into())]);
        let loader = shop.model.instance_with(loader, &[]);
        shop.model.class_mut(class).loader = loader.0;
        kept.push(ObjectId::from(class));
    }
    let class_object = shop.model.class_def(hprof_writer::ClassId(kept[1].0)).size;
    kept.into_iter().for_each(|class| {
        shop.keep(class);
    });
    let data = shop.array_size(Type::Byte, 100);
    let loader = shop.size(loader);
    let waste = shop.waste();
    assert_eq!(
        waste.sum("duplicate_classes"),
        (1, class_object + data + loader),
        "the second, its static field, its loader"
    );
}

#[test]
fn objects_that_wait_for_the_finalizer() {
    let mut shop = Shop::new();
    let queue =
        shop.class("java.lang.ref.ReferenceQueue", &[("head", Type::Object), ("queueLength", Type::Long)]);
    let queue = shop.model.instance_with(queue, &[("queueLength", Value::Long(2))]);
    let reference = shop.jdk.reference;
    // Its own `next` links those that do not wait.
    let statics = [("queue", queue.into())];
    let fields = [("next", Type::Object), ("prev", Type::Object)];
    let finalizer =
        shop.model.class_with_statics("java.lang.ref.Finalizer", Some(reference), &fields, &statics);
    let live = shop.model.instance_with(finalizer, &[]);
    shop.keep(live);
    let link = shop.model.all_fields(finalizer).iter().rposition(|(name, _)| name == "next").unwrap();
    let mut next = None;
    for at in 0..2u8 {
        let referent = shop.bytes(&[at + 1, at + 2, at + 3]);
        let waits = shop.model.instance_with(finalizer, &[("referent", referent.into())]);
        // The last one refers to itself.
        let mut values = shop.model.values(waits).unwrap().to_vec();
        values[0] = live.into();
        values[link] = next.unwrap_or(waits).into();
        shop.model.set_values(waits, &values);
        next = Some(waits);
    }
    shop.model.set_field(queue, "head", next.unwrap());
    let bytes = 2 * (shop.size(finalizer) + shop.array_size(Type::Byte, 3));
    let waste = shop.waste();
    assert_eq!(waste.sum("finalizable"), (2, bytes));
    assert_eq!(waste.part("finalizable", "byte[]").0, 2);
}

#[test]
fn a_thread_of_the_program_has_fields_of_its_own() {
    let mut shop = Shop::new();
    let worker = shop.model.class("acme.Worker", Some(shop.jdk.thread), &[("buffer", Type::Object)]);
    let server = shop.class("acme.Server", &[("worker", Type::Object)]);
    let zeros = shop.model.prim_array(Elements::Zeros(Type::Int, 10));
    let worker = shop.model.instance_with(worker, &[("buffer", zeros.into())]);
    shop.in_field(server, "worker", worker);
    let bytes = shop.array_size(Type::Int, 10);
    assert_eq!(shop.waste().fields("constant_arrays"), [(Some("acme.Worker.buffer".to_owned()), (1, bytes))]);
}

#[test]
fn what_several_strings_share_goes_once() {
    let mut shop = Shop::new();
    // As the collector's deduplication leaves them: two arrays, in turns.
    let strings: Vec<ObjectId> = (0..4).map(|_| shop.string("EUR")).collect();
    let value = |shop: &Shop, string| shop.model.values(string).unwrap()[0];
    let (first, second) = (value(&shop, strings[0]), value(&shop, strings[1]));
    for (at, string) in strings.into_iter().enumerate() {
        shop.model.set_field(string, "value", if at % 2 == 0 { first } else { second });
        shop.keep(string);
    }
    let bytes = 3 * shop.size(shop.jdk.string) + shop.array_size(Type::Byte, 3);
    let waste = shop.waste();
    assert_eq!(waste.sum("duplicate_strings"), (3, bytes));
    let example = &waste.row("duplicate_strings").unwrap()["examples"][0];
    assert_eq!((example["copies"].as_u64(), example["wasted_bytes"].as_u64()), (Some(3), Some(bytes)));
}

#[test]
fn fields_are_put_together_by_class_package_and_loader() {
    let mut shop = Shop::new();
    for (class, field) in [("acme.a.Row", "x"), ("acme.a.Row", "y"), ("acme.b.Row", "x"), ("Row", "x")] {
        let class = shop.class(class, &[("x", Type::Object), ("y", Type::Object)]);
        for _ in 0..2 {
            let zeros = shop.model.prim_array(Elements::Zeros(Type::Int, 10));
            shop.in_field(class, field, zeros);
        }
    }
    let bytes = shop.array_size(Type::Int, 10);
    let dump = shop.dump();
    let names = |by: &str| -> Vec<(Option<String>, u64)> {
        let fields =
            Waste::with(&dump, &["--kind", "constant-arrays", "--group-by", by]).fields("constant_arrays");
        fields.into_iter().map(|(name, (count, sum))| (name, count * 1000 + sum / bytes)).collect()
    };
    let some = |name: &str, count: u64| (Some(name.to_owned()), count * 1000 + count);
    assert_eq!(
        names("field"),
        [some("Row.x", 2), some("acme.a.Row.x", 2), some("acme.a.Row.y", 2), some("acme.b.Row.x", 2)]
    );
    assert_eq!(names("class"), [some("acme.a.Row", 4), some("Row", 2), some("acme.b.Row", 2)]);
    assert_eq!(names("package"), [some("acme.a", 4), some("", 2), some("acme.b", 2)]);
    assert_eq!(names("loader"), [(None, 8008)], "the boot loader");
}

#[test]
fn nothing_is_wasted_in_a_heap_of_nothing() {
    let waste = Waste::with(&Shop::new().dump(), &["--kind", "duplicate-strings,boxed-numbers"]);
    assert_eq!((waste.code, waste.rows.len(), waste.total["wasted_bytes"].as_u64()), (1, 0, Some(0)));
}
