//! Graphs of which it is known what dominates what, at the edges of what the algorithms tell apart.
