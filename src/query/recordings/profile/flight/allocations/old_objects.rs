//! Sampled objects that were alive when the recording was written: `jdk.OldObjectSample`.

use std::borrow::Cow;
use std::sync::Arc;

use hprof_jfr::Record;

use super::super::stacks::Names;

/// Maximum number of links of a chain. The JVM writes at most 200, and how many it skipped.
const MAX_LINKS: usize = 256;
/// Start of the description of a class object.
const CLASS_NAME: &str = "Class Name: ";

/// A sampled object that was alive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldObject {
    /// Class.
    pub class: Arc<str>,
    /// Number of elements of an array.
    pub elements: Option<u64>,
    /// Index of the stack in which it was allocated.
    pub(super) stack: u32,
    /// Chain of references from the object to the root; empty if the recording was written without chains.
    pub chain: Vec<ChainLink>,
}

/// A reference to the object before, by another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainLink {
    /// Class of the other object; of a class object, the class that it represents.
    pub class: Arc<str>,
    /// Field; `None` for an element of an array.
    pub field: Option<String>,
}

impl OldObject {
    /// Returns the index of the stack in which it was allocated; for [`super::Allocations::stack`].
    pub fn stack(&self) -> u32 {
        self.stack
    }
}

/// Reads the fields of an event. `left` is the number of bytes that texts may still take.
pub(super) fn read(
    fields: &Record<'_>,
    stack: u32,
    names: &mut Names,
    left: &mut usize,
) -> Option<OldObject> {
    let object = fields.record("object")?;
    let class = object.constant("type").and_then(|class| names.class(class))?;
    let elements = fields.integer("arrayElements").and_then(|count| u64::try_from(count).ok());
    let elements = elements.filter(|_| class.ends_with("[]"));
    Some(OldObject { class, elements, stack, chain: chain(object, names, left) })
}

/// Takes so many bytes of what is left; returns whether there are as many. If not, nothing is left.
fn take(left: &mut usize, bytes: usize) -> bool {
    let rest = left.checked_sub(bytes);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

fn chain(object: Record<'_>, names: &mut Names, left: &mut usize) -> Vec<ChainLink> {
    let mut links = Vec::new();
    let mut at = object;
    // Texts are decoded before they are counted.
    while links.len() < MAX_LINKS && *left > 0 {
        let Some(referrer) = at.record("referrer") else { break };
        let Some(holder) = referrer.record("object") else { break };
        let class = holder.constant("type").and_then(|class| names.class(class)).unwrap_or_default();
        let description = holder.text("description").unwrap_or_default();
        let represented = description.strip_prefix(CLASS_NAME).map(str::trim);
        let class = match represented {
            Some(name) if &*class == "java.lang.Class" => hprof_parser::names::java_class_name(name).into(),
            _ => class,
        };
        let field = referrer.record("field").and_then(|field| field.text("name").map(Cow::into_owned));
        let texts = description.len() + field.as_ref().map_or(0, String::len);
        if !take(left, texts + size_of::<ChainLink>()) {
            break;
        }
        links.push(ChainLink { class, field });
        at = holder;
    }
    links
}
