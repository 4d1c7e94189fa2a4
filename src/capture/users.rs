//! Names of users on this system.

use std::fs;

/// Returns the name of a user, if `/etc/passwd` contains it.
///
/// Other sources of names require the C library. Callers show the number if there is no name.
pub(crate) fn name(user: u32) -> Option<String> {
    in_passwd(&fs::read_to_string("/etc/passwd").ok()?, user)
}

fn in_passwd(text: &str, user: u32) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names() {
        let text = "root:x:0:0:root:/root:/bin/sh\n# comment\napp:x:1000:100::/:\n:x:7:7::/:\n";
        assert_eq!(in_passwd(text, 1000).as_deref(), Some("app"));
        assert_eq!((in_passwd(text, 7), in_passwd(text, 100)), (None, None));
    }
}
