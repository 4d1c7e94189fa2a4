//! Claims of the documents about imports: no cycles, neither of files nor of folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::sources::rust_files;

/// The crates: name, folder, and folders of other crates in it.
pub(crate) const CRATES: &[(&str, &str, &[&str])] = &[
    ("format", "format/src", &[]),
    ("capture", "src/capture", &[]),
    ("hprof", "src/hprof", &[]),
    ("input", "src/input", &[]),
    ("index", "src/index", &[]),
    ("jfr", "src/jfr", &[]),
    ("memory", "src/memory", &[]),
    ("query", "src/query", &["analyses", "base", "model", "recordings", "redact", "tables"]),
    ("base", "src/query/base", &[]),
    ("model", "src/query/model", &[]),
    ("recordings", "src/query/recordings", &[]),
    ("analyses", "src/query/analyses", &[]),
    ("redact", "src/query/redact", &[]),
    ("tables", "src/query/tables", &[]),
    ("report", "src/report", &[]),
    ("values", "src/values", &[]),
    ("cli", "src", &["capture", "hprof", "input", "index", "jfr", "memory", "query", "report", "values"]),
    ("agent", "agent/src", &[]),
];

/// Circles that there are: crate, folder, what imports one another. One that is mended has to go from here.
const KNOWN: &[(&str, &str, &[&str])] = &[
    // Callbacks of the JVM lead from `jvm` into `start`, and what is recorded is counted in `state`.
    ("agent", "", &["agent", "collector", "control", "jvm", "output", "record", "start", "state", "tracker"]),
];

/// A module, by the names that lead to it.
type Module = Vec<String>;

/// Modules, and those that they import.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// The source without comments, texts and its tests.
pub(crate) fn bare(source: &str) -> String {
    let is_tests = |at: &usize| {
        ["\nmod tests {", "\npub(super) mod tests {"].iter().any(|of| source[*at..].contains(of))
    };
    let tests = source.find("\n#[cfg(test)]\n").filter(is_tests);
    let source = &source[..tests.unwrap_or(source.len())];
    let mut out = String::new();
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default();
        // Every other part stands between quotes.
        out.extend(code.split('"').step_by(2));
        out.push('\n');
    }
    out
}

/// The paths of a `use`, of which `{}` is expanded.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.trim().to_owned()] };
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for letter in rest.chars() {
        match letter {
            '}' if depth == 0 => break,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        parts.last_mut().unwrap().push(letter);
    }
    parts.iter().flat_map(|part| expanded(&format!("{}{}", before.trim(), part.trim()))).collect()
}

/// The paths in a file: those of `use`, and those that begin with `crate` or `super` anywhere.
fn paths(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices("use ") {
        let begins = source[..at].trim_end_matches(' ').chars().next_back();
        if begins.is_none_or(|letter| letter == '\n' || letter == ')' || source[..at].ends_with("pub ")) {
            found.extend(expanded(source[at + 4..].split(';').next().unwrap_or_default()));
        }
    }
    for start in ["crate::", "super::"] {
        for (at, _) in source.match_indices(start) {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
            if !source[..at].chars().next_back().is_some_and(is_part) {
                found.push(
                    source[at..].split(|letter| !is_part(letter)).next().unwrap_or_default().to_owned(),
                );
            }
        }
    }
    found
}

/// Returns the target of a path: its longest prefix that is a module.
fn target(path: &str, from: &Module, known: &BTreeSet<Module>) -> Option<Module> {
    let mut names: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut at = match *names.first()? {
        "crate" => Module::new(),
        "super" | "self" => from.clone(),
        name if known.contains(&[from.as_slice(), &[name.to_owned()]].concat()) => from.clone(),
        _ => return None,
    };
    while let Some(name @ ("crate" | "super" | "self")) = names.first().copied() {
        if name == "super" {
            at.pop();
        }
        names.remove(0);
    }
    at.extend(names.into_iter().map(|name| name.split(' ').next().unwrap_or_default().to_owned()));
    while !known.contains(&at) {
        at.pop()?;
    }
    Some(at)
}

/// The modules of a crate.
fn modules(root: &Path, others: &[&str]) -> BTreeMap<Module, String> {
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let mut found = BTreeMap::new();
    for file in files {
        let mut names: Module = file
            .strip_prefix(root)
            .unwrap()
            .with_extension("")
            .iter()
            .map(|name| name.to_str().unwrap().to_owned())
            .collect();
        if names.len() > 1 && others.contains(&&*names[0]) {
            continue;
        }
        if names.last().is_some_and(|name| ["mod", "lib", "main"].contains(&&**name)) {
            names.pop();
        }
        found.entry(names).or_insert_with(String::new).push_str(&bare(&fs::read_to_string(&file).unwrap()));
    }
    found
}

