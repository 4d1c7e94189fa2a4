//! Facts about another machine from a shell on it: directories for a helper, and ways to start the helper.

use crate::mounts::unescape_mount;

/// Maximum number of directories that are evaluated.
const DIRECTORIES: usize = 8;

/// Returns the shell command that prints the facts. Only `sh` and `cat` have to exist.
pub(super) fn question(token: &str) -> String {
    // No external program but `cat` and, if it exists, `uname`.
    format!(
        "for d in \"$TMPDIR\" /tmp /var/tmp /dev/shm /run \"$HOME\"; do if [ -n \"$d\" ] && [ -d \"$d\" ]; then \
         w=read; [ -w \"$d\" ] && w=write; echo \"{token}-dir $w $d\"; fi; done; \
         command -v chmod >/dev/null 2>&1 && echo {token}-chmod; [ -t 0 ] && echo {token}-terminal; \
         echo \"{token}-machine $(uname -m 2>/dev/null)\"; \
         for l in {}; do [ -r $l ] && echo \"{token}-loader $l\"; done; \
         echo {token}-mounts; cat /proc/self/mounts 2>/dev/null",
        LOADERS.map(|(_, path)| path).join(" ")
    )
}

/// Dynamic loaders of the GNU C library: the architecture, as `uname -m` prints it, and the path.
const LOADERS: [(&str, &str); 2] =
    [("x86_64", "/lib64/ld-linux-x86-64.so.2"), ("aarch64", "/lib/ld-linux-aarch64.so.1")];

/// Returns the path of the dynamic loader for programs of an architecture.
pub(super) fn loader(machine: &str) -> Option<&'static str> {
    LOADERS.iter().find(|(of, _)| *of == machine).map(|(_, path)| *path)
}

/// Facts about another machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MachineFacts {
    /// Directories in which a helper can be created and started.
    pub(super) directories: Vec<String>,
    /// Other directories, each with the reason for its rejection.
    pub(super) refused: Vec<String>,
    /// `true` if the shell's stdin is a terminal, which changes bytes.
    pub(super) is_terminal: bool,
    /// `true` if the program `chmod` exists.
    pub(super) has_chmod: bool,
    /// Architecture, as `uname -m` prints it; empty if it is unknown.
    pub(super) machine: String,
    /// Dynamic loaders of the GNU C library that exist.
    pub(super) loaders: Vec<String>,
}

impl MachineFacts {
    /// Parses the printed lines.
    pub(super) fn parse(lines: &[String], token: &str) -> Self {
        let mut facts = Self::default();
        let mut writable = Vec::new();
        let mut lines = lines.iter();
        for line in lines.by_ref() {
            let Some(said) = line.strip_prefix(token).and_then(|rest| rest.strip_prefix('-')) else {
                continue;
            };
            let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
            match word {
                "chmod" => facts.has_chmod = true,
                "terminal" => facts.is_terminal = true,
                "machine" => facts.machine = rest.to_owned(),
                "loader" => facts.loaders.push(rest.to_owned()),
                "mounts" => break,
                "dir" if writable.len() + facts.refused.len() < DIRECTORIES => {
                    let (access, path) = rest.split_once(' ').unwrap_or_default();
                    // The path will be part of a shell command.
                    let is_plain = path.starts_with('/')
                        && path
                            .chars()
                            .all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
                    if !is_plain || writable.iter().any(|known| known == path) {
                        continue;
                    }
                    match access {
                        "write" => writable.push(path.to_owned()),
                        _ => facts.refused.push(format!("{path} is not writable")),
                    }
                }
                _ => {}
            }
        }
        let mounts: Vec<(String, &str)> = lines
            .filter_map(|line| {
                let mut fields = line.split(' ');
                Some((unescape_mount(fields.nth(1)?), fields.nth(1)?))
            })
            .collect();
        for path in writable {
            match options(&mounts, &path).split(',').find(|option| ["noexec", "ro"].contains(option)) {
                Some("ro") => facts.refused.push(format!("{path} is read-only")),
                Some(_) => facts.refused.push(format!("{path} is mounted with noexec")),
                None => facts.directories.push(path),
            }
        }
        facts
    }

    /// Returns the reasons why no directory can be used.
    pub(super) fn refusal_reasons(&self) -> String {
        if self.refused.is_empty() { "none was found".to_owned() } else { self.refused.join(", ") }
    }
}

/// Returns the options of the mount that contains a path. Of several mounts, the one with the longest path counts, and of equal
/// paths the last one, which hides the others.
fn options<'m>(mounts: &[(String, &'m str)], path: &str) -> &'m str {
    let holds = |point: &str| {
        point == "/" || path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let found = mounts.iter().filter(|(point, _)| holds(point)).max_by_key(|(point, _)| point.len());
    found.map_or("", |(_, options)| options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_those_that_can_be_written_to_and_executed_from() {
        let text = "T-dir write /tmp\nT-dir read /var/tmp\nT-dir write /dev/shm\nT-dir write /r\n\
            T-dir write /a b\nT-dir write /$(x)\nT-dir write /tmp\nT-dir write /data\nX-dir write /x\nT-chmod\nT-terminal\nT-machine x86_64\n\
            T-loader /lib64/ld-linux-x86-64.so.2\nT-mounts\noverlay / overlay ro 0 0\n\
            tmpfs /tmp tmpfs rw,noexec 0 0\ntmpfs /tmp tmpfs rw,nosuid 0 0\nshm /dev/shm tmpfs rw,nosuid,noexec 0 0\n\
            d /data ext4 rw 0 0\nT-dir write /late\n";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let facts = MachineFacts::parse(&lines, "T");
        assert_eq!(facts.directories, ["/tmp", "/data"]);
        assert_eq!(
            facts.refusal_reasons(),
            "/var/tmp is not writable, /dev/shm is mounted with noexec, /r is read-only"
        );
        assert!(
            facts.has_chmod && facts.is_terminal && facts.machine == "x86_64" && facts.loaders.len() == 1
        );
        assert_eq!(MachineFacts::parse(&[], "T").refusal_reasons(), "none was found");
        let many: Vec<String> = (0..1000).map(|at| format!("T-dir write /d{at}")).collect();
        assert_eq!(MachineFacts::parse(&many, "T").directories.len(), DIRECTORIES);
    }
}
