//! `--frameworks FILE`: the user's own rules about frameworks; and the formatting of facts that rules find.

use std::borrow::Cow;
#[cfg(any(feature = "serve", feature = "browse"))]
use std::ffi::OsString;
use std::path::PathBuf;

use hprof_query::frameworks::{FrameworkFact, Frameworks};
use hprof_report::value::Value;

use super::context::RunContext;
use super::{object, rules_file};

/// Rules about frameworks.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FrameworksArgs {
    /// TOML file with rules about frameworks, in addition to the built-in ones (see docs/frameworks.md); may be
    /// repeated
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    frameworks: Vec<PathBuf>,
}

impl FrameworksArgs {
    /// Returns the options as command-line words.
    #[cfg(any(feature = "serve", feature = "browse"))]
    pub(crate) fn words(&self) -> Vec<OsString> {
        let word = |file: &PathBuf| [OsString::from("--frameworks"), file.into()];
        self.frameworks.iter().flat_map(word).collect()
    }

    /// Returns the built-in rules, the rules of the command that runs this one, and the rules in the files.
    ///
    /// # Errors
    /// If a file cannot be read or contains errors. All errors except the last were printed.
    pub(crate) fn rules(&self, cx: &RunContext) -> anyhow::Result<Frameworks> {
        let known = cx.frameworks.clone().unwrap_or_else(Frameworks::builtin);
        self.frameworks.iter().try_fold(known, |rules, path| {
            rules_file::read(cx, path, "docs/frameworks.md describes rules files", |text, file| {
                rules.with(text, file)
            })
        })
    }
}

/// Converts facts to a JSON record: `{"sessions": 12000, "path": "/shop"}`.
pub(crate) fn facts<'a>(facts: &'a [(String, FrameworkFact)]) -> Value<'a> {
    Value::Record(facts.iter().map(|(name, fact)| (Cow::Owned(name.clone()), value(fact))).collect())
}

fn value(fact: &FrameworkFact) -> Value<'_> {
    match fact {
        FrameworkFact::Null => Value::Null,
        FrameworkFact::Bool(value) => (*value).into(),
        FrameworkFact::Whole(value) => (*value).into(),
        FrameworkFact::Double(value) => object::double(*value),
        FrameworkFact::Text(text) => text.into(),
        FrameworkFact::Hidden => fact.to_string().into(),
    }
}

/// Formats facts for people: `path /shop, sessions 12,000`.
pub(crate) fn facts_text(facts: &[(String, FrameworkFact)]) -> String {
    let one = |(name, fact): &(String, FrameworkFact)| format!("{name} {fact}");
    facts.iter().map(one).collect::<Vec<_>>().join(", ")
}
