//! Knowledge of frameworks: names of their objects, their contents, and the meaning of their states.
//!
//! Rules are data: a TOML file for each framework in `model/framework_rules/rules`, compiled in, and rules files of the user.
//! [`Frameworks`] contains the rules of all files (`rules` parses them), [`KnownFrameworks`] those that apply to the
//! classes of a dump. Their expressions are OQL about one object, `this` ([`crate::oql`]), evaluated within limits.
//! `docs/frameworks.md` is the reference.

mod fact;
mod known;
#[cfg(test)]
mod made;
mod rules;
mod template;
#[cfg(test)]
mod tests;

pub use fact::FrameworkFact;
pub use known::{FrameworkDescription, FrameworkRuleId, KnownFrameworks};
pub(crate) use rules::PooledField;
pub use rules::{FrameworkAbout, FrameworkRuleAbout, FrameworkVerdict, Frameworks, Naming};
