//! Places that may belong to another user: the file system that a JVM sees, and directories that others may change.
//!
//! A user who may write to a directory can put anything there at any time: links, mounts in a separate namespace, other
//! directories under our names. Checks before each step do not help, so no step has more rights than this user: operations in a
//! place are done by a child process that has become its user (privilege separation, as in Provos, Friedl and Honeyman,
//! "Preventing Privilege Escalation", 2003). The current process resolves no paths in the place, and creates, renames, changes
//! and removes nothing there. It receives open file descriptors over a socket pair.
//!
//! | question | where |
//! |---|---|
//! | Who opens places? | [`Doors`] opens a `Door` for each: a child process, or this process itself if it has the same rights |
//! | How does a child become the user? | `child`: enters the mount namespace, drops groups, IDs and capabilities |
//! | Which requests exist? | `request` |
//! | How are they carried out? | `workplace`: everything relative to open directories |
//! | Who removes what was created? | the child: on request, and when this process has ended for any reason |

mod child;
mod connect;
mod door;
mod doors;
mod notice;
mod output;
mod process;
mod request;
mod socket;
mod workplace;

pub use child::{WORD, run};
pub(crate) use door::{Door, PlaceDir};
pub use doors::Doors;
pub use notice::{Notice, OnNotice};
pub use output::{ForeignDir, OutputPlace, PlaceFile};
pub(crate) use request::EntryFacts;
