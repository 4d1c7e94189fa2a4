//! Helper programs for other machines, and the choice among them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::facts::{MachineFacts, loader};
use crate::elf;
use crate::remote_error::RemoteError;

/// Maximum length of a helper program in bytes.
const MAX: u64 = 64 << 20;

/// Path of the helper's file on the other machine while it is started. The shell holds the file open.
const FILE: &str = "/proc/$$/fd/7";

/// Helper program for one architecture.
pub(super) struct Helper {
    path: PathBuf,
    pub(super) bytes: Vec<u8>,
    program: elf::Program,
}

/// Way of starting a helper on the other machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    /// As a program.
    Itself,
    /// As the argument of the C library's dynamic loader, for which the file needs no permission to execute (without `chmod`).
    Loader(&'static str),
}

impl Launch {
    /// Returns the shell words that start the helper.
    pub(super) fn program(self) -> String {
        match self {
            Self::Itself => FILE.to_owned(),
            Self::Loader(loader) => format!("{loader} {FILE}"),
        }
    }

    pub(super) fn loader(self) -> Option<&'static str> {
        match self {
            Self::Itself => None,
            Self::Loader(loader) => Some(loader),
        }
    }
}

impl Helper {
    fn read(path: &Path) -> Result<Self, RemoteError> {
        let fail = |source| RemoteError::Helper { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(MAX).read_to_end(&mut bytes)).map_err(fail)?;
        let program =
            elf::program(&bytes).ok_or_else(|| fail(io::Error::other("it is not a program for Linux")))?;
        Ok(Self { path: path.to_owned(), bytes, program })
    }

    /// Returns the way of starting the helper on a machine.
    ///
    /// # Errors
    ///
    /// The reason why the helper does not run on the machine.
    fn launch(&self, facts: &MachineFacts) -> Result<Launch, String> {
        let machine = self.program.machine;
        if !facts.machine.is_empty() && facts.machine != machine {
            return Err(format!("is for {machine}, but the machine there is {}", facts.machine));
        }
        let loader = loader(machine).filter(|loader| facts.loaders.iter().any(|there| there == loader));
        match (loader, self.program.is_static) {
            (_, true) if facts.has_chmod => Ok(Launch::Itself),
            (Some(_), false) if facts.has_chmod => Ok(Launch::Itself),
            (Some(loader), false) => Ok(Launch::Loader(loader)),
            (None, false) => Err("needs the GNU C library, which is missing there".to_owned()),
            // The dynamic loader starts only programs that are linked dynamically.
            (_, true) => {
                Err("is linked statically and therefore needs chmod, which is missing there".to_owned())
            }
        }
    }

    /// Chooses a helper file for a machine. A static helper is preferred, as the machine's C library may be too old for the
    /// other one.
    pub(super) fn choose(files: &[PathBuf], facts: &MachineFacts) -> Result<(Self, Launch), RemoteError> {
        let (mut best, mut refused) = (None::<(Self, Launch)>, Vec::new());
        for path in files {
            let helper = Self::read(path)?;
            match helper.launch(facts) {
                Ok(_) if best.as_ref().is_some_and(|(best, _)| best.program.is_static) => {}
                Ok(launch) => best = Some((helper, launch)),
                Err(why) => refused.push(format!("{} {why}", helper.path.display())),
            }
        }
        best.ok_or_else(|| match refused.is_empty() {
            true => RemoteError::NoHelper,
            false => RemoteError::Unsuitable { why: refused.join("; ") },
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn program(is_static: bool, machine: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = machine;
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
        let (fixed, dynamic) = (file("static", &program(true, 62)), file("dynamic", &program(false, 62)));
        let arm = file("arm", &program(true, 183));
        let all = [dynamic.clone(), fixed.clone(), arm.clone()];
        let loader = loader("x86_64").unwrap();
        let facts = |has_chmod: bool, has_loader: bool, machine: &str| MachineFacts {
            has_chmod,
            loaders: has_loader.then(|| loader.to_owned()).into_iter().collect(),
            machine: machine.to_owned(),
            ..MachineFacts::default()
        };
        let choose = |files: &[PathBuf], facts: &MachineFacts| {
            Helper::choose(files, facts)
                .map(|(helper, launch)| (helper.path, launch))
                .map_err(|error| error.to_string())
        };
        let here = "x86_64";
        assert_eq!(choose(&all, &facts(true, true, here)), Ok((fixed.clone(), Launch::Itself)));
        assert_eq!(choose(&all, &facts(true, false, here)), Ok((fixed, Launch::Itself)));
        assert_eq!(choose(&all[..1], &facts(true, true, "")), Ok((dynamic.clone(), Launch::Itself)));
        assert_eq!(choose(&all, &facts(false, true, here)), Ok((dynamic, Launch::Loader(loader))));
        assert_eq!(choose(&all, &facts(true, false, "aarch64")), Ok((arm, Launch::Itself)));
        for (files, facts, why) in [
            (&all[..1], facts(true, false, here), "needs the GNU C library"),
            (&all[1..], facts(false, true, here), "needs chmod"),
            (&all[..], facts(true, true, "riscv64"), "the machine there is riscv64"),
            (&[][..], facts(true, true, here), "no helper program"),
            (&[file("text", b"#!/bin/sh")][..], facts(true, true, here), "cannot use the helper"),
        ] {
            let error = choose(files, &facts).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
