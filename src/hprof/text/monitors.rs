//! MONITOR DUMP, and lines about waiting.

use super::event::{MonitorName, MonitorWait, TextEvent, WaitKind};
use super::scan::{Scan, rsplit_once, trim_end, trim_start, whole_hex};
use super::serials::{self, Serials};

/// Parses a line of MONITOR DUMP that is not its first or last one.
pub(super) fn line(line: &[u8]) -> TextEvent<'_> {
    let text = trim_start(line);
    let (expected, event) = match text {
        [b'T', ..] => ("THREAD N, trace N, status: STATUS", thread_state(text)),
        [b'M' | b'R', ..] => ("MONITOR or RAW MONITOR and its name", monitor(text)),
        [b'o', ..] => ("owner: thread N, entry count: N", owner(text)),
        _ => ("waiting to enter: or waiting to be notified: and threads", waiting(text)),
    };
    event.unwrap_or(TextEvent::Malformed { expected, text: line })
}

fn thread_state(text: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(text);
    scan.literal(b"THREAD ")?;
    let thread = scan.serial()?;
    scan.literal(b", trace ")?;
    let trace = scan.trace()?;
    scan.literal(b", status: ")?;
    let status = scan.remaining();
    (!status.is_empty()).then_some(TextEvent::ThreadState { thread, trace, status })
}

fn monitor(text: &[u8]) -> Option<TextEvent<'_>> {
    let raw = text.strip_prefix(b"RAW MONITOR ");
    let name = match raw {
        Some(name) => name,
        None => text.strip_prefix(b"MONITOR ")?,
    };
    let (name, unowned) = name.strip_suffix(b" unowned").map_or((name, false), |name| (name, true));
    let name = MonitorName { raw: raw.is_some(), ..monitor_name(name)? };
    Some(TextEvent::Monitor { name, unowned })
}

/// Parses a name, possibly in quotes, possibly with an address in parentheses.
fn monitor_name(text: &[u8]) -> Option<MonitorName<'_>> {
    let text = trim_end(trim_start(text));
    let addressed = text.strip_suffix(b")").and_then(|text| rsplit_once(text, b"("));
    let addressed = addressed.and_then(|(name, id)| Some((trim_end(name), whole_hex(id)?)));
    let (name, id) = addressed.map_or((text, None), |(name, id)| (name, Some(id)));
    let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
    (!name.is_empty()).then_some(MonitorName { name, id, raw: false })
}

impl<'a> MonitorName<'a> {
    /// Parses the monitor of a row of MONITOR TIME: `com.acme.Lock (Java)`, `Lcom/acme/Lock;(811bd50)
    /// (Java)`, `"name"(8058c50) (Raw)`.
    pub fn of_row(text: &'a [u8]) -> Self {
        let (name, raw) = if let Some(name) = text.strip_suffix(b"(Raw)") {
            (name, true)
        } else {
            (text.strip_suffix(b"(Java)").unwrap_or(text), false)
        };
        let whole = MonitorName { name: text, id: None, raw };
        monitor_name(name).map_or(whole, |name| Self { raw, ..name })
    }
}

fn owner(text: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(text);
    scan.literal(b"owner: ")?;
    let thread = serials::thread(&mut scan)?;
    scan.literal(b", entry count: ")?;
    let entries = scan.serial()?;
    scan.done()?;
    Some(TextEvent::Owner { thread, entries })
}

fn waiting(text: &[u8]) -> Option<TextEvent<'_>> {
    if let Some(threads) = text.strip_prefix(b"waiting to enter:") {
        return Some(TextEvent::WaitingToEnter(Serials::new(threads)?));
    }
    let threads = text.strip_prefix(b"waiting to be notified:")?;
    Some(TextEvent::WaitingToBeNotified(Serials::new(threads)?))
}

/// Parses a WAIT, WAITED, SLEEP or EXIT line.
pub(super) fn wait(line: &[u8]) -> Option<TextEvent<'_>> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, rest) = (line.get(..colon)?, line.get(colon + 1..)?);
    let (kind, time) = match name {
        b"WAIT" => (WaitKind::Wait, Some(&b"timeout="[..])),
        b"WAITED" => (WaitKind::Waited, Some(&b"time_waited="[..])),
        b"SLEEP" => (WaitKind::Sleep, Some(&b"timeout="[..])),
        b"EXIT" => (WaitKind::Exit, None),
        _ => return None,
    };
    let (before, thread) = rsplit_once(rest, b", ")?;
    let mut scan = Scan::new(thread);
    let thread = Some(serials::thread(&mut scan)?).filter(|thread| *thread != 0);
    scan.done()?;
    let (before, time) = match time {
        None => (before, None),
        Some(word) => {
            let (before, time) = rsplit_once(before, word)?;
            let mut scan = Scan::new(time);
            let time = scan.signed_decimal()?;
            scan.done()?;
            (before, Some(time))
        }
    };
    let monitor = match kind {
        WaitKind::Sleep => {
            Scan::new(trim_start(before)).done()?;
            None
        }
        WaitKind::Wait | WaitKind::Waited => {
            Some(monitor_name(trim_start(before).strip_prefix(b"MONITOR ")?.strip_suffix(b", ")?)?)
        }
        WaitKind::Exit => Some(monitor_name(trim_start(before).strip_prefix(b"MONITOR ")?)?),
    };
    Some(TextEvent::Wait(MonitorWait { kind, monitor, time, thread }))
}
