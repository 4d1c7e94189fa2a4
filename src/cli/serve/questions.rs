//! Scheduling of questions (requests for pages, or for their JSON), and caching of the replies.
//!
//! Equal questions are handled once: later requests wait for the same reply, and replies are cached as space allows, since
//! dumps do not change. Short questions do not wait for long ones ([`super::turns`]). A question that nobody has requested
//! for a while, or that takes too long, is cancelled: its process is killed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Notify, watch};

use super::outstanding::OutstandingBodies;
use super::turns::Turns;
use super::worker::{BASELINE, PageQuestion};
use super::workers::{PageEvent, Worker, WorkerKind};
use crate::cli::pages::ask::Failure;
use crate::cli::pages::site::Site;
use crate::cli::pages::{Reply, is_long};
use crate::cli::shared::context::lock;
use crate::cli::shared::worker::WorkerProgress;

/// Time without requests for a question after which it is cancelled.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time after which a question counts as long, however it was classified.
const SHORT: Duration = Duration::from_millis(300);
/// Maximum number of questions, including those that are waiting for their turn.
const MAX_QUESTIONS: usize = 64;
/// Time for which a transient reply is cached: clients that wait for it return every second.
const MOMENT: Duration = Duration::from_secs(20);
/// Idle time after which a worker ends.
const IDLE: Duration = Duration::from_secs(60);
/// Maximum total size of cached replies in bytes.
const MAX_KEPT_BYTES: usize = 48 << 20;
const MAX_KEPT: usize = 4096;
/// Maximum size of a cached reply in bytes.
const MAX_KEPT_ONE: usize = 4 << 20;
/// Maximum total size in bytes of replies that are cached or being sent. Beyond it, no new question starts until clients have
/// read their replies or disconnected.
const MAX_OUTSTANDING_BYTES: usize = 256 << 20;

/// Limits on time, memory and number of questions.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuestionLimits {
    /// Maximum run time of one question.
    pub(super) time: Duration,
    /// Maximum number of bytes that one question may allocate.
    pub(super) memory: u64,
    /// Maximum number of concurrent long questions.
    pub(super) long: usize,
}

/// Key of a question: the target of the request, and whether JSON is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct QuestionKey {
    pub(super) target: String,
    pub(super) is_json: bool,
}

impl QuestionKey {
    /// Returns the path of the request's target.
    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// Progress of a question, or of building an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TaskProgress {
    pub(super) name: String,
    pub(super) done: u64,
    pub(super) total: u64,
}

impl From<WorkerProgress> for TaskProgress {
    fn from(WorkerProgress { stage, done, total, .. }: WorkerProgress) -> Self {
        Self { name: stage, done, total }
    }
}

/// State of a question that was accepted.
#[derive(Debug, Clone)]
pub(super) enum JobState {
    Waiting,
    Running(TaskProgress),
    Done(Arc<Reply>),
}

/// A question that is waiting or running.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) state: watch::Receiver<JobState>,
    asked_after: Mutex<Instant>,
    cancel: Notify,
}

impl Job {
    /// Records that a client is still waiting for the reply.
    pub(super) fn touch(&self) {
        *lock(&self.asked_after) = Instant::now();
    }

    fn is_forgotten(&self) -> bool {
        lock(&self.asked_after).elapsed() >= PATIENCE
    }
}

/// Progress of the index of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Index {
    /// The index is being built; no questions can be handled yet.
    Building(TaskProgress),
    /// The summary is ready: questions that need no graph can be handled.
    Summary(TaskProgress),
    Ready,
    Failed(String),
}

/// Scheduler of all questions, with the cached replies and the progress of the indexes.
#[derive(Debug)]
pub(super) struct QueryService {
    pub(super) site: Site,
    limits: QuestionLimits,
    turns: Turns,
    /// Idle workers, and the time since when they are idle.
    idle: Mutex<Vec<(Worker, Instant)>>,
    asked: Mutex<QuestionState>,
    indexes: Vec<watch::Receiver<Index>>,
    /// Length and modification time of each dump when the server was started.
    stamps: Vec<Option<Stamp>>,
    /// Length and modification time of the recording that was given with the first dump, when the server was started.
    recording_stamp: Option<Stamp>,
    /// The same of the file about the process of the first dump.
    process_stamp: Option<Stamp>,
}

