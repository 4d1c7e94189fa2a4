//! The tools that the server offers, and the command that each of them runs.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::MIN_BYTES;

/// Maximum number of rows that a call may request.
const MAX_ROWS: u64 = 1000;

/// Maximum length in bytes of a result that a call may request.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of characters of an argument: it is passed to a process, which accepts 128 KiB.
const MAX_CHARACTERS: usize = 32_000;

/// Default number of rows of a result.
const ROWS: u64 = 20;

/// A tool of the protocol.
pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
}

/// An argument of a tool.
struct Argument {
    name: &'static str,
    kind: Kind,
    is_required: bool,
    description: &'static str,
}

/// Type of an argument.
enum Kind {
    /// Handle of a dump.
    Dump,
    Text,
    /// A number in a range (inclusive).
    Count(u64, u64),
    Flag,
    OneOf(&'static [&'static str]),
}

const fn required(name: &'static str, kind: Kind, description: &'static str) -> Argument {
    Argument { name, kind, is_required: true, description }
}

const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Argument {
    Argument { name, kind, is_required: false, description }
}

const DUMP: Argument = required("dump", Kind::Dump, "Handle of the dump, from the tool dumps: d1, d2, …");
const TOP: Argument = optional("top", Kind::Count(1, MAX_ROWS), "Number of rows (default 20, largest first)");
const OBJECT: &str = "Object ID as in answers, such as 0x7c00012a8, or a class name";

/// All tools, in the order in which they are useful.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "dumps",
        title: "List the dumps",
        description: "Lists the heap dumps that can be asked about, with the handle that other tools need, file, size, date and JVM. \
            Call this first.",
        arguments: &[],
    },
    Tool {
        name: "overview",
        title: "What is wrong with this heap",
        description: "One screen about a dump: the error that caused it, how full the heap was, the largest places of \
                      the heap in words, anomalies. Start here for any question about memory.",
        arguments: &[DUMP],
    },
    Tool {
        name: "leaks",
        title: "Leak suspects",
        description: "Leak suspects with evidence: what accumulates, who holds it, how much it retains, in the words of the program's \
            framework. Use it for 'why did this JVM run out of memory'.",
        arguments: &[DUMP],
    },
    Tool {
        name: "process_memory",
        title: "Memory outside of the heap",
        description: "What a dump says about memory of the process outside of the heap: direct buffers and mapped files, with the fields \
            that hold them. Use it when a process takes more memory than its heap.",
        arguments: &[DUMP],
    },
    Tool {
        name: "waste",
        title: "Wasted memory",
        description: "Memory that could be saved: duplicate strings, empty or sparse collections, boxed numbers, and the fields that hold \
            them.",
        arguments: &[
            DUMP,
            TOP,
            optional("group_by", Kind::OneOf(&["field", "class", "loader"]), "What a row is (default field)"),
        ],
    },
    Tool {
        name: "histogram",
        title: "Objects by class",
        description: "Number and size of objects by class, package or loader; with retained, also what they keep alive.",
        arguments: &[
            DUMP,
            TOP,
            optional(
                "class",
                Kind::Text,
                "Only classes that match, such as com.acme.** or java.util.HashMap",
            ),
            optional("group_by", Kind::OneOf(&["class", "package", "loader", "superclass"]), "What a row is"),
            optional("retained", Kind::Flag, "Also the retained size of each row"),
        ],
    },
    Tool {
        name: "dominators",
        title: "Largest objects by retained size",
        description: "The dominator tree: which objects keep most memory alive, or what one object keeps alive, level by level.",
        arguments: &[
            DUMP,
            TOP,
            optional("of", Kind::Text, "Start at this object or class instead of the whole heap"),
            optional("group_by", Kind::OneOf(&["class", "package", "loader"]), "Group the rows"),
        ],
    },
    Tool {
        name: "paths",
        title: "Why is this object alive",
        description: "Paths of references from GC roots to an object, or merged paths to all instances of a class.",
        arguments: &[DUMP, required("object", Kind::Text, OBJECT), TOP],
    },
    Tool {
        name: "object",
        title: "One object",
        description: "Fields or elements of an object, what it contains (collections are unpacked), and its referrers.",
        arguments: &[
            DUMP,
            required("object", Kind::Text, OBJECT),
            optional("referrers", Kind::Flag, "Also the objects that refer to it"),
            TOP,
        ],
    },
    Tool {
        name: "threads",
        title: "Threads",
        description: "Threads with state, stack and what their local variables keep alive; with group, a row is all \
                      threads with the same stack.",
        arguments: &[
            DUMP,
            TOP,
            optional("group", Kind::Flag, "A row for all threads with the same stack"),
            optional("locals", Kind::Flag, "Also the objects that each frame refers to"),
            optional(
                "thread",
                Kind::Text,
                "Only threads whose name contains this (only if the server was started with --values)",
            ),
        ],
    },
    Tool {
        name: "diff",
        title: "What grew",
        description: "Compares two dumps of one program: what grew, by place of the program (place) or by class.",
        arguments: &[
            required("old", Kind::Dump, "Handle of the older dump"),
            required("new", Kind::Dump, "Handle of the newer dump"),
            TOP,
            optional(
                "group_by",
                Kind::OneOf(&["place", "class", "package", "loader"]),
                "What a row is (default place)",
            ),
        ],
    },
    Tool {
        name: "sql",
        title: "SQL",
        description: "One SELECT over the tables of a dump (objects, references, classes, strings, threads, …); the resource \
            hprof://docs/tables describes them. Read only.",
        arguments: &[DUMP, required("query", Kind::Text, "One SELECT"), TOP],
    },
    Tool {
        name: "oql",
        title: "OQL",
        description: "One query in the object query language of Eclipse MAT and VisualVM, such as \
            select x from java.util.HashMap x where x.size > 1000.",
        arguments: &[DUMP, required("query", Kind::Text, "The query"), TOP],
    },
    Tool {
        name: "find",
        title: "Find a class or a text",
        description: "Classes whose name matches a pattern, or Strings that match a regular expression (texts only if the server was \
            started with --values).",
        arguments: &[
            DUMP,
            required("what", Kind::OneOf(&["class", "text"]), "What to look for"),
            required(
                "pattern",
                Kind::Text,
                "Class pattern such as com.acme.** or *Cache*; regular expression for a text",
            ),
            TOP,
        ],
    },
];

