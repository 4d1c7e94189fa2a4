//! Files with a secret key: created on first use, readable only by their owner.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use hprof_index::storage::open_dir::OpenDir;
use hprof_query::keyed::{KEY_BYTES, Key};

use super::output::file::{OutFile, OverwritePolicy, directory_of};

/// Returns the key in a file. If the file does not exist, it is created with a random key.
pub(crate) fn read_or_create(path: &Path) -> anyhow::Result<Key> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let bytes = random_bytes()?;
    let mut file = OutFile::create_private(path, &[], OverwritePolicy::Keep)?;
    file.write_all(&bytes).with_context(|| format!("cannot write {}", path.display()))?;
    match file.commit() {
        Ok(()) => Ok(Key::new(bytes)),
        // Another process has just created it.
        Err(error) => read(path)?.ok_or(error),
    }
}

/// Returns the key in a file; `None` if the file does not exist.
fn read(path: &Path) -> anyhow::Result<Option<Key>> {
    let failed = || format!("cannot read {}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(failed),
    };
    let mut bytes = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).with_context(failed)?;
    let bytes: Result<[u8; KEY_BYTES], _> = bytes.try_into();
    let bytes = bytes
        .map_err(|_| anyhow::anyhow!("{} is not a key file: a key has {KEY_BYTES} bytes", path.display()))?;
    Ok(Some(Key::new(bytes)))
}

/// Returns a random key that is not stored.
pub(crate) fn random() -> anyhow::Result<Key> {
    Ok(Key::new(random_bytes()?))
}

fn random_bytes() -> anyhow::Result<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("cannot obtain random bytes: {error}"))?;
    Ok(bytes)
}

/// Returns the key for hashes of exported texts: from the given file, or from the user's own key file. The file is created if
/// it does not exist. It must not be in the directory to which data is exported.
pub(crate) fn of_hashes(given: Option<&Path>, exported: &Path) -> anyhow::Result<Key> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => default_path()?,
    };
    let place = fs::canonicalize(directory_of(&path)).unwrap_or_else(|_| directory_of(&path).to_owned());
    let exported = fs::canonicalize(exported).unwrap_or_else(|_| exported.to_owned());
    ensure!(
        !place.starts_with(&exported),
        "the key {} would be in the exported directory, where anyone who reads it could confirm guessed texts; name \
         another file with --hash-key",
        path.display()
    );
    read_or_create(&path)
}

/// Returns the path of the user's key file, in a directory that is readable only by its owner.
fn default_path() -> anyhow::Result<PathBuf> {
    let dir = data_dir(&|name| {
        std::env::var_os(name).filter(|dir| Path::new(dir).is_absolute()).map(PathBuf::from)
    });
    let dir = dir.context(
        "cannot determine the directory of the hash key; name a file with --hash-key, or use --strings none",
    )?;
    let own = dir.join("hprof-cli");
    OpenDir::create_all(&own, 0o700).with_context(|| {
        format!(
            "cannot create {} for the hash key; name a file with --hash-key, or use --strings none",
            own.display()
        )
    })?;
    Ok(own.join("export.key"))
}

/// Returns the user's data directory, according to environment variables.
fn data_dir(variable: &dyn Fn(&'static str) -> Option<PathBuf>) -> Option<PathBuf> {
    if cfg!(windows) {
        return variable("LOCALAPPDATA");
    }
    let home = || variable("HOME");
    if cfg!(target_os = "macos") {
        return home().map(|home| home.join("Library").join("Application Support"));
    }
    variable("XDG_DATA_HOME").or_else(|| home().map(|home| home.join(".local").join("share")))
}
