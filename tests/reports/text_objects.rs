//! `histo` and `show` on text reports, against the binary dumps that the texts were made of.

use crate::agent_texts::{ALL, Texts, run};
use hprof_cli::ObjectId;
use hprof_query::recordings::profile::text::show;
use hprof_query::show::ShownValue;

#[test]
fn objects_of_a_text() {
    let texts = Texts::new();
    let file = texts.file(ALL);
    let show = |object| {
        let question = show::TextObjectQuery { object: ObjectId(object), elements: 0..1, incoming: true };
        show::show(&file, 1, &question).unwrap()
    };
    let value = |part: &hprof_query::show::ShownPart| match &part.value {
        ShownValue::Reference(Some(to)) => {
            format!("{} {:x} {:?} {:?}", part.name, to.object, to.class.as_deref(), to.label.as_deref())
        }
        other => panic!("{other:?}"),
    };
    let instance = show(0x5000_1f93);
    let shown = instance.shown.unwrap();
    assert_eq!(
        (shown.class.as_deref(), shown.shallow_bytes, shown.trace.0),
        (Some("Plain"), Some(24), 300_001)
    );
    assert_eq!(shown.fields.iter().map(value).collect::<Vec<_>>(), ["next 50001f94 Some(\"Plain[]\") None"]);
    let referrers: Vec<_> = (instance.referrers.iter())
        .map(|from| (from.object.0, from.class.as_deref().unwrap(), from.reference.as_deref().unwrap()))
        .collect();
    assert_eq!(
        referrers,
        [(0x5000_1f90, "java.lang.Class", "<loader>, it"), (0x5000_1f94, "Plain[]", "[0], [1]")]
    );
    let array = show(0x5000_1f94);
    assert_eq!(array.shown.unwrap().length, Some(2));
    assert_eq!(array.elements.iter().map(value).collect::<Vec<_>>(), ["[0] 50001f93 Some(\"Plain\") None"]);
    let class = show(0x5000_1f90).shown.unwrap();
    assert_eq!((class.label.as_deref(), class.shallow_bytes, class.roots.len()), (Some("Plain"), None, 1));
    let nothing = show(0x5000_1f92);
    let ids = |nearest: &[ObjectId]| nearest.iter().map(|id| id.0).collect::<Vec<_>>();
    assert_eq!((nothing.shown, ids(&nothing.nearest)), (None, vec![0x5000_1f90, 0x5000_1f93, 0x5000_1f94]));
    assert_eq!(ids(&show(0).nearest), [0x5000_1f90, 0x5000_1f93]);
    assert_eq!(ids(&show(u64::MAX).nearest), [0x5000_1f93, 0x5000_1f94]);
}

#[test]
fn a_dump_and_its_text_have_the_same_histogram() {
    let dir = tempfile::tempdir().unwrap();
    for name in
        ["agent/all.hprof.zst", "jdk/jdk17.hprof.zst", "jdk/jdk8.hprof.zst", "public/ahat-RI-agent.hprof.zst"]
    {
        let dump = format!("samples/{name}");
        let text = dir.path().join("out.txt");
        let text = text.to_str().unwrap();
        let _ = std::fs::remove_file(text);
        assert!(run(&["convert", &dump, "-o", text]).status.success());
        for group in ["class", "package", "loader"] {
            let histo = |file: &str| run(&["histo", file, "--group-by", group, "--format", "csv", "-q"]);
            let (of_dump, of_text) = (histo(&dump), histo(text));
            assert!(of_dump.status.success() && of_text.status.success(), "{name}");
            let (left, right) =
                (String::from_utf8(of_dump.stdout).unwrap(), String::from_utf8(of_text.stdout).unwrap());
            assert_eq!(left, right, "{name} by {group}");
        }
    }
}

#[test]
fn show_says_the_same_of_a_dump_and_its_text() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("out.txt");
    let text = text.to_str().unwrap();
    let dump = "samples/agent/all.hprof.zst";
    assert!(run(&["convert", dump, "-o", text]).status.success());
    let lines = std::fs::read_to_string(text).unwrap();
    let ids = lines.lines().filter(|line| line.starts_with("OBJ ") || line.starts_with("ARR "));
    // Texts write IDs as hexadecimal digits without `0x`; where one asks, bare digits are decimal.
    let ids: Vec<String> =
        ids.step_by(900).map(|line| format!("0x{}", line.split(' ').nth(1).unwrap())).collect();
    for id in &ids {
        let show = |file: &str| -> serde_json::Value {
            let output = run(&["show", file, id, "--format", "json", "--incoming"]);
            assert!(output.status.success(), "{id}: {}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["rows"][0].clone()
        };
        let (of_dump, of_text) = (show(dump), show(text));
        for key in ["object", "class", "kind", "shallow_bytes", "trace", "length"] {
            assert_eq!(of_dump[key], of_text[key], "{id} {key}");
        }
        // A text has no primitives, no nulls, and the order of the agent, which starts at the topmost superclass.
        let references = |row: &serde_json::Value| -> Vec<(String, String)> {
            let fields = row["fields"].as_array().unwrap().iter().filter(|field| !field["object"].is_null());
            let pair = |field: &serde_json::Value| (field["name"].to_string(), field["object"].to_string());
            let mut pairs: Vec<_> = fields.map(pair).collect();
            pairs.sort();
            pairs
        };
        assert_eq!(references(&of_dump), references(&of_text), "{id}");
        // The graph has neither constants nor signers and domains; a text does not count locals as references of
        // threads.
        let incoming = |row: &serde_json::Value| -> Vec<String> {
            let list = row["incoming"].as_array().unwrap().iter();
            let list = list.filter(|from| {
                let reference = from["reference"].as_str().unwrap();
                !reference.starts_with('<') || reference.contains("<super>") || reference.contains("<loader>")
            });
            let mut ids: Vec<_> = list.map(|from| from["object"].to_string()).collect();
            ids.sort();
            ids.dedup();
            ids
        };
        assert_eq!(incoming(&of_dump), incoming(&of_text), "{id}");
    }
}

#[test]
fn commands_say_what_they_cannot_do() {
    let text = "samples/agent/dump.txt.zst";
    for flag in ["--retained", "--live", "--unreachable", "--layout=reference=4"] {
        let output = run(&["histo", text, flag]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("needs a binary dump"), "{error}");
    }
    let code = |arguments: &[&str]| run(arguments).status.code();
    assert_eq!(code(&["histo", text, "--run", "2"]), Some(2));
    assert_eq!(code(&["histo", "samples/agent/cpu-samples.txt"]), Some(1));
    assert_eq!(code(&["histo", "samples/agent/all.hprof.zst", "--run", "1"]), Some(2));
    let missing = run(&["show", text, "0x50000001f"]);
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("the nearest objects are 0x"));
    let missing = run(&["show", "samples/agent/all.hprof.zst", "1", "--format", "json"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stdout).contains("\"near\": ["));
}