/// Arguments that all tools accept.
const COMMON: &[Argument] = &[optional(
    "max_bytes",
    Kind::Count(MIN_BYTES as u64, MAX_BYTES as u64),
    "Maximum length of this answer in bytes",
)];

impl Tool {
    /// Returns the tool with this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Returns the declaration of the tool for clients.
    pub(super) fn declaration(&self) -> Value {
        let mut properties = Map::new();
        let arguments = || self.arguments.iter().chain(COMMON);
        for argument in arguments() {
            let mut schema = match &argument.kind {
                Kind::Dump => json!({"type": "string", "pattern": "^d[1-9][0-9]*$"}),
                Kind::Text => json!({"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS}),
                Kind::Count(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
                Kind::Flag => json!({"type": "boolean"}),
                Kind::OneOf(words) => json!({"type": "string", "enum": words}),
            };
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".to_owned(), argument.description.into());
            }
            properties.insert(argument.name.to_owned(), schema);
        }
        let required: Vec<&str> =
            arguments().filter(|argument| argument.is_required).map(|argument| argument.name).collect();
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
        })
    }

    /// Returns a call for more than the result with this many rows; `cut_to` is the size in bytes to which it was shortened.
    pub(super) fn next_call(
        &self,
        given: &Map<String, Value>,
        rows: usize,
        cut_to: Option<usize>,
    ) -> Option<Value> {
        let top = given.get("top").and_then(Value::as_u64).unwrap_or(ROWS);
        let has_top = self.arguments.iter().any(|argument| argument.name == TOP.name);
        let is_full = has_top && top < MAX_ROWS && u64::try_from(rows).is_ok_and(|rows| rows >= top);
        let mut arguments = given.clone();
        // A result of the maximum length cannot become longer.
        if let Some(bytes) = cut_to.filter(|bytes| *bytes < MAX_BYTES) {
            arguments.insert("max_bytes".to_owned(), bytes.saturating_mul(4).min(MAX_BYTES).into());
        } else if cut_to.is_some() {
            return None;
        } else if is_full {
            arguments.insert(TOP.name.to_owned(), (top * 5).min(MAX_ROWS).into());
        } else {
            return None;
        }
        Some(json!({"tool": self.name, "arguments": arguments}))
    }

