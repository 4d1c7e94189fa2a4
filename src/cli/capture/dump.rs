//! `dump`: takes a heap dump of a running JVM.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use hprof_capture::attach::Jvm;
use hprof_capture::heap_dump::{self, Dumped, Target, Watch};
use hprof_capture::jvms::{self, JvmRow};
use hprof_capture::native_image;
use hprof_capture::plan::{Plan, Request, Way};
use hprof_capture::processes::Process;
use hprof_capture::{Compression, Error, VmKind};
use hprof_index::Progress;
use hprof_index::storage::temporary_files::Temporary;
use hprof_query::classes::suggestions;
use hprof_report::Format;
use hprof_report::answer::{Answer, Declared, NoRows, Section};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::plan::{self, DumpResult, DumpRow};
use super::{Machine, seconds};
use crate::cli::Outcome;
use crate::cli::shared::args::Output;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::guard::Guards;
use crate::cli::shared::output::file::directory_of;
use crate::cli::shared::session::AnswerSource;
use crate::cli::shared::terminal::progress_bar::Bar;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli dump 4711
  hprof-cli dump OrderService --output orders.hprof --yes
  hprof-cli dump 4711 --dry-run
  hprof-cli dump 4711 --yes --zstd --output heap.hprof.zst --no-overview
  hprof-cli dump 4711 --yes --all --output - | ssh backup 'cat > heap.hprof'";

/// Take a heap dump of a running JVM, and show its overview
///
/// Attaches to the JVM by HotSpot's own protocol, as `jcmd` does; no JDK is needed, and the JVM may be in a container. It
/// first says what it will do: which objects, how large, where, and for how long the program's threads will stand still.
/// The file is readable only for its owner, from its first byte on, and appears when it is complete. Up to JDK 21,
/// `--output -`, `--gzip`, `--zstd` and dumps of containers need no disk where the JVM runs: the bytes come through a
/// FIFO. JVMs since JDK 22 write to a disk, and need twice the size of the dump there. Root can dump the JVMs of all
/// users. Requires Linux.
#[derive(Debug, clap::Args)]
pub(crate) struct DumpArgs {
    /// Process ID of the JVM, or a part of its main class's name that no other running JVM has
    #[arg(value_name = "PID|NAME")]
    target: String,

    /// Only reachable objects: the JVM collects garbage first [default]
    #[arg(long, conflicts_with = "all", help_heading = "Objects")]
    live: bool,

    /// Omit nothing: also unreachable objects
    #[arg(long, help_heading = "Objects")]
    all: bool,

    /// Write to FILE; `-` for stdout [default: NAME-PID-TIME.hprof in this directory]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: Option<PathBuf>,

    /// Compress with gzip
    #[arg(long, conflicts_with = "zstd", help_heading = "Output")]
    gzip: bool,

    /// Compress with zstd, which is faster and smaller
    #[arg(long, help_heading = "Output")]
    zstd: bool,

    /// Replace an existing file
    #[arg(long, help_heading = "Output")]
    force: bool,

    /// Start without asking
    #[arg(long, short)]
    yes: bool,

    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Do not show the overview of the new dump; that of a compressed one is never shown
    #[arg(long, help_heading = "Output")]
    no_overview: bool,

    /// Suppress the progress bar and notes on stderr
    #[arg(short, long, overrides_with = "quiet", help_heading = "Output")]
    quiet: bool,

    #[command(flatten)]
    answer: Output,
}

/// Where the dump goes.
enum Destination {
    Stdout,
    /// A file that does not exist, or may be replaced.
    File(PathBuf),
    /// A device or FIFO.
    Device(PathBuf),
}

impl Destination {
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) | Self::Device(path) => Some(path),
        }
    }
}

pub(crate) fn run(cx: &RunContext, args: &DumpArgs) -> anyhow::Result<Outcome> {
    let process = find(&args.target)?;
    let mapped = process.mapped()?;
    let pid = process.pid();
    let name = process.status().name.clone();
    let row = jvms::row(&process, &mapped).ok_or(Error::NotJvm { pid, name })?;
    let destination = destination(args, &row)?;
    if row.kind == VmKind::NativeImage {
        return dump_native(cx, args, &process, &row, &destination);
    }
    let jvm = Jvm::of(process, &Guards)?;
    let to = match &destination {
        Destination::File(path) => Some(path.as_path()),
        _ => None,
    };
    let plan = Plan::new(&jvm, Request { is_live: !args.all, to, compression: args.compression() })?;
    let lines = plan::lines(&plan, destination.path());
    let planned = DumpRow {
        row: &plan.row,
        plan: Some(&plan),
        is_collected: plan.is_live,
        output: destination.path(),
        result: None,
    };
    if args.dry_run {
        show(cx, args, planned, lines)?;
        return Ok(Outcome::Fine);
    }
    if !confirmed(cx, args, &lines)? {
        return Ok(Outcome::No);
    }
    let dumped = take(cx, args, &jvm, &plan, &destination)?;
    finish(cx, args, DumpRow { result: Some(result(dumped, &destination)), ..planned })
}

