//! OQL: queries and what they answer. Those that are asked of a sample and answer a few rows or an error are data:
//! `cases/*.txt`.

mod cases;
mod clauses;
mod help;
mod mat;
mod place;
mod zoo;
