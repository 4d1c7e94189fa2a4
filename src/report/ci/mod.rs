//! Results of `check`, as CI servers and code hosts read them.

pub mod junit;
pub mod sarif;
