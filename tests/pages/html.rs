//! The tags of a page.

#[derive(Debug, Clone)]
pub struct Tag {
    /// In lower case; of an end tag with a slash before it.
    pub name: String,
    attributes: Vec<(String, String)>,
    /// The text between it and the next tag.
    pub text: String,
}

impl Tag {
    /// The value of an attribute; empty if it has none.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|(name, _)| name.as_str())
    }
}

/// All tags, in their order. Comments and declarations are none.
pub fn tags(page: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        let end = end(tag);
        let after = tag.get(end + 1..).unwrap_or_default();
        let (inside, text) = (&tag[..end], after.split('<').next().unwrap());
        if inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') {
            tags.push(read(inside, text));
        }
        rest = after;
    }
    tags
}

/// Returns the end of a tag: the first `>` outside quotes.
fn end(tag: &str) -> usize {
    let mut quote = None;
    for (at, c) in tag.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            ('>', None) => return at,
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    panic!("a tag without end: {tag}");
}

fn read(inside: &str, text: &str) -> Tag {
    let (name, mut rest) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Tag { name: name.to_ascii_lowercase(), attributes, text: unescaped(text) };
        }
        let name_end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let name = rest[..name_end].to_ascii_lowercase();
        rest = &rest[name_end..];
        let value = match rest.strip_prefix('=') {
            None => "",
            Some(value) => {
                let value = value.strip_prefix('"').expect("a value without quotes");
                let (value, after) = value.split_once('"').unwrap();
                rest = after;
                value
            }
        };
        attributes.push((name, unescaped(value)));
    }
}

fn unescaped(text: &str) -> String {
    // Of most there is nothing to do, and there are many.
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// The addresses of forms that are sent as they are, as a browser without scripts does it. Those that need some text
/// cannot be.
pub fn forms(tags: &[Tag]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = tags;
    while let Some(start) = rest.iter().position(|tag| tag.name == "form") {
        let length = rest[start..].iter().position(|tag| tag.name == "/form").expect("a form without end");
        let form = &rest[start..start + length];
        rest = &rest[start + length..];
        let is_get = form[0].attribute("method").is_none_or(|method| method == "get");
        if let Some(query) = query(form).filter(|_| is_get) {
            found.push(format!("{}?{query}", form[0].attribute("action").expect("a form without action")));
        }
    }
    found
}

/// Returns the query of a form; `None` if a value is required.
fn query(form: &[Tag]) -> Option<String> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (at, control) in form.iter().enumerate() {
        let Some(name) = control.attribute("name") else { continue };
        let value = match control.name.as_str() {
            "textarea" => control.text.as_str(),
            "select" => {
                let options = form[at..].iter().take_while(|tag| tag.name != "/select");
                let options: Vec<&Tag> = options.filter(|tag| tag.name == "option").collect();
                let chosen = options.iter().find(|option| option.attribute("selected").is_some());
                let chosen = chosen.or(options.first()).expect("a select without options");
                chosen.attribute("value").unwrap_or(&chosen.text)
            }
            _ if control.attribute("type") == Some("checkbox") && control.attribute("checked").is_none() => {
                continue;
            }
            _ => control.attribute("value").unwrap_or_default(),
        };
        if value.is_empty() && control.attribute("required").is_some() {
            return None;
        }
        query.append_pair(name, value);
    }
    Some(query.finish())
}
