//! Starts, ends, and what goes wrong: the JVM's start and exit code, files that look whole, sockets that do not answer.

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::grammar::{Writer, check};
use crate::kit::{ask, each_jdk, not_run};
use crate::report::Report;

#[test]
fn wrong_options_end_the_start() {
    each_jdk("wrong options", |jdk| {
        for (options, word) in [
            ("heap=some", "heap=some"),
            ("cpu=fast", "cpu=fast"),
            ("depth=many", "depth=many"),
            ("hep=sites", "hep"),
            ("monitor=y,format=b", "monitor=y"),
            ("cpu=times,format=b", "cpu=times"),
            ("net=nowhere", "net=nowhere"),
            ("dump", "dump"),
        ] {
            let done = jdk.exact(options).finish(&["Ends", "none"]);
            assert!(!done.output.status.success(), "{options}");
            assert!(
                done.stderr().contains("HPROF: ") && done.stderr().contains(word),
                "{options}: {}",
                done.stderr()
            );
            assert!(std::fs::read_dir(done.dir.path()).unwrap().next().is_none(), "{options} left files");
        }
    });
}

#[test]
fn help_lists_all_and_ends() {
    each_jdk("help", |jdk| {
        let help = jdk.exact("help").finish(&["Ends", "throw"]);
        assert_eq!(help.output.status.code(), Some(0), "{}", help.stderr());
        assert!(help.stdout().contains("heap=dump|sites|all"), "{}", help.stdout());
    });
}

#[test]
fn exit_codes_are_the_programs() {
    each_jdk("exit codes", |jdk| {
        for (how, code) in [("none", 0), ("exit", 7), ("throw", 1), ("hook", 3), ("initialiser", 9)] {
            for options in ["heap=all", "heap=sites,cpu=samples,monitor=y,interval=1", "cpu=times"] {
                let done = jdk.run(options).finish(&["Ends", how]);
                assert_eq!(done.output.status.code(), Some(code), "{how}: {}", done.stderr());
                check(done.text().as_bytes(), Writer::Agent)
                    .unwrap_or_else(|error| panic!("{how}, {options}: {error}"));
            }
        }
        // A halt is not reported before it is over.
        let done = jdk.run("heap=sites").finish(&["Ends", "halt"]);
        assert_eq!(done.output.status.code(), Some(5), "{}", done.stderr());
    });
}

#[test]
fn files_that_cannot_be_written_end_the_start() {
    each_jdk("files", |jdk| {
        let done = jdk.run("heap=sites,file=/nowhere/at/all.txt").finish(&["Ends", "none"]);
        assert!(!done.output.status.success());
        assert!(done.stderr().contains("/nowhere/at/all.txt"), "{}", done.stderr());
    });
}

#[test]
fn without_force_no_file_is_overwritten() {
    each_jdk("force", |jdk| {
        let run = jdk.run("heap=sites,force=n,file=here.txt");
        let here = run.dir.path().join("here.txt");
        std::fs::write(&here, "mine").unwrap();
        let done = run.ok(&["Ends", "none"]);
        assert_eq!(std::fs::read(&here).unwrap(), b"mine");
        let others: Vec<_> = std::fs::read_dir(done.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| *path != here)
            .collect();
        assert_eq!(others.len(), 1, "{others:?}");
        check(&std::fs::read(&others[0]).unwrap(), Writer::Agent).unwrap();
        let run = jdk.run("heap=sites,file=here.txt");
        std::fs::write(run.dir.path().join("here.txt"), "mine").unwrap();
        let done = run.ok(&["Ends", "none"]);
        check(&std::fs::read(done.dir.path().join("here.txt")).unwrap(), Writer::Agent).unwrap();
    });
}

#[test]
fn without_doe_nothing_is_dumped_at_the_end() {
    each_jdk("doe", |jdk| {
        let done = jdk.run("heap=all,doe=n").ok(&["Ends", "none"]);
        let counted = check(done.text().as_bytes(), Writer::Agent).unwrap();
        assert!(counted.sections.is_empty() && counted.started > 0, "{counted:?}");
    });
}