/// Length and modification time of a file.
type Stamp = (u64, SystemTime);

/// Returns the length and modification time of a file.
fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Questions in progress, and cached replies.
#[derive(Debug, Default)]
struct QuestionState {
    jobs: HashMap<QuestionKey, Arc<Job>>,
    kept: HashMap<QuestionKey, CachedReply>,
    kept_bytes: usize,
    outstanding: OutstandingBodies,
    /// Number of questions so far, used as a clock for the last use of replies.
    clock: u64,
}

/// A cached reply.
#[derive(Debug)]
struct CachedReply {
    reply: Arc<Reply>,
    /// Time of the last use, by the clock of [`QuestionState`].
    last: u64,
    /// Time at which the reply expires; `None` if it does not expire.
    until: Option<Instant>,
}

/// Result of submitting a question.
#[derive(Debug)]
pub(super) enum AskOutcome {
    Answer(Arc<Reply>),
    Job(Arc<Job>),
    /// There are too many questions.
    Full,
}

impl QueryService {
    /// Creates the scheduler, and starts building the indexes.
    pub(super) fn start(site: Site, limits: QuestionLimits) -> Arc<Self> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let (senders, indexes): (Vec<_>, Vec<_>) =
            site.dumps.iter().map(|_| watch::channel(Index::Building(TaskProgress::default()))).unzip();
        let stamps = site.dumps.iter().map(|dump| stamp(dump)).collect();
        let recording_stamp = site.recording.as_deref().and_then(stamp);
        let process_stamp = site.process.as_deref().and_then(stamp);
        let questions = Arc::new(Self {
            site,
            limits,
            turns: Turns::new((2 * cores).clamp(4, 16).max(limits.long + 1), limits.long),
            idle: Mutex::default(),
            asked: Mutex::default(),
            indexes,
            stamps,
            recording_stamp,
            process_stamp,
        });
        let builder = questions.clone();
        // One after the other: each uses all cores.
        tokio::spawn(async move {
            for (number, sender) in (1..).zip(senders) {
                let built = build(&builder.site, number, &sender).await;
                let _ = sender.send(match built {
                    Ok(None) => Index::Ready,
                    Ok(Some(error)) => Index::Failed(error),
                    Err(error) => Index::Failed(format!("{error:#}")),
                });
            }
            if builder.site.baseline.is_some() {
                // A question that needs the index reports the error.
                let (sender, _receiver) = watch::channel(Index::Building(TaskProgress::default()));
                let _ = build(&builder.site, BASELINE, &sender).await;
            }
        });
        let keeper = Arc::downgrade(&questions);
        tokio::spawn(async move {
            while let Some(questions) = keeper.upgrade() {
                lock(&questions.idle).retain(|(_, since)| since.elapsed() < IDLE);
                drop(questions);
                tokio::time::sleep(IDLE / 6).await;
            }
        });
        questions
    }

    /// Returns a receiver of the progress of a dump's index; the number counts from 1.
    pub(super) fn index(&self, number: usize) -> Option<Index> {
        Some(self.indexes.get(number.checked_sub(1)?)?.borrow().clone())
    }

    /// Waits until the index of a dump makes progress, at most for `patience`.
    pub(super) async fn index_changes(&self, number: usize, patience: Duration) {
        if let Some(index) = number.checked_sub(1).and_then(|at| self.indexes.get(at)) {
            let mut index = index.clone();
            let ready = index.wait_for(|index| matches!(index, Index::Ready | Index::Failed(_)));
            let _ = tokio::time::timeout(patience, ready).await;
        }
    }

    /// Returns a description of the file that was replaced since the start, if any: the dump, or a file given with it.
    /// Everything known about the dump is outdated then. A file that was removed does not count, as it was read before.
    pub(super) fn replaced_file(&self, number: usize) -> Option<&'static str> {
        let is_replaced = |known: Option<Stamp>, path: Option<&Path>| {
            known.zip(path.and_then(stamp)).is_some_and(|(known, now)| known != now)
        };
        let known = number.checked_sub(1).and_then(|at| self.stamps.get(at).copied().flatten());
        if is_replaced(known, self.site.dump(number)) {
            return Some("dump");
        }
        let beside = [
            (self.recording_stamp, self.site.recording.as_deref(), "recording"),
            (self.process_stamp, self.site.process.as_deref(), "file about the process"),
        ];
        let mut replaced = beside.into_iter().filter(|(known, path, _)| is_replaced(*known, *path));
        replaced.find(|_| number == 1).map(|(.., what)| what)
    }

    /// Returns the time limit of a question.
    pub(super) fn time(&self) -> Duration {
        self.limits.time
    }

    /// Returns the cached reply to a question, or the question in progress; starts it if it is new.
    pub(super) fn ask(self: &Arc<Self>, key: QuestionKey) -> AskOutcome {
        let mut asked = lock(&self.asked);
        asked.clock += 1;
        let clock = asked.clock;
        asked.forget_past();
        if let Some(kept) = asked.kept.get_mut(&key) {
            kept.last = clock;
            return AskOutcome::Answer(kept.reply.clone());
        }
        if let Some(job) = asked.jobs.get(&key) {
            job.touch();
            return AskOutcome::Job(job.clone());
        }
        if asked.jobs.len() >= MAX_QUESTIONS || asked.outstanding.bytes() > MAX_OUTSTANDING_BYTES {
            return AskOutcome::Full;
        }
        let (sender, state) = watch::channel(JobState::Waiting);
        let job = Arc::new(Job {
            number: clock,
            since: Instant::now(),
            state,
            asked_after: Mutex::new(Instant::now()),
            cancel: Notify::new(),
        });
        asked.jobs.insert(key.clone(), job.clone());
        drop(asked);
        let (questions, asked_job) = (self.clone(), job.clone());
        tokio::spawn(async move {
            let reply = Arc::new(questions.answer(&key, &asked_job, &sender).await);
            questions.keep(key, &reply);
            let _ = sender.send(JobState::Done(reply));
        });
        AskOutcome::Job(job)
    }

    /// Cancels a question. Returns `false` if it is not in progress.
    pub(super) fn cancel(&self, number: u64) -> bool {
        let asked = lock(&self.asked);
        let job = asked.jobs.values().find(|job| job.number == number);
        job.map(|job| job.cancel.notify_one()).is_some()
    }

    /// Removes the question and caches its reply.
    fn keep(&self, key: QuestionKey, reply: &Arc<Reply>) {
        let mut asked = lock(&self.asked);
        asked.jobs.remove(&key);
        let bytes = reply.body.len();
        // An error may be gone later, and a long reply takes much space; but clients that wait must get it.
        let is_for_now = reply.status >= 400 || bytes > MAX_KEPT_ONE;
        let until = is_for_now.then(|| Instant::now() + MOMENT);
        let last = asked.clock;
        asked.kept_bytes += bytes;
        asked.outstanding.add(&reply.body);
        asked.kept.insert(key, CachedReply { reply: reply.clone(), last, until });
        if asked.kept_bytes > MAX_KEPT_BYTES || asked.kept.len() > MAX_KEPT {
            asked.forget_half();
        }
    }

    /// Returns an idle or new worker to which the question was sent.
    fn send_to_worker(&self, question: &PageQuestion, kind: WorkerKind) -> anyhow::Result<Worker> {
        let idle = {
            let mut idle = lock(&self.idle);
            let last = idle.iter().rposition(|(worker, _)| worker.kind() == kind);
            last.map(|at| idle.remove(at))
        };
        // It may have ended meanwhile.
        if let Some((mut worker, _)) = idle
            && worker.ask(question).is_ok()
        {
            return Ok(worker);
        }
        let mut worker = Worker::start(&self.site, Some(self.limits.memory), kind)?;
        worker.ask(question)?;
        Ok(worker)
    }

    /// Waits for a turn, and has a worker handle the question. Returns `None` if the question turned out to be long and there
    /// are enough long ones: its work so far is lost.
    async fn in_turn(
        &self,
        key: &QuestionKey,
        state: &watch::Sender<JobState>,
        kind: WorkerKind,
    ) -> anyhow::Result<Option<Reply>> {
        let _ = state.send(JobState::Waiting);
        let Some(mut turn) = self.turns.take(kind == WorkerKind::Long).await else {
            anyhow::bail!("the server is stopping")
        };
        let (started, time) = (Instant::now(), self.limits.time);
        let _ = state.send(JobState::Running(TaskProgress::default()));
        let question = PageQuestion::Page { target: key.target.clone(), is_json: key.is_json };
        let mut worker = self.send_to_worker(&question, kind)?;
        // Time until which it counts as short.
        let mut short = (kind == WorkerKind::Short && SHORT < time).then_some(SHORT);
        loop {
            let heard = loop {
                let until = short.unwrap_or(time).min(time);
                let left = until.saturating_sub(started.elapsed());
                match tokio::time::timeout(left, worker.hear()).await {
                    Ok(heard) => break heard?,
                    Err(_) if until == time => anyhow::bail!("it took longer than {} s", time.as_secs()),
                    Err(_) if turn.may_be_long() => short = None,
                    // Nobody else needs its turn yet.
                    Err(_) if self.turns.are_left() => short = Some(started.elapsed() + SHORT),
                    Err(_) => return Ok(None),
                }
            };
            match heard {
                PageEvent::Reply(reply) => {
                    if worker.is_fresh() {
                        lock(&self.idle).push((worker, Instant::now()));
                    }
                    return Ok(Some(reply));
                }
                PageEvent::Progress(progress) => {
                    let _ = state.send(JobState::Running(progress.into()));
                }
                PageEvent::Summary | PageEvent::Opened(_) => {}
            }
        }
    }

    async fn answer(&self, key: &QuestionKey, job: &Job, state: &watch::Sender<JobState>) -> Reply {
        let work = async {
            if !is_long(&key.target)
                && let Some(reply) = self.in_turn(key, state, WorkerKind::Short).await?
            {
                return Ok(reply);
            }
            let reply = self.in_turn(key, state, WorkerKind::Long).await?;
            reply
                .ok_or_else(|| anyhow::anyhow!("the query was interrupted before a worker ran it; try again"))
        };
        let forgotten = async {
            while !job.is_forgotten() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        // Futures that lose are dropped, and with them the process.
        let why = tokio::select! {
            done = work => match done {
                Ok(reply) => return reply,
                Err(error) => format!("{error:#}"),
            },
            () = job.cancel.notified() => "it was cancelled".to_owned(),
            () = forgotten => "no client was waiting for it".to_owned(),
        };
        given_up(&why, self.limits)
    }
}

