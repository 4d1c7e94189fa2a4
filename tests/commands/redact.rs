//! `redact`: texts and numbers that are planted into heaps are searched for in the bytes of the redacted dump, without
//! the reader.

use std::fs;
use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::Value as Json;

use hprof_writer::{DumpWriter, Elements, HeapModel, Jdk, Layout, Options, Root, StackFrame, Type, Value};

use crate::kit::process::{Folder, finish, stderr};
use crate::kit::texts::{code, sample, sample_path};

/// Planted texts: in a `String` of Latin-1 and of UTF-16, a `char[]`, a buffer, a symbol, and a long text.
const TEXTS: [&str; 6] = [
    "jdbc:oracle:thin:scott/tiger@db.acme.example",
    "пароль: съешь ещё этих мягких булок 密码",
    "Authorization: Basic QWxhZGRpbjpvcGVu",
    "GET /login?user=alice&token=5ebe2294ecd0e0f0",
    "a literal of the program: s3cr3t-in-a-symbol",
    "-----BEGIN RSA PRIVATE KEY----- MIIEpAIBAAKCAQEA7Rm2 and many more characters than one round has",
];
/// Planted short text.
const SHORT: &str = "hunter2";
const THREAD: &str = "worker of customer 4711";
const CARD: i64 = 4_111_111_111_111_111;
const PIN: i32 = 70_604_321;

/// Adds the classes and objects.
fn heap() -> HeapModel {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let account = model.class_with_statics(
        "com.acme.Account",
        Some(jdk.object),
        &[("card", Type::Long), ("pin", Type::Int), ("rate", Type::Double), ("owner", Type::Object)],
        &[("MASTER", Value::Long(CARD + 1))],
    );
    model.class("com.acme.Empty", Some(jdk.object), &[]);
    let mut held = Vec::new();
    for text in [TEXTS[0], TEXTS[1], SHORT, TEXTS[5], SHORT, "", "x"] {
        held.push(jdk.string(&mut model, text));
    }
    held.push(model.prim_array(Elements::of_chars(TEXTS[2])));
    let mut buffer = TEXTS[3].as_bytes().to_vec();
    buffer.resize(512, 0);
    held.push(model.prim_array(Elements::of_bytes(&buffer)));
    held.push(model.prim_array(Elements::Byte(vec![7; 300])));
    held.push(model.prim_array(Elements::Byte(vec![0; 300])));
    held.push(model.prim_array(Elements::Long((0..40).map(|at| CARD + at).collect())));
    held.push(model.prim_array(Elements::Int((0..40).map(|at| PIN + at).collect())));
    held.push(jdk.string(&mut model, "com.acme.Account"));
    for number in 0..60 {
        let owner = held[number as usize % held.len()];
        held.push(model.instance(
            account,
            &[Value::Long(CARD + number), Value::Int(PIN), Value::Double(0.25), owner.into()],
        ));
    }
    let all = model.object_array(jdk.object_array, &held);
    let thread = jdk.thread(&mut model, THREAD, false, 5);
    let frames = [StackFrame::new(account, "charge", "Account.java", 42)];
    let serial = model.trace(1, &frames);
    model.root(thread, Root::ThreadObject { thread: 1, trace: serial });
    model.root(all, Root::JavaFrame { thread: 1, frame: 0 });
    model.root_boot_classes();
    model
}

/// The dump, with a symbol that nothing uses.
fn dump(options: &Options) -> Vec<u8> {
    let mut out = DumpWriter::new(options.version, options.id_size).created_ms(options.created_ms);
    out.string_bytes(0x77, TEXTS[4].as_bytes());
    heap().write_into(&mut out, options);
    out.finish().bytes().to_vec()
}

