use hprof_values::TraceSerial;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::*;
use crate::stacks::speedscope;
use hprof_query::recordings::profile::{Frame, Profile, Samples, Site, Sites, StartedThread};
use hprof_query::recordings::profile::{Origin, Traces};
use hprof_query::recordings::stacks::{Naming, StackQuery, StackWeight, compare, stacks};

const HOSTILE: &str = "</title><script>alert(1)</script>]]>\u{0}\u{ffff}\u{202e};x\n'\"&amp; 12";

fn profile(methods: &[&[&str]], weights: &[u64]) -> Profile {
    let mut traces = Traces::default();
    for (serial, methods) in (1..).zip(methods) {
        let frames = methods.iter().rev().map(|method| Frame {
            class: None,
            method: Some((*method).into()),
            source: Some("A.java".into()),
            line: 3,
        });
        traces.add(TraceSerial(serial), 1, None, frames);
    }
    let rows = (1..).map(TraceSerial).zip(weights.iter().copied()).collect();
    let samples = Samples { total: 0, rows, ..Samples::default() };
    let sites = weights.iter().map(|weight| Site {
        class: HOSTILE.into(),
        trace: TraceSerial(1),
        allocated_bytes: *weight,
        ..Site::default()
    });
    Profile {
        traces,
        threads: vec![StartedThread { serial: 1, name: HOSTILE.into(), ..StartedThread::default() }],
        samples: Some(samples),
        sites: Some(Sites {
            origin: Origin::Recorded,
            rows: sites.collect(),
            total: None,
            event: None,
            by_allocation: false,
            date: None,
        }),
        ..Profile::default()
    }
}

fn look() -> Look {
    Look {
        title: "a title".to_owned(),
        width: None,
        min_width_percent: 0.01,
        palette: Palette::Hot,
        hanging: false,
        scale: Scale::Normalized,
    }
}

fn drawn(stacks: &Stacks, look: &Look) -> String {
    let mut out = Vec::new();
    write(&mut out, stacks, look).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the names of elements, the texts of titles, and the values of attributes.
fn parsed(svg: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut reader = Reader::from_str(svg);
    reader.config_mut().check_comments = true;
    let (mut names, mut titles, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => return (names, titles, values),
            Event::Start(element) | Event::Empty(element) => {
                let name = String::from_utf8(element.name().as_ref().to_vec()).unwrap();
                for attribute in element.attributes() {
                    let attribute = attribute.unwrap();
                    let key = String::from_utf8(attribute.key.as_ref().to_vec()).unwrap();
                    if !key.starts_with("xmlns") {
                        values.push(String::from_utf8(attribute.value.to_vec()).unwrap());
                    }
                }
                if name == "title" {
                    titles.push(String::new());
                }
                names.push(name);
            }
            Event::Text(text) if names.last().is_some_and(|name| name == "title") => {
                titles.last_mut().unwrap().push_str(&text.decode().unwrap());
            }
            Event::GeneralRef(text) if names.last().is_some_and(|name| name == "title") => {
                titles.last_mut().unwrap().push_str(&format!("&{};", text.decode().unwrap()));
            }
            Event::DocType(_) => panic!("a document type"),
            _ => {}
        }
    }
}

#[test]
fn the_picture_is_xml_with_all_frames() {
    let profile = profile(&[&["main", "run"], &["main", "run$1"], &["main", "run", "x"]], &[60, 30, 1110]);
    let stacks = stacks(&profile, &StackQuery::new(StackWeight::Cpu)).unwrap();
    let svg = drawn(&stacks, &look());
    let (names, mut titles, values) = parsed(&svg);
    assert_eq!(names.iter().filter(|name| *name == "script").count(), 1);
    assert!(!values.iter().any(|value| value.contains("//")), "{values:?}");
    titles.sort();
    assert_eq!(
        titles,
        [
            "all (1,200 samples, 100%)",
            "main (1,200 samples, 100.00%)",
            "run (1,170 samples, 97.50%)",
            "run$1 (30 samples, 2.50%)",
            "x (1,110 samples, 92.50%)"
        ]
    );
    assert!(svg.contains("a title") && svg.contains("total_samples=\"1200\""));
    assert_eq!(svg, drawn(&stacks, &look()), "not the same picture again");
    // Frames that hang from the top: the first frame is the highest.
    assert_ne!(svg, drawn(&stacks, &Look { hanging: true, ..look() }));
    assert!(drawn(&stacks, &Look { width: Some(1), ..look() }).contains("width=\"100\""));
}

