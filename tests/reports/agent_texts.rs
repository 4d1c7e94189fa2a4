//! Text reports to test with: those of samples/, and small ones that have everything.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hprof_input::file::TextFile;
use hprof_query::recordings::profile::text::{TextReport, read};

pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// A folder for texts.
pub(crate) struct Texts {
    dir: tempfile::TempDir,
}

impl Texts {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn write(&self, text: &[u8]) -> PathBuf {
        let path = self.dir.path().join("java.hprof.txt");
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn file(&self, text: impl AsRef<[u8]>) -> TextFile {
        TextFile::open(&self.write(text.as_ref())).unwrap().expect("a text report")
    }

    pub(crate) fn read(&self, text: impl AsRef<[u8]>) -> TextReport {
        read(&self.write(text.as_ref()), None).unwrap().expect("a text report").1
    }
}

/// Runs hprof-cli in the folder of the package, with an index directory that is thrown away.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let index = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_hprof-cli"))
        .args(arguments)
        .env("HPROF_CLI_INDEX_DIR", index.path())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

/// As JDK 1.2 to 1.4 wrote, from its documentation, with what was left out there.
pub(crate) const JVMPI: &str = "\
JAVA PROFILE 1.0.1, created Thu Aug 29 16:41:59 2002

THREAD START (obj=11199050, id = 1, name=\"Signal dispatcher\", group=\"system\")
THREAD START (obj=8b87a0, id = 4, name=\"main\", group=\"main\")
THREAD END (id = 4)
TRACE 5:
\tjava/util/Locale.toLowerCase(Locale.java:1188)
\tjava/util/Locale.<clinit>(Locale.java:Compiled method)
...
TRACE 1073: (thread=1)
\t<empty>
MONITOR DUMP BEGIN
  THREAD 8, trace 1, status: R
  THREAD 4, trace 5, status: CW
  MONITOR java/lang/ref/Reference$Lock(811bd50) unowned
\twaiting to be notified: thread 2
  RAW MONITOR \"_hprof_dump_lock\"(0x806d7d0)
\towner: thread 8, entry count: 1
MONITOR DUMP END
MONITOR TIME BEGIN (total = 20 ms) Thu Aug 29 16:41:59 2002
rank   self  accum   count trace monitor
   1 75.00% 75.00%       2  1073 Ljava/lang/ref/Reference$Lock;(811bd50) (Java)
   2 25.00% 100.00%       1     5 \"Monitor Cache lock\"(8058c50) (Raw)
MONITOR TIME END
HEAP DUMP BEGIN (5 objects, 100 bytes) Thu Aug 29 16:41:59 2002
ROOT 8b87a0 (kind=<thread>, id=4, trace=5)
CLS 1123edb0 (name=java/lang/StringBuffer, trace=1318)
\tsuper\t\t111504e8
\tconstant[25]\t8abd48
\t...
CLS 111504e8 (name=java/lang/Object, trace=1)
OBJ 111a9e78 (sz=60, trace=1, class=java/lang/Thread@8b0c38)
\tname\t\t111afbf8
ARR 8bb978 (sz=4, trace=2, nelems=0, elem type=java/io/ObjectStreamField@8bac80)
ARR 8bb979 (sz=6, trace=2, nelems=1, elem type=char)
ARR 8bb97a (sz=8, trace=2, nelems=2, elem type=char [])
HEAP DUMP END
SITES BEGIN (ordered by allocated bytes) Tue Feb 06 10:54:46 2007
          percent         live       alloc'ed  stack class
 rank   self  accum    bytes objs   bytes objs trace name
    1 20.36% 20.36%   190060   16  190060   16  5 char []
    2 14.92% 35.28%   139260 1059  139260 1059  1073 java/lang/String
SITES END
CPU SAMPLES BEGIN (total = 714) Fri Aug 30 15:37:16 2002
rank  self  accum  count trace method
1 76.28% 76.28% 501 77 MyThread2.bigMethod
...
CPU SAMPLES END
";

/// All sections, twice where they add up.
pub(crate) const ALL: &str = "\
JAVA PROFILE 1.0.1, created Sat Nov 21 01:58:24 2026

Explanation
TRACE           represents

--------

THREAD START (obj=5000017c, id = 200002, name=\"a\", group=\"system\")
THREAD END (id = 200001)
TRACE 300000:
\t<empty>
TRACE 300001: (thread=200002)
\tjava.lang.String.<init>(String.java:12)
THREAD END (id = 200002)
\tPlain.main(Plain.java:Unknown line)
WAIT: MONITOR Ljava/lang/Object;, timeout=0, thread 200002
WAITED: MONITOR [B, time_waited=5, <unknown thread>
SLEEP: timeout=100, thread 7
EXIT: MONITOR Lcom/acme/Lock;, thread 7
CPU SAMPLES BEGIN (total = 4) Sat Nov 21 01:58:24 2026
rank   self  accum   count trace method
   1 75.00% 75.00%       3 300001 java.lang.String.<init>
   2 25.00% 100.00%       1 300000 <empty trace>
CPU SAMPLES END
CPU SAMPLES BEGIN (total = 4) Sat Nov 21 01:58:25 2026
rank   self  accum   count trace method
   1 100.00% 100.00%       4 300000 <empty trace>
CPU SAMPLES END
CPU TIME (ms) BEGIN (total = 100) Sat Nov 21 01:58:24 2026
rank   self  accum   count trace method
   1 60.00% 60.00%       6 300001 java.lang.String.<init>
   2 40.00% 100.00%      1 300000 <empty trace>
CPU TIME (ms) END
CPU TIME (ms) BEGIN (total = 300) Sat Nov 21 01:58:25 2026
rank   self  accum   count trace method
   1 100.00% 100.00%      2 300000 <empty trace>
CPU TIME (ms) END
MONITOR TIME BEGIN (total = 10 ms) Sat Nov 21 01:58:24 2026
rank   self  accum   count trace monitor
   1 100.00% 100.00%      2 300001 Lcom/acme/Lock; (Java)
MONITOR TIME END
HEAP DUMP BEGIN (3 objects, 100 bytes) Sat Nov 21 01:58:24 2026
ROOT 50001f90 (kind=<system class>, name=Plain)
CLS 50001f90 (name=Plain, trace=300000)
\tloader\t\t50001f93
\tstatic it\t50001f93
OBJ 50001f93 (sz=24, trace=300001, class=Plain@50001f90)
\tnext\t\t50001f94
ARR 50001f94 (sz=32, trace=300000, nelems=2, elem type=Plain[]@50001f91)
\t[0]\t\t50001f93
\t[1]\t\t50001f93
HEAP DUMP END
SITES BEGIN (ordered by live bytes) Sat Nov 21 01:58:24 2026
          percent          live          alloc'ed  stack class
 rank   self  accum     bytes objs     bytes  objs trace name
    1 50.00% 50.00%        10    1        10     1 300000 Old
SITES END
SITES BEGIN (ordered by live bytes) Sat Nov 21 01:58:25 2026
          percent          live          alloc'ed  stack class
 rank   self  accum     bytes objs     bytes  objs trace name
    1 57.14% 57.14%        32    1        32     1 300000 Plain[]
    2 42.86% 100.00%       24    1        24     1 300001 Plain
SITES END
MONITOR DUMP BEGIN
    THREAD 200001, trace 300000, status: ZO
    MONITOR Ljava/lang/Object;
\towner: thread 200001, entry count: 1
\twaiting to enter: thread 200002, <unknown thread>
\twaiting to be notified:
MONITOR DUMP END
";
