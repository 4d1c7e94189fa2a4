//! The machine that runs the JVMs: this one, or another one that is accessed with the command of `--via`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use hprof_capture::machine::{LocalMachine, Machine};
use hprof_capture::remote::{self, Contact, Note};
use hprof_report::escape;
use hprof_report::json::DumpHeader;

use crate::cli::agent::installed;
use crate::cli::shared::session::AnswerSource;
use crate::cli::shared::user_files::{UserFilesOpener, on_notice};

/// Environment variable with the path of the helper program.
const VARIABLE: &str = "HPROF_CLI_HELPER";

/// Names of the helper's files. In packages the first one is static, and the second one is for machines without `chmod`, on
/// which only the loader of the GNU C library can start it.
const FILES: [&str; 2] = ["hprof-helper", "hprof-helper-glibc"];

/// Options of commands about running JVMs.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct ViaArgs {
    /// Run on the target that COMMAND connects to with stdin and stdout: 'kubectl exec -i POD --',
    /// 'docker exec -i NAME', 'ssh HOST'. A helper is copied there, which needs `sh` and `cat`, and removes itself
    #[arg(long, value_name = "COMMAND")]
    via: Option<String>,

    /// Helper that is already on the target; `sh` and `cat` are then not needed
    #[arg(long, value_name = "PATH", requires = "via")]
    via_program: Option<String>,
}

/// Name of the machine, used as the source file of a result: `/proc`, or the command of `--via`.
pub(crate) struct MachineSource(String);

impl ViaArgs {
    /// Returns the command of `--via`.
    pub(crate) fn command(&self) -> Option<&str> {
        self.via.as_deref()
    }

    /// Connects to the machine that runs the JVMs.
    pub(crate) fn connect<'d>(
        &self,
        opener: &'d UserFilesOpener,
        limit: Option<Duration>,
    ) -> anyhow::Result<(Box<dyn Machine + 'd>, MachineSource)> {
        let Some(command) = &self.via else {
            return Ok((Box::new(LocalMachine::new(opener)), MachineSource("/proc".to_owned())));
        };
        anyhow::ensure!(!command.trim().is_empty(), "the command of --via is empty");
        let note: Note = Arc::new(|line: &str| {
            // Written in one call, as other threads write to stderr, too. A closed stderr must not change the result.
            let _ = io::stderr().write_all(format!("hprof-cli: via: {}\n", escape::text(line)).as_bytes());
        });
        let contact = Contact { note, on_notice: on_notice(), limit };
        let machine = match &self.via_program {
            Some(program) => remote::connect_to(command, program, &contact),
            None => remote::connect(command, &installed::files(VARIABLE, &FILES)?, &contact),
        };
        let machine = Box::new(machine.map_err(hprof_capture::Error::from)?);
        Ok((machine, MachineSource(command.clone())))
    }
}

impl MachineSource {
    /// Returns the name of the machine: `/proc`, or the command of `--via`.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl AnswerSource for MachineSource {
    fn header(&self) -> DumpHeader<'_> {
        DumpHeader { path: self.0.as_str().into(), ..DumpHeader::default() }
    }

    fn is_damaged(&self) -> bool {
        false
    }
}
