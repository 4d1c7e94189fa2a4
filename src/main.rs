//! The program `hprof-cli`: see [`hprof_cli::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    hprof_cli::cli::run(std::env::args_os())
}
