//! Numeric fields that rules about frameworks compute with, found in the rules that are compiled in.
//!
//! A rule names a class, and its facts have paths from its instances: `this.pool.counter.value`. The other classes on a path
//! belong to the framework and differ between its versions. So a field counts as read by the rules if its name is the last part
//! of a path, and its class is in a package of the rules' classes. If a path ends in the field of a JDK counter, the part
//! before it is the name of a field that holds the counter.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use super::bundled::BUNDLED;
use hprof_base::naming::toml_file::{self, TomlTable};

/// Fields that the rules of a file read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FrameworkNumbers {
    /// Name of the framework.
    pub framework: String,
    /// Prefixes of class names, up to and including a dot.
    pub packages: BTreeSet<String>,
    /// Last names of paths.
    pub fields: BTreeSet<String>,
    /// Names of fields that hold counters.
    pub counters: BTreeSet<String>,
}

/// Fields of JDK counters that rules about frameworks read.
const COUNTED: [&str; 2] = ["value", "base"];

/// Number of parts of a class name that count as its package.
const PARTS: usize = 3;
/// Number of parts that count as the package in packages of several libraries.
const MORE_PARTS: usize = 4;
/// Packages of several libraries.
const LIBRARIES: [&str; 3] = ["org.apache.commons.", "org.apache.tomcat.", "com.google.common."];
/// Prefixes of the names of classes whose fields are listed one by one instead.
const PLATFORM: [&str; 6] = ["java.", "javax.", "jdk.", "sun.", "com.sun.", "android."];
/// Functions whose arguments are objects, and keywords before a set of objects.
const OF_OBJECTS: [&str; 8] =
    ["classof", "inbounds", "outbounds", "frame", "locals", "chain", "OBJECTS", "DISTINCT"];

/// Fields that the rules of all files read, and indices of the files by package.
struct AllNumbers {
    files: Vec<FrameworkNumbers>,
    by_package: HashMap<String, Vec<usize>>,
}

static NUMBERS: LazyLock<AllNumbers> = LazyLock::new(|| {
    // Bundled files have no errors: a test reads all of them.
    let files = BUNDLED.iter().filter_map(|(name, text)| toml_file::read(text, name, numbers).ok());
    let files: Vec<_> = files.collect();
    let mut by_package: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, file) in files.iter().enumerate() {
        for package in &file.packages {
            by_package.entry(package.clone()).or_default().push(number);
        }
    }
    AllNumbers { files, by_package }
});

/// Returns the fields by rules file.
pub fn numbers_by_file() -> &'static [FrameworkNumbers] {
    &NUMBERS.files
}

/// Returns the framework whose rules read the number in a field that a class declares.
pub(crate) fn framework(class: &str, field: &str) -> Option<&'static str> {
    of_class(class).find(|file| file.fields.contains(field)).map(|file| &*file.framework)
}

/// Returns `true` if the rules read the counter in a field that a class declares.
pub(crate) fn holds_counter(class: &str, field: &str) -> bool {
    of_class(class).any(|file| file.counters.contains(field))
}

/// Returns the rules files about the packages of a class.
fn of_class(class: &str) -> impl Iterator<Item = &'static FrameworkNumbers> {
    let numbers = &*NUMBERS;
    let starts = class.match_indices('.').take(MORE_PARTS).filter_map(|(dot, _)| class.get(..=dot));
    let found = starts.filter_map(|start| numbers.by_package.get(start)).flatten();
    found.filter_map(|number| numbers.files.get(*number))
}

/// Reads the paths of a rules file.
fn numbers(root: &TomlTable<'_>) -> FrameworkNumbers {
    let framework = root.text("framework").map_or_else(String::new, |name| name.text.to_owned());
    let mut numbers = FrameworkNumbers { framework, ..FrameworkNumbers::default() };
    for rule in root.tables("class") {
        numbers.packages.extend(rule.text_or_texts("name").iter().filter_map(|name| package(name.text)));
        let facts = rule.table("facts").map(|facts| facts.entries());
        for (_, expression) in facts.into_iter().flatten() {
            each_path(expression.map_or("", |expression| expression.text), &mut |holder, field| {
                numbers.fields.insert(field.to_owned());
                if COUNTED.contains(&field) {
                    numbers.counters.extend(holder.map(str::to_owned));
                }
            });
        }
    }
    numbers
}

/// Returns the package of a class with its last dot, limited to a number of parts; `None` for classes of the platform.
fn package(class: &str) -> Option<String> {
    if PLATFORM.iter().any(|start| class.starts_with(start)) {
        return None;
    }
    let is_of_several = LIBRARIES.iter().any(|start| class.starts_with(start));
    let parts = if is_of_several { MORE_PARTS } else { PARTS };
    let end = class.match_indices('.').take(parts).last()?.0;
    class.get(..=end).map(str::to_owned)
}

