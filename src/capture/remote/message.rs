//! Messages between a program and its helper.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::heap_dump::DumpOutcome;
use crate::jvms::{JvmList, JvmRow};
use crate::machine::CommandReply;
use crate::memory_files::MemoryFiles;
use crate::plan::Plan;
use crate::user_files::Notice;

/// Request to a helper: a method of [`Machine`](crate::machine::Machine) with its arguments. Dumps are sent compressed with
/// zstd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HelperRequest {
    Jvms,
    Find {
        pid: u32,
    },
    /// `limit_ms` is the maximum time for the reply of the JVM in milliseconds, if it is limited.
    Jcmd {
        pid: u32,
        command: String,
        limit_ms: Option<u64>,
    },
    MemoryFiles {
        pid: u32,
        ranges: Vec<(u64, u64)>,
        names: Vec<String>,
    },
    /// `limit_ms` is the maximum time for each reply of the JVM in milliseconds, if it is limited.
    Plan {
        pid: u32,
        is_live: bool,
        limit_ms: Option<u64>,
    },
    Take,
    CheckNative {
        pid: u32,
    },
    TakeNative {
        pid: u32,
        limit_ms: Option<u64>,
    },
}

/// Reply of a helper. Bytes of a dump and its progress precede the reply.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum HelperReply {
    Jvms(JvmList),
    Row(Box<JvmRow>),
    Jcmd(CommandReply),
    MemoryFiles(Box<MemoryFiles>),
    Plan(Box<Plan>),
    Began {
        stage: String,
        bytes: u64,
    },
    Advanced {
        bytes: u64,
    },
    /// The dump is complete; `sent_bytes` is the number of bytes sent.
    Taken {
        dumped: DumpOutcome,
        sent_bytes: u64,
    },
    Fine,
    /// Notice for the user, which may precede any reply.
    Noticed(Notice),
    Failed(Error),
}