#[test]
fn narrow_frames_are_left_out() {
    let profile = profile(&[&["main", "wide"], &["main", "narrow", "x"]], &[990, 10]);
    let stacks = stacks(&profile, &StackQuery::new(StackWeight::Cpu)).unwrap();
    let svg = drawn(&stacks, &Look { min_width_percent: 1.5, ..look() });
    assert!(svg.contains("main (1,000 samples, 100.00%)") && !svg.contains("narrow"));
    assert!(drawn(&stacks, &look()).contains("narrow (10 samples, 1.00%)"));
    let (names, ..) = parsed(&drawn(&stacks, &Look { min_width_percent: 100.0, ..look() }));
    assert!(names.contains(&"rect".to_owned()));
}

#[test]
fn hostile_names_stay_in_their_place() {
    let profile = profile(&[&[HOSTILE, "# x", " 1"], &["", "-", "--", "a_[k]", "_[é]"]], &[5, 6]);
    for question in [
        StackQuery::new(StackWeight::Cpu),
        StackQuery { by_thread: true, reverse: true, ..StackQuery::new(StackWeight::Cpu) },
        StackQuery { lines: true, ..StackQuery::new(StackWeight::Allocated) },
    ] {
        let stacks = stacks(&profile, &question).unwrap();
        let title = HOSTILE.to_owned();
        let svg = drawn(&stacks, &Look { title, ..look() });
        let (names, titles, _) = parsed(&svg);
        assert_eq!(names.iter().filter(|name| *name == "script").count(), 1);
        assert!(!svg.contains("<script>"));
        assert!(titles.iter().any(|title| title.contains("(11 ")), "{titles:?}");
        assert!(!svg.contains(['\u{0}', '\u{ffff}', '\u{202e}']));

        let mut lines = Vec::new();
        folded::write(&mut lines, &stacks).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        let weights = lines.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
        assert_eq!(weights.sum::<u64>(), 11);
        let frames: usize = lines.lines().map(|line| line.split(';').count()).sum();
        let depths: usize = {
            let mut out = Vec::new();
            speedscope::write(&mut out, &stacks, HOSTILE).unwrap();
            let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let samples = value["profiles"][0]["samples"].as_array().unwrap();
            samples.iter().map(|sample| sample.as_array().unwrap().len()).sum()
        };
        assert_eq!(frames, depths);
    }
}

#[test]
fn weights_that_do_not_fit_are_drawn() {
    let profile = profile(&[&["main", "x"], &["main", "y"]], &[u64::MAX, u64::MAX]);
    let stacks = stacks(&profile, &StackQuery::new(StackWeight::Cpu)).unwrap();
    assert!(drawn(&stacks, &look()).contains("main (18,446,744,073,709,551,615 samples"));
}

#[test]
fn nothing_is_not_drawn() {
    let stacks = stacks(&Profile::default(), &StackQuery::new(StackWeight::Cpu)).unwrap();
    assert!(write(&mut Vec::new(), &stacks, &look()).is_err());
}

#[test]
fn far_too_much_is_not_drawn() {
    let mut limited = LimitedBuffer(vec![0; MAX_TEXT - 2]);
    assert!(limited.write_all(b"ab").is_ok());
    assert!(limited.write_all(b"c").is_err());
}

