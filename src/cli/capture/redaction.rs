//! Redaction of a dump on its way from the JVM: only redacted bytes are written.

use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::thread;

use anyhow::ensure;
use hprof_capture::{Compression, Encoder, Error};
use hprof_query::keyed::Key;
use hprof_query::redact::{ClassRenames, RedactOptions, RedactReport, redact_pipe};

use super::destination::{Destination, PrivateFile};
use crate::cli::dump::redact::manifest::{self, Manifest};
use crate::cli::dump::redact::mapping::{self, ClassMapping};
use crate::cli::dump::redact::passing::HashingStream;
use crate::cli::dump::redact::{RedactionResult, WhatGoes};

/// Redaction of one dump.
pub(super) struct CaptureRedaction<'a> {
    /// Name of the dump's source, for the manifest.
    source: String,
    /// Manifest; `None` if the destination is not a file.
    manifest: Option<PrivateFile>,
    what: &'a WhatGoes,
    options: RedactOptions,
    key: Key,
    /// File with the names of renamed classes, next to the dump.
    names: Option<PrivateFile>,
    /// File with the names of renamed classes of the dump that is replaced, if there is one.
    old_names: ClassMapping,
    renames: Arc<ClassRenames>,
}

/// Result of the redaction, and hash and size of the output.
struct RedactedOutput {
    done: RedactionResult,
    output_hash: String,
    output_bytes: u64,
}

impl<'a> CaptureRedaction<'a> {
    /// Creates the additional files first, so that no dump is taken if they cannot be written.
    pub(super) fn new(pid: u32, destination: &Destination, what: &'a WhatGoes) -> anyhow::Result<Self> {
        let (mut manifest, mut names, mut old_names) = (None, None, ClassMapping::None);
        match destination {
            Destination::File(file) => {
                if what.classes.is_empty() {
                    old_names = file.old_names()?;
                } else {
                    names = Some(file.create(mapping::SUFFIX)?);
                }
                manifest = Some(file.create(".manifest.json")?);
            }
            Destination::Device(_) | Destination::Stdout => ensure!(
                what.classes.is_empty(),
                "--classes writes the original names to a file next to the dump, so it needs --output FILE"
            ),
        }
        let options = what.options()?;
        let key = what.key()?;
        let (source, renames) = (format!("process {pid}"), Arc::default());
        Ok(Self { source, manifest, what, options, key, names, old_names, renames })
    }

    /// Redacts and compresses the dump that `take` writes, and writes it to `out`.
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
            let (options, key) = (&self.options, self.key.clone());
            let redact = move || copy_redacted(options, key, from, compression, out);
            let redacting =
                thread::Builder::new().name("redaction".to_owned()).spawn_scoped(scope, redact)?;
            let taken = take(&mut to);
            // Marks the end of the dump.
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
            let why = "the dump written by the JVM is damaged and cannot be redacted, so nothing was kept";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        if let Some(pattern) = passed.done.redacted.renames.unmatched_patterns().first() {
            let why = format!("--classes {pattern}: no class of the dump matches, so nothing was kept");
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        self.renames = passed.done.redacted.renames.clone();
        if let (Some(file), Some(path)) = (&mut self.manifest, destination.path()) {
            let text = manifest::text(&Manifest {
                input: self.source.as_str().into(),
                done: &passed.done,
                output: path,
                output_bytes: passed.output_bytes,
                output_hash: &passed.output_hash,
                what: self.what,
                proof: None,
            });
            file.write_all(text.as_bytes()).map_err(failed)?;
        }
        Ok(taken)
    }

    /// Gives the additional files their final names, after the dump has got its own.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        if let Some(mut names) = self.names {
            names.write_all(mapping::text(self.what, &self.renames).as_bytes())?;
            names.commit()?;
        }
        self.old_names.remove_old()?;
        self.manifest.map_or(Ok(()), PrivateFile::commit)
    }
}

/// Redacts the dump that arrives in a pipe.
fn copy_redacted(
    options: &RedactOptions,
    key: Key,
    from: impl Read,
    compression: Option<Compression>,
    out: &mut dyn Write,
) -> io::Result<RedactedOutput> {
    let mut from = HashingStream::new(from);
    let mut out = Encoder::new(compression, HashingStream::new(BufWriter::with_capacity(1 << 16, out)))?;
    let redacted: RedactReport = redact_pipe(options, key, &mut from, &mut out, &|_| {})?;
    // The JVM would wait for a reader otherwise.
    io::copy(&mut from, &mut io::sink())?;
    let mut out = out.finish()?;
    out.flush()?;
    let (output_hash, output_bytes) = (out.hash(), out.bytes);
    let (input_hash, input_bytes) = (from.hash(), from.bytes);
    let done = RedactionResult { redacted, input_hash, input_bytes, packed_error: None, is_pipe: true };
    Ok(RedactedOutput { done, output_hash, output_bytes })
}
