//! JDKs of this machine for tests, and directories of class files.

use hprof_agent::rewrite::{ClassFileMethod, RewriteError, RewrittenClass, Tracker, rewrite};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// JDK to test with.
pub(crate) struct Jdk {
    pub(crate) home: PathBuf,
    /// Feature release, such as 17 or 25.
    pub(crate) version: u32,
}

/// Returns the JDKs to test with. If there are none, says so on stderr.
pub(crate) fn jdks(test: &str) -> Vec<Jdk> {
    let homes: Vec<PathBuf> = match env::var_os("HPROF_AGENT_JDKS") {
        Some(homes) => env::split_paths(&homes).collect(),
        None => on_path().into_iter().collect(),
    };
    let jdks: Vec<Jdk> = homes.into_iter().filter_map(Jdk::at).collect();
    if jdks.is_empty() {
        eprintln!("NOT RUN: {test}: no javac of JDK 17 or later");
    }
    jdks
}

fn on_path() -> Option<PathBuf> {
    let javac = env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join("javac")).find(|f| f.exists())?;
    Some(fs::canonicalize(javac).ok()?.parent()?.parent()?.to_owned())
}

impl Jdk {
    fn at(home: PathBuf) -> Option<Jdk> {
        let output = Command::new(home.join("bin/javac")).arg("-version").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let version = text.trim().strip_prefix("javac ")?.split(['.', '-']).next()?.parse().ok()?;
        (version >= 17).then_some(Jdk { home, version })
    }

    /// Runs a program of the JDK, which must succeed, and returns its stdout.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(self.home.join("bin").join(program))
            .args(arguments)
            .env_remove("JAVA_TOOL_OPTIONS")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {}\n{stdout}\n{stderr}", output.status);
        stdout
    }
}

/// Temporary directory that is removed on drop.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> TempDir {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub(crate) fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.join(path).to_str().unwrap().to_owned()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the paths of all class files below a directory.
pub(crate) fn class_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "class") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Rewrites the class `file`, and writes the result, or the unchanged class, to `target`.
pub(crate) fn rewrite_file(
    file: &Path,
    target: &Path,
    tracker: &Tracker<'_>,
    number: &mut dyn FnMut(&ClassFileMethod<'_>) -> Option<u32>,
) -> Result<RewrittenClass, RewriteError> {
    let class = fs::read(file).unwrap();
    let rewritten = rewrite(&class, tracker, number)?;
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::write(target, rewritten.bytes.as_ref().unwrap_or(&class)).unwrap();
    Ok(rewritten)
}
