//! The process that answers: its dumps stay open, and it can be killed at any time.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hprof_index::Progress;

use super::answers::Answerer;
use super::core::{Question, ScreenAnswer};
use super::wire::{FromWorker, MAX_LINE, ToWorker, WireQuestion};
use crate::cli::shared::child;
use crate::cli::shared::context::locked;
use crate::cli::shared::spool;

/// Minimum time between two progress messages.
const RATE: Duration = Duration::from_millis(100);

/// Time after which something else is shown until the answer comes.
const SOON: Duration = Duration::from_millis(60);

/// Sends a message to the browser, if it is not too long.
fn say(message: &FromWorker) {
    write(&line_of(message, MAX_LINE).unwrap_or_default());
}

/// Writes a line to the browser. If the browser is gone, the process ends.
fn write(line: &str) {
    let mut out = io::stdout().lock();
    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Returns a message as a line; `None` if it has more than `most` bytes.
fn line_of(message: &FromWorker, most: usize) -> Option<String> {
    let mut line = serde_json::to_string(message).ok()?;
    line.push('\n');
    (line.len() <= most).then_some(line)
}

/// Returns the line with an answer; if that has more than `most` bytes, the answer is that it does.
pub(super) fn answer_line(number: u64, answer: ScreenAnswer, most: usize) -> String {
    let width = answer.width;
    let line = |answer: ScreenAnswer, most| line_of(&FromWorker::Answer(number, answer.into()), most);
    line(answer, most).unwrap_or_else(|| {
        let text = "the answer is too long for a screen; Y copies the command for a shell";
        line(ScreenAnswer::failed(text, None, width), MAX_LINE).unwrap_or_default()
    })
}

/// Answers questions until stdin ends. If several have arrived, only the last matters.
pub(super) fn run(teller: &Teller, answerer: &Arc<Answerer>) -> anyhow::Result<()> {
    let (sender, lines) = channel();
    child::end_with_stdin(move |line| sender.send(line).is_ok())?;
    while let Ok(first) = lines.recv() {
        let mut last: Option<WireQuestion> = None;
        for line in std::iter::once(first).chain(lines.try_iter()) {
            match serde_json::from_str(&line)? {
                ToWorker::Copies(copies) => spool::take_over(copies),
                ToWorker::Ask(question) => last = Some(question),
            }
        }
        if let Some(question) = last {
            let question = question.into();
            teller.begin_question(&question);
            answer(answerer, &question);
        }
    }
    Ok(())
}

/// Answers a question. Meanwhile, the browser is told something else if the answer takes long.
fn answer(answerer: &Arc<Answerer>, question: &Question) {
    // Locked while a line is written: nothing else is told after the answer.
    let is_answered = Arc::new(Mutex::new(false));
    // Dropped with the answer, which wakes the other thread.
    let _answering = Answerer::has_early(question).then(|| {
        let (answering, ends) = channel::<()>();
        let (answerer, question, is_answered) = (answerer.clone(), question.clone(), is_answered.clone());
        // Not waited for: neither the answer nor the next question depends on it.
        std::thread::spawn(move || {
            while ends.recv_timeout(SOON) == Err(RecvTimeoutError::Timeout) {
                // The index may have to be built first.
                if answerer.has_index() {
                    let early = answerer.early(&question);
                    let is_answered = locked(&is_answered);
                    if let Some(early) = early.filter(|_| !*is_answered) {
                        say(&FromWorker::Early(question.number, early.into()));
                    }
                    return;
                }
            }
        });
        answering
    });
    let line = answer_line(question.number, answerer.answer(question), MAX_LINE);
    let mut is_answered = locked(&is_answered);
    *is_answered = true;
    write(&line);
}

/// Reports the progress of the current question.
#[derive(Default, Clone)]
pub(super) struct Teller {
    number: Arc<AtomicU64>,
    told: Arc<Mutex<QuestionProgress>>,
}

#[derive(Default)]
struct QuestionProgress {
    stage: String,
    done: u64,
    total: u64,
    last: Option<Instant>,
}

impl Teller {
    fn begin_question(&self, question: &Question) {
        self.number.store(question.number, Ordering::Relaxed);
    }

    fn with(&self, change: impl FnOnce(&mut QuestionProgress)) {
        let mut told = locked(&self.told);
        change(&mut told);
        if told.last.is_some_and(|last| last.elapsed() < RATE) {
            return;
        }
        told.last = Some(Instant::now());
        let mut text = told.stage.clone();
        if let Some(percent) = (told.done.min(told.total) * 100).checked_div(told.total) {
            let _ = write!(text, " {percent}%");
        }
        say(&FromWorker::Progress(self.number.load(Ordering::Relaxed), text));
    }
}

impl Progress for Teller {
    fn begin(&self, stage: &str, total: u64) {
        self.with(|told| (told.stage, told.done, told.total) = (stage.to_owned(), 0, total));
    }

    fn advance(&self, bytes: u64) {
        self.with(|told| told.done = told.done.saturating_add(bytes));
    }

    fn end(&self) {}
}
