//! Files of other users: the file system that a JVM sees, and directories that others may change.
//!
//! A user who may write to a directory can put anything there at any time: links, mounts in a separate namespace, other
//! directories under our names. Checks before each step do not help, so no step has more rights than this user: file operations
//! are done by a child process that has become the user (privilege separation, as in Provos, Friedl and Honeyman, "Preventing
//! Privilege Escalation", 2003). The current process resolves no such paths, and creates, renames, changes and removes nothing
//! there. It receives open file descriptors over a socket pair.
//!
//! | question | where |
//! |---|---|
//! | Who starts a child? | [`UserFilesOpener`] opens `UserFiles` for a user: a child process, or this process itself if it has the same rights |
//! | How does a child become the user? | `child`: enters the mount namespace, drops groups, IDs and capabilities |
//! | Which requests exist? | `request` |
//! | How are they carried out? | `executor`: everything relative to open directories |
//! | Who removes what was created? | the child: on request, and when this process has ended for any reason |

mod child;
mod client;
mod connect;
mod executor;
mod notice;
mod opener;
mod output;
mod process;
mod request;
mod socket;

pub use child::{WORD, run};
pub(crate) use client::{UserDir, UserFiles};
pub use notice::{Notice, OnNotice};
pub use opener::UserFilesOpener;
pub use output::{ForeignDir, UserFile, UserOutputDir};
pub(crate) use request::EntryFacts;
