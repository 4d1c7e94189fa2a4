//! Any bytes as what reaches the agent inside a JVM: its options, commands over its socket, class files; and as lines that
//! are typed to `listen`.

use hprof_agent::options::{AgentRequest, MAX_DEPTH, Options, parse};
use hprof_agent::rewrite::{Tracker, rewrite};
use hprof_cli::fuzzing::is_command;
use hprof_format::commands::{self, IdBytes, Incoming, MAX_BODY};

const TRACKER: Tracker<'static> = Tracker::new("java/lang/Tracker", "enter", "exit");
/// The number of a method.
const METHOD: u32 = 70_000;

/// Reads bytes as options of the agent and as commands to it; those that begin as a class file are rewritten.
pub fn agent(bytes: &[u8]) {
    if bytes.starts_with(&0xCAFE_BABE_u32.to_be_bytes()) {
        return class(bytes);
    }
    requests(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for line in text.lines() {
        let typed = is_command(line);
        assert!(!line.trim().is_empty() || typed == Ok(false), "an empty line is {typed:?}");
        match parse(line) {
            Ok(AgentRequest::Record(options)) => check(&options),
            Ok(_) => {}
            Err(error) => assert!(!error.is_empty()),
        }
    }
}

/// Checks the invariants of options.
fn check(options: &Options) {
    assert!(options.depth <= MAX_DEPTH && options.interval_ms >= 1);
    assert!((0.0..=1.0).contains(&options.cutoff));
    assert!(
        options.heap_dump || options.sites || options.cpu.is_some() || options.monitors,
        "nothing to record"
    );
    assert!(options.file.is_none() || options.net.is_none());
    assert!(options.net.as_ref().is_none_or(|(host, port)| !host.is_empty() && *port != 0));
    assert!(options.filter.iter().all(|package| !package.is_empty()));
}

/// Commands, until there are no more: each is the same when it is sent again.
fn requests(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest.len();
        match commands::read(&mut rest) {
            Ok(Some(Incoming::Request(request))) => {
                let sent = request.encode(IdBytes::Four).or_else(|| request.encode(IdBytes::Eight));
                let sent = sent.expect("eight bytes are enough for any object ID");
                let again = commands::read(&mut sent.as_slice());
                assert!(
                    matches!(again, Ok(Some(Incoming::Request(again))) if again == request),
                    "{request:?}"
                );
            }
            Ok(Some(Incoming::Wrong(wrong))) => {
                assert!(wrong.length <= MAX_BODY && !wrong.to_string().is_empty());
            }
            Ok(None) | Err(_) => return,
        }
        assert!(rest.len() < before, "a command of no bytes");
    }
}

/// Rewrites a class file; what is written is a class file again.
fn class(bytes: &[u8]) {
    let mut asked = 0u32;
    let rewritten = rewrite(bytes, &TRACKER, &mut |_| {
        asked += 1;
        // Every third method is left as it is.
        (!asked.is_multiple_of(3)).then_some(METHOD + asked)
    });
    match rewritten {
        Ok(rewritten) => {
            assert!(rewritten.methods + rewritten.skipped.len() <= asked as usize);
            let Some(written) = rewritten.bytes else { return };
            let again = rewrite(&written, &TRACKER, &mut |_| None);
            assert!(again.is_ok_and(|again| again.methods == 0), "what was written cannot be read");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