/// A JVM that is ended by SIGTERM before it has a thread leaves nothing but this and the empty trace.
#[test]
fn a_recording_of_nothing_is_whole() {
    const HEAD: usize = 31;
    const SETTINGS: usize = 9 + 6;
    each_jdk("nothing", |jdk| {
        let done = jdk.run("heap=sites,format=b,doe=n").ok(&["Ends", "none"]);
        let mut start = std::fs::read(done.out()).unwrap();
        assert_eq!(start[HEAD], 0x0e, "CONTROL SETTINGS");
        start.truncate(HEAD + SETTINGS);
        // TRACE 300000, without thread and frames.
        start.extend_from_slice(&[5, 0, 0, 0, 0, 0, 0, 0, 12]);
        start.extend_from_slice(&300_000_u32.to_be_bytes());
        start.extend_from_slice(&[0; 8]);
        let nothing = done.dir.path().join("nothing.hprof");
        std::fs::write(&nothing, start).unwrap();
        // It fails for files that are truncated.
        crate::kit::cli("doctor", &nothing, &[]);
    });
}

#[test]
fn an_agent_loaded_late_records_from_then_on() {
    each_jdk("late", |jdk| {
        if jdk.tool("jcmd").is_none() {
            return not_run("late", "no jcmd");
        }
        let java = jdk.bare().jvm(&["-XX:+EnableDynamicAgentLoading"]).start(&["Wait"]);
        java.wait_for("READY");
        let out = java.path("late");
        let load = |options: &str| {
            let library = crate::kit::library();
            // The diagnostic command parses this: quotes protect the commas.
            jdk.jcmd(java.pid(), &["JVMTI.agent_load", library.to_str().unwrap(), &format!("\"{options}\"")])
        };
        let said = load(&format!("heap=sites,cutoff=0,file={}", out.display()));
        assert!(said.contains("return code: 0") || said.contains("Command executed"), "{said}");
        load("dump");
        java.wait_for_agent("done: ");
        let report = Report::read(&std::fs::read_to_string(&out).unwrap());
        assert_eq!(report.sum("Wait$Leaf", |trace| trace.frames.is_empty())[0].objects, 101);
        check(&std::fs::read(&out).unwrap(), Writer::Agent).unwrap();
        load("stop");
        java.wait_for_agent("done: ");
        let text = std::fs::read(&out).unwrap();
        // The grammar is that of one report: a file has the header once, and then one report after another.
        assert_eq!(String::from_utf8_lossy(&text).matches("SITES BEGIN").count(), 2);
        let (status, dir, _) = java.end();
        assert!(status.success());
        // Stopped: the end of the JVM adds nothing.
        assert_eq!(std::fs::read(dir.path().join("late")).unwrap(), text);
    });
}

