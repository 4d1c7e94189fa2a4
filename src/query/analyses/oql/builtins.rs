//! Names of attributes, methods and functions.

use crate::oql::error::OqlError;
use crate::oql::tree::Function;
use hprof_base::naming::suggestions;

/// Attribute of a value, in addition to its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribute {
    ObjectId,
    ObjectAddress,
    UsedHeapSize,
    RetainedHeapSize,
    DisplayName,
    TechnicalName,
    ClassSpecificName,
    Class,
    Length,
    Elements,
    Outbounds,
    Inbounds,
    Roots,
    Name,
    Loader,
    LoaderId,
    LoaderAddress,
    SuperClass,
    SuperClassId,
    SuperClassAddress,
    NumberOfObjects,
    IsArray,
    HasSuperClass,
    Size,
    Fields,
    StaticFields,
    HeapSizePerInstance,
    Subclasses,
    Superclasses,
    Value,
    Type,
    Key,
    Snapshot,
    /// An attribute of `${snapshot}` or of its `@snapshotInfo`.
    Info(Info),
}

/// Attribute of the dump as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Info {
    /// `@snapshotInfo`
    All,
    Path,
    CreationDate,
    IdentifierSize,
    Jvm,
    UsedHeapSize,
    NumberOfObjects,
    NumberOfClasses,
    NumberOfClassLoaders,
    NumberOfRoots,
    Classes,
    Roots,
}

/// Attributes by name as written after `@`; as methods, the names have the prefix `get` or `is`.
const ATTRIBUTES: &[(&str, Attribute)] = &[
    ("objectId", Attribute::ObjectId),
    ("objectAddress", Attribute::ObjectAddress),
    ("usedHeapSize", Attribute::UsedHeapSize),
    ("retainedHeapSize", Attribute::RetainedHeapSize),
    ("displayName", Attribute::DisplayName),
    ("technicalName", Attribute::TechnicalName),
    ("classSpecificName", Attribute::ClassSpecificName),
    ("clazz", Attribute::Class),
    ("class", Attribute::Class),
    ("length", Attribute::Length),
    ("valueArray", Attribute::Elements),
    ("referenceArray", Attribute::Elements),
    ("outboundReferences", Attribute::Outbounds),
    ("inboundReferences", Attribute::Inbounds),
    ("GCRootInfo", Attribute::Roots),
    ("GCRoots", Attribute::Info(Info::Roots)),
    ("name", Attribute::Name),
    ("classLoader", Attribute::Loader),
    ("classLoaderId", Attribute::LoaderId),
    ("classLoaderAddress", Attribute::LoaderAddress),
    ("superClass", Attribute::SuperClass),
    ("superClassId", Attribute::SuperClassId),
    ("superClassAddress", Attribute::SuperClassAddress),
    ("numberOfObjects", Attribute::NumberOfObjects),
    ("arrayType", Attribute::IsArray),
    ("size", Attribute::Size),
    ("fields", Attribute::Fields),
    ("staticFields", Attribute::StaticFields),
    ("heapSizePerInstance", Attribute::HeapSizePerInstance),
    ("subclasses", Attribute::Subclasses),
    ("superclasses", Attribute::Superclasses),
    ("value", Attribute::Value),
    ("type", Attribute::Type),
    ("key", Attribute::Key),
    ("snapshot", Attribute::Snapshot),
    ("snapshotInfo", Attribute::Info(Info::All)),
    ("path", Attribute::Info(Info::Path)),
    ("creationDate", Attribute::Info(Info::CreationDate)),
    ("identifierSize", Attribute::Info(Info::IdentifierSize)),
    ("jvmInfo", Attribute::Info(Info::Jvm)),
    ("numberOfClasses", Attribute::Info(Info::NumberOfClasses)),
    ("numberOfClassLoaders", Attribute::Info(Info::NumberOfClassLoaders)),
    ("numberOfGCRoots", Attribute::Info(Info::NumberOfRoots)),
    ("classes", Attribute::Info(Info::Classes)),
];

/// Method of a value, with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    ToText,
    Get,
    Slice,
    Contains,
    StartsWith,
    EndsWith,
    IndexOf,
    Equals,
    EqualsIgnoreCase,
    LowerCase,
    UpperCase,
    Trim,
    Substring,
    CharAt,
    IsEmpty,
    LastIndexOf,
    Concat,
    Replace,
    CompareTo,
    SubList,
    Field,
    Number,
    Fraction,
    /// Methods of `${snapshot}` for an object, such as `getObject(id)`.
    ObjectOf,
    ClassOf,
    ShallowOf,
    RetainedOf,
    AddressOf,
    InboundsOf,
    OutboundsOf,
    DominatedOf,
    DominatorOf,
    RootsOf,
    IsArray,
    IsClass,
    IsRoot,
    IdOf,
    Chain,
}

