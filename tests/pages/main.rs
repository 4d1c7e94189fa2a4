//! The pages of `serve`: each link of them, and walks through them in a browser.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod frameworks;
mod hostile;
mod html;
#[path = "../kit/mod.rs"]
mod kit;
mod links;
mod questions;
mod security;
mod server;
mod tables;
mod targets;
mod walk;
mod web_driver;