    /// Checks the arguments of a call.
    ///
    /// # Errors
    ///
    /// A description of the error, with the valid names.
    pub(super) fn check<'a>(&self, given: &'a Map<String, Value>) -> Result<CallArguments<'a>, String> {
        let all = || self.arguments.iter().chain(COMMON);
        let names = || all().map(|argument| argument.name).collect::<Vec<_>>().join(", ");
        if let Some(unknown) = given.keys().find(|name| !all().any(|argument| argument.name == *name)) {
            return Err(format!("{} has no argument `{unknown}`; its arguments are {}", self.name, names()));
        }
        for argument in all() {
            let name = argument.name;
            let Some(value) = given.get(name) else {
                if argument.is_required {
                    return Err(format!(
                        "{} needs the argument `{name}`: {}",
                        self.name, argument.description
                    ));
                }
                continue;
            };
            let is_right = match &argument.kind {
                Kind::Dump | Kind::Text => value.as_str().is_some_and(|text| {
                    !text.is_empty() && !text.contains('\0') && text.chars().count() <= MAX_CHARACTERS
                }),
                Kind::Count(min, max) => value.as_u64().is_some_and(|count| (*min..=*max).contains(&count)),
                Kind::Flag => value.is_boolean(),
                Kind::OneOf(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            };
            if !is_right {
                return Err(format!("`{name}` must be {}", argument.kind.words()));
            }
        }
        Ok(CallArguments(given))
    }
}

impl Kind {
    fn words(&self) -> String {
        match self {
            Self::Dump => "the handle of a dump, such as d1".to_owned(),
            Self::Text => {
                format!("a non-empty text of at most {MAX_CHARACTERS} characters, without NUL characters")
            }
            Self::Count(min, max) => format!("an integer from {min} to {max}"),
            Self::Flag => "true or false".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
        }
    }
}

/// Arguments of a call that were checked against the tool's declaration.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallArguments<'a>(&'a Map<String, Value>);

