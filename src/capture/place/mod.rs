//! Places that may belong to somebody else: the file system that a JVM sees, and directories that others may change.
//!
//! Whoever may write to a directory can put anything there at any moment: links, mounts in a namespace of his own, other
//! directories under our names. Checks before each step do not help, so no step is taken with more rights than he has:
//! what happens in a place is done by a child process that has become its user (privilege separation, as in Provos, Friedl
//! and Honeyman, "Preventing Privilege Escalation", 2003). This process resolves no path there, and creates, renames,
//! changes and removes nothing. It gets open file descriptors over a socket pair.
//!
//! | question | where |
//! |---|---|
//! | Who opens places? | [`Doors`] starts a `Door` for each: a child, or this process itself if all rights are the same |
//! | How does a child become the user? | `child`: enters the mount namespace, drops groups, IDs and capabilities |
//! | What can be asked for? | `request` |
//! | How is it done? | `workplace`: everything relative to open directories |
//! | Who removes what was made? | the child: when it is asked to, and when this process has ended, however it ended |

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
