//! Where `index` spends its time, stage by stage: wall and processor time, page faults, memory that was touched first, and
//! bytes written. Each stage ends where the next begins; what runs beside another is told apart, by wall time alone.
//!
//! ```sh
//! cargo bench --bench stages -- heap.hprof                # two threads, or as many as there are cores
//! cargo bench --bench stages -- heap.hprof --threads 1,2 --runs 5 --project 4,16,64
//! ```
//!
//! With several numbers of threads, runs are in turn, and figures are medians. From one thread and two it follows which
//! part of a stage is serial (G. M. Amdahl: Validity of the single processor approach, AFIPS 1967), and so what more cores
//! would give: `--project`. That assumes memory and memory bus to keep up, so it is the best that can come.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss
)]

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use hprof_index::{Heap, Options};
use hprof_input::progress::Progress;

/// Measurements of a stage: seconds, page faults, resident memory, and bytes passed to write calls.
const COLUMNS: [&str; 7] = ["wall s", "user s", "sys s", "faults", "anon MB", "mapped MB", "written MB"];

type Figures = [f64; COLUMNS.len()];

/// Returns the resources used so far, by [`COLUMNS`].
fn used(start: Instant) -> Figures {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let (stat, status, io) = (read("/proc/self/stat"), read("/proc/self/status"), read("/proc/self/io"));
    let number = |text: &str, name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
    };
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    [
        start.elapsed().as_secs_f64(),
        field(11) / 100.0,
        field(12) / 100.0,
        field(7),
        number(&status, "RssAnon:") / 1024.0,
        number(&status, "RssFile:") / 1024.0,
        number(&io, "wchar:") / 1e6,
    ]
}

/// Notes when each stage began.
struct Clock {
    start: Instant,
    begun: Mutex<Vec<Row>>,
    beside: Mutex<Vec<(String, f64)>>,
}

impl Progress for Clock {
    fn begin(&self, stage: &str, _: u64) {
        self.begun.lock().unwrap().push((stage.to_owned(), used(self.start)));
    }
    fn report_parallel(&self, stage: &str, is_over: bool) {
        let now = self.start.elapsed().as_secs_f64();
        let mut beside = self.beside.lock().unwrap();
        match beside.iter_mut().find(|(name, _)| name == stage) {
            Some((_, wall)) if is_over => *wall += now,
            _ => beside.push((stage.to_owned(), -now)),
        }
    }
    fn advance(&self, _: u64) {}
    fn end(&self) {
        self.begin("between", 0);
    }
}

type Row = (String, Figures);

/// Builds an index with `threads` threads.
fn run(dump: &Path, threads: usize, memory_bytes: Option<u64>) -> Vec<Row> {
    let dir = tempfile::tempdir_in(dump.parent().unwrap_or(Path::new("."))).unwrap();
    let options = Options { index_dir: Some(dir.path().to_owned()), memory_bytes, ..Options::default() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let start = Instant::now();
    let clock = Clock { start, begun: Mutex::default(), beside: Mutex::default() };
    clock.begin("opening", 0);
    pool.install(|| Heap::build_index(dump, &options, &clock)).unwrap();
    clock.begin("", 0);
    let begun = clock.begun.into_inner().unwrap();
    let mut rows: Vec<Row> = Vec::new();
    for pair in begun.windows(2) {
        let [(name, from), (_, to)] = pair else { continue };
        let stage: Figures = std::array::from_fn(|at| to[at] - from[at]);
        match rows.iter_mut().find(|(row, _)| row == name) {
            Some((_, sums)) => sums.iter_mut().zip(stage).for_each(|(sum, more)| *sum += more),
            None => rows.push((name.clone(), stage)),
        }
    }
    let all = std::array::from_fn(|at| rows.iter().map(|(_, row)| row[at]).sum());
    rows.push(("all".to_owned(), all));
    for (name, wall) in clock.beside.into_inner().unwrap() {
        let mut figures = Figures::default();
        figures[0] = wall;
        rows.push((format!("({name})"), figures));
    }
    rows
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn main() {
    // `cargo bench` passes --bench.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let option = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let numbers =
        |text: String| -> Vec<usize> { text.split(',').map(|number| number.parse().unwrap()).collect() };
    let Some(dump) = words.first().filter(|word| !word.starts_with('-')) else {
        println!(
            "usage: cargo bench --bench stages -- DUMP [--threads N,M] [--runs N] [--memory MB] [--project N,M]"
        );
        return;
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = option("--threads").map_or(vec![cores], numbers);
    let runs: usize = option("--runs").map_or(3, |text| text.parse().unwrap());
    let memory = option("--memory").map(|text| text.parse::<u64>().unwrap() << 20);
    let more = option("--project").map_or(Vec::new(), numbers);

    let mut taken: Vec<Vec<Vec<Row>>> = vec![Vec::new(); threads.len()];
    for _ in 0..runs {
        for (taken, threads) in taken.iter_mut().zip(&threads) {
            taken.push(run(Path::new(dump), *threads, memory));
        }
    }
    let medians: Vec<Vec<Row>> = (taken.iter())
        .map(|runs| {
            let row = |(at, (name, _)): (usize, &Row)| {
                let column = |column| median(runs.iter().map(|run| run[at].1[column]).collect());
                (name.clone(), std::array::from_fn(column))
            };
            runs[0].iter().enumerate().map(row).collect()
        })
        .collect();
    for (threads, rows) in threads.iter().zip(&medians) {
        println!("{dump}, {threads} threads, medians of {runs}");
        println!("{:28}{}", "stage", COLUMNS.map(|name| format!("{name:>12}")).concat());
        for (name, row) in rows {
            let cell = |(at, number): (usize, f64)| match at {
                0..=2 => format!("{number:12.3}"),
                _ => format!("{number:12.0}"),
            };
            println!("{name:28}{}", row.iter().copied().enumerate().map(cell).collect::<String>());
        }
        println!();
    }
    if let ([1, 2, ..], false) = (&threads[..], more.is_empty()) {
        let heads: String = more.iter().map(|cores| format!("{:>12}", format!("{cores} cores"))).collect();
        println!("{:28}{:>12}{:>12}{:>12}{heads}", "stage", "1 thread", "2 threads", "serial");
        let mut sums = vec![0.0; more.len()];
        for ((name, one), (_, two)) in medians[0].iter().zip(&medians[1]) {
            let (one, two) = (one[0], two[0]);
            // one = serial + parallel, two = serial + parallel / 2
            let serial = (2.0 * two - one).clamp(0.0, one);
            let at = |cores: usize| serial + (one - serial) / cores as f64;
            let is_part = name != "all" && !name.starts_with('(');
            let cells: String = (more.iter().zip(&mut sums))
                .map(|(cores, sum)| {
                    let wall = if name == "all" { *sum } else { at(*cores) };
                    *sum += if is_part { wall } else { 0.0 };
                    format!("{wall:12.3}")
                })
                .collect();
            println!("{name:28}{one:12.3}{two:12.3}{:11.0}%{cells}", 100.0 * serial / one.max(1e-9));
        }
    }
}
