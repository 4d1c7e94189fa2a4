//! Commands to the agent over the socket on which it sends its recording.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hprof_format::commands::{Command, Control, IdBytes, Request, SiteFlags};

use crate::kit::{AT_ALL, Jdk, Waiting, each_jdk};
use crate::report::{Count, Report};

/// The listener's end of an agent's socket.
struct Client {
    stream: TcpStream,
    received: Arc<Mutex<Vec<u8>>>,
    serial: u32,
}

impl Client {
    /// Starts `Steer` under the agent with these options, and waits until it is ready.
    fn start(jdk: &Jdk, options: &str, arguments: &[&str]) -> (Waiting, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let run = jdk.run(&format!("{options},cutoff=0,net=127.0.0.1:{port}"));
        let java = run.start(&[&["Steer"], arguments].concat());
        let (stream, _) = listener.accept().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (mut reading, into) = (stream.try_clone().unwrap(), Arc::clone(&received));
        std::thread::spawn(move || {
            let mut buffer = [0; 1 << 16];
            while let Ok(count @ 1..) = reading.read(&mut buffer) {
                into.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        java.wait_for("READY");
        (java, Self { stream, received, serial: 0 })
    }

    fn send(&mut self, command: Command) {
        self.serial += 1;
        let request = Request { serial: self.serial, command };
        self.stream.write_all(&request.encode(IdBytes::Eight).unwrap()).unwrap();
    }

    fn control(&mut self, control: Control) {
        self.send(Command::Control(control));
    }

    /// Waits until `found` finds something in all that was received.
    fn wait<T>(&self, what: &str, found: impl Fn(&[u8]) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = found(&self.received.lock().unwrap()) {
                return found;
            }
            assert!(start.elapsed() < AT_ALL, "no {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a command, and returns the report with the section that answers it.
    fn ask(&mut self, command: Command, end: &str) -> String {
        let sections = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches(end).count();
        let before = sections(&self.received.lock().unwrap());
        self.send(command);
        self.wait(end, |bytes| {
            (sections(bytes) > before).then(|| String::from_utf8_lossy(bytes).into_owned())
        })
    }

    /// Numbers of samples of the threads "one" and "two".
    fn samples(&mut self) -> [u64; 2] {
        let text = self.ask(Command::CpuSamples { cutoff: 0.0 }, "CPU SAMPLES END");
        let report = Report::read(&text);
        ["one", "two"].map(|name| {
            let (serial, _) = report.threads.iter().find(|(_, known)| known == name).unwrap();
            let rows = report.samples.iter().filter(|row| report.traces[&row.trace].thread == Some(*serial));
            rows.map(|row| row.count).sum()
        })
    }

    /// Object IDs of the threads "one" and "two".
    fn ids(&self) -> [u64; 2] {
        let text = String::from_utf8(self.received.lock().unwrap().clone()).unwrap();
        ["one", "two"].map(|name| {
            let name = format!("name=\"{name}\"");
            let line = text.lines().find(|line| line.starts_with("THREAD START") && line.contains(&name));
            let id = line.unwrap().split("obj=").nth(1).unwrap().split(',').next().unwrap();
            u64::from_str_radix(id.trim_start_matches("0x"), 16).unwrap()
        })
    }

    /// Discards all samples, and returns those of the next half second.
    fn samples_from_now(&mut self) -> [u64; 2] {
        // A sample that was being taken when the last command arrived.
        std::thread::sleep(Duration::from_millis(300));
        self.control(Control::ClearCpuSamples);
        std::thread::sleep(Duration::from_millis(500));
        self.samples()
    }

    fn sites(&mut self, flags: SiteFlags, cutoff: f32) -> (String, Report) {
        let text = self.ask(Command::AllocSites { flags, cutoff }, "SITES END");
        let title = text.lines().rfind(|line| line.starts_with("SITES BEGIN")).unwrap().to_owned();
        (title, Report::read(&text))
    }
}

#[test]
fn a_thread_that_a_command_names_is_sampled_or_not() {
    each_jdk("CPU sampling by thread", |jdk| {
        let (java, mut agent) = Client::start(jdk, "cpu=samples,interval=2,thread=y", &["busy"]);
        let all = agent.samples_from_now();
        assert!(all[0] > 0 && all[1] > 0, "{all:?}");
        let [one, two] = agent.ids();
        agent.control(Control::CpuSamplingOff { thread: one });
        let off = agent.samples_from_now();
        assert!(off[0] == 0 && off[1] > 0, "{off:?}");
        // The time for which it was off does not count: a thread uses no more time than there is.
        let start = Instant::now();
        agent.control(Control::CpuSamplingOn { thread: one });
        std::thread::sleep(Duration::from_millis(300));
        let on = agent.samples();
        let most = start.elapsed().as_millis() / 2 + 10;
        assert!(on[0] > 0 && u128::from(on[0]) <= most, "{on:?}, at most {most}");
        agent.control(Control::CpuSamplingOff { thread: 0 });
        assert_eq!(agent.samples_from_now(), [0, 0]);
        agent.control(Control::CpuSamplingOn { thread: two });
        let second = agent.samples_from_now();
        assert!(second[0] == 0 && second[1] > 0, "{second:?}");
        agent.control(Control::CpuSamplingOn { thread: 0 });
        let all = agent.samples_from_now();
        assert!(all[0] > 0 && all[1] > 0, "{all:?}");
        agent.control(Control::CpuSamplingOff { thread: 0xbad });
        java.wait_for_agent("CONTROL 0x4 ignored: no running thread has the object ID 0xbad");
        let (status, ..) = java.end();
        assert!(status.success());
    });
}

#[test]
fn alloc_sites_obeys_its_flags() {
    each_jdk("flags of ALLOC SITES", |jdk| {
        let (java, mut agent) = Client::start(jdk, "heap=sites,depth=8", &[]);
        for line in ["keep 100", "still 10", "drop 500"] {
            java.tell(line);
        }
        let sum = |report: &Report, class: &str| report.sum(&format!("Steer${class}"), |_| true);
        let objects = |counts: [Count; 2]| counts.map(|count| count.objects);
        // Nothing was collected, so nothing is dead yet.
        let (title, report) = agent.sites(SiteFlags::default(), 0.0);
        assert!(title.contains("live bytes"), "{title}");
        assert_eq!(objects(sum(&report, "Dropped")), [500, 500]);
        let (_, report) = agent.sites(SiteFlags::FORCE_GC, 0.0);
        assert_eq!(objects(sum(&report, "Dropped")), [0, 500]);
        assert_eq!(objects(sum(&report, "Kept")), [100, 100]);
        assert!(report.sites.is_sorted_by_key(|row| std::cmp::Reverse(row.live.bytes)));
        let complete = report.sites.len();

        let flags = SiteFlags::FORCE_GC.with(SiteFlags::BY_ALLOCATION);
        let (title, report) = agent.sites(flags, 0.0);
        assert!(title.contains("allocated bytes"), "{title}");
        assert!(report.sites.is_sorted_by_key(|row| std::cmp::Reverse(row.allocated.bytes)));
        assert!(report.sites.len() >= complete, "{} of {complete}", report.sites.len());

        java.tell("keep 50");
        let flags = SiteFlags::FORCE_GC.with(SiteFlags::INCREMENTAL);
        let (_, report) = agent.sites(flags, 0.0);
        // New figures rather than increments, as the old agent wrote them.
        assert_eq!(objects(sum(&report, "Kept")), [150, 150]);
        assert!(!report.sites.iter().any(|row| row.class == "Steer$Still"), "{:#?}", report.sites);
        assert!(report.sites.len() < complete / 2, "{} of {complete}", report.sites.len());
        let (_, report) = agent.sites(flags, 0.0);
        assert!(!report.sites.iter().any(|row| row.class.starts_with("Steer$")), "{:#?}", report.sites);

        let (_, report) = agent.sites(SiteFlags::FORCE_GC, 0.01);
        assert!(!report.sites.is_empty() && report.sites.len() < complete, "{:#?}", report.sites);
        java.end();
    });
}

/// Bodies of the ALLOC SITES records that have arrived completely.
fn alloc_sites(bytes: &[u8]) -> Vec<Vec<u8>> {
    const HEADER: usize = 19 + 4 + 8;
    const ALLOC_SITES: u8 = 0x06;
    let mut records = Vec::new();
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    while let [tag, _, _, _, _, l0, l1, l2, l3, after @ ..] = rest {
        let length = u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize;
        let Some((body, next)) = after.split_at_checked(length) else { break };
        if *tag == ALLOC_SITES {
            records.push(body.to_vec());
        }
        rest = next;
    }
    records
}

#[test]
fn the_record_states_the_flags_of_the_command() {
    each_jdk("flags of the record", |jdk| {
        let (java, mut agent) = Client::start(jdk, "heap=sites,format=b", &[]);
        // Undefined flags are not repeated.
        for (number, (sent, stated)) in [(0, 0), (7, 7), (0x12, 2), (5, 5)].into_iter().enumerate() {
            agent.send(Command::AllocSites { flags: SiteFlags(sent), cutoff: 0.25 });
            let record = agent.wait("ALLOC SITES", |bytes| alloc_sites(bytes).into_iter().nth(number));
            assert_eq!(record[..2], u16::to_be_bytes(stated));
            assert_eq!(record[2..6], 0.25f32.to_be_bytes());
        }
        java.end();
    });
}

#[test]
fn commands_without_their_profile_are_reported() {
    each_jdk("commands without a profile", |jdk| {
        let (java, mut agent) = Client::start(jdk, "heap=sites", &[]);
        let thread = 0;
        for control in
            [Control::CpuSamplingOn { thread }, Control::CpuSamplingOff { thread }, Control::ClearCpuSamples]
        {
            agent.control(control);
            let said = java.wait_for_agent("CONTROL");
            let option = control.option();
            let expected =
                format!("HPROF: CONTROL {option:#x} ignored: the agent was started without cpu=samples");
            assert_eq!(said, expected);
        }
        agent.send(Command::CpuSamples { cutoff: 0.0 });
        java.wait_for_agent("CPU SAMPLES ignored: the agent was started without cpu=samples");
        java.end();
        let (java, mut agent) = Client::start(jdk, "cpu=samples", &[]);
        agent.control(Control::AllocTracesOn);
        java.wait_for_agent("CONTROL 0x1 ignored: the agent was started without heap=sites and heap=all");
        let (_, _, said) = java.end();
        assert!(said.iter().all(|line| !line.contains("allocation sites ... done")), "{said:#?}");
    });
}
