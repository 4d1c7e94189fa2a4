//! The worker of `browse`: it runs the browser's requests; dumps stay open between them.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::answers::Answerer;
use super::core::{ScreenAnswer, ScreenRequest};
use super::wire::{ScreenMessage, WireAnswer, WireQuestion};
use crate::cli::shared::context::lock;
use crate::cli::shared::worker::{self, ProgressReporter};

/// Maximum size of a serialized result in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// Time after which preliminary lines are sent.
const SOON: Duration = Duration::from_millis(60);

/// Serializes a result; returns `None` if that takes more than `max` bytes.
fn body(answer: ScreenAnswer, max: usize) -> Option<Vec<u8>> {
    serde_json::to_vec(&WireAnswer::from(answer)).ok().filter(|body| body.len() <= max)
}

/// Serializes a result, or an error if that takes more than `max` bytes.
pub(super) fn answer_body(answer: ScreenAnswer, max: usize) -> Vec<u8> {
    let width = answer.width;
    body(answer, max).unwrap_or_else(|| {
        let text = "the answer is too long for this view; Y copies the command for a shell";
        body(ScreenAnswer::for_failure(text, None, width), MAX_ANSWER).unwrap_or_default()
    })
}

/// Handles requests until stdin ends. If several have arrived, only the last one is handled.
pub(super) fn run(reporter: &ProgressReporter, answerer: &Arc<Answerer>) -> anyhow::Result<()> {
    let questions = worker::questions()?;
    while let Ok(first) = questions.recv() {
        let last = questions.try_iter().last().unwrap_or(first);
        let question: ScreenRequest = serde_json::from_str::<WireQuestion>(&last)?.into();
        reporter.begin_question(question.number);
        answer(answerer, &question);
    }
    Ok(())
}

/// Handles a request, and sends the result. If that takes long, preliminary lines are sent first.
fn answer(answerer: &Arc<Answerer>, question: &ScreenRequest) {
    // Locked while a message is sent: nothing else is sent after the result.
    let is_answered = Arc::new(Mutex::new(false));
    // Dropped with the result, which wakes the other thread.
    let _answering = Answerer::has_early(question).then(|| {
        let (answering, ends) = channel::<()>();
        let (answerer, question, is_answered) = (answerer.clone(), question.clone(), is_answered.clone());
        // Not joined: neither the result nor the next request depends on it.
        std::thread::spawn(move || {
            while ends.recv_timeout(SOON) == Err(RecvTimeoutError::Timeout) {
                // The index may have to be built first.
                if answerer.has_index() {
                    let early = answerer.early(&question).and_then(|early| body(early, MAX_ANSWER));
                    let is_answered = lock(&is_answered);
                    if let Some(early) = early.filter(|_| !*is_answered) {
                        worker::send(ScreenMessage::Early(question.number), &early);
                    }
                    return;
                }
            }
        });
        answering
    });
    let body = answer_body(answerer.answer(question), MAX_ANSWER);
    let mut is_answered = lock(&is_answered);
    *is_answered = true;
    worker::send(ScreenMessage::Answer(question.number), &body);
}