impl QuestionState {
    /// Removes expired replies.
    fn forget_past(&mut self) {
        let now = Instant::now();
        let is_past = |kept: &CachedReply| kept.until.is_some_and(|until| until < now);
        if self.kept.values().any(is_past) {
            self.retain(|kept| !is_past(kept));
        }
    }

    /// Removes cached replies for which `is_wanted` returns `false`.
    fn retain(&mut self, is_wanted: impl Fn(&CachedReply) -> bool) {
        self.kept.retain(|_, kept| is_wanted(kept));
        self.kept_bytes = self.kept.values().map(|kept| kept.reply.body.len()).sum();
    }

    /// Removes the least recently used half of the cached replies.
    fn forget_half(&mut self) {
        let mut times: Vec<u64> = self.kept.values().map(|kept| kept.last).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        self.retain(|kept| kept.last > middle);
    }
}

fn given_up(why: &str, limits: QuestionLimits) -> Reply {
    let failure = Failure {
        hint: Some(format!(
            "queries are limited to {} s and {} MiB (--question-time, --question-memory); commands in a shell have no \
             limits",
            limits.time.as_secs(),
            limits.memory >> 20
        )),
        ..Failure::new(format!("this query was stopped: {why}"))
    };
    Reply::json_error(503, &failure)
}

/// Builds the index of a dump. Returns the reason if it cannot be built.
async fn build(site: &Site, number: usize, index: &watch::Sender<Index>) -> anyhow::Result<Option<String>> {
    let mut worker = Worker::start(site, None, WorkerKind::Short)?;
    worker.ask(&PageQuestion::Open(number))?;
    loop {
        match worker.hear().await? {
            PageEvent::Opened(error) => return Ok(error),
            PageEvent::Summary => {
                let _ = index.send(Index::Summary(TaskProgress::default()));
            }
            PageEvent::Progress(progress) => {
                let stage = TaskProgress::from(progress);
                index.send_modify(|index| {
                    *index = if matches!(index, Index::Summary(_)) {
                        Index::Summary(stage)
                    } else {
                        Index::Building(stage)
                    };
                });
            }
            PageEvent::Reply(_) => {}
        }
    }
}