/// Finds the process by its ID, or by a part of its main class's name.
fn find(target: &str) -> anyhow::Result<Process> {
    if let Ok(pid) = target.parse() {
        return Ok(Process::find(pid)?);
    }
    ensure!(!target.is_empty(), "the name is empty; `hprof-cli jvms` lists the running JVMs");
    let jvms = jvms::list().jvms;
    let named = |row: &JvmRow| row.main_class.clone().unwrap_or_default();
    let found: Vec<&JvmRow> = jvms.iter().filter(|row| named(row).contains(target)).collect();
    match found[..] {
        [row] => Ok(Process::find(row.pid)?),
        [] => {
            let names: Vec<String> = jvms.iter().map(named).collect();
            let like = suggestions::names_like(target, names.iter().map(String::as_str));
            let like = if like.is_empty() {
                String::new()
            } else {
                format!("; {}", suggestions::did_you_mean(&like))
            };
            bail!(
                "no running JVM has {target} in the name of its main class{like}; `hprof-cli jvms` lists them"
            )
        }
        ref several => {
            let list: Vec<String> =
                several.iter().map(|row| format!("{} ({})", row.pid, named(row))).collect();
            bail!(
                "{} running JVMs have {target} in the name of their main class: {}",
                list.len(),
                list.join(", ")
            )
        }
    }
}

