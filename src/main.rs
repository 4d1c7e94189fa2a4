//! The program `hprof-cli`: see [`hprof_cli::run`].

use std::process::ExitCode;

fn main() -> ExitCode {
    hprof_cli::run(std::env::args_os())
}