#[test]
fn the_jni_is_used_as_it_has_to_be() {
    each_jdk("Xcheck:jni", |jdk| {
        for options in ["heap=all", "heap=all,format=b", "cpu=samples,monitor=y,interval=1", "cpu=times"] {
            let bare = jdk.bare().jvm(&["-Xcheck:jni"]).ok(&["Plain"]);
            let done = jdk.run(options).jvm(&["-Xcheck:jni"]).ok(&["Plain"]);
            let warnings = |said: String| {
                said.lines()
                    .filter(|line| line.contains("WARNING") || line.contains("FATAL"))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let of_java = warnings(bare.stdout() + &bare.stderr());
            let of_agent = warnings(done.stdout() + &done.stderr());
            assert!(of_agent.len() <= of_java.len(), "{options}: {of_agent:#?}");
        }
    });
}

/// The agent's own thread holds references to all classes when it makes an array of them, which is an allocation like others.
#[test]
fn dumps_while_a_program_runs_use_the_jni_as_it_has_to_be() {
    each_jdk("Xcheck:jni of dumps", |jdk| {
        let run = jdk.run("heap=all,format=b,thread=y,doe=n").jvm(&["-Xcheck:jni"]);
        let java = run.start(&["Wait"]);
        java.wait_for("READY");
        for _ in 0..3 {
            java.dump();
        }
        let (status, _, said) = java.end();
        let warnings: Vec<_> = said.iter().filter(|line| line.contains("exceeds capacity")).collect();
        assert!(status.success() && warnings.is_empty(), "{status:?} {warnings:#?}");
    });
}

/// Killed while a dump of many objects is written: at no moment there is a file of that name that is not whole.
#[test]
fn what_is_killed_leaves_no_file_that_looks_whole() {
    each_jdk("kill", |jdk| {
        let java = jdk.run("heap=dump,doe=n").start(&["Ends", "many", "1500000"]);
        java.wait_for("READY");
        let partial = format!("out.{}.partial", java.pid());
        let (out, path) = (java.path("out"), java.path(&partial));
        assert!(!out.exists());
        java.signal(rustix::process::Signal::QUIT);
        let start = Instant::now();
        while std::fs::metadata(&path).map_or(0, |file| file.len()) < 1 << 20 {
            assert!(start.elapsed() < Duration::from_secs(60) && !out.exists(), "no dump began");
            std::thread::sleep(Duration::from_millis(1));
        }
        java.signal(rustix::process::Signal::KILL);
        let (status, dir, _) = java.end();
        assert!(!status.success() && !dir.path().join("out").exists());
        assert!(dir.path().join(partial).exists());
    });
}

#[test]
fn a_socket_gets_what_a_file_would() {
    each_jdk("net", |jdk| {
        for format in ["a", "b"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let reader = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes).unwrap();
                bytes
            });
            let run = jdk.run(&format!("heap=all,cutoff=0,depth=8,format={format},net=127.0.0.1:{port}"));
            let done = run.ok(&["Known", "50"]);
            let bytes = reader.join().unwrap();
            let out = done.out();
            std::fs::write(&out, &bytes).unwrap();
            if format == "a" {
                let counted = check(&bytes, Writer::Agent).unwrap();
                assert_eq!(counted.sections, ["HEAP DUMP", "SITES"]);
            }
            let sites = ask("sites", &out, &["--top", "0"]);
            let wide = sites["rows"]
                .as_array()
                .unwrap()
                .iter()
                .find(|row| row["class"] == "Known$Wide")
                .cloned()
                .unwrap();
            assert_eq!(
                (wide["live_instances"].as_u64(), wide["allocated_bytes"].as_u64()),
                (Some(50), Some(2400))
            );
        }
    });
}

#[test]
fn a_socket_that_fails_does_not_keep_the_jvm() {
    each_jdk("sockets that fail", |jdk| {
        // Nobody listens.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let done = jdk.run(&format!("heap=sites,net=127.0.0.1:{port}")).finish(&["Ends", "exit"]);
        assert!(
            !done.output.status.success() && done.stderr().contains("cannot connect"),
            "{}",
            done.stderr()
        );
        // It is closed at once.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let closer = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let done = jdk.run(&format!("heap=all,format=b,net=127.0.0.1:{port}")).finish(&["Ends", "exit"]);
        closer.join().unwrap();
        assert_eq!(done.output.status.code(), Some(7), "{}", done.stderr());
    });
}

/// Buffers fill, then it is given up.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_socket_that_is_never_read_does_not_keep_the_jvm() {
    each_jdk("a socket that is never read", |jdk| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let run = jdk.run(&format!("heap=dump,format=b,net=127.0.0.1:{port}"));
        // More bytes than the buffers of both ends hold.
        let java = run.start(&["Ends", "many", "600000"]);
        let stream = listener.accept().unwrap();
        java.wait_for("READY");
        let start = Instant::now();
        let (status, _, said) = java.end();
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        assert!(status.success(), "{said:#?}");
        assert!(said.iter().any(|line| line.contains("read nothing for 10 seconds")), "{said:#?}");
        drop(stream);
    });
}