impl DumpArgs {
    fn compression(&self) -> Option<Compression> {
        match (self.gzip, self.zstd) {
            (true, _) => Some(Compression::Gzip),
            (_, true) => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// Returns where the dump goes, if nothing is in its way.
fn destination(args: &DumpArgs, row: &JvmRow) -> anyhow::Result<Destination> {
    let Some(path) = &args.output else {
        let path = PathBuf::from(default_name(row, args.compression()));
        return free(&path, args.force);
    };
    if path.as_os_str() == "-" {
        ensure!(
            args.dry_run || !io::stdout().is_terminal(),
            "a heap dump is no text for a terminal; use --output FILE"
        );
        ensure!(
            args.dry_run || args.answer.format() == Format::Table,
            "--format writes to stdout, as --output - does"
        );
        return Ok(Destination::Stdout);
    }
    free(path, args.force)
}

fn free(path: &Path, is_forced: bool) -> anyhow::Result<Destination> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = directory_of(path);
            ensure!(dir.is_dir(), "cannot write {}: there is no directory {}", path.display(), dir.display());
            let may_write =
                rustix::fs::accessat(CWD, dir, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
            may_write.with_context(|| format!("cannot write {}", path.display()))?;
            return Ok(Destination::File(path.to_owned()));
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
    };
    if there.is_dir() {
        bail!("cannot write {}: it is a directory; name a file in it", path.display());
    }
    if !there.is_file() {
        return Ok(Destination::Device(path.to_owned()));
    }
    if !is_forced {
        return Err(Error::Exists { path: path.to_owned() }.into());
    }
    // A symbolic link is kept; its target is replaced.
    Ok(Destination::File(fs::canonicalize(path)?))
}

/// Returns the name of a dump that was given none: `Main-4711-20261126T014600Z.hprof`.
fn default_name(row: &JvmRow, compression: Option<Compression>) -> String {
    let class = row.main_class.as_deref().unwrap_or("java");
    let class = class.strip_suffix(".jar").unwrap_or(class);
    let class = class.rsplit(['/', '.']).next().unwrap_or(class);
    let class: String =
        class.chars().filter(|letter| letter.is_ascii_alphanumeric() || "_-$".contains(*letter)).collect();
    let class = class.trim_start_matches('-');
    let class = if class.is_empty() { "java" } else { class };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = jiff::Timestamp::from_second(i64::try_from(now).unwrap_or(0)).unwrap_or_default();
    let time = time.strftime("%Y%m%dT%H%M%SZ");
    format!("{class}-{}-{time}.hprof{}", row.pid, compression.map_or("", Compression::suffix))
}

/// Tells the plan, and asks if there is somebody to ask.
fn confirmed(cx: &RunContext, args: &DumpArgs, lines: &[String]) -> anyhow::Result<bool> {
    let is_asked = !args.yes;
    if !args.quiet || is_asked {
        lines.iter().for_each(|line| cx.say("plan", line));
    }
    if !is_asked {
        return Ok(true);
    }
    ensure!(
        io::stdin().is_terminal() && io::stderr().is_terminal(),
        "nobody can be asked here: --yes starts the dump without asking"
    );
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(b"hprof-cli: take the dump? [y/N] ");
    let _ = stderr.flush();
    drop(stderr);
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The progress bar, as the receiver of a dump's progress.
struct BarWatch(Bar);

impl Watch for BarWatch {
    fn begin(&self, stage: &str, bytes: u64) {
        self.0.begin(stage, bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }
}

/// Takes the dump.
fn take(
    cx: &RunContext,
    args: &DumpArgs,
    jvm: &Jvm<'_>,
    plan: &Plan,
    destination: &Destination,
) -> anyhow::Result<Dumped> {
    let watch = BarWatch(Bar::new(cx, args.quiet));
    let run = |target: Target<'_>| heap_dump::run(jvm, plan, target, &watch);
    match destination {
        Destination::File(path) if plan.way == Way::Beside => {
            Ok(run(Target::Path { path, is_forced: args.force })?)
        }
        destination => written(destination, args.force, |out| run(Target::Stream(out))),
    }
}

/// Has a dump written to its destination, which errors name.
fn written<T>(
    destination: &Destination,
    is_forced: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
) -> anyhow::Result<T> {
    match destination {
        Destination::File(path) => into_file(path, is_forced, write),
        Destination::Device(path) => {
            let device = File::options().write(true).open(path);
            let mut device = device.with_context(|| format!("cannot write {}", path.display()))?;
            Ok(write(&mut device).map_err(|error| at(path, error))?)
        }
        Destination::Stdout => Ok(write(&mut io::stdout()).map_err(|error| at(Path::new("stdout"), error))?),
    }
}

/// Names the destination in an error about it.
fn at(path: &Path, error: Error) -> Error {
    match error {
        Error::Output { source } => Error::File { what: "cannot write", path: path.to_owned(), source },
        error => error,
    }
}

/// Writes a file that only its owner may read, and that appears when it is complete.
///
/// It has no name before, so that nothing is left of it if this process is killed, unless the file system requires one.
fn into_file<T>(
    path: &Path,
    is_forced: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
) -> anyhow::Result<T> {
    let fail = || format!("cannot write {}", path.display());
    let dir = directory_of(path);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR) {
        let mut file = File::from(file);
        let written = write(&mut file).map_err(|error| at(path, error))?;
        named(&file, path, is_forced).map_err(|error| match error {
            error if error.kind() == io::ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
            source => Error::File { what: "cannot write", path: path.to_owned(), source },
        })?;
        return Ok(written);
    }
    let mut file = Temporary::create(&builder(), dir).with_context(fail)?;
    // Others remove what is not locked.
    let _ = file.as_file().lock();
    let written = write(&mut file).map_err(|error| at(path, error))?;
    if is_forced {
        file.publish(path).with_context(fail)?;
    } else {
        file.publish_new(path).with_context(fail)?;
    }
    Ok(written)
}

/// Returns the names of temporary files.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hprof-cli-").suffix(".part");
    builder
}

/// Gives a file its name.
fn named(file: &File, path: &Path, is_forced: bool) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |path: &Path| rustix::fs::linkat(CWD, own.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW);
    match link(path) {
        // A file that is replaced is so at once.
        Err(Errno::EXIST) if is_forced => {
            // Others remove what is not locked.
            let _ = file.lock();
            let linked = Temporary::of(&builder(), directory_of(path), |short| {
                link(short)?;
                file.try_clone()
            });
            linked?.publish(path)
        }
        linked => Ok(linked?),
    }
}

fn result(dumped: Dumped, destination: &Destination) -> DumpResult {
    let file = match destination {
        Destination::File(path) => fs::metadata(path).ok(),
        _ => None,
    };
    DumpResult { dumped, file_bytes: file.map(|file| file.len()) }
}

/// Shows a row as data, or lines.
fn show(cx: &RunContext, args: &DumpArgs, row: DumpRow<'_>, lines: Vec<String>) -> anyhow::Result<()> {
    let answer =
        Answer::new(plan::columns(), [row]).above(Section::Whole(lines)).without_rows(NoRows::Nothing);
    Machine.show(cx, "dump", &args.answer, answer)?;
    Ok(())
}

/// Tells what was done, and shows the overview.
fn finish(cx: &RunContext, args: &DumpArgs, row: DumpRow<'_>) -> anyhow::Result<Outcome> {
    if let Some(result) = row.result.filter(|_| !args.quiet) {
        cx.say("note", &plan::done(&result, row.output));
    }
    if args.answer.format() != Format::Table {
        show(cx, args, row, Vec::new())?;
        return Ok(Outcome::Fine);
    }
    match row.output.filter(|path| !args.no_overview && path.is_file()) {
        // Its index needs the whole dump, whose bytes were to be kept from this disk.
        Some(path) if args.compression().is_some() => {
            if !args.quiet {
                cx.say("note", &format!("`hprof-cli overview {}` shows what is in it", path.display()));
            }
            Ok(Outcome::Fine)
        }
        Some(path) => {
            let quiet = args.quiet.then(|| "--quiet".into());
            let words: Vec<OsString> =
                ["overview".into()].into_iter().chain(quiet).chain(["--".into(), path.into()]).collect();
            crate::cli::answer(cx, &words).context("the dump is complete, but its overview failed")
        }
        None => Ok(Outcome::Fine),
    }
}

/// Takes a heap dump of a native image.
fn dump_native(
    cx: &RunContext,
    args: &DumpArgs,
    process: &Process,
    row: &JvmRow,
    destination: &Destination,
) -> anyhow::Result<Outcome> {
    let pid = process.pid();
    if !native_image::has_heap_dumps(process) {
        return Err(Error::Unhandled { pid, signal: "SIGUSR1" }.into());
    }
    let lines = vec![
        plan::about(row),
        "way: a native image; SIGUSR1 makes it write a heap dump into its working directory, from where it is moved".to_owned(),
        "objects: which ones, the program decides; standstill: unknown".to_owned(),
    ];
    let planned = DumpRow { row, plan: None, is_collected: false, output: destination.path(), result: None };
    if args.dry_run {
        show(cx, args, planned, lines)?;
        return Ok(Outcome::Fine);
    }
    if !confirmed(cx, args, &lines)? {
        return Ok(Outcome::No);
    }
    let bar = Bar::new(cx, args.quiet);
    bar.begin("waiting for the heap dump", 0);
    let mut dump = native_image::dump(process, &Guards)?;
    drop(bar);
    let copied = written(destination, args.force, |out| dump.copy(args.compression(), out));
    // It is full of secrets, also if it could not be copied.
    let removed =
        dump.remove().with_context(|| format!("cannot remove {}; remove it", dump.place().display()));
    match (copied, removed) {
        (Err(error), Err(stays)) => return Err(error.context(format!("{stays:#}"))),
        (copied, removed) => copied.and(removed)?,
    }
    let dumped = Dumped { dump_bytes: dump.bytes, standstill: dump.time, is_measured: false };
    if !args.quiet {
        cx.say("note", &format!("the heap dump was complete {} after the signal", seconds(dump.time)));
    }
    finish(cx, args, DumpRow { result: Some(result(dumped, destination)), ..planned })
}

pub(crate) fn declared() -> Vec<Declared> {
    vec![Declared {
        command: "dump",
        variant: "",
        about: "The row is the dump, as planned (`--dry-run`) or taken; `dump.path` is `/proc`.",
        rows: plan::columns().fields(),
        beside: Vec::new(),
    }]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn put(path: &Path, is_forced: bool) -> anyhow::Result<()> {
        written(&Destination::File(path.to_owned()), is_forced, |out| {
            out.write_all(b"new").map_err(|source| Error::Output { source })
        })
    }

    #[test]
    fn a_file_is_replaced_at_once_and_only_if_forced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.hprof");
        // Another user knows the process ID, and may write to the directory.
        let guessed = dir.path().join(format!(".hprof-cli-{}.part", std::process::id()));
        fs::write(&guessed, "other").unwrap();
        fs::write(&path, "old").unwrap();
        let error = put(&path, false).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(Error::Exists { .. })), "{error:#}");
        put(&path, true).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&guessed).unwrap()), (b"new".into(), b"other".into()));
        put(&dir.path().join("b.hprof"), false).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn errors_name_the_destination() {
        let error = written(&Destination::Device("/dev/full".into()), false, |out| {
            out.write_all(b"new").map_err(|source| Error::Output { source })
        });
        assert_eq!(error.unwrap_err().to_string(), "cannot write /dev/full");
        assert!(find("").is_err_and(|error| error.to_string().contains("the name is empty")));
    }

    #[test]
    fn dumps_are_named_after_the_program() {
        let row = |class: &str| JvmRow {
            pid: 7,
            namespace_pid: 7,
            main_class: Some(class.to_owned()),
            ..JvmRow::default()
        };
        for (class, start) in [
            ("com.acme.Main", "Main-7-2"),
            ("/opt/my app/app.jar", "app-7-2"),
            ("mod/com.acme.Main", "Main-7-2"),
            ("-rf", "rf-7-2"),
            ("../..", "java-7-2"),
            ("\u{202e}x\n", "x-7-2"),
        ] {
            let name = default_name(&row(class), Some(Compression::Zstd));
            assert!(name.starts_with(start) && name.ends_with("Z.hprof.zst"), "{name}");
        }
    }
}