/// The paths that a source names for others, by `pub use`, and what is left of the source.
fn exports(source: &str) -> (Vec<String>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    for item in source.split_inclusive(';') {
        let words = item.trim_start();
        match words.strip_prefix("pub use ").or_else(|| words.strip_prefix("pub(crate) use ")) {
            Some(path) => found.extend(expanded(path.trim_end_matches(';'))),
            None => rest.push_str(item),
        }
    }
    (found, rest)
}

/// Modules that only name what is elsewhere, with the paths of that: a prelude.
fn preludes(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, Vec<String>> {
    let all = modules
        .iter()
        .filter(|(module, _)| !module.is_empty())
        .map(|(module, source)| (module, exports(source)));
    let only_names = all.filter(|(_, (found, rest))| !found.is_empty() && rest.trim().is_empty());
    only_names.map(|(module, (found, _))| (module, found)).collect()
}

/// Returns whether a name is a word of a source.
fn has_word(source: &str, name: &str) -> bool {
    source.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == name)
}

/// Returns the imports of each module. An import from a prelude counts as one of what the prelude names, and `*` as one of all
/// these names that the importing file has.
fn imports(modules: &BTreeMap<Module, String>) -> Graph {
    let known: BTreeSet<Module> = modules.keys().cloned().collect();
    let preludes = preludes(modules);
    let named = |path: &str, from: &Module, source: &str| -> Vec<Module> {
        let Some(to) = target(path, from, &known) else { return Vec::new() };
        let Some(names) = preludes.get(&to).filter(|_| to != *from) else { return vec![to] };
        let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
        let wanted = last(path);
        let is_whole = ["", "*"].contains(&&*wanted) || wanted == to[to.len() - 1];
        // Methods of a trait need no mention of it.
        let is_trait = |path: &str| {
            let defined = target(path, &to, &known).and_then(|module| modules.get(&module));
            defined.is_some_and(|source| source.contains(&format!("trait {}", last(path))))
        };
        let is_meant = |path: &str| match is_whole {
            true => has_word(source, &last(path)) || is_trait(path),
            false => last(path) == wanted,
        };
        let meant: Vec<&String> = names.iter().filter(|path| is_meant(path)).collect();
        match meant.is_empty() && !is_whole {
            true => vec![to],
            false => meant.into_iter().filter_map(|path| target(path, &to, &known)).collect(),
        }
    };
    let of = |(from, source): (&Module, &String)| {
        let targets = paths(source).into_iter().flat_map(|path| named(&path, from, source));
        // A module and what it consists of are one.
        let targets = targets.filter(|to| !to.starts_with(from) && !from.starts_with(to));
        (from.clone(), targets.collect())
    };
    modules.iter().map(of).collect()
}

/// Nodes that lead to one another.
fn circles(graph: &Graph) -> BTreeSet<BTreeSet<Module>> {
    let reached = |from: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(node) = open.pop() {
            open.extend(graph.get(node).into_iter().flatten().filter(|next| seen.insert((*next).clone())));
        }
        seen
    };
    let all: BTreeMap<&Module, BTreeSet<Module>> = graph.keys().map(|node| (node, reached(node))).collect();
    let circle = |(node, seen): (&&Module, &BTreeSet<Module>)| -> BTreeSet<Module> {
        seen.iter().filter(|other| all.get(other).is_some_and(|back| back.contains(*node))).cloned().collect()
    };
    all.iter().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The graph of what is directly in a folder.
fn folder_graph(graph: &Graph, folder: &[String]) -> Graph {
    let inside = |module: &Module| {
        (module.starts_with(folder) && module.len() > folder.len()).then(|| module[..=folder.len()].to_vec())
    };
    let mut found = Graph::new();
    for (from, to) in graph.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        if let (Some(from), Some(to)) = (inside(from), inside(to))
            && from != to
        {
            found.entry(from).or_default().insert(to);
        }
    }
    found
}