/// Name, method, minimum and maximum number of arguments.
const METHODS: &[(&str, Method, usize, usize)] = &[
    ("toString", Method::ToText, 0, 0),
    ("get", Method::Get, 1, 1),
    ("getValueAt", Method::Get, 1, 1),
    ("getReferenceArray", Method::Slice, 2, 2),
    ("getValueArray", Method::Slice, 2, 2),
    ("contains", Method::Contains, 1, 1),
    ("startsWith", Method::StartsWith, 1, 1),
    ("endsWith", Method::EndsWith, 1, 1),
    ("indexOf", Method::IndexOf, 1, 1),
    ("equals", Method::Equals, 1, 1),
    ("equalsIgnoreCase", Method::EqualsIgnoreCase, 1, 1),
    ("toLowerCase", Method::LowerCase, 0, 0),
    ("toUpperCase", Method::UpperCase, 0, 0),
    ("trim", Method::Trim, 0, 0),
    ("substring", Method::Substring, 1, 2),
    ("charAt", Method::CharAt, 1, 1),
    ("isEmpty", Method::IsEmpty, 0, 0),
    ("lastIndexOf", Method::LastIndexOf, 1, 1),
    ("concat", Method::Concat, 1, 1),
    ("replace", Method::Replace, 2, 2),
    ("compareTo", Method::CompareTo, 1, 1),
    ("subList", Method::SubList, 2, 2),
    ("getField", Method::Field, 1, 1),
    ("intValue", Method::Number, 0, 0),
    ("longValue", Method::Number, 0, 0),
    ("doubleValue", Method::Fraction, 0, 0),
    ("floatValue", Method::Fraction, 0, 0),
    ("chain", Method::Chain, 1, 1),
    ("getObject", Method::ObjectOf, 1, 1),
    ("getClassOf", Method::ClassOf, 1, 1),
    ("getHeapSize", Method::ShallowOf, 1, 1),
    ("getRetainedHeapSize", Method::RetainedOf, 1, 1),
    ("mapIdToAddress", Method::AddressOf, 1, 1),
    ("mapAddressToId", Method::IdOf, 1, 1),
    ("getInboundRefererIds", Method::InboundsOf, 1, 1),
    ("getOutboundReferentIds", Method::OutboundsOf, 1, 1),
    ("getImmediateDominatedIds", Method::DominatedOf, 1, 1),
    ("getImmediateDominatorId", Method::DominatorOf, 1, 1),
    ("getGCRootInfo", Method::RootsOf, 1, 1),
    ("isArray", Method::IsArray, 1, 1),
    ("isClass", Method::IsClass, 1, 1),
    ("isGCRoot", Method::IsRoot, 1, 1),
];

/// Meaning of a function name.
pub(super) enum Meaning {
    Function(Function),
    /// Equivalent to this attribute of its argument.
    Attribute(&'static str),
}

/// Returns the meaning of a function with this name in lower case: MAT's functions, and equivalent ones of jhat.
pub(super) fn function(lower: &str) -> Option<Meaning> {
    Some(Meaning::Function(match lower {
        "tohex" => Function::ToHex,
        "tostring" => Function::ToText,
        "dominators" => Function::Dominators,
        "dominatorof" => Function::DominatorOf,
        "outbounds" | "referees" => Function::Outbounds,
        "inbounds" | "referrers" => Function::Inbounds,
        "classof" => Function::ClassOf,
        "frame" => Function::Frame,
        "locals" => Function::Locals,
        "tohtml" => Function::ToHtml,
        "sizeof" => return Some(Meaning::Attribute("usedHeapSize")),
        "rsizeof" => return Some(Meaning::Attribute("retainedHeapSize")),
        "objectid" => return Some(Meaning::Attribute("objectAddress")),
        "root" => return Some(Meaning::Attribute("GCRootInfo")),
        _ => return None,
    }))
}

/// Creates the error for a function that does not exist, which suggests an alternative.
pub(super) fn no_function(at: usize, name: &str, lower: &str) -> OqlError {
    const NAMES: &str = "toString, toHex, toHtml, dominators, dominatorof, outbounds, inbounds, classof, frame, locals, chain, \
                         coalesce, eval, sizeof, rsizeof, objectid, root, referrers, referees, reachables, refers, \
                         identical, count, sum, min, max, avg, map, filter, sort, top, unique, contains, concat, \
                         length, toArray";
    if lower == "alloctrace" {
        let text = "function allocTrace is not supported: OQL does not read allocation traces";
        return OqlError::function(at, text, "alloctrace");
    }
    OqlError::new(at, format!("unknown function {}; the functions are {NAMES}", cut(name)))
}

/// Creates the error for a function of `heap` that does not exist.
pub(super) fn no_heap_function(at: usize, name: &str) -> OqlError {
    const NAMES: [&str; 9] = [
        "findClass",
        "findObject",
        "classes",
        "objects",
        "roots",
        "finalizables",
        "livepaths",
        "forEachClass",
        "forEachObject",
    ];
    let hint = suggestions::did_you_mean_one_of(name, &NAMES, NAMES.len(), "the functions are");
    OqlError::new(at, format!("unknown function heap.{}(); {hint}", cut(name)))
}

/// Returns the alternative to jhat's `heap` and `function` constructs where they have no meaning.
pub(super) fn no_script(name: &str) -> Option<&'static str> {
    match name {
        "heap" => Some("`heap` needs a function, such as heap.findClass(\"java.lang.String\")"),
        "function" => {
            Some("a function is allowed as an argument, as in map(list, function (it) { return it.name; })")
        }
        _ => None,
    }
}