fn forms() -> [(&'static str, Options); 4] {
    [
        ("hotspot", Options::hotspot()),
        ("jdk6", Options::jdk6()),
        ("agent", Options::agent()),
        ("android", Options::android()),
    ]
}

fn is_in(bytes: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(bytes, what).is_some()
}

fn encodings(text: &str) -> [Vec<u8>; 3] {
    [
        text.as_bytes().to_vec(),
        text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    ]
}

/// Searches for all that was planted, and for parts of the texts.
fn assert_clean(name: &str, bytes: &[u8]) {
    for text in TEXTS {
        let letters: Vec<char> = text.chars().collect();
        for part in letters.windows(8) {
            let part: String = part.iter().collect();
            for encoded in encodings(&part) {
                assert!(!is_in(bytes, &encoded), "{name}: {part:?} of {text:?}");
            }
        }
    }
    for encoded in encodings(SHORT) {
        assert!(!is_in(bytes, &encoded), "{name}: {SHORT}");
    }
    for number in 0..60 {
        assert!(!is_in(bytes, &(CARD + number).to_be_bytes()), "{name}: a card");
        assert!(!is_in(bytes, &(PIN + number as i32).to_be_bytes()), "{name}: a PIN");
    }
}

fn redact(folder: &Folder, arguments: &[&str], expected: i32) -> Output {
    let output = folder.run(&[&["redact"], arguments].concat());
    assert_eq!(code(&output), expected, "{arguments:?}: {}", stderr(&output));
    output
}

/// Rows of a proof: what, and whether it is equal.
fn rows(output: &Output) -> Vec<(String, bool)> {
    let json: Json = serde_json::from_slice(&output.stdout).unwrap();
    let row = |row: &Json| (row["what"].as_str().unwrap().to_owned(), row["equal"].as_bool().unwrap());
    json["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn nothing_that_was_planted_is_in_the_redacted_dump() {
    for (name, options) in forms() {
        let folder = Folder::new();
        let bytes = dump(&options);
        for text in [TEXTS[0], TEXTS[3], TEXTS[4], SHORT] {
            assert!(is_in(&bytes, text.as_bytes()), "{name}: {text}");
        }
        let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
        redact(&folder, &[&input, "-o", &out], 0);
        let redacted = fs::read(folder.path("out.hprof")).unwrap();
        assert_clean(name, &redacted);
        assert_eq!(redacted.len(), bytes.len());
        // Names stay, whoever holds them.
        for text in ["com.acme.Account", "MASTER", "charge", THREAD] {
            assert!(is_in(&redacted, text.as_bytes()), "{name}: {text}");
        }
        let check = redact(&folder, &["--check", &input, &out, "--format", "json"], 0);
        let rows = rows(&check);
        assert!(rows.len() >= 12 && rows.iter().all(|(_, equal)| *equal), "{name}: {rows:?}");
    }
}

#[test]
fn equal_texts_stay_equal_and_forms_stay() {
    let folder = Folder::new();
    let bytes = dump(&Options::hotspot());
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    redact(&folder, &[&input, "-o", &out], 0);
    let redacted = fs::read(&out).unwrap();
    let places = |text: &[u8]| -> Vec<usize> { memchr::memmem::find_iter(&bytes, text).collect() };
    let short = places(SHORT.as_bytes());
    assert_eq!(short.len(), 2);
    let image = |at: usize, len: usize| &redacted[at..at + len];
    assert_eq!(image(short[0], 7), image(short[1], 7));
    assert!(image(short[0], 7).iter().all(|byte| (1..128).contains(byte)));
    let repeated = image(places(&[7; 300])[0], 300);
    assert!(repeated.iter().all(|byte| *byte == repeated[0] && (1..128).contains(byte)));
    let buffer = image(places(TEXTS[3].as_bytes())[0], 512);
    assert!(buffer[..TEXTS[3].len()].iter().all(|byte| *byte != 0));
    assert!(buffer[TEXTS[3].len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn equal_contents_become_different_if_requested() {
    for (name, options) in forms() {
        let folder = Folder::new();
        let bytes = dump(&options);
        let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
        redact(&folder, &[&input, "-o", &out, "--break-equality"], 0);
        let redacted = fs::read(&out).unwrap();
        assert_clean(name, &redacted);
        let images = |what: &[u8]| -> Vec<&[u8]> {
            memchr::memmem::find_iter(&bytes, what).map(|at| &redacted[at..at + what.len()]).collect()
        };
        // Two arrays, and a field of 60 objects.
        let short = if is_in(&bytes, SHORT.as_bytes()) && images(SHORT.as_bytes()).len() == 2 {
            images(SHORT.as_bytes())
        } else {
            images(&encodings(SHORT)[2])
        };
        assert_eq!(short.len(), 2, "{name}");
        assert_ne!(short[0], short[1], "{name}");
        let mut pins = images(&PIN.to_be_bytes());
        assert!(pins.len() >= 60, "{name}");
        pins.sort_unstable();
        pins.dedup();
        assert!(pins.len() >= 60, "{name}: {}", pins.len());
        // Only what is about equality differs, and nothing without the option.
        let check = ["--check", &input, &out, "--format", "json"];
        let failed: Vec<String> = rows(&redact(&folder, &check, 1))
            .into_iter()
            .filter(|(_, equal)| !equal)
            .map(|(what, _)| what)
            .collect();
        assert_eq!(failed, ["waste", "equal_contents"], "{name}");
        redact(&folder, &[&check[..], &["--break-equality"]].concat(), 0);
    }
}

#[test]
fn a_copy_and_a_changed_reference_fail_the_check() {
    let folder = Folder::new();
    let bytes = dump(&Options::hotspot());
    let input = folder.write("in.hprof", &bytes);
    let copy = folder.write("copy.hprof", &bytes);
    let check = redact(&folder, &["--check", &input, &copy, "--format", "json"], 1);
    let failed: Vec<String> =
        rows(&check).into_iter().filter(|(_, equal)| !equal).map(|(what, _)| what).collect();
    assert_eq!(failed, ["numbers_that_go", "texts_at_the_same_place", "texts_anywhere", "secrets"]);

    let out = folder.text("out.hprof");
    redact(&folder, &[&input, "-o", &out], 0);
    // A text that is put somewhere else.
    let mut other = fs::read(&out).unwrap();
    let repeated = (0..bytes.len()).find(|at| bytes[*at..].starts_with(&[7; 300])).unwrap();
    other[repeated + 100..repeated + 116].copy_from_slice(&TEXTS[0].as_bytes()[9..25]);
    let other = folder.write("other.hprof", other);
    let check = redact(&folder, &["--check", &input, &other, "--format", "json"], 1);
    let failed: Vec<String> =
        rows(&check).into_iter().filter(|(_, equal)| !equal).map(|(what, _)| what).collect();
    assert!(failed.contains(&"texts_anywhere".to_owned()), "{failed:?}");
}

#[test]
fn a_pipe_is_read_once_and_compressed_files_too() {
    let folder = Folder::new();
    let bytes = dump(&Options::hotspot());
    let plain = folder.write("in.hprof", &bytes);
    let packed = folder.write("in.hprof.zst", zstd::encode_all(bytes.as_slice(), 1).unwrap());
    let key = folder.text("key");
    let outs = ["a.hprof", "b.hprof", "c.hprof.zst", "d.hprof.gz"].map(|name| folder.text(name));
    redact(&folder, &[&plain, "-o", &outs[0], "--key", &key], 0);
    redact(&folder, &[&packed, "-o", &outs[1], "--key", &key], 0);
    redact(&folder, &[&packed, "-o", &outs[2], "--key", &key], 0);
    redact(&folder, &[&plain, "-o", &outs[3], "--key", &key], 0);
    let first = fs::read(&outs[0]).unwrap();
    assert_eq!(fs::read(&outs[1]).unwrap(), first);
    assert_eq!(zstd::decode_all(fs::File::open(&outs[2]).unwrap()).unwrap(), first);
    let mut unpacked = Vec::new();
    let gzip = fs::File::open(&outs[3]).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(gzip), &mut unpacked).unwrap();
    assert_eq!(unpacked, first);
    // Another key gives another dump.
    redact(&folder, &[&plain, "-o", &outs[0], "--force"], 0);
    assert_ne!(fs::read(&outs[0]).unwrap(), first);

    for (name, input) in [("plain", &plain), ("packed", &packed)] {
        let out = folder.text(&format!("{name}.hprof"));
        let mut command = folder.command(&["redact", "-", "-o", &out]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&fs::read(input).unwrap()).unwrap();
        let output = finish(child);
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        let redacted = fs::read(&out).unwrap();
        assert_clean(name, &redacted);
        assert_eq!(redacted.len(), bytes.len());
        // Threads come after the objects.
        assert!(!is_in(&redacted, THREAD.as_bytes()), "{name}");
        assert!(is_in(&redacted, b"com.acme.Account"), "{name}");
        redact(&folder, &["--check", &plain, &out], 0);
    }
}

#[test]
fn what_options_ask_for_is_done() {
    let folder = Folder::new();
    let bytes = dump(&Options::hotspot());
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    redact(&folder, &[&input, "-o", &out, "--thread-names", "--lines", "--zero", "--keep", "hunter*"], 0);
    let redacted = fs::read(&out).unwrap();
    assert!(!is_in(&redacted, THREAD.as_bytes()));
    assert!(is_in(&redacted, SHORT.as_bytes()));
    assert!(!is_in(&redacted, TEXTS[0].as_bytes()));
    let json = folder.json(&["threads", &out]);
    let frame = &json["rows"][0]["frames"][0];
    assert_eq!(frame["method"], "charge", "{json}");
    assert_ne!(frame["line"], 42, "{json}");
    let manifest: Json =
        serde_json::from_slice(&fs::read(folder.path("out.hprof.manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["counts"]["arrays_kept"]["requested"], 2, "{manifest}");
    assert_eq!(manifest["counts"]["lines_removed"], 1);
    assert_eq!(manifest["input"]["bytes"], bytes.len());
    assert!(manifest["proof"].is_null());

    redact(&folder, &[&input, "-o", &out], 2);
    redact(&folder, &[&input, "-o", &out, "--force", "--prove"], 0);
    let manifest: Json =
        serde_json::from_slice(&fs::read(folder.path("out.hprof.manifest.json")).unwrap()).unwrap();
    assert!(manifest["proof"].as_array().unwrap().iter().all(|row| row["equal"] == true), "{manifest}");
    #[cfg(unix)]
    for name in ["out.hprof", "out.hprof.manifest.json"] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn texts_are_not_kept_where_values_are_hidden() {
    let folder = Folder::new();
    let (input, out) = (folder.write("in.hprof", dump(&Options::hotspot())), folder.text("out.hprof"));
    let run = |arguments: &[&str]| {
        let mut command = folder.command(&[&["redact", &input, "-o", &out], arguments].concat());
        command.env("HPROF_CLI_HIDES_VALUES", "1").output().unwrap()
    };
    let output = run(&["--keep", "hunter*"]);
    assert!(code(&output) == 2 && stderr(&output).contains("--keep writes values"), "{}", stderr(&output));
    assert!(!folder.path("out.hprof").exists());
    let output = run(&["--thread-names"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn damage_is_not_copied_and_stays_visible() {
    let folder = Folder::new();
    let bytes = dump(&Options { segment_bytes: Some(600), ..Options::hotspot() });
    let out = folder.text("out.hprof");
    for cut in [bytes.len() - 3, bytes.len() * 3 / 4, bytes.len() / 2] {
        let input = folder.write("in.hprof", &bytes[..cut]);
        redact(&folder, &[&input, "-o", &out, "--force"], 3);
        let redacted = fs::read(&out).unwrap();
        assert_clean("cut", &redacted);
        assert!(redacted.len() <= cut);
        assert_eq!(code(&folder.run(&["doctor", &out])), 3, "cut at {cut}");
    }
    // A damaged region: the tag of a sub-record in the middle.
    let text = (0..bytes.len()).find(|at| bytes[*at..].starts_with(TEXTS[0].as_bytes())).unwrap();
    let mut damaged = bytes.clone();
    // Tag, ID, trace, length and type precede the elements.
    damaged[text - 18] = 0x99;
    let input = folder.write("in.hprof", &damaged);
    redact(&folder, &[&input, "-o", &out, "--force"], 3);
    let redacted = fs::read(&out).unwrap();
    assert_clean("damaged", &redacted);
    assert_eq!(redacted.len(), damaged.len());
    assert_eq!(code(&folder.run(&["doctor", &out])), 3);
}

/// Arrays larger than a window are mapped in blocks.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_large_array_leaves_nothing() {
    let folder = Folder::new();
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let mut large = vec![b'.'; 20 << 20];
    for at in (0..large.len() - 100).step_by(1 << 20) {
        large[at..at + SHORT.len()].copy_from_slice(SHORT.as_bytes());
    }
    large.extend([0; 5000]);
    let array = model.prim_array(Elements::of_bytes(&large));
    let after = jdk.string(&mut model, TEXTS[0]);
    model.root(array, Root::JniGlobal { reference: 1 });
    model.root(after, Root::JniGlobal { reference: 1 });
    for (name, options) in forms() {
        let bytes = model.write(&options).bytes().to_vec();
        let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
        redact(&folder, &[&input, "-o", &out, "--force"], 0);
        let redacted = fs::read(&out).unwrap();
        assert_eq!(redacted.len(), bytes.len());
        assert!(!is_in(&redacted, SHORT.as_bytes()), "{name}");
        assert!(!is_in(&redacted, TEXTS[0].as_bytes()), "{name}");
        assert!(is_in(&redacted, &[0; 5000]));
    }
}

/// Dumps of real JVMs, of the agent and of Android: the proof holds.
#[test]
fn the_proof_holds_for_dumps_of_jvms() {
    let names = [
        "jdk/jdk17.hprof.zst",
        "jdk/jdk8.hprof.zst",
        "agent/all.hprof.zst",
        "public/ahat-RI-agent.hprof.zst",
    ];
    for name in names {
        let folder = Folder::new();
        let out = folder.text("out.hprof");
        let path = sample_path(name);
        let output =
            folder.run(&["redact", path.to_str().unwrap(), "-o", &out, "--prove", "--format", "json", "-q"]);
        assert_eq!(
            code(&output),
            0,
            "{name}: {}{}",
            stderr(&output),
            String::from_utf8_lossy(&output.stdout)
        );
        assert!(rows(&output).len() >= 12);
        assert!(!sample(name).is_empty());
    }
    // Zeros make fields constant.
    let folder = Folder::new();
    let (path, out) = (sample_path(names[0]), folder.text("out.hprof"));
    redact(&folder, &[path.to_str().unwrap(), "-o", &out, "--prove", "--zero", "-q"], 0);
}
