//! Threads of stack traces in a heap dump, found by the serial numbers in the roots for Thread objects.

use crate::profile::StartedThread;
use hprof_index::ObjectGraph;
use hprof_model::objects::label::Labels;
use hprof_model::objects::selection::ThreadPattern;
use hprof_values::RootKind;

/// Returns the threads that match, in the form of threads from START THREAD records. If several objects have the same serial
/// number, the first one counts.
pub fn matching_threads(
    graph: &ObjectGraph,
    labels: &Labels<'_>,
    wanted: &ThreadPattern,
) -> Vec<StartedThread> {
    let mut found: Vec<StartedThread> = Vec::new();
    for root in graph.roots.rows.iter().filter(|root| root.kind == RootKind::ThreadObject) {
        let (Some(serial), Some(object)) = (root.thread_serial, graph.objects.addresses.id_of(root.object))
        else {
            continue;
        };
        if root.thread != Some(root.object) {
            continue;
        }
        let name = labels.full_label(root.object);
        if wanted.matches(object, name.as_deref()) {
            let name = name.unwrap_or_default();
            found.push(StartedThread { serial, object, name: name.into(), ..StartedThread::default() });
        }
    }
    found
}
