//! Facts of threads, of the frames of their stacks, and of the objects that the frames hold.

use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;

use super::frames::{Frame, NATIVE};
use super::{JavaThread, Local, ThreadKind, ThreadState, Wait};

impl JavaThread {
    /// Returns the facts of a thread.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::OBJECT, |thread: &Self| thread.object.into()),
            Fact::new(names::CLASS, |thread: &Self| thread.class.into()).or_null(nulls::CLASS_MISSING),
            Fact::new(names::NAME, |thread: &Self| thread.name.as_ref().into())
                .or_null("the name is not in the dump"),
            Fact::new(names::THREAD_ID, |thread: &Self| thread.thread_id.into()).or_null(nulls::UNKNOWN),
            Fact::new(names::IS_DAEMON, |thread: &Self| thread.is_daemon.into()).or_null(nulls::UNKNOWN),
            Fact::new(names::PRIORITY, |thread: &Self| thread.priority.into()).or_null(nulls::UNKNOWN),
            Fact::new(names::THREAD_GROUP, |thread: &Self| thread.group.as_ref().into())
                .or_null("the thread has no group, or the group is unknown"),
            Fact::new(names::IS_VIRTUAL, |thread: &Self| (thread.kind == ThreadKind::Virtual).into()),
            Fact::new(names::STATE, |thread: &Self| thread.doing.state.map(ThreadState::name).into())
                .or_null(nulls::UNKNOWN),
            Fact::new(names::WAITING, |thread: &Self| thread.doing.wait.map(Wait::name).into())
                .or_null("the thread does not wait, or this is unknown"),
            Fact::new(names::IS_OUT_OF_MEMORY, |thread: &Self| thread.is_out_of_memory.into()),
            Fact::new(names::BLOCKER, |thread: &Self| thread.blocker.map(|blocker| blocker.id).into())
                .or_null("the field is null"),
            Fact::new(names::BLOCKER_CLASS, |thread: &Self| {
                thread.blocker.and_then(|blocker| blocker.class).into()
            })
            .or_null("`blocker` is null, or its class is not in the dump"),
            Fact::new(names::CARRIER, |thread: &Self| thread.carrier.into())
                .or_null("the thread is not a mounted virtual thread"),
            Fact::new(names::SHALLOW_BYTES, |thread: &Self| thread.shallow_bytes.into()),
            Fact::new(names::RETAINED_BYTES, |thread: &Self| thread.retained_bytes.into())
                .or_null(nulls::UNREACHABLE),
        ]
    }
}

impl Local {
    /// Returns the facts of an object that a stack holds.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::OBJECT, |local: &Self| local.object.id.into()),
            Fact::new(names::CLASS, |local: &Self| local.object.class.into()).or_null(nulls::CLASS_MISSING),
            Fact::new(names::LABEL, |local: &Self| local.label.as_ref().into())
                .or_null(nulls::NO_LABEL)
                .secret(),
            Fact::new(names::KIND, |local: &Self| local.kind.name().into()),
            Fact::new(names::RETAINED_BYTES, |local: &Self| local.retained_bytes.into())
                .or_null(nulls::UNREACHABLE),
        ]
    }
}

impl Frame {
    /// Returns the facts of a frame.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::CLASS, |frame: &Self| frame.class.as_deref().into())
                .or_null("the class is not in the file"),
            Fact::new(names::METHOD, |frame: &Self| frame.method.as_deref().into())
                .or_null("the method is not in the file"),
            Fact::new(names::SOURCE, |frame: &Self| frame.source.as_deref().into()).or_null(nulls::UNKNOWN),
            Fact::new(names::LINE, |frame: &Self| frame.line().into())
                .or_null("unknown, or the method is native"),
            Fact::new(names::IS_NATIVE, |frame: &Self| (frame.line == NATIVE).into()),
        ]
    }
}
