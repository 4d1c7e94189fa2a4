//! The tables of a dump: against a plain reading of its references, the dominators of all objects, and themselves - what a
//! lookup, an order or a choice of columns gives is what all rows have.

use std::collections::{BTreeMap, BTreeSet};

use hprof_cli::ObjectIndex;
use hprof_query::dominators::{reachable_rows, tree_nodes};
use hprof_query::tables::{
    About, Batch, Cell, ColumnSet, ColumnType, LookupKey, Operator, Table, TableQuery, Tables, definitions,
};
use hprof_writer::{HeapModel, Jdk, Options, Root};
use proptest::prelude::*;

use crate::kit::dump::{Dump, whole_dump};
use crate::kit::portion;
use crate::kit::strategies::{dump, property};
use crate::kit::texts::sample_path;
use crate::raw::Raw;

/// A cell that can be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Null,
    Integer(i64),
    Real(u64),
    Text(String),
}

fn value(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Integer(value) => Value::Integer(value),
        Cell::Real(value) => Value::Real(value.to_bits()),
        Cell::Text(text) => Value::Text(text.to_owned()),
    }
}

fn rows(table: &dyn Table, question: &TableQuery, wanted: ColumnSet) -> Vec<Vec<Value>> {
    let columns = table.definition().columns.len();
    let mut rows = Vec::new();
    let mut batch: Batch = table.batch(wanted);
    for chunk in table.chunks(question).unwrap() {
        batch.clear();
        table.read(&chunk, wanted, &mut batch).unwrap();
        for row in 0..batch.rows {
            let mut cells: Vec<Value> = (0..columns).map(|column| value(batch.cell(row, column))).collect();
            // The number of a row is the same in every query: SQL identifies rows by it.
            cells.extend(batch.row_numbers.get(row).map(|number| Value::Integer(*number)));
            rows.push(cells);
        }
        for column in 0..columns {
            // No column has more values than there are rows.
            assert_eq!(
                batch.cell(batch.rows, column),
                Cell::Null,
                "{}",
                table.definition().columns[column].name
            );
        }
    }
    rows
}

fn all_rows(table: &dyn Table) -> Vec<Vec<Value>> {
    rows(table, &TableQuery::All, ColumnSet::ALL)
}

/// No two rows have one number.
fn numbers_differ(table: &dyn Table) {
    let mut batch = table.batch(ColumnSet(0));
    let mut numbers = BTreeSet::new();
    for chunk in table.chunks(&TableQuery::All).unwrap() {
        batch.clear();
        table.read(&chunk, ColumnSet(0), &mut batch).unwrap();
        assert!(batch.row_numbers.is_empty() || batch.row_numbers.len() == batch.rows);
        assert!(
            batch.row_numbers.iter().all(|number| numbers.insert(*number)),
            "{}",
            table.definition().name
        );
    }
}

/// Checks the invariants of a table. Of large ones only some keys are looked up.
fn is_consistent(table: &dyn Table, keys: usize) {
    let name = &table.definition().name;
    numbers_differ(table);
    let all = all_rows(table);
    for (at, column) in table.definition().columns.iter().enumerate() {
        let some = rows(table, &TableQuery::All, ColumnSet(1 << at.min(63)));
        assert_eq!(some.len(), all.len(), "{name}.{}", column.name);
        for (some, all) in some.iter().zip(&all) {
            assert_eq!(some[at], all[at], "{name}.{}", column.name);
            if column.null.is_none() {
                assert_ne!(all[at], Value::Null, "{name}.{} of {all:?}", column.name);
            }
            let fits = match (&all[at], column.kind) {
                (Value::Null, _) => true,
                (Value::Integer(value), ColumnType::Boolean) => (0..=1).contains(value),
                (Value::Integer(_), ColumnType::Integer | ColumnType::Id) => true,
                (Value::Real(_), ColumnType::Real) => true,
                (Value::Text(_), ColumnType::Text | ColumnType::Name) => true,
                _ => false,
            };
            assert!(fits, "{name}.{}: {:?}", column.name, all[at]);
        }
    }
    for column in table.orders() {
        let mut sorted = rows(table, &TableQuery::OrderedBy(column), ColumnSet::ALL);
        assert!(sorted.is_sorted_by_key(|row| row[column].clone()), "{name} by {column}");
        let mut all = all.clone();
        sorted.sort();
        all.sort();
        assert_eq!(sorted, all, "{name} by {column}");
    }
    for lookup in table.lookups() {
        let mut known: BTreeSet<&Value> = all.iter().map(|row| &row[lookup.column]).collect();
        let (absent, word) = (Value::Integer(3), Value::Text("no.such.Class".to_owned()));
        known.extend([&absent, &word]);
        let step = known.len().div_ceil(keys).max(1);
        for wanted in known.into_iter().step_by(step) {
            let key = match wanted {
                Value::Integer(value) => LookupKey::Integer(*value),
                Value::Text(text) => LookupKey::Text(text.clone()),
                _ => continue,
            };
            let matches = |row: &Vec<Value>| match lookup.operator {
                Operator::Equal => row[lookup.column] == *wanted,
                Operator::AtLeast => row[lookup.column] >= *wanted && row[lookup.column] != Value::Null,
            };
            let question = TableQuery::Of(lookup.column, lookup.operator, key);
            let mut found = rows(table, &question, ColumnSet::ALL);
            found.retain(matches);
            let mut expected: Vec<Vec<Value>> = all.iter().filter(|row| matches(row)).cloned().collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{name}: {question:?}");
        }
    }
    let prepared = table.prepare(ColumnSet::ALL, &|| false);
    assert!(prepared.is_some() || name != "objects" || all.is_empty(), "nothing was prepared");
    assert_eq!(all_rows(table), all, "{name}, prepared");
    drop(prepared);
    assert!(table.prepare(ColumnSet(1), &|| false).is_none(), "{name}: IDs need nothing");
    assert!(table.prepare(ColumnSet::ALL, &|| true).is_none(), "{name}: it was told to stop");
}

