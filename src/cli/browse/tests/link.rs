//! Requests to a process that ends.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::question;
use crate::cli::browse::core::{ScreenAnswer, ScreenRequest};
use crate::cli::browse::link::{Link, ScreenEvent};
use crate::cli::browse::wire::{ScreenMessage, WireAnswer};
use crate::cli::shared::context::lock;
use crate::cli::shared::worker::{WorkerMessage, WorkerProgress};

/// Time limit: longer than a shell takes on any machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn numbered(number: u64) -> ScreenRequest {
    ScreenRequest { number, ..question(&["histo"], None) }
}

/// Returns a link whose processes run this script in `dir`, which contains messages to send.
fn link(dir: &Path, script: &str) -> (Link, Receiver<ScreenEvent>) {
    let say = |name: &str, message: &WorkerMessage<ScreenMessage>, body: &str| {
        let line = serde_json::to_string(message).expect("JSON");
        fs::write(dir.join(name), format!("{line}\n{body}")).expect("a file");
    };
    let body = serde_json::to_string(&WireAnswer::from(ScreenAnswer::default())).expect("JSON");
    for question in 1..=2 {
        let answer = WorkerMessage::Message(ScreenMessage::Answer(question), body.len());
        say(&format!("answer{question}"), &answer, &body);
        let progress = WorkerProgress { question, stage: "reading".to_owned(), ..WorkerProgress::default() };
        say(&format!("progress{question}"), &WorkerMessage::Progress(progress), "");
    }
    let script = format!("cd '{}'; echo start >> starts; {script}", dir.display());
    let (sender, heard) = channel();
    let sender = Mutex::new(sender);
    let hear = Arc::new(move |message| drop(lock(&sender).send(message)));
    (Link::new("sh".into(), vec!["-c".into(), script.into()], hear), heard)
}

/// Returns a short description of the next event.
fn next(heard: &Receiver<ScreenEvent>) -> String {
    match heard.recv_timeout(TIMEOUT).expect("a message") {
        ScreenEvent::Answer(number, _) => format!("answer {number}"),
        ScreenEvent::Early(number, _) => format!("early {number}"),
        ScreenEvent::Progress(number, _) => format!("progress {number}"),
        ScreenEvent::Ended(number) => format!("ended {number}"),
    }
}

#[test]
fn a_question_that_a_process_did_not_read_goes_to_another() {
    let dir = tempfile::tempdir().expect("a directory");
    let script = "read -r line
        if [ $(wc -l < starts) = 1 ]; then cat answer1; while [ ! -e go ]; do sleep 0.01; done; exit; fi
        cat answer2; cat > rest";
    let (mut link, heard) = link(dir.path(), script);
    link.ask(numbered(1)).expect("a process");
    // Before the first result, as a key that is pressed early.
    link.ask(numbered(2)).expect("a process");
    assert_eq!(next(&heard), "answer 1");
    link.note_answer(1);
    fs::write(dir.path().join("go"), "").expect("a file");
    assert_eq!((next(&heard).as_str(), link.note_end(1)), ("ended 1", None));
    assert_eq!(next(&heard), "answer 2");
    link.note_answer(2);
    assert_eq!(fs::read_to_string(dir.path().join("starts")).expect("a file").lines().count(), 2);
}

#[test]
fn a_question_that_a_process_has_read_is_not_asked_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut link, heard) = link(dir.path(), "read -r line; cat answer1; read -r line; cat progress2; exit");
    link.ask(numbered(1)).expect("a process");
    assert_eq!(next(&heard), "answer 1");
    link.note_answer(1);
    link.ask(numbered(2)).expect("a process");
    assert_eq!(next(&heard), "progress 2");
    link.note_read(2);
    assert_eq!((next(&heard).as_str(), link.note_end(1)), ("ended 1", Some(2)));
}

#[test]
fn a_question_that_a_process_was_started_for_is_not_asked_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut link, heard) = link(dir.path(), "read -r line; exit");
    link.ask(numbered(1)).expect("a process");
    assert_eq!((next(&heard).as_str(), link.note_end(1)), ("ended 1", Some(1)));
    // The next one is answered by another process.
    link.ask(numbered(2)).expect("a process");
    assert_eq!((next(&heard).as_str(), link.note_end(2)), ("ended 2", Some(2)));
}
