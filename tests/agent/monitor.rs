//! MONITOR TIME and MONITOR DUMP.

use crate::grammar::{Writer, check};
use crate::kit::{each_jdk, line};
use crate::report::Report;

const CONTEND: &str = include_str!("java/Contend.java");

#[test]
fn contention_costs_what_the_program_waited() {
    each_jdk("contention", |jdk| {
        let done = jdk.run("monitor=y,depth=4,cutoff=0").ok(&["Contend", "5"]);
        let lost: f64 =
            done.stdout().lines().find_map(|line| line.strip_prefix("lost ")).unwrap().parse().unwrap();
        let lost_ms = lost / 1e6;
        let report = Report::read(&done.text());
        let row = report.contended.iter().find(|row| row.name == "Contend$Door (Java)").unwrap();
        assert_eq!(row.count, 5, "{:?}", report.contended);
        let found = row.percent / 100.0 * report.contended_ms as f64;
        // The program's clock starts a little after the wait, and stops a little before.
        assert!(found >= lost_ms - 5.0 && found <= lost_ms + 250.0, "{found} of {lost_ms}");
        assert_eq!(
            report.traces[&row.trace].frames[0].place(),
            format!("Contend.enter:{}", line(CONTEND, "ENTER"))
        );
    });
}

#[test]
fn monitor_dump_names_owner_and_waiters() {
    each_jdk("monitor dump", |jdk| {
        let java = jdk.run("monitor=y,heap=sites").start(&["Contend", "0", "wait"]);
        java.wait_for("READY");
        java.dump();
        let text = std::fs::read_to_string(java.path("out")).unwrap();
        check(text.as_bytes(), Writer::Agent).unwrap();
        let report = Report::read(&text);
        java.end();
        let serial = |name: &str| {
            let thread = report.threads.iter().find(|(_, known)| known == name);
            thread.unwrap_or_else(|| panic!("{name}: {:?}", report.threads)).0
        };
        let at = report.monitors.iter().position(|line| line.trim() == "MONITOR LContend$Door;").unwrap();
        assert_eq!(report.monitors[at + 1], format!("\towner: thread {}, entry count: 1", serial("main")));
        let mut entering: Vec<_> = numbers(&report.monitors[at + 2]);
        entering.sort_unstable();
        let mut expected = vec![serial("first in line"), serial("second in line")];
        expected.sort_unstable();
        assert_eq!(entering, expected, "{:#?}", report.monitors);
        assert!(report.monitors[at + 2].starts_with("\twaiting to enter:"));
        // A thread that waits to be notified does not wait to enter.
        let bell = report.monitors.iter().position(|line| line.trim() == "MONITOR LContend$Bell; unowned");
        let bell = bell.unwrap_or_else(|| panic!("no bell: {:#?}", report.monitors));
        assert!(numbers(&report.monitors[bell + 1]).is_empty(), "{:#?}", report.monitors);
        assert_eq!(numbers(&report.monitors[bell + 2]), [serial("ringer")]);
        assert!(report.monitors[bell + 2].starts_with("\twaiting to be notified:"));
        let state = |name: &str| {
            let start = format!("    THREAD {}, ", serial(name));
            let line = report.monitors.iter().find(|line| line.starts_with(&start)).unwrap();
            line.rsplit("status: ").next().unwrap().to_owned()
        };
        assert_eq!([state("first in line"), state("ringer")], ["MW", "CW"]);
        assert!(state("main").ends_with('R'), "{}", state("main"));
    });
}

fn numbers(line: &str) -> Vec<u32> {
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}
