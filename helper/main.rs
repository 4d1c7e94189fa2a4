//! Program that `hprof-cli --via COMMAND` starts on another machine. Over stdin and stdout, it lists the JVMs of the machine
//! and sends heap dumps of them. It belongs to the `hprof-cli` of the same version, which sends it to the machine; users do not
//! start it.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io;
    use std::path::PathBuf;
    use std::process::ExitCode;

    use hprof_capture::remote::{self, CHECK, OWN_FILE, PatientWriter, REMOVE, SERVE};
    use hprof_capture::user_files::{self, UserFilesOpener};

    /// Maximum time in seconds for which the connection may stall, because the threads of a JVM that writes to a FIFO are
    /// suspended meanwhile.
    const PATIENCE: i64 = 30;

    /// Runs the helper with the arguments that follow its name.
    ///
    /// # Errors
    ///
    /// If reading from stdin or writing to stdout fails.
    pub(super) fn run(arguments: &[OsString]) -> io::Result<ExitCode> {
        let words: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        match words[..] {
            [word] if word == user_files::WORD => user_files::run().map(|()| ExitCode::SUCCESS),
            [word] if word == CHECK => Ok(ExitCode::SUCCESS),
            [word, file] if word == REMOVE => std::fs::remove_file(file).map(|()| ExitCode::SUCCESS),
            [word, token] if word == SERVE => serve(token, "/proc/self/exe".into(), Vec::new()),
            [word, token, loader] if word == SERVE => serve(token, loader.into(), vec![OWN_FILE.into()]),
            _ => Ok(ExitCode::from(2)),
        }
    }

    /// Serves requests. `program` and `arguments` start this program itself, even after its file was removed.
    fn serve(token: &OsStr, program: PathBuf, arguments: Vec<OsString>) -> io::Result<ExitCode> {
        let input = File::from(rustix::io::dup(rustix::stdio::stdin())?);
        // The standard library's stdout is not used because it searches for line ends.
        let output = File::from(rustix::io::dup(rustix::stdio::stdout())?);
        let output = PatientWriter::new(output, PATIENCE)?;
        let start = |on_notice| UserFilesOpener::new(program, arguments, on_notice);
        let end = |opener: &UserFilesOpener| {
            opener.end();
            std::process::exit(0);
        };
        remote::serve(input, output, &token.to_string_lossy(), start, end)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // Nobody reads more than the exit code, because the client notices that the connection has ended.
    linux::run(&arguments).unwrap_or(ExitCode::FAILURE)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
