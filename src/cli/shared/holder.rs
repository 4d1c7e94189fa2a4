//! Descriptions of big objects: `HashMap byNumber of orders.OrderIndex: 55,417 x orders.Order`.

use hprof_query::leaks::holders::{Holder, HolderContents, HolderField, InOnePlace};
use hprof_report::number::group_digits;
use hprof_report::{escape, fit};
use hprof_values::names;

/// Describes a big object: `HashMap byNumber of orders.OrderIndex: 55,417 x orders.Order`; without the packages of the holder
/// or of its contents if requested.
pub(crate) fn text(holder: &Holder, [is_short_holder, is_short_held]: [bool; 2]) -> String {
    let class = holder.class.as_deref().unwrap_or("<unknown class>");
    let many = match holder.instances {
        0 | 1 => String::new(),
        several => format!("{} x ", group_digits(several)),
    };
    if let Some(place) = &holder.threads {
        let many = group_digits(holder.instances);
        return format!("{many} {}{}", threads(place, is_short_holder), content_text(holder, is_short_held));
    }
    if holder.is_class {
        return format!("{many}{}", simple(class, is_short_held));
    }
    let label = holder.label.as_deref().unwrap_or_default();
    let mut text = match class {
        "java.lang.Class" => return format!("class {label}{}", content_text(holder, is_short_held)),
        "java.lang.Thread" => {
            return format!("Thread {}{}", escape::quoted(label), content_text(holder, is_short_held));
        }
        _ if holder.is_collection || label.is_empty() || holder.instances > 1 => {
            format!("{many}{}", simple(class, is_short_holder))
        }
        _ => format!("{} {}", simple(class, is_short_holder), escape::quoted(label)),
    };
    if let Some(HolderField { name, is_static, class, .. }) = &holder.field {
        let class = simple(class, is_short_holder);
        text.push_str(&if *is_static { format!(" {class}.{name}") } else { format!(" {name} of {class}") });
    }
    text + &content_text(holder, is_short_held)
}

/// Describes threads that are mostly in the same method: `virtual threads "worker-*" in vt.Server.handle`.
pub(crate) fn threads(place: &InOnePlace, is_short: bool) -> String {
    let kind = if place.is_virtual { "virtual threads" } else { "threads" };
    let name = place.name.as_ref().map(|name| format!(" {}", escape::quoted(name))).unwrap_or_default();
    let mostly = if place.is_mostly { " mostly" } else { "" };
    let method = place.method.as_deref().map(|method| match method.rsplit_once('.') {
        Some((class, method)) => format!("{mostly} in {}.{method}", simple(class, is_short)),
        None => format!("{mostly} in {method}"),
    });
    let unstarted = if place.is_unstarted { " that were never started" } else { "" };
    format!("{kind}{name}{}{unstarted}", method.unwrap_or_default())
}

/// Describes what a big object contains.
fn content_text(holder: &Holder, is_short: bool) -> String {
    let Some(HolderContents { objects, class, is_mostly, is_soft, .. }) = &holder.held else {
        return String::new();
    };
    let soft = if *is_soft { " (soft)" } else { "" };
    let (count, class) = (group_digits(*objects), format!("{}{soft}", simple(class, is_short)));
    if holder.threads.is_some() {
        return format!(": {count} x {class}");
    }
    match (holder.is_collection, is_mostly, objects) {
        (true, false, _) => format!(": {count} x {class}"),
        (true, true, _) => format!(": {count} elements, mostly {class}"),
        (false, _, 1) => format!(", mostly {class}"),
        (false, ..) => format!(", mostly {count} x {class}"),
    }
}

/// Shortens a text to `room` columns, with `...`: the overview is ASCII if the names in it are, to look the same in a mail.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if fit::width(text) <= room {
        return text.to_owned();
    }
    let text = text.replace('…', "...");
    // Each name that is shortened has a `…`, which becomes two columns wider.
    let shortened = |by: usize| fit::names(&text, room.saturating_sub(by)).replace('…', "...");
    let fits = |text: &String| fit::width(text) <= room;
    let end = || fit::end(&text, room.saturating_sub(2)).replace('…', "...").chars().take(room).collect();
    (2..=8).step_by(2).map(shortened).find(fits).unwrap_or_else(end)
}

/// Returns a class name without its package if it is a well-known JDK class or `is_short` is set.
pub(crate) fn simple(class: &str, is_short: bool) -> &str {
    let is_known = ["java.", "jdk.", "sun."].iter().any(|start| class.starts_with(start));
    if is_known || is_short { names::simple(class) } else { class }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_fits() {
        let three = "40 loaders (container.WebappLoader), each with a container.Plugin, held by container.EventBus.listeners";
        for text in
            [three, "a.b.C: 5 x d.e.F", "org.example.of.a.very.long.name.of.a.Class$Nested", "… of …", ""]
        {
            for room in 0..120 {
                let cut = cut(text, room);
                // Names in the dump may contain anything.
                assert!(fit::width(&cut) <= room && (cut.is_ascii() || cut == text), "{room}: {cut}");
            }
        }
    }
}
