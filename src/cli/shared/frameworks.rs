//! `--frameworks FILE`: the user's own rules about frameworks, and facts in answers.

use std::borrow::Cow;
#[cfg(any(feature = "serve", feature = "browse"))]
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;

use hprof_query::frameworks::{FrameworkFact, Frameworks};
use hprof_report::value::Value;

use super::context::RunContext;
use super::object;

/// Maximum size of a rules file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Rules about frameworks.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FrameworksArgs {
    /// TOML file with rules about frameworks, in addition to the built-in ones (see docs/frameworks.md); may be
    /// repeated
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    frameworks: Vec<PathBuf>,
}

impl FrameworksArgs {
    /// Returns the options as words.
    #[cfg(any(feature = "serve", feature = "browse"))]
    pub(crate) fn words(&self) -> Vec<OsString> {
        let word = |file: &PathBuf| [OsString::from("--frameworks"), file.into()];
        self.frameworks.iter().flat_map(word).collect()
    }

    /// Returns the built-in rules, those of the command that runs this one, and those of the files.
    ///
    /// # Errors
    /// If a file cannot be read or contains an error; the message contains line and column.
    pub(crate) fn rules(&self, cx: &RunContext) -> anyhow::Result<Frameworks> {
        let known = cx.frameworks.clone().unwrap_or_else(Frameworks::bundled);
        self.frameworks.iter().try_fold(known, |rules, path| {
            let text = read(path)?;
            Ok(rules.with(&text, &path.display().to_string())?)
        })
    }
}

/// Reads a file with rules.
///
/// # Errors
/// If it cannot be read, is too long, or is not UTF-8.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let fail = || format!("cannot read the rules file {shown}");
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(fail)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(fail)?;
    anyhow::ensure!(bytes.len() as u64 <= MAX_BYTES, "{shown} is larger than 1 MiB");
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{shown} is not valid UTF-8, which TOML requires"))
}

/// Facts as a record: `{"sessions": 12000, "path": "/shop"}`.
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

/// Facts as people read them: `path /shop, sessions 12,000`.
pub(crate) fn facts_text(facts: &[(String, FrameworkFact)]) -> String {
    let one = |(name, fact): &(String, FrameworkFact)| format!("{name} {fact}");
    facts.iter().map(one).collect::<Vec<_>>().join(", ")
}