#[test]
fn an_error_of_the_output_comes_back() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let stacks = stacks(&profile(&[&["main"]], &[1]), &StackQuery::new(StackWeight::Cpu)).unwrap();
    assert_eq!(write(&mut Closed, &stacks, &look()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    let error = speedscope::write(&mut Closed, &stacks, "").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(folded::write(&mut Closed, &stacks).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn speedscope_has_what_its_schema_requires() {
    let profile = profile(&[&["main", "run"], &["main", "run", "run"]], &[60, 30]);
    let question = StackQuery { lines: true, ..StackQuery::new(StackWeight::Cpu) };
    let stacks = stacks(&profile, &question).unwrap();
    let mut out = Vec::new();
    speedscope::write(&mut out, &stacks, "a title").unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["$schema"], "https://www.speedscope.app/file-format-schema.json");
    assert_eq!(value["name"], "a title");
    assert_eq!(value["activeProfileIndex"], 0);
    assert_eq!(value["shared"]["frames"][0]["name"], "run(A.java:3)");
    assert_eq!(value["shared"]["frames"][0]["file"], "A.java");
    assert_eq!(value["shared"]["frames"][0]["line"], 3);
    let profiles = value["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 1);
    let sampled = profiles[0].as_object().unwrap();
    let keys: Vec<&str> = sampled.keys().map(String::as_str).collect();
    assert_eq!(keys, ["type", "name", "unit", "startValue", "endValue", "samples", "weights"]);
    assert_eq!(sampled["type"], "sampled");
    assert_eq!(sampled["unit"], "none");
    assert_eq!((&sampled["startValue"], &sampled["endValue"]), (&0.into(), &90.into()));
    assert_eq!(sampled["samples"], serde_json::json!([[1, 0], [1, 0, 0]]));
    assert_eq!(sampled["weights"], serde_json::json!([60, 30]));
}

/// Returns the colour of the frame with this title.
fn colour<'s>(svg: &'s str, title: &str) -> &'s str {
    let frame = svg.split_once(&format!("<title>{title}</title>")).unwrap().1;
    frame.split_once("fill=\"rgb(").unwrap().1.split_once(')').unwrap().0
}

#[test]
fn a_difference_is_red_and_blue() {
    let old =
        profile(&[&["main", "less"], &["main", "more"], &["main", "same"], &["main", "gone"]], &[5, 1, 2, 2]);
    let new = profile(&[&["main", "less"], &["main", "more"], &["main", "same"]], &[2, 14, 4]);
    let question = StackQuery { naming: Naming::Common, ..StackQuery::new(StackWeight::Cpu) };
    let stacks = compare(&old, &new, &question).unwrap();
    // The old weights total 10 and are scaled to 20: 10 become 2, 2 become 14, 4 stay.
    let svg = drawn(&stacks, &look());
    // The colour is more intense the closer the difference is to the greatest one, which is 12.
    for (title, rgb) in [
        ("all (20 samples, 100%)", "250,250,250"),
        ("main (20 samples, 100.00%; 0.00%)", "250,250,250"),
        ("less (2 samples, 10.00%; -40.00%)", "150,150,255"),
        ("more (14 samples, 70.00%; +60.00%)", "255,100,100"),
        ("same (4 samples, 20.00%; 0.00%)", "250,250,250"),
    ] {
        assert_eq!(colour(&svg, title), rgb, "{title}");
    }
    assert!(!svg.contains("gone ("));
    assert!(svg.contains("10 samples scaled to 20; 20.0% of the old total is not shown"));
    let absolute = drawn(&stacks, &Look { scale: Scale::Absolute, ..look() });
    assert!(absolute.contains("from 10 to 20 samples"));
    assert!(absolute.contains("same (4 samples, 20.00%; +10.00%)"));
    let mut lines = Vec::new();
    folded::write(&mut lines, &stacks).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines, "main;gone 2 0\nmain;less 5 2\nmain;more 1 14\nmain;same 2 4\n");
}

#[test]
fn differences_that_do_not_fit_are_drawn() {
    let of = |weights: &[u64]| profile(&[&["main", "x"], &["main", "y"]], weights);
    let question = StackQuery::new(StackWeight::Cpu);
    for (old, new) in [([u64::MAX, 1], [1, 1]), ([1, 0], [u64::MAX, u64::MAX]), ([u64::MAX; 2], [7, 8])] {
        let stacks = compare(&of(&old), &of(&new), &question).unwrap();
        for scale in [Scale::Absolute, Scale::Normalized] {
            assert!(drawn(&stacks, &Look { scale, ..look() }).contains("main ("), "{old:?} {new:?}");
        }
    }
    // Frames that are narrow now are kept if they were wide before.
    let stacks = compare(&of(&[99, 1]), &of(&[1, 999_999]), &question).unwrap();
    assert!(drawn(&stacks, &look()).contains("x (1 samples, 0.00%; -99.00%)"));
}
