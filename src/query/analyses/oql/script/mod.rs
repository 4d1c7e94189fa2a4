//! What jhat's and VisualVM's OQL have beside MAT's: functions over lists, `heap`, records, and SELECT without FROM.

pub(super) mod applied;
pub(super) mod collected;
pub(super) mod heap;
pub(super) mod reachable;
pub(super) mod rows;
