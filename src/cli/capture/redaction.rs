//! Redaction of a dump on its way from the JVM: only what has passed it is written.

use std::io::{self, BufWriter, Read, Write};
use std::thread;

use hprof_capture::{Compression, Encoder, Error};
use hprof_query::redact::{Redacted, redact_pipe};

use super::destination::{Destination, PrivateFile};
use crate::cli::dump::redact::manifest::{self, Manifest};
use crate::cli::dump::redact::passing::Hashed;
use crate::cli::dump::redact::{Done, WhatGoes, random_key};

/// Redaction of one dump.
pub(super) struct Redaction {
    /// Name of the source, for the manifest.
    source: String,
    /// `None` for a destination without a place beside it.
    manifest: Option<PrivateFile>,
}

/// Result, and facts of the output.
struct Passed {
    done: Done,
    output_hash: String,
    output_bytes: u64,
}

impl Redaction {
    /// Starts with the manifest, so that nothing is dumped if it cannot be written.
    pub(super) fn new(pid: u32, destination: &Destination) -> anyhow::Result<Self> {
        let manifest = match destination {
            Destination::File(file) => Some(file.create(".manifest.json")?),
            Destination::Device(_) | Destination::Stdout => None,
        };
        Ok(Self { source: format!("process {pid}"), manifest })
    }

    /// Has a dump written by `take`, redacts it, compresses it, and writes it to `out`.
    pub(super) fn pass<T>(
        &mut self,
        destination: &Destination,
        compression: Option<Compression>,
        out: &mut (dyn Write + Send),
        take: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let failed = |source| Error::Output { source };
        let (from, mut to) = io::pipe().map_err(failed)?;
        let (taken, passed) = thread::scope(|scope| {
            let redact = move || passed(from, compression, out);
            let redacting =
                thread::Builder::new().name("redaction".to_owned()).spawn_scoped(scope, redact)?;
            let taken = take(&mut to);
            // The end of the dump.
            drop(to);
            let failed = |_| Err(io::Error::other("the redacting thread failed"));
            Ok((taken, redacting.join().unwrap_or_else(failed)))
        })
        .map_err(failed)?;
        let (taken, passed) = match (taken, passed) {
            // The pipe broke, because the redaction failed.
            (Ok(_) | Err(Error::Output { .. }), Err(source)) => return Err(failed(source)),
            (Err(error), _) => return Err(error),
            (Ok(taken), Ok(passed)) => (taken, passed),
        };
        if passed.done.redacted.is_damaged() {
            let why = "the redaction cannot follow what the JVM wrote, so nothing was kept";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        if let (Some(file), Some(path)) = (&mut self.manifest, destination.path()) {
            let text = manifest::text(&Manifest {
                input: self.source.as_str().into(),
                done: &passed.done,
                output: path,
                output_bytes: passed.output_bytes,
                output_hash: &passed.output_hash,
                what: &WhatGoes::default(),
                is_key_kept: false,
                proof: None,
            });
            file.write_all(text.as_bytes()).map_err(failed)?;
        }
        Ok(taken)
    }

    /// Gives the manifest its name. The dump has its own by then.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.manifest.map_or(Ok(()), PrivateFile::commit)
    }
}

/// Redacts the bytes of a pipe.
fn passed(from: impl Read, compression: Option<Compression>, out: &mut dyn Write) -> io::Result<Passed> {
    let key = random_key().map_err(io::Error::other)?;
    let options = WhatGoes::default().options().map_err(io::Error::other)?;
    let mut from = Hashed::new(from);
    let mut out = Encoder::new(compression, Hashed::new(BufWriter::with_capacity(1 << 16, out)))?;
    let redacted: Redacted = redact_pipe(&options, key, &mut from, &mut out, &|_| {})?;
    // The JVM would wait for a reader otherwise.
    io::copy(&mut from, &mut io::sink())?;
    let mut out = out.finish()?;
    out.flush()?;
    let (output_hash, output_bytes) = (out.hash(), out.bytes);
    let (input_hash, input_bytes) = (from.hash(), from.bytes);
    let done = Done { redacted, input_hash, input_bytes, packed_error: None, is_pipe: true };
    Ok(Passed { done, output_hash, output_bytes })
}
