//! Files that are installed or built with this program.

use std::path::{Path, PathBuf};

/// Returns the existing files with these names: the file named by the environment variable, or else those in the directory of
/// this program, in the directories where packages install them, and where cargo builds them, nearest first.
///
/// # Errors
///
/// If the variable does not name a file, or the path of this program cannot be determined.
pub(crate) fn files(variable: &str, names: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    if let Some(path) = env_path(variable) {
        anyhow::ensure!(
            path.is_file(),
            "${variable} is set to {}, which is not an existing file",
            path.display()
        );
        // A JVM would search its own directory.
        return Ok(vec![std::path::absolute(path)?]);
    }
    let program = program()?;
    let places = places(program.parent().unwrap_or(Path::new(".")));
    let found = places.iter().flat_map(|place| names.iter().map(|name| place.join(name)));
    Ok(found.filter(|path| path.is_file()).filter_map(|path| std::fs::canonicalize(path).ok()).collect())
}

/// Returns the path of this program.
pub(crate) fn program() -> std::io::Result<PathBuf> {
    std::env::current_exe().and_then(std::fs::canonicalize)
}

/// Returns the path in an environment variable.
pub(crate) fn env_path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the directories to search for a program in `dir`, nearest first.
fn places(dir: &Path) -> Vec<PathBuf> {
    let mut places = vec![dir.to_owned(), dir.join("../lib"), dir.join("../lib/hprof-cli"), dir.join("deps")];
    if dir.file_name().is_some_and(|name| name == "debug") {
        places.push(dir.join("../release"));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_install_files_where_they_are_found() {
        let (program, library) = (Path::new("/usr/bin"), Path::new("/usr/bin/../lib/hprof-cli"));
        assert!(places(program).iter().any(|place| place == library));
    }
}
