//! Machines on which JVMs run: this one, or another one (such as a container) with a helper.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attach::{self, Jvm};
use crate::compress::Compression;
use crate::error::Error;
use crate::heap_dump::{self, DumpOutcome, DumpProgress, DumpTarget};
use crate::identity::Identity;
use crate::jvms::{self, JvmList, JvmRow};
use crate::memory_files::MemoryFiles;
use crate::native_image;
use crate::plan::{Plan, Request};
use crate::processes::{MappedFiles, Process};
use crate::user_files::{ForeignDir, UserDir, UserFiles, UserFilesOpener, UserOutputDir};

/// Machine on which JVMs run.
pub trait Machine {
    /// Lists the JVMs of the machine.
    ///
    /// # Errors
    ///
    /// If the machine cannot be reached.
    fn jvms(&mut self) -> Result<JvmList, Error>;

    /// Finds a JVM or native image.
    ///
    /// # Errors
    ///
    /// If the process does not exist, cannot be inspected, or is neither a JVM nor a native image.
    fn find(&mut self, pid: u32) -> Result<JvmRow, Error>;

    /// Opens an output directory that others may change, as the user to whom the file will belong. This is the JVM's user, if
    /// the JVM runs on this machine, or `caller`, the user on whose behalf root works, if the directory belongs to `caller`.
    ///
    /// # Errors
    ///
    /// If the directory, or one above it, belongs to another user than these and root, or is not writable.
    fn output_place(
        &mut self,
        pid: u32,
        dir: ForeignDir<'_>,
        caller: Option<Identity>,
    ) -> Result<UserOutputDir, Error>;

    /// Runs a diagnostic command in a JVM, as `jcmd` does. `limit` is the maximum time for its reply. Repeated calls with one
    /// process ID attach to one process: once it has ended, a later process with the same ID is an error.
    ///
    /// # Errors
    ///
    /// If the JVM cannot be reached, does not reply, or replies with an error.
    fn jcmd(&mut self, pid: u32, command: &str, limit: Option<Duration>) -> Result<CommandReply, Error>;

    /// Reads the files about the memory of a process. `ranges` are ranges of addresses whose resident bytes are counted where
    /// they are not whole mappings; `names` are those of the files of control groups. As for [`Machine::jcmd`], repeated calls
    /// are about one process.
    ///
    /// # Errors
    ///
    /// If the process belongs to another user, cannot be inspected, or has ended.
    fn memory_files(
        &mut self,
        pid: u32,
        ranges: &[(u64, u64)],
        names: &[String],
    ) -> Result<MemoryFiles, Error>;

    /// Plans a heap dump of a JVM.
    ///
    /// # Errors
    ///
    /// If it is not a JVM of this machine, or cannot write the dump to the destination.
    fn plan(&mut self, pid: u32, request: Request<'_>) -> Result<Plan, Error>;

    /// Takes the dump for the last plan.
    ///
    /// # Errors
    ///
    /// If the JVM does not write the dump, or it is received incomplete.
    fn take(&mut self, target: DumpTarget<'_>, watch: &dyn DumpProgress) -> Result<DumpOutcome, Error>;

    /// Checks that a native image can write heap dumps.
    ///
    /// # Errors
    ///
    /// If it was built without heap dumps.
    fn check_native(&mut self, pid: u32) -> Result<(), Error>;

    /// Takes the dump of a native image, and removes the file that the native image wrote. `limit` is the maximum time without
    /// any output.
    ///
    /// # Errors
    ///
    /// If the native image does not write a dump, or the dump cannot be copied or removed.
    fn take_native(
        &mut self,
        pid: u32,
        compression: Option<Compression>,
        limit: Option<Duration>,
        out: &mut (dyn Write + Send),
    ) -> Result<DumpOutcome, Error>;
}

/// Diagnostic commands that are sent to JVMs. A helper refuses all others: some load code or write files.
pub const DIAGNOSTIC_COMMANDS: [&str; 9] = [
    "GC.class_histogram",
    "GC.class_histogram -all",
    "GC.heap_info",
    "System.map",
    "System.native_heap_info",
    "System.trim_native_heap",
    "VM.flags -all",
    "VM.info",
    "VM.native_memory summary",
];

/// Reply of a JVM to a diagnostic command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReply {
    /// Output of the command.
    pub text: String,
    /// Time for which the JVM's threads were suspended while the command ran, for whatever reason; `None` if the JVM publishes
    /// no counters.
    pub standstill: Option<Duration>,
}

/// Process that was found, with its file system.
#[derive(Debug)]
struct FoundProcess {
    process: Process,
    mapped: MappedFiles,
    files: Arc<UserFiles>,
    row: JvmRow,
}

/// Machine on which this process runs.
#[derive(Debug)]
pub struct LocalMachine<'d> {
    opener: &'d UserFilesOpener,
    /// Process that was looked up last.
    found: Option<FoundProcess>,
    planned: Option<(Jvm<'d>, Plan, UserDir)>,
    /// JVM to which the last diagnostic command was sent.
    attached: Option<Jvm<'d>>,
}

impl<'d> LocalMachine<'d> {
    /// Creates the local machine. `opener` opens file systems of other users.
    pub fn new(opener: &'d UserFilesOpener) -> Self {
        Self { opener, found: None, planned: None, attached: None }
    }