fn integer(id: u64) -> Value {
    Value::Integer(id.cast_signed())
}

/// The references of the table against a plain reading; those to what is not in the dump it has beside.
fn refs_are_right(tables: &Tables<'_>, raw: &Raw) {
    let text = |value: &Value| if let Value::Text(text) = value { text.clone() } else { panic!("{value:?}") };
    let mut found: Vec<(Value, String, Value, String)> = Vec::new();
    let table = tables.find("refs").unwrap();
    for row in all_rows(table) {
        if raw.class_of.contains_key(&if let Value::Integer(id) = row[2] { id.cast_unsigned() } else { 0 }) {
            found.push((row[0].clone(), text(&row[1]), row[2].clone(), text(&row[4])));
        }
    }
    let mut expected = Vec::new();
    for (from, references) in &raw.references {
        for reference in references {
            let strength = if reference.is_referent { raw.strength(*from) } else { "strong" };
            expected.push((
                integer(*from),
                reference.label.clone(),
                integer(reference.to),
                strength.to_owned(),
            ));
        }
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

fn opened(dump: &Dump, check: impl FnOnce(&Tables<'_>)) {
    let (heap, graph) = dump.open_graph();
    let about = About {
        name: "a".to_owned(),
        labels: vec![("service".to_owned(), "cart".to_owned())],
        ..About::default()
    };
    check(&Tables::new(&whole_dump(&heap, &graph), about));
}

#[test]
fn tables_of_any_dump_hold_together() {
    proptest!(property(60), |(dump in dump())| {
        let dump = Dump::written(&dump.write().0);
        opened(&dump, |tables| tables.all().for_each(|table| is_consistent(table, 40)));
    });
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn tables_of_samples_hold_together() {
    for sample in portion::samples(&["jdk/jdk17.hprof.zst", "jdk/jdk8.hprof.zst", "agent/all.hprof.zst"]) {
        opened(&Dump::sample(&sample_path(sample)), |tables| {
            tables.all().for_each(|table| is_consistent(table, 12));
        });
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn references_are_those_of_a_plain_reading() {
    for sample in ["jdk/jdk17.hprof.zst", "jdk/jdk25-compact.hprof.zst"] {
        opened(&Dump::sample(&sample_path(sample)), |tables| {
            refs_are_right(tables, &Raw::read(tables.context().dump.bytes()));
        });
    }
}

#[test]
fn objects_are_those_of_the_dominators_of_all() {
    opened(&Dump::sample(&sample_path("jdk/jdk17.hprof.zst")), |tables| {
        let graph = tables.context().dump.graph;
        let dominators = reachable_rows::ReachableRows::new(graph);
        let mut expected = BTreeMap::new();
        for chunk in tree_nodes::chunks(&graph.tree) {
            for row in dominators.chunk_rows(chunk) {
                expected.insert(row.id.0, row);
            }
        }
        let table = tables.find("objects").unwrap();
        let found = all_rows(table);
        assert_eq!(found.len(), graph.objects.len() as usize);
        let mut reachable = 0;
        for row in found {
            let Value::Integer(id) = row[0] else { panic!("{row:?}") };
            let Some(known) = expected.get(&id.cast_unsigned()) else {
                assert_eq!((&row[5], &row[7], &row[8]), (&Value::Null, &Value::Null, &Value::Integer(0)));
                continue;
            };
            reachable += 1;
            let dominator = known.dominator.map_or(Value::Null, |id| integer(id.0));
            let name = known
                .class
                .map(|class| tables.context().class_names.get(class.0 as usize).unwrap().to_owned());
            assert_eq!(
                [&row[2], &row[4], &row[5], &row[7], &row[8]],
                [
                    &name.map_or(Value::Null, Value::Text),
                    &integer(known.shallow_bytes),
                    &integer(known.retained_bytes),
                    &dominator,
                    &Value::Integer(1)
                ]
            );
        }
        assert_eq!(reachable, expected.len());
    });
}

#[test]
fn a_table_of_a_class_holds_its_fields() {
    opened(&Dump::sample(&sample_path("jdk/jdk17.hprof.zst")), |tables| {
        let context = tables.context();
        let mut checked = BTreeMap::new();
        for name in [
            "java.util.HashMap",
            "java.util.HashMap+",
            "java.lang.Thread",
            "java.lang.Integer",
            "java.util.ArrayList",
        ] {
            let table = tables.of_class(name).unwrap();
            is_consistent(&*table, 20);
            let columns: Vec<String> =
                table.definition().columns.iter().map(|column| column.name.to_string()).collect();
            for row in all_rows(&*table) {
                let Value::Integer(id) = row[0] else { panic!("{row:?}") };
                let object = context.object(id).unwrap();
                for (column, cell) in columns.iter().zip(&row).skip(5) {
                    let bits = context.dump.objects.field(object, column.trim_end_matches("_2"));
                    let Some(bits) = bits else { panic!("{name}.{column}") };
                    // A shadowed field is another than the one that the name finds.
                    if column.ends_with("_2") {
                        continue;
                    }
                    let expected =
                        bits.integer().map(Value::Integer).or(bits.reference().map(|id| integer(id.0)));
                    match (cell, expected) {
                        (Value::Integer(found), None) => {
                            assert_eq!(*found, i64::try_from(bits.bits).unwrap())
                        }
                        (Value::Real(_) | Value::Text(_), _) => {}
                        (cell, expected) => {
                            assert_eq!(*cell, expected.unwrap_or(Value::Null), "{name}.{column}")
                        }
                    }
                    *checked.entry(name).or_insert(0) += 1;
                }
            }
        }
        assert_eq!(checked.len(), 5, "{checked:?}");
        let of = |name| all_rows(&*tables.of_class(name).unwrap()).len();
        assert!(of("java.util.HashMap+") > of("java.util.HashMap"), "LinkedHashMap is one");
        assert_eq!(
            of("byte[]"),
            context.dump.graph.objects.indices().end.0 as usize - others(tables, "byte[]")
        );
        let error = tables.of_class("java.util.HashMop").err().unwrap().to_string();
        assert!(error.contains("did you mean java.util.HashMap"), "{error}");
        // A file holds what it is called: only SQL takes the name in another case.
        let error = tables.of_class("java.util.hashmap").err().unwrap().to_string();
        assert!(error.contains("did you mean java.util.HashMap"), "{error}");
        let in_any_case = all_rows(&*tables.of_class_in_any_case("java.util.hashmap").unwrap()).len();
        assert_eq!(in_any_case, of("java.util.HashMap"));
    });
}

/// Objects that are not of a class.
fn others(tables: &Tables<'_>, name: &str) -> usize {
    let context = tables.context();
    let class = |object: u32| context.dump.graph.objects.class(ObjectIndex(object));
    let is = |object: &u32| {
        class(*object).is_none_or(|class| context.class_names.get(class.0 as usize) != Some(name))
    };
    (0..context.dump.graph.objects.len()).filter(is).count()
}

#[test]
fn definitions_are_those_of_the_tables() {
    opened(&Dump::sample(&sample_path("jdk/jdk17.hprof.zst")), |tables| {
        let found: Vec<_> = tables.all().map(|table| table.definition().clone()).collect();
        assert_eq!(found, definitions());
        for definition in found {
            let names: BTreeSet<String> =
                definition.columns.iter().map(|column| column.name.to_lowercase()).collect();
            assert_eq!(names.len(), definition.columns.len(), "{}", definition.name);
        }
    });
}

#[test]
fn elements_of_a_large_array_are_rows_like_others() {
    const LENGTH: usize = 2_200_000;
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let trace = model.trace(1, &[]);
    let text = jdk.string(&mut model, "element");
    let mut elements = vec![hprof_writer::ObjectId::NULL; LENGTH];
    for at in [0, 1, 1_048_575, 1_048_576, 2_097_152, LENGTH - 1] {
        elements[at] = text;
    }
    let before = model.instance_with(jdk.object, &[]);
    let array = model.object_array(jdk.object_array, &elements);
    let after = model.instance_with(jdk.object, &[]);
    model.root(before, Root::StickyClass);
    model.root(after, Root::StickyClass);
    // It is a thread too, whose stack holds something.
    model.root(array, Root::ThreadObject { thread: 1, trace });
    model.root(after, Root::JavaFrame { thread: 1, frame: 0 });
    opened(&Dump::written(&model.write(&Options::hotspot())), |tables| {
        let refs = tables.find("refs").unwrap();
        is_consistent(refs, 1000);
        let of_array = |row: &&Vec<Value>| row[0] == integer(array.0);
        let all = all_rows(refs);
        let fields: Vec<&Value> = all.iter().filter(of_array).map(|row| &row[1]).collect();
        let expected =
            ["[0]", "[1]", "[1048575]", "[1048576]", "[2097152]", "[2199999]", "<java frame>", "<class>"];
        assert_eq!(fields, expected.map(|field| Value::Text(field.to_owned())).iter().collect::<Vec<_>>());
        refs_are_right(tables, &Raw::read(tables.context().dump.bytes()));
    });
}