/// Calls `visit` with the last name of each path in an expression, and the name before it. Paths to objects are skipped: those
/// in which a method is called, an attribute is read or an element is taken, and arguments of functions of objects.
fn each_path(expression: &str, visit: &mut dyn FnMut(Option<&str>, &str)) {
    let mut rest = expression;
    let mut before = "";
    while let Some(first) = rest.chars().next() {
        if matches!(first, '"' | '\'') {
            rest = rest.get(1..).and_then(|rest| rest.split_once(first)).map_or("", |(_, after)| after);
            before = "";
        } else if is_name_start(first) {
            let path = path(rest);
            // The object to which the path leads is named by a variable or is the result of a call.
            let is_of_objects = OF_OBJECTS.contains(&before);
            if let [.., holder, field] = path.names[..]
                && path.is_value
                && !is_of_objects
            {
                visit((path.names.len() > 2).then_some(holder), field);
            }
            before = if path.names.len() == 1 { path.names.first().copied().unwrap_or_default() } else { "" };
            rest = rest.get(path.bytes..).unwrap_or_default();
        } else {
            if !matches!(first, '(' | ' ' | '\n') {
                before = "";
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
}

/// A path at the start of an expression.
struct ExpressionPath<'e> {
    names: Vec<&'e str>,
    /// `true` if it ends in a field.
    is_value: bool,
    bytes: usize,
}

fn path(text: &str) -> ExpressionPath<'_> {
    let (mut names, mut at) = (Vec::new(), 0);
    let mut is_value;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let length = rest.find(|c| !is_name_part(c)).unwrap_or(rest.len());
        names.push(rest.get(..length).unwrap_or_default());
        at += length;
        let mut after = text.get(at..).unwrap_or_default();
        is_value = true;
        if after.starts_with('[')
            && let Some(end) = after.find(']')
        {
            at += end + 1;
            after = text.get(at..).unwrap_or_default();
            is_value = false;
        }
        let next = after.strip_prefix('.').and_then(|next| next.chars().next());
        match next {
            Some(next) if is_name_start(next) => at += 1,
            // An attribute.
            Some('@') => return ExpressionPath { names, is_value: false, bytes: at + 1 },
            _ => break,
        }
    }
    if text.get(at..).is_some_and(|after| after.starts_with('(')) {
        is_value = false;
    }
    ExpressionPath { names, is_value, bytes: at }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$')
}

fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(expression: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_path(expression, &mut |holder, field| {
            found.push(format!("{}>{field}", holder.unwrap_or_default()));
        });
        found
    }

    #[test]
    fn the_last_names_of_paths_are_found() {
        assert_eq!(paths("this.destinationStatistics.messages.counter.value"), ["counter>value"]);
        assert_eq!(paths("this.maximum + 1"), [">maximum"]);
        assert_eq!(
            paths("coalesce(this.allocationsSmall.base, this.allocationsSmall, 0)"),
            ["allocationsSmall>base", ">allocationsSmall"]
        );
        assert_eq!(
            paths("(SELECT count(*) FROM OBJECTS (this.workers[0:-1]) w WHERE w.state > 0)"),
            [">state"]
        );
        assert!(
            paths("classof(this.pool).@name + \"a.b\" + this.state.toString() + this.map.@size").is_empty()
        );
        assert!(paths("chain(this.qInit.head, \"next\").@size").is_empty());
        assert!(paths("max_bytes - in_use").is_empty());
    }

    #[test]
    fn packages_are_those_of_the_rules() {
        assert_eq!(
            package("org.apache.activemq.broker.region.Queue").as_deref(),
            Some("org.apache.activemq.")
        );
        assert_eq!(package("org.jdom2.Document").as_deref(), Some("org.jdom2."));
        assert_eq!(
            package("org.apache.commons.pool2.impl.GenericObjectPool").as_deref(),
            Some("org.apache.commons.pool2.")
        );
        assert_eq!(package("java.util.Timer"), None);
        assert_eq!(framework("org.apache.activemq.command.ConsumerInfo", "prefetchSize"), Some("ActiveMQ"));
        assert_eq!(framework("com.acme.Queue", "prefetchSize"), None);
        assert_eq!(framework("java.util.concurrent.Semaphore$Sync", "state"), None);
        assert!(holds_counter("org.apache.activemq.management.CountStatisticImpl", "counter"));
        assert!(!holds_counter("com.acme.Statistics", "counter"));
    }
}
