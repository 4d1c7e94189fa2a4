//! Values of fields and what objects mean: of real dumps, of classes made with the fields that JDK and Android give them,
//! and of damaged dumps.

mod collections;
mod damaged;
mod fields;
mod known;
mod made;
mod naive;
mod show;
