//! Suspects and accumulation points of dumps of leaking programs, object by object, against Eclipse MAT's report.
//!
//! MAT guesses shallow sizes, so bytes and percentages are not compared.

use std::collections::BTreeSet;
use std::path::Path;

use hprof_cli::ObjectId;
use serde_json::Value;

use super::{DUMPS, Leaks, MORE_DUMPS, id, more_samples, number, optional_id, sample, samples, text};

/// MAT gives up after 1,000 steps; here the accumulation point of a longer chain is its first link.
const LONG_CHAIN: &str = "s4";
const LINK: &str = "java.util.concurrent.LinkedBlockingQueue$Node";

/// The suspects of MAT.
fn suspects_of_mat(dir: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join(format!("{name}.mat-suspects.json"))).unwrap();
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    let Value::Array(suspects) = answer["suspects"].take() else { panic!("{answer}") };
    suspects
}

/// Translates MAT's kinds of objects to ours.
fn what(kind: &Value) -> &'static str {
    match text(kind) {
        "object" => "instance",
        "class" => "class",
        "class loader" => "class_loader",
        "thread" => "thread",
        other => panic!("{other}"),
    }
}

fn compare(dir: &Path, name: &str) {
    let mat = suspects_of_mat(dir, name);
    let dump = sample(dir, name);
    let ours = Leaks::of(&dump).rows;
    assert!(!mat.is_empty(), "{name}");
    assert_eq!(ours.len(), mat.len(), "{name}: suspects");
    for (ours, mat) in ours.iter().zip(&mat) {
        assert_eq!(ours["class"], mat["class"], "{name}");
        assert_eq!(ours["objects"], mat["instances"], "{name}");
        let addresses: Vec<u64> = mat["addresses"].as_array().unwrap().iter().map(id).collect();
        if mat["kind"] == "group" {
            assert_eq!((&ours["kind"], &ours["object"]), (&"group".into(), &Value::Null), "{name}");
            // Ours are the ten that retain most; MAT's are all, those that retain most by its sizes first.
            let members: BTreeSet<u64> =
                ours["members"].as_array().unwrap().iter().map(|member| id(&member["object"])).collect();
            assert_eq!(members.len(), addresses.len().min(10), "{name}");
            assert!(members.iter().all(|member| addresses.contains(member)), "{name}: {members:x?}");
        } else {
            assert_eq!(ours["kind"], "single", "{name}");
            assert_eq!(ours["what"], what(&mat["kind"]), "{name}");
            assert_eq!(id(&ours["object"]), addresses[0], "{name}");
        }
        if name == LONG_CHAIN {
            assert_eq!(mat["accumulation_point"], Value::Null, "MAT gave up");
            continue;
        }
        let (ours, mat) = (&ours["accumulation_point"], &mat["accumulation_point"]);
        assert_eq!(optional_id(&ours["object"]), optional_id(&mat["address"]), "{name}: accumulation point");
        assert_eq!(ours["class"], mat["class"], "{name}: accumulation point");
        assert_eq!(ours["what"] == "class", mat["is"] == "class", "{name}: accumulation point");
    }
}

/// The list of dumps names all existing ones.
#[test]
fn all_dumps_with_suspects_of_mat_are_compared() {
    let suffix = ".mat-suspects.json";
    let files = std::fs::read_dir(samples()).unwrap().map(|file| file.unwrap().file_name());
    let files = files.map(|name| name.into_string().unwrap());
    let found: BTreeSet<String> =
        files.filter_map(|name| name.strip_suffix(suffix).map(str::to_owned)).collect();
    assert_eq!(found, DUMPS.map(str::to_owned).into());
}

#[test]
fn suspects_and_accumulation_points_are_those_of_mat() {
    DUMPS.iter().for_each(|name| compare(&samples(), name));
}

#[test]
#[ignore = "needs dumps that are not in the repository: HPROF_CLI_LEAK_DUMPS"]
fn suspects_and_accumulation_points_of_more_dumps_are_those_of_mat() {
    MORE_DUMPS.iter().for_each(|name| compare(&more_samples(), name));
}

/// The accumulation point of a chain of more than 1,000 objects, which for MAT has none, is the first of them.
#[test]
fn a_long_chain_accumulates_in_its_first_link() {
    let dump = sample(&samples(), LONG_CHAIN);
    let suspect = Leaks::one(&dump);
    let point = &suspect["accumulation_point"];
    assert_eq!(point["class"], LINK);
    let (heap, graph) = dump.open_graph();
    let (summary, tree) = (heap.summary(), &graph.tree);
    let class = |position| {
        let class = graph.objects.class(tree.object_at(position).unwrap()).unwrap();
        summary.class_name(summary.class(class).unwrap())
    };
    let first = graph.objects.addresses.index_of(ObjectId(id(&point["object"]))).unwrap();
    let first = tree.reachable_position(first).unwrap();
    // It is dominated by the queue, not by a link.
    assert_eq!(class(tree.dominator(first).unwrap()), "java.util.concurrent.LinkedBlockingQueue");
    let next = |link: &_| tree.children(*link).find(|child| class(*child) == LINK);
    let links = std::iter::successors(Some(first), next).count() as u64;
    assert!(links > 1000, "{links}");
    assert_eq!(suspect["reason"]["how"], "chain");
    assert_eq!((text(&suspect["reason"]["class"]), number(&suspect["reason"]["objects"])), (LINK, links));
    assert_eq!(number(&suspect["accumulated_bytes"]), tree.retained_bytes(first));
}
