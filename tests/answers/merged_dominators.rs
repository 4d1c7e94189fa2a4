//! The dominator tree merged by class, and the tree from the objects of a class: against a plain merge of the list of all
//! objects and their dominators, and what was planted.

use std::collections::{BTreeMap, HashMap, HashSet};

use hprof_cli::TreePosition;
use serde_json::Value;

use crate::dominators::Sample;

/// Answers of `dominators`.
impl Sample {
    fn text(&self, arguments: &[&str]) -> String {
        let output = self.dump.run(&[&["dominators"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--format", "json"]).collect();
        let answer: Value = serde_json::from_str(&self.text(&arguments)).unwrap();
        answer["rows"].as_array().unwrap().clone()
    }
}

/// The tree, object by object.
struct Plain {
    /// By object: its class, or its class object's.
    name: Vec<String>,
    shallow: Vec<u64>,
    retained: Vec<u64>,
    children: Vec<Vec<usize>>,
    tops: Vec<usize>,
}

/// A row of a merged tree: objects, longest chain, shallow and retained bytes.
type Figures = (u64, u64, u64, u64);

impl Plain {
    /// By climbing from each object.
    fn read(sample: &Sample) -> Self {
        let (summary, tree) = (sample.heap.summary(), &sample.graph.tree);
        let mut plain = Self {
            name: Vec::new(),
            shallow: Vec::new(),
            retained: Vec::new(),
            children: vec![Vec::new(); tree.reachable() as usize],
            tops: Vec::new(),
        };
        for position in TreePosition::range(tree.positions()) {
            let object = tree.object_at(position).unwrap();
            let class = sample.graph.objects.class(object).and_then(|class| summary.class(class));
            let name = class.map_or("?", |class| summary.class_name(class));
            let of = sample.graph.class_of_class_object(object).and_then(|class| summary.class(class));
            plain.name.push(match of {
                // Hidden classes and those of several loaders share names.
                Some(of) => format!("class {} {:#x}", summary.class_name(of), of.id.get()),
                None => name.to_owned(),
            });
            plain.shallow.push(tree.shallow_bytes(position));
            plain.retained.push(tree.retained_bytes(position));
            match tree.dominator(position) {
                Some(dominator) => plain.children[dominator.0 as usize].push(position.0 as usize),
                None => plain.tops.push(position.0 as usize),
            }
        }
        plain
    }

    /// Merges objects and what they dominate: by the names from the top.
    fn merge(&self, objects: &[usize], path: &str, levels: u32, out: &mut BTreeMap<String, Figures>) {
        if levels == 0 {
            return;
        }
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for object in objects {
            by_name.entry(&self.name[*object]).or_default().push(*object);
        }
        for (name, outer) in by_name {
            let mut figures = (0, 0, 0, outer.iter().map(|object| self.retained[*object]).sum::<u64>());
            let mut below = Vec::new();
            let mut links = outer;
            while !links.is_empty() {
                figures.0 += links.len() as u64;
                figures.1 += 1;
                figures.2 += links.iter().map(|object| self.shallow[*object]).sum::<u64>();
                let children = links.iter().flat_map(|object| &self.children[*object]);
                let (same, other): (Vec<usize>, Vec<usize>) =
                    children.partition(|child| self.name[**child] == name);
                below.extend(other);
                links = same;
            }
            let path = format!("{path}/{name}");
            self.merge(&below, &path, levels - 1, out);
            // Two classes of one name are two rows.
            assert_eq!(out.insert(path, figures), None);
        }
    }
}

/// The rows by the names from the top, of which class objects have theirs by what `objects` says.
fn by_path(sample: &Sample, rows: &[Value]) -> BTreeMap<String, Figures> {
    let summary = sample.heap.summary();
    let mut paths: Vec<String> = Vec::new();
    let mut out = BTreeMap::new();
    for row in rows {
        let number = |key: &str| row[key].as_u64().unwrap();
        let class = row["class"].as_str().unwrap();
        let name = match row["object"].as_str() {
            Some(id) if class == "java.lang.Class" => {
                let id = u64::from_str_radix(id.trim_start_matches("0x"), 16).unwrap();
                let of = summary.classes().iter().find(|class| class.is_dumped() && class.id.get() == id);
                of.map_or(class.to_owned(), |of| format!("class {} {id:#x}", summary.class_name(of)))
            }
            _ => class.to_owned(),
        };
        let above = row["parent_row"].as_u64().map_or("", |parent| paths[parent as usize].as_str());
        let path = format!("{above}/{name}");
        assert_eq!(path.matches('/').count() as u64 - name.matches('/').count() as u64, {
            let above_slashes = above.matches('/').count() as u64;
            above_slashes + 1
        });
        let figures = (number("objects"), number("chain"), number("shallow_bytes"), number("retained_bytes"));
        assert_eq!(out.insert(path.clone(), figures), None, "{path}");
        paths.push(path);
    }
    out
}

#[test]
fn a_merged_tree_is_what_a_plain_merge_gives() {
    for (name, levels) in [("leaks/s5.hprof.zst", 8), ("leaks/s4.hprof.zst", 6), ("agent/all.hprof.zst", 5)] {
        let sample = Sample::open(name);
        let plain = Plain::read(&sample);
        let mut truth = BTreeMap::new();
        plain.merge(&plain.tops, "", levels, &mut truth);
        let rows = sample.rows(&["--group-by", "class-tree", "--depth", &levels.to_string()]);
        let found = by_path(&sample, &rows);
        assert_eq!(found.len(), truth.len(), "{name}");
        for (path, figures) in &truth {
            assert_eq!(found.get(path), Some(figures), "{name}: {path}");
        }
    }
}

#[test]
fn what_is_left_out_is_summed_up() {
    let sample = Sample::open("leaks/s5-static.hprof.zst");
    let mut some_left_out = false;
    for arguments in
        [&["--top", "3"][..], &["--min-retained", "2KiB"], &["--top", "2", "--min-retained", "1KiB"]]
    {
        let arguments: Vec<&str> =
            ["--group-by", "class-tree", "--depth", "6"].iter().chain(arguments).copied().collect();
        let rows = sample.rows(&arguments);
        let mut below: HashMap<u64, u64> = HashMap::new();
        for row in &rows {
            if let Some(parent) = row["parent_row"].as_u64() {
                *below.entry(parent).or_default() += row["retained_bytes"].as_u64().unwrap();
            }
        }
        for (number, row) in (0u64..).zip(&rows).filter(|(_, row)| row["depth"].as_u64() < Some(5)) {
            let figure = |key: &str| row[key].as_u64().unwrap();
            let listed = below.get(&number).copied().unwrap_or(0);
            assert_eq!(
                figure("retained_bytes"),
                figure("shallow_bytes") + listed + figure("other_bytes"),
                "{row}"
            );
            some_left_out |= figure("other_rows") > 0;
        }
    }
    assert!(some_left_out);
}

#[test]
fn a_leaking_map_is_one_row_and_its_entries_another() {
    let sample = Sample::open("leaks/s5.hprof.zst");
    let rows = sample.rows(&["--group-by", "class-tree"]);
    let row =
        |class: &str| rows.iter().find(|row| row["class"] == class).unwrap_or_else(|| panic!("{class}"));
    assert_eq!(row("java.util.HashMap$Node[]")["field"], "orders.OrderIndex.byNumber.table");
    let orders = rows.iter().filter(|row| row["class"] == "orders.Order");
    assert_eq!(orders.map(|row| row["objects"].as_u64().unwrap()).max(), Some(55_417));
    let table = sample.text(&["--group-by", "class-tree", "--top", "3"]);
    assert!(table.contains(" 55,417 x orders.Order\n"), "{table}");
    // A queue is a staircase of its nodes.
    let queue = Sample::open("leaks/s4.hprof.zst");
    let table = queue.text(&["--group-by", "class-tree", "--top", "3"]);
    assert!(
        table.contains(" x java.util.concurrent.LinkedBlockingQueue$Node (chains of up to 60,"),
        "{table}"
    );
    assert!(table.contains(", field next)"), "{table}");
    assert!(table.contains("60,000 x ingest.Event\n"), "{table}");
}

/// The objects of a class that no other of them dominates, by climbing.
fn tops(plain: &Plain, class: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut stack: Vec<usize> = plain.tops.clone();
    while let Some(object) = stack.pop() {
        if plain.name[object] == class {
            found.push(object);
        } else {
            stack.extend(&plain.children[object]);
        }
    }
    found
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn the_tree_of_a_class_starts_with_those_that_no_other_of_them_dominates() {
    let sample = Sample::open("leaks/s5.hprof.zst");
    let plain = Plain::read(&sample);
    for class in ["java.util.HashMap$Node", "java.util.TreeMap$Entry", "orders.Order", "java.lang.Object[]"] {
        let tops = tops(&plain, class);
        let retained: u64 = tops.iter().map(|object| plain.retained[*object]).sum();
        // One by one.
        let rows = sample.rows(&["--of", class]);
        assert!(rows.iter().all(|row| row["class"] == class));
        let ids: HashSet<&str> = rows.iter().map(|row| row["object"].as_str().unwrap()).collect();
        assert_eq!((ids.len(), rows.len()), (tops.len(), tops.len()), "{class}");
        let bytes =
            |rows: &[Value]| rows.iter().map(|row| row["retained_bytes"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(bytes(&rows), retained, "{class}");
        assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse(row["retained_bytes"].as_u64())), "{class}");
        // Merged.
        let mut truth = BTreeMap::new();
        plain.merge(&tops, "", 4, &mut truth);
        let rows = sample.rows(&["--of", class, "--group-by", "class-tree", "--depth", "4"]);
        assert_eq!(by_path(&sample, &rows), truth, "{class}");
        // The objects they dominate, added up.
        let below: Vec<usize> = tops.iter().flat_map(|object| plain.children[*object].clone()).collect();
        let rows = sample.rows(&["--of", class, "--group-by", "class"]);
        let objects = rows.iter().map(|row| row["objects"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(objects, below.len() as u64, "{class}");
        assert_eq!(bytes(&rows), below.iter().map(|object| plain.retained[*object]).sum::<u64>(), "{class}");
    }
    // Levels below.
    let rows = sample.rows(&["--of", "java.util.TreeMap", "--depth", "2", "--top", "1"]);
    let classes: Vec<&str> = rows.iter().map(|row| row["class"].as_str().unwrap()).collect();
    assert_eq!(classes, ["java.util.TreeMap", "java.util.TreeMap$Entry"]);
    assert_eq!(rows[1]["depth"].as_u64(), rows[0]["depth"].as_u64().map(|depth| depth + 1));
}

#[test]
fn what_several_roots_hold_is_called_so() {
    let sample = Sample::open("leaks/s5-static.hprof.zst");
    let table = sample.text(&["--top", "1"]);
    assert!(table.contains("java.util.HashMap"), "{table}");
    assert!(table.contains(" (no single owner)\n"), "{table}");
}
