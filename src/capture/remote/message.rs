//! Messages: what the program asks the helper, and what it answers.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::heap_dump::Dumped;
use crate::jvms::{JvmList, JvmRow};
use crate::plan::Plan;

/// What is asked of a helper: the methods of [`Machine`](crate::machine::Machine). Dumps come compressed with zstd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Question {
    Jvms,
    Find { pid: u32 },
    Plan { pid: u32, is_live: bool },
    Take,
    CheckNative { pid: u32 },
    TakeNative { pid: u32 },
}

/// What a helper answers. The bytes of a dump, and its progress, precede the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Jvms(JvmList),
    Row(Box<JvmRow>),
    Plan(Box<Plan>),
    Began {
        stage: String,
        bytes: u64,
    },
    Advanced {
        bytes: u64,
    },
    /// The dump is complete: so many bytes of frames have come.
    Taken {
        dumped: Dumped,
        sent_bytes: u64,
    },
    Fine,
    Failed(Error),
}
