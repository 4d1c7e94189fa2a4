//! The names of attributes and methods.

use super::error::Wrong;

/// What objects have besides fields.
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
}

/// As they are written behind `@`; as a method with `get` or `is` before it.
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
    ("GCRoots", Attribute::Roots),
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
];

/// What is done with a value and arguments.
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
}

/// Name, method, least and most arguments.
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
];

/// The attribute of this name.
pub(super) fn attribute(name: &str, at: usize) -> Result<Attribute, Wrong> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = ATTRIBUTES.iter().map(|(name, _)| *name).collect();
        let near = super::super::near::names_like(name, names.iter().copied());
        let offered = if near.is_empty() { names } else { near };
        Wrong::new(at, format!("there is no attribute @{name}; there are @{}", offered.join(", @")))
    })
}

fn find(name: &str) -> Option<Attribute> {
    ATTRIBUTES.iter().find(|(known, _)| *known == name).map(|(_, attribute)| *attribute)
}

/// The attribute that a method without arguments stands for: `getObjectId()`, `length()`.
fn getter(name: &str) -> Option<Attribute> {
    if name == "hasSuperClass" {
        return Some(Attribute::HasSuperClass);
    }
    if matches!(name, "length" | "size") {
        return find(name);
    }
    let rest = name.strip_prefix("get").or_else(|| name.strip_prefix("is"))?;
    let mut letters = rest.chars();
    let first = letters.next()?.to_lowercase();
    find(rest).or_else(|| find(&first.chain(letters).collect::<String>()))
}

/// What a call means.
pub(super) enum Called {
    Attribute(Attribute),
    Method(Method),
}

/// The method of this name with this number of arguments.
pub(super) fn method(name: &str, arguments: usize, at: usize) -> Result<Called, Wrong> {
    if arguments == 0
        && let Some(attribute) = getter(name)
    {
        return Ok(Called::Attribute(attribute));
    }
    let Some((_, method, least, most)) = METHODS.iter().find(|(known, ..)| *known == name) else {
        let names: Vec<&str> = METHODS.iter().map(|(name, ..)| *name).collect();
        let text = format!(
            "there is no method {name}(); there are {}, and get...() of attributes",
            names.join(", ")
        );
        return Err(Wrong::new(at, text));
    };
    if (*least..=*most).contains(&arguments) {
        return Ok(Called::Method(*method));
    }
    Err(Wrong::new(
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
