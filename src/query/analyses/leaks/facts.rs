//! Facts about leak suspects.

use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;

use super::{LeakVerdict, Suspect, SuspectKind};

impl Suspect {
    /// Returns the facts that identify a suspect, and its size.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::KIND, |suspect: &Self| suspect.kind.name().into()),
            Fact::new(names::RULE, |suspect: &Self| suspect.rule.name().into()),
            Fact::new(names::VERDICT, |suspect: &Self| suspect.own_verdict().map(LeakVerdict::name).into())
                .or_null("the row is a suspect of Eclipse MAT (`rule` is `mat`)"),
            Fact::new(names::WHAT, |suspect: &Self| suspect.what.name().into()),
            Fact::new(names::CLASS, |suspect: &Self| {
                suspect.group_class.as_ref().or(suspect.object.class.as_ref()).into()
            })
            .or_null(nulls::CLASS_MISSING),
            Fact::new(names::OBJECT, |suspect: &Self| {
                (suspect.kind == SuspectKind::Single).then_some(suspect.object.object).into()
            })
            .or_null("the suspect is a group"),
            Fact::new(names::LABEL, |suspect: &Self| {
                suspect.object.label.as_ref().filter(|_| suspect.kind == SuspectKind::Single).into()
            })
            .or_null("the object has no label, or the suspect is a group")
            .secret(),
            Fact::new(names::OBJECTS, |suspect: &Self| suspect.objects.into()),
            Fact::new(names::SHALLOW_BYTES, |suspect: &Self| suspect.shallow_bytes.into()),
            Fact::new(names::RETAINED_BYTES, |suspect: &Self| suspect.retained_bytes.into()),
        ]
    }
}