#[test]
fn imports_make_no_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut wrong, mut found) = (Vec::new(), BTreeSet::new());
    let mut edges = 0;
    for (name, folder, others) in CRATES {
        let modules = modules(&root.join(folder), others);
        let graph = imports(&modules);
        edges += graph.values().map(BTreeSet::len).sum::<usize>();
        if *name != "agent" {
            wrong.extend(circles(&graph).iter().map(|circle| format!("files of {name}: {circle:?}")));
        }
        if *name == "index" {
            let of_graph =
                graph.iter().filter(|(from, _)| from.first().is_some_and(|first| first == "graph"));
            let others =
                of_graph.flat_map(|(_, all)| all).filter(|to| to[0] != "graph" && to[0] != "storage");
            wrong.extend(others.map(|to| format!("index::graph imports {to:?}")));
        }
        let folders: BTreeSet<&[String]> =
            modules.keys().flat_map(|module| (0..module.len()).map(|length| &module[..length])).collect();
        for folder in folders {
            for circle in circles(&folder_graph(&graph, folder)) {
                let names: Vec<String> = circle.iter().filter_map(|module| module.last().cloned()).collect();
                let is_known = |(known, place, members): &&(&str, &str, &[&str])| {
                    known == name && *place == folder.join("/") && names == *members
                };
                match KNOWN.iter().find(is_known) {
                    Some(known) => _ = found.insert(known),
                    None => wrong.push(format!("{name}/{}: {names:?}", folder.join("/"))),
                }
            }
        }
    }
    assert!(edges > 1000, "{edges}");
    wrong.extend(
        KNOWN.iter().filter(|known| !found.contains(known)).map(|known| format!("mended: {known:?}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Folders that see the records of a file: what parses and indexes them, and what copies, changes or renders all of them.
/// Others read objects by `ObjectReader`.
const SEE_RECORDS: &[&str] = &[
    "src/hprof",
    "src/index",
    "src/query/recordings",
    "src/query/redact",
    "src/report/hprof_text",
    // What an agent sends is not in a file yet.
    "src/cli/agent/listen",
    "src/cli/recording",
];

#[test]
fn only_some_see_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(&root.join("src"), &mut files);
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for file in files {
        let source = bare(&fs::read_to_string(&file).unwrap());
        let all = paths(&source);
        let is_record = |path: &&String| {
            let mut names = path.split("::");
            names.next() == Some("hprof_parser")
                && names.next().is_some_and(|name| {
                    ["record", "heap", "class_dump", "heap_tag", "resync", "stream"].contains(&name)
                })
        };
        let Some(path) = all.iter().find(is_record) else { continue };
        match SEE_RECORDS.iter().find(|folder| file.starts_with(root.join(folder))) {
            Some(folder) => _ = seen.insert(*folder),
            None => wrong.push(format!("{}: {path}", file.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // `hprof_parser` does not import itself.
    let never: Vec<&&str> =
        SEE_RECORDS.iter().filter(|folder| **folder != "src/hprof" && !seen.contains(*folder)).collect();
    assert!(never.is_empty(), "see no records: {never:?}");
}

#[test]
fn a_circle_is_found() {
    let module = |path: &str| -> Module { path.split('/').map(str::to_owned).collect() };
    let source = |of: &str| bare(of);
    let modules: BTreeMap<Module, String> = [
        (module("a"), String::new()),
        (module("a/x"), source("use crate::b::{self, y::{Y, Z as W}};\n// use crate::c;\n")),
        (module("b"), source("mod y;\n")),
        (module("b/y"), source("fn f() -> String {\n    super::super::c::g(\"crate::a\")\n}\n")),
        (
            module("c"),
            source(
                "pub(crate) use crate::d;\n#[cfg(test)]\npub(super) mod tests {\n    use crate::a::x;\n}\n",
            ),
        ),
        (module("d"), source("use super::a;\n")),
        // A prelude, and files that use what it names, or do not.
        (
            module("p"),
            source("//! Names.\n\npub(crate) use crate::b::y::{Y, Z};\npub(crate) use other::c;\n"),
        ),
        (module("uses"), source("use crate::p::*;\n\nfn f(_: Y) {}\n")),
        (module("names"), source("use crate::p::Z;\n")),
        (module("none"), source("use crate::p::*;\n\nfn f(_: Yes) {}\n")),
        (module("q"), source("pub(crate) use crate::t::T;\n")),
        (module("t"), source("pub trait T {}\n")),
        (module("methods"), source("use crate::q::*;\n")),
    ]
    .into();
    let graph = imports(&modules);
    assert_eq!(graph[&module("a/x")], [module("b"), module("b/y")].into());
    assert_eq!(graph[&module("b/y")], [module("c")].into());
    assert_eq!(graph[&module("c")], [module("d")].into());
    assert_eq!(graph[&module("uses")], [module("b/y")].into());
    assert_eq!(graph[&module("names")], [module("b/y")].into());
    assert!(graph[&module("none")].is_empty());
    assert_eq!(graph[&module("methods")], [module("t")].into());
    // The file `a/x` is in none, and its folder is in one.
    assert!(circles(&graph).is_empty());
    let folders = circles(&folder_graph(&graph, &[]));
    assert_eq!(folders, [["a", "b", "c", "d"].map(module).into()].into());
}
