//! Places in which JVMs run: this machine, or another one in which a helper works.

use std::io::Write;

use crate::attach::Jvm;
use crate::compress::Compression;
use crate::error::Error;
use crate::heap_dump::{self, Dumped, Target, Watch};
use crate::jvms::{self, JvmList, JvmRow};
use crate::native_image;
use crate::plan::{Plan, Request};
use crate::private::Keeper;
use crate::processes::Process;

/// A place in which JVMs run.
pub trait Machine {
    /// Lists the JVMs.
    ///
    /// # Errors
    ///
    /// If the place cannot be reached.
    fn jvms(&mut self) -> Result<JvmList, Error>;

    /// Finds a JVM or native image.
    ///
    /// # Errors
    ///
    /// If the process does not exist, may not be looked into, or is none.
    fn find(&mut self, pid: u32) -> Result<JvmRow, Error>;

    /// Plans the dump of a JVM.
    ///
    /// # Errors
    ///
    /// As [`Jvm::of`] and [`Plan::new`].
    fn plan(&mut self, pid: u32, request: Request<'_>) -> Result<Plan, Error>;

    /// Takes the dump that was planned last.
    ///
    /// # Errors
    ///
    /// As [`heap_dump::run`].
    fn take(&mut self, target: Target<'_>, watch: &dyn Watch) -> Result<Dumped, Error>;

    /// Checks that a native image can be asked for a dump.
    ///
    /// # Errors
    ///
    /// If it was built without heap dumps.
    fn check_native(&mut self, pid: u32) -> Result<(), Error>;

    /// Takes the dump of a native image, and removes the file that it wrote.
    ///
    /// # Errors
    ///
    /// If it writes none, or it cannot be copied or removed.
    fn take_native(
        &mut self,
        pid: u32,
        compression: Option<Compression>,
        out: &mut (dyn Write + Send),
    ) -> Result<Dumped, Error>;
}

/// The machine of this process.
#[derive(Debug)]
pub struct LocalMachine<'k> {
    keeper: &'k dyn Keeper,
    /// Process that was found last.
    found: Option<Process>,
    planned: Option<(Jvm<'k>, Plan)>,
}

impl<'k> LocalMachine<'k> {
    /// Makes one whose files the keeper looks after.
    pub fn new(keeper: &'k dyn Keeper) -> Self {
        Self { keeper, found: None, planned: None }
    }

    /// Returns the process that was found last, if it has this ID.
    fn process(&mut self, pid: u32) -> Result<Process, Error> {
        match self.found.take().filter(|process| process.pid() == pid) {
            Some(process) => Ok(process),
            None => Process::find(pid),
        }
    }
}

impl Machine for LocalMachine<'_> {
    fn jvms(&mut self) -> Result<JvmList, Error> {
        Ok(jvms::list())
    }

    fn find(&mut self, pid: u32) -> Result<JvmRow, Error> {
        let process = Process::find(pid)?;
        let mapped = process.mapped()?;
        let name = process.status().name.clone();
        let row = jvms::row(&process, &mapped).ok_or(Error::NotJvm { pid, name })?;
        self.found = Some(process);
        Ok(row)
    }

    fn plan(&mut self, pid: u32, request: Request<'_>) -> Result<Plan, Error> {
        let jvm = Jvm::of(self.process(pid)?, self.keeper)?;
        let plan = Plan::new(&jvm, request)?;
        self.planned = Some((jvm, plan.clone()));
        Ok(plan)
    }

    fn take(&mut self, target: Target<'_>, watch: &dyn Watch) -> Result<Dumped, Error> {
        let (jvm, plan) = self.planned.take().ok_or(Error::Unplanned)?;
        heap_dump::run(&jvm, &plan, target, watch)
    }

    fn check_native(&mut self, pid: u32) -> Result<(), Error> {
        let process = self.process(pid)?;
        native_image::check(&process)?;
        self.found = Some(process);
        Ok(())
    }

    fn take_native(
        &mut self,
        pid: u32,
        compression: Option<Compression>,
        out: &mut (dyn Write + Send),
    ) -> Result<Dumped, Error> {
        let process = self.process(pid)?;
        let mut dump = native_image::dump(&process, self.keeper)?;
        let copied = dump.copy(compression, out);
        // It is full of secrets, also if it could not be copied.
        dump.remove().map_err(|source| Error::Stays { pid, path: dump.place(), source })?;
        copied?;
        Ok(Dumped { dump_bytes: dump.bytes, standstill: dump.time, is_measured: false, sent_bytes: None })
    }
}