    /// Returns the process that was looked up last if it has this ID; otherwise looks the process up.
    fn found_process(&mut self, pid: u32) -> Result<FoundProcess, Error> {
        match self.found.take().filter(|found| found.process.pid() == pid) {
            Some(found) => Ok(found),
            None => self.process(pid),
        }
    }

    /// Returns the JVM with this ID to send commands to it.
    fn attach(&mut self, pid: u32) -> Result<&mut Jvm<'d>, Error> {
        match self.attached.take().filter(|jvm| jvm.process().pid() == pid) {
            // Kept even if it has ended: a later process with its ID is another one.
            Some(jvm) => {
                let jvm = self.attached.insert(jvm);
                jvm.check_running()?;
                Ok(jvm)
            }
            None => {
                let FoundProcess { process, mapped, files, .. } = self.found_process(pid)?;
                attach::check_vm(&process, &mapped)?;
                let jvm = Jvm::from_process(process, mapped, files, self.opener)?;
                Ok(self.attached.insert(jvm))
            }
        }
    }

    fn process(&self, pid: u32) -> Result<FoundProcess, Error> {
        let process = Process::find(pid)?;
        attach::check_user(&process)?;
        let mapped = process.mapped_files()?;
        let name = process.status().name.clone();
        let not_jvm = Error::NotJvm { pid, name };
        if process.vm(&mapped).is_none() {
            return Err(not_jvm);
        }
        let files = Arc::new(self.opener.of_process(&process)?);
        let row = jvms::row(&process, &mapped, Some(&files)).ok_or(not_jvm)?;
        Ok(FoundProcess { process, mapped, files, row })
    }
}

impl Machine for LocalMachine<'_> {
    fn jvms(&mut self) -> Result<JvmList, Error> {
        Ok(jvms::list(self.opener))
    }

    fn find(&mut self, pid: u32) -> Result<JvmRow, Error> {
        let found = self.process(pid)?;
        let row = found.row.clone();
        self.found = Some(found);
        Ok(row)
    }

    fn output_place(
        &mut self,
        pid: u32,
        dir: ForeignDir<'_>,
        caller: Option<Identity>,
    ) -> Result<UserOutputDir, Error> {
        let found = self.found_process(pid)?;
        let status = found.process.status();
        let place = UserOutputDir::open(self.opener, dir, caller, Some((status.identity, &status.groups)));
        self.found = Some(found);
        place
    }

    fn jcmd(&mut self, pid: u32, command: &str, limit: Option<Duration>) -> Result<CommandReply, Error> {
        let jvm = self.attach(pid)?;
        let stood_still = |jvm: &Jvm<'_>| jvm.counters()?.standstill_nanoseconds();
        let before = stood_still(jvm);
        let text = jvm.jcmd(command, limit)?;
        let after = stood_still(jvm);
        let standstill =
            after.zip(before).and_then(|(after, before)| after.checked_sub(before)).map(Duration::from_nanos);
        Ok(CommandReply { text, standstill })
    }

    fn memory_files(
        &mut self,
        pid: u32,
        ranges: &[(u64, u64)],
        names: &[String],
    ) -> Result<MemoryFiles, Error> {
        if let Some(jvm) = self.attached.as_ref().filter(|jvm| jvm.process().pid() == pid) {
            return MemoryFiles::read(jvm.process(), ranges, names);
        }
        let found = self.found_process(pid)?;
        let files = MemoryFiles::read(&found.process, ranges, names);
        self.found = Some(found);
        files
    }

    fn plan(&mut self, pid: u32, request: Request<'_>) -> Result<Plan, Error> {
        let FoundProcess { process, mapped, files, row } = self.found_process(pid)?;
        attach::check_vm(&process, &mapped)?;
        let mut jvm = Jvm::from_process(process, mapped, files, self.opener)?;
        jvm.set_limit(request.limit);
        let (plan, dir) = Plan::new(&jvm, row, request)?;
        self.planned = Some((jvm, plan.clone(), dir));
        Ok(plan)
    }

    fn take(&mut self, target: DumpTarget<'_>, watch: &dyn DumpProgress) -> Result<DumpOutcome, Error> {
        let (jvm, plan, dir) = self.planned.take().ok_or(Error::Unplanned)?;
        heap_dump::run(&jvm, &plan, dir, target, watch)
    }

    fn check_native(&mut self, pid: u32) -> Result<(), Error> {
        let found = self.found_process(pid)?;
        native_image::check(&found.process)?;
        self.found = Some(found);
        Ok(())
    }

    fn take_native(
        &mut self,
        pid: u32,
        compression: Option<Compression>,
        limit: Option<Duration>,
        out: &mut (dyn Write + Send),
    ) -> Result<DumpOutcome, Error> {
        let found = self.found_process(pid)?;
        let mut dump = native_image::dump(&found.process, &found.files, limit, self.opener.on_notice())?;
        let copied = dump.copy(compression, out);
        // The dump contains secrets, so it is removed even if it could not be copied.
        dump.remove().map_err(|source| Error::Stays { pid, path: dump.full_path(), source })?;
        copied?;
        Ok(DumpOutcome {
            dump_bytes: dump.bytes,
            standstill: dump.time,
            is_measured: false,
            sent_bytes: None,
        })
    }
}
