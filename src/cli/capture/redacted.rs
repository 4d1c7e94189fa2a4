//! Redaction of a dump on its way: no value reaches the destination.

use std::io::{self, PipeReader, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hprof_capture::{Compression, Error};
use hprof_input::packed;
use hprof_input::packed::encode::Encoder;
use hprof_query::dump::redact::{self, KEY_BYTES, Key, RedactOptions, Redacted};

/// Passes what `take` writes through redaction and compression to `out`. Returns what both did.
///
/// # Errors
///
/// Those of `take`; [`Error::Output`] if the destination fails, or the bytes are no dump.
pub(super) fn redacted<T>(
    compression: Option<Compression>,
    out: &mut (dyn Write + Send),
    take: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
) -> Result<(T, Redacted), Error> {
    let output = |source| Error::Output { source };
    let (reader, mut writer) = io::pipe().map_err(output)?;
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| output(io::Error::other(error)))?;
    let is_whole = AtomicBool::new(false);
    let (taken, filtered) = thread::scope(|scope| {
        let filter = thread::Builder::new().name("redaction".to_owned());
        let filter =
            filter.spawn_scoped(scope, || filtered(reader, Key::new(key), compression, out, &is_whole));
        let filter = match filter {
            Ok(filter) => filter,
            Err(error) => return (Err(output(error)), None),
        };
        let taken = take(&mut writer);
        is_whole.store(taken.is_ok(), Ordering::SeqCst);
        drop(writer);
        let failed = || Err(io::Error::other("the thread of the redaction failed"));
        (taken, Some(filter.join().unwrap_or_else(|_| failed())))
    });
    match (taken, filtered) {
        // The filter is the cause if both failed: what is written to it then goes nowhere.
        (Err(Error::Output { .. }), Some(Err(source))) => Err(output(source)),
        (Err(error), _) => Err(error),
        (Ok(taken), Some(filtered)) => Ok((taken, filtered.map_err(output)?)),
        (Ok(_), None) => Err(output(io::ErrorKind::BrokenPipe.into())),
    }
}

fn filtered(
    mut reader: PipeReader,
    key: Key,
    compression: Option<Compression>,
    out: &mut (dyn Write + Send),
    is_whole: &AtomicBool,
) -> io::Result<Redacted> {
    let compression = compression.map(|compression| match compression {
        Compression::Gzip => packed::Compression::Gzip,
        Compression::Zstd => packed::Compression::Zstd,
    });
    let mut encoder = Encoder::new(compression, out)?;
    let redacted = redact::redact_pipe(&RedactOptions::default(), key, &mut reader, &mut encoder, &|_| {})?;
    // What is incomplete does not get an end.
    if is_whole.load(Ordering::SeqCst) {
        encoder.finish()?.flush()?;
    }
    Ok(redacted)
}
