//! Facts of GC roots.

use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;

use super::root_report::RootRow;

impl RootRow {
    /// Returns the facts of a root.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::OBJECT, |root: &Self| root.id.into()),
            Fact::new(names::CLASS, |root: &Self| root.class.into()).or_null(nulls::CLASS_MISSING),
            Fact::new(names::LABEL, |root: &Self| root.label.as_ref().into())
                .or_null(nulls::NO_LABEL)
                .secret(),
            Fact::new(names::KIND, |root: &Self| root.kind.name().into()),
            Fact::new(names::THREAD, |root: &Self| root.thread.as_ref().map(|thread| thread.id).into())
                .or_null("roots of this kind have no thread, or the thread is not in the dump"),
            Fact::new(names::THREAD_NAME, |root: &Self| {
                root.thread.as_ref().and_then(|thread| thread.name.as_ref()).into()
            })
            .or_null("`thread` is null, or the name is not in the dump"),
            Fact::new(names::FRAME_NUMBER, |root: &Self| root.frame.into()).or_null("the root has no frame"),
            Fact::new(names::LOCATION, |root: &Self| root.location.as_ref().into())
                .or_null("the root has no frame, or the frame is not in the dump"),
            Fact::new(names::SHALLOW_BYTES, |root: &Self| root.shallow_bytes.into()),
            Fact::new(names::RETAINED_BYTES, |root: &Self| root.retained_bytes.into()),
            Fact::new(names::TIMES, |root: &Self| root.times.into()),
            Fact::new(names::IS_ASSUMED, |root: &Self| root.is_assumed.into()),
        ]
    }
}