/// Truncates a name for a message.
pub(super) fn cut(name: &str) -> String {
    match name.char_indices().nth(60) {
        None => name.to_owned(),
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()),
    }
}

/// Returns the attribute with this name.
pub(super) fn attribute(name: &str, at: usize) -> Result<Attribute, OqlError> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = ATTRIBUTES.iter().map(|(name, _)| *name).collect();
        let like: Vec<String> = suggestions::names_like(name, names.iter().copied())
            .iter()
            .map(|name| format!("@{name}"))
            .collect();
        let hint = if like.is_empty() {
            format!("the attributes are @{}", names.join(", @"))
        } else {
            suggestions::did_you_mean(&like)
        };
        OqlError::new(at, format!("unknown attribute @{}; {hint}", cut(name)))
    })
}

/// Returns the attribute with this name, if there is one.
pub(super) fn find(name: &str) -> Option<Attribute> {
    ATTRIBUTES.iter().find(|(known, _)| *known == name).map(|(_, attribute)| *attribute)
}

/// Returns the attribute to which a method without arguments is equivalent: `getObjectId()`, `length()`.
fn getter(name: &str) -> Option<Attribute> {
    if name == "hasSuperClass" {
        return Some(Attribute::HasSuperClass);
    }
    if matches!(name, "length" | "size" | "subclasses" | "superclasses") {
        return find(name);
    }
    if name == "getAllSubclasses" {
        return Some(Attribute::Subclasses);
    }
    let rest = name.strip_prefix("get").or_else(|| name.strip_prefix("is"))?;
    let mut letters = rest.chars();
    let first = letters.next()?.to_lowercase();
    find(rest).or_else(|| find(&first.chain(letters).collect::<String>()))
}

/// Meaning of a call.
pub(super) enum CallTarget {
    Attribute(Attribute),
    Method(Method),
}

/// Returns the method with this name and number of arguments.
pub(super) fn method(name: &str, arguments: usize, at: usize) -> Result<CallTarget, OqlError> {
    if arguments == 0
        && let Some(attribute) = getter(name)
    {
        return Ok(CallTarget::Attribute(attribute));
    }
    let Some((_, method, least, most)) = METHODS.iter().find(|(known, ..)| *known == name) else {
        let names: Vec<&str> = METHODS.iter().map(|(name, ..)| *name).collect();
        let all = "the methods are get...() for each attribute,";
        let hint = suggestions::did_you_mean_one_of(name, &names, names.len(), all);
        return Err(OqlError::new(at, format!("unknown method {}(); {hint}", cut(name))));
    };
    if (*least..=*most).contains(&arguments) {
        return Ok(CallTarget::Method(*method));
    }
    Err(OqlError::new(
        at,
        format!(
            "{name}() takes {} arguments, not {arguments}",
            if least == most { least.to_string() } else { format!("{least} or {most}") }
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn getters_are_attributes() {
        assert_eq!(getter("getObjectId"), Some(Attribute::ObjectId));
        assert_eq!(getter("getGCRootInfo"), Some(Attribute::Roots));
        assert_eq!(getter("isArrayType"), Some(Attribute::IsArray));
        assert_eq!((getter("get"), getter("toString")), (None, None));
        assert!(method("get", 2, 0).is_err() && method("nothing", 0, 0).is_err());
        assert!(attribute("usedHeapsize", 0).is_err_and(|wrong| wrong.text.contains("@usedHeapSize")));
    }
}
