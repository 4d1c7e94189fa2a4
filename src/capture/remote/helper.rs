//! Files of the helper: which one fits.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::facts::{Facts, loader};
use crate::elf;
use crate::remote_error::RemoteError;

/// Maximum length of a helper.
const MAX: u64 = 64 << 20;

/// A helper's file.
pub(super) struct Helper {
    path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// Whether it needs no C library there.
    is_static: bool,
}

/// How a helper is started there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// As a program.
    Itself,
    /// By the loader of the C library, to which it is only a file: where no `chmod` is, nothing becomes a program.
    Loader(&'static str),
}

impl Helper {
    fn read(path: &Path) -> Result<Self, RemoteError> {
        let fail = |source| RemoteError::Helper { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(MAX).read_to_end(&mut bytes)).map_err(fail)?;
        let is_static = elf::is_static(&bytes).ok_or_else(|| fail(io::Error::other("not a program")))?;
        Ok(Self { path: path.to_owned(), bytes, is_static })
    }

    /// Chooses one of these files, and how it is started there.
    pub(super) fn choose(files: &[PathBuf], facts: &Facts) -> Result<(Self, Start), RemoteError> {
        let helpers = files.iter().map(|path| Self::read(path)).collect::<Result<Vec<_>, _>>()?;
        if helpers.is_empty() {
            return Err(RemoteError::NoHelper);
        }
        let own = std::env::consts::ARCH;
        if !facts.machine.is_empty() && facts.machine != own {
            let why = format!("it is for {own}, and the machine there is {}", facts.machine);
            return Err(RemoteError::Unsuitable { why });
        }
        let loader = loader().filter(|loader| facts.loaders.iter().any(|there| there == loader));
        let has_loader = loader.is_some();
        let start = match loader {
            _ if facts.has_chmod => Start::Itself,
            Some(loader) => Start::Loader(loader),
            None => {
                let why = "there is neither chmod, to make it a program, nor the loader of the GNU C library";
                return Err(RemoteError::Unsuitable { why: why.to_owned() });
            }
        };
        let fits = |helper: &Self| match start {
            // A static one runs everywhere.
            Start::Itself => helper.is_static || has_loader,
            // The loader starts only what is linked for it.
            Start::Loader(_) => !helper.is_static,
        };
        let paths: Vec<String> = helpers.iter().map(|helper| helper.path.display().to_string()).collect();
        let fitting = helpers.into_iter().filter(|helper| fits(helper));
        // The static one, if both fit: the C library there may be too old for the other.
        let found = fitting.max_by_key(|helper| helper.is_static);
        let found = found.ok_or_else(|| RemoteError::Unsuitable {
            why: match start {
                Start::Itself => format!("{} needs the GNU C library, which is not there", paths.join(", ")),
                Start::Loader(_) => format!(
                    "there is no chmod, so that only a helper that is linked dynamically can be started, and {} is static",
                    paths.join(", ")
                ),
            },
        })?;
        Ok((found, start))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn program(is_static: bool) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = if is_static { 1 } else { 3 };
        bytes
    }

    #[test]
    fn the_helper_is_one_that_runs_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            std::fs::write(dir.path().join(name), bytes).unwrap();
            dir.path().join(name)
        };
        let (fixed, dynamic) = (file("static", &program(true)), file("dynamic", &program(false)));
        let both = [dynamic.clone(), fixed.clone()];
        let loader = loader().unwrap();
        let facts = |has_chmod: bool, has_loader: bool| Facts {
            has_chmod,
            loaders: has_loader.then(|| loader.to_owned()).into_iter().collect(),
            ..Facts::default()
        };
        let choose = |files: &[PathBuf], facts: &Facts| {
            Helper::choose(files, facts)
                .map(|(helper, start)| (helper.path, start))
                .map_err(|error| error.to_string())
        };
        assert_eq!(choose(&both, &facts(true, true)), Ok((fixed.clone(), Start::Itself)));
        assert_eq!(choose(&both, &facts(true, false)), Ok((fixed.clone(), Start::Itself)));
        assert_eq!(choose(&both[..1], &facts(true, true)), Ok((dynamic.clone(), Start::Itself)));
        assert_eq!(choose(&both, &facts(false, true)), Ok((dynamic, Start::Loader(loader))));
        for (files, facts, why) in [
            (&both[..1], facts(true, false), "needs the GNU C library"),
            (&both[1..], facts(false, true), "there is no chmod"),
            (&both[..], facts(false, false), "there is neither chmod"),
            (
                &both[..],
                Facts { machine: "riscv64".to_owned(), ..facts(true, true) },
                "the machine there is riscv64",
            ),
            (&[][..], facts(true, true), "there is no helper"),
            (&[file("text", b"#!/bin/sh")][..], facts(true, true), "cannot use the helper"),
        ] {
            let error = choose(files, &facts).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
