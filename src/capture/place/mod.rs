//! Places that may belong to somebody else: the file system that a JVM sees, and directories that others may change.
//!
//! A user who may write to a directory can put anything there at any time: links, mounts in a separate namespace, other
//! directories under our names. Checks before each step do not help, so no step is taken with more rights than that user has:
//! operations in a place are done by a child process that has become its user (privilege separation, as in Provos, Friedl and
//! Honeyman, "Preventing Privilege Escalation", 2003). This process resolves no path there, and creates, renames, changes and
//! removes nothing. It receives open file descriptors over a socket pair.
//!
//! | question | where |
//! |---|---|
//! | Who opens places? | [`Doors`] starts a `Door` for each: a child, or this process itself if all rights are the same |
//! | How does a child become the user? | `child`: enters the mount namespace, drops groups, IDs and capabilities |
//! | What requests are there? | `request` |
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