impl<'a> CallArguments<'a> {
    /// Returns the value of a text argument.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    /// Returns the value of a numeric argument.
    pub(super) fn count(self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    fn has(self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Returns the command line that a call runs; `dump` finds the file of a handle.
///
/// # Errors
///
/// A description of the error.
pub(super) fn command<'d>(
    tool: &Tool,
    arguments: CallArguments<'_>,
    shows_values: bool,
    dump: impl Fn(&str) -> Result<&'d Path, String>,
) -> Result<Vec<OsString>, String> {
    let top = || OsString::from(format!("--top={}", arguments.count("top").unwrap_or(ROWS)));
    let flag = |name: &str, option: &str| arguments.has(name).then(|| OsString::from(option));
    let option = |name: &str, option: &str| {
        arguments.text(name).map(|value| OsString::from(format!("{option}={value}")))
    };
    let hidden = |what: &str| Err(format!("{what}; only a server started with --values can search them"));
    if !shows_values && arguments.text("thread").is_some() {
        return hidden("names of threads are hidden");
    }
    // After `--`, nothing is an option.
    let (name, options, last): (&str, Vec<Option<OsString>>, Vec<&str>) = match tool.name {
        "overview" => ("overview", vec![], vec![]),
        "leaks" => ("leaks", vec![], vec![]),
        "process_memory" => ("memory", vec![], vec![]),
        "waste" => ("waste", vec![Some(top()), option("group_by", "--group-by")], vec![]),
        "histogram" => (
            "histo",
            vec![Some(top()), option("group_by", "--group-by"), flag("retained", "--retained")],
            arguments.text("class").into_iter().collect(),
        ),
        "dominators" => {
            ("dominators", vec![Some(top()), option("of", "--of"), option("group_by", "--group-by")], vec![])
        }
        "paths" => ("paths-to-root", vec![Some(top())], arguments.text("object").into_iter().collect()),
        "object" => (
            "show",
            // Rows are referrers in this case.
            vec![flag("referrers", "--incoming").map(|_| top()), flag("referrers", "--incoming")],
            arguments.text("object").into_iter().collect(),
        ),
        "threads" => (
            "threads",
            vec![
                Some(top()),
                flag("group", "--group"),
                flag("locals", "--locals"),
                option("thread", "--thread"),
            ],
            vec![],
        ),
        "diff" => {
            let by = arguments.text("group_by").unwrap_or("place");
            ("diff", vec![Some(top()), Some(format!("--group-by={by}").into())], vec![])
        }
        "sql" | "oql" => {
            let limit = (tool.name == "sql").then(|| "--time-limit=2min".into());
            (tool.name, vec![Some(top()), limit], arguments.text("query").into_iter().collect())
        }
        "find" => match arguments.text("what") {
            Some("class") => ("classes", vec![Some(top())], arguments.text("pattern").into_iter().collect()),
            _ if !shows_values => return hidden("texts of the heap are hidden"),
            _ => ("strings", vec![Some(top()), option("pattern", "--pattern")], vec![]),
        },
        other => return Err(format!("{other} has no command")),
    };
    let dumps = match tool.name {
        "diff" => vec!["old", "new"],
        _ => vec!["dump"],
    };
    let mut words: Vec<OsString> = vec![name.into()];
    words.extend(options.into_iter().flatten());
    words.push("--".into());
    for handle in dumps {
        words.push(dump(arguments.text(handle).unwrap_or_default())?.into());
    }
    words.extend(last.into_iter().map(OsString::from));
    Ok(words)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(tool: &str, arguments: Value) -> Result<Vec<String>, String> {
        let tool = Tool::find(tool).unwrap();
        let arguments = tool.check(arguments.as_object().unwrap())?;
        let dump = |handle: &str| match handle {
            "d1" => Ok(Path::new("/dumps/a b.hprof")),
            _ => Err(format!("no dump {handle}")),
        };
        let words = command(tool, arguments, false, dump)?;
        Ok(words.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn calls_become_commands_in_which_nothing_given_is_an_option() {
        assert_eq!(words("leaks", json!({"dump": "d1"})).unwrap(), ["leaks", "--", "/dumps/a b.hprof"]);
        assert_eq!(
            words("sql", json!({"dump": "d1", "query": "--file=/etc/passwd", "top": 3})).unwrap(),
            ["sql", "--top=3", "--time-limit=2min", "--", "/dumps/a b.hprof", "--file=/etc/passwd"]
        );
        assert_eq!(
            words("dominators", json!({"dump": "d1", "of": "-x"})).unwrap(),
            ["dominators", "--top=20", "--of=-x", "--", "/dumps/a b.hprof"]
        );
        for tool in TOOLS.iter().filter(|tool| tool.name != "dumps") {
            let mut given = Map::new();
            for argument in tool.arguments.iter().filter(|argument| argument.is_required) {
                let value = match &argument.kind {
                    Kind::Dump => "d1",
                    Kind::OneOf(words) => words[0],
                    _ => "x",
                };
                given.insert(argument.name.to_owned(), value.into());
            }
            assert!(words(tool.name, given.into()).is_ok(), "{}", tool.name);
        }
    }

    #[test]
    fn wrong_arguments_are_told_with_the_right_ones() {
        for (tool, arguments, says) in [
            ("leaks", json!({}), "needs the argument `dump`"),
            (
                "leaks",
                json!({"dump": "d1", "object": "0x1"}),
                "has no argument `object`; its arguments are dump, max_bytes",
            ),
            ("leaks", json!({"dump": "/etc/passwd"}), "no dump /etc/passwd"),
            ("leaks", json!({"dump": 1}), "the handle of a dump"),
            ("histogram", json!({"dump": "d1", "top": 0}), "an integer from 1 to 1000"),
            ("histogram", json!({"dump": "d1", "retained": "yes"}), "true or false"),
            ("waste", json!({"dump": "d1", "group_by": "x"}), "one of field, class, loader"),
            ("find", json!({"dump": "d1", "what": "text", "pattern": "p"}), "started with --values"),
            ("sql", json!({"dump": "d1", "query": "a\u{0}b"}), "a non-empty text"),
            ("sql", json!({"dump": "d1", "query": "x".repeat(200_000)}), "at most 32000 characters"),
        ] {
            let error = words(tool, arguments).unwrap_err();
            assert!(error.contains(says), "{tool}: {error}");
        }
    }
}
