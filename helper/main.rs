//! Program that `hprof-cli --via COMMAND` starts on another machine: over stdin and stdout, it lists the JVMs there and sends
//! heap dumps of them. It belongs to the `hprof-cli` of the same version, which sends it there; nobody starts it by hand.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io;
    use std::path::PathBuf;
    use std::process::ExitCode;

    use hprof_capture::place::{self, Doors};
    use hprof_capture::remote::{self, CHECK, OWN_FILE, PatientWriter, REMOVE, SERVE};

    /// Time for which the connection may stall, in seconds: a JVM that writes to a FIFO stands still meanwhile.
    const PATIENCE: i64 = 30;

    /// Runs the helper with the arguments after its name.
    ///
    /// # Errors
    ///
    /// If stdin and stdout fail.
    pub(super) fn run(arguments: &[OsString]) -> io::Result<ExitCode> {
        let words: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        match words[..] {
            [word] if word == place::WORD => place::run().map(|()| ExitCode::SUCCESS),
            [word] if word == CHECK => Ok(ExitCode::SUCCESS),
            [word, file] if word == REMOVE => std::fs::remove_file(file).map(|()| ExitCode::SUCCESS),
            [word, token] if word == SERVE => serve(token, "/proc/self/exe".into(), Vec::new()),
            [word, token, loader] if word == SERVE => serve(token, loader.into(), vec![OWN_FILE.into()]),
            _ => Ok(ExitCode::from(2)),
        }
    }

    /// Answers requests. `program` and `arguments` start this program itself, even after its file is removed.
    fn serve(token: &OsStr, program: PathBuf, arguments: Vec<OsString>) -> io::Result<ExitCode> {
        let input = File::from(rustix::io::dup(rustix::stdio::stdin())?);
        // Not through the standard library, which searches for line ends.
        let output = File::from(rustix::io::dup(rustix::stdio::stdout())?);
        let output = PatientWriter::new(output, PATIENCE)?;
        let start = |on_notice| Doors::new(program, arguments, on_notice);
        let end = |doors: &Doors| {
            doors.end();
            std::process::exit(0);
        };
        remote::serve(input, output, &token.to_string_lossy(), start, end)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // Nobody reads more than the exit code: the client notices that the connection has ended.
    linux::run(&arguments).unwrap_or(ExitCode::FAILURE)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
