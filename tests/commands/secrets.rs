//! `secrets`: planted credentials of many kinds are found, nothing else is, and masks show little.
//!
//! No credential is in this file in one piece: they are joined from a prefix and a random text, so that nobody takes them
//! for leaked ones.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

use serde_json::Value as Json;

use hprof_writer::{ClassId, Elements, HeapModel, Jdk, Layout, ObjectId, Options, Root, Type, Value};

use crate::kit::process::{Folder, stderr};
use crate::kit::random::Random;
use crate::kit::texts::code;

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";
const ALL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A credential by a rule about texts: the rule, the secret, and the text that it is in.
struct Planted {
    rule: &'static str,
    secret: String,
    text: String,
}

/// Credentials of many kinds.
fn planted() -> Vec<Planted> {
    let mut random = Random(7);
    // Rule, text before, beginning of the secret, random part, its alphabet, end of the secret, text after.
    let forms: [(&'static str, &str, &str, usize, &str, &str, &str); 46] = [
        ("aws-access-key-id", "", "AKIA", 16, UPPER, "", ""),
        ("aws-secret-access-key", "aws_secret_access_key = ", "", 40, ALL, "", "\n"),
        ("gcp-api-key", "https://maps?key=", "AIza", 35, ALL, "", "&x=1"),
        ("gcp-oauth-secret", "", "GOCSPX-", 28, ALL, "", ""),
        ("azure-storage-key", "AccountName=a;AccountKey=", "", 86, ALL, "==", ";EndpointSuffix=core"),
        ("azure-client-secret", "id ", "abc8Q~", 34, ALL, "", " end"),
        ("github-token", "", "ghp_", 36, ALL, "", ""),
        ("github-fine-grained-token", "", "github_pat_", 82, ALL, "", ""),
        ("gitlab-token", "PRIVATE-TOKEN: ", "glpat-", 20, ALL, "", ""),
        ("slack-token", "", "xoxb-", 12, "0123456789", "-123456789012-aB3dE6gH9jK2", ""),
        ("slack-webhook", "https://hooks.slack.com/services/", "T", 43, ALL, "", ""),
        ("stripe-key", "", "sk_live_", 24, ALL, "", ""),
        ("twilio-key", "sid ", "SK", 32, HEX, "", ""),
        ("sendgrid-key", "", "SG.", 22, ALL, ".aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6", ""),
        ("mailchimp-key", "", "", 32, HEX, "-us12", ""),
        ("npm-token", "//registry/:_x=", "npm_", 36, ALL, "", ""),
        ("pypi-token", "", "pypi-", 100, ALL, "", ""),
        ("docker-token", "", "dckr_pat_", 27, ALL, "", ""),
        ("databricks-token", "", "dapi", 32, HEX, "", ""),
        ("vault-token", "", "hvs.", 90, ALL, "7a", ""),
        ("digitalocean-token", "", "dop_v1_", 64, HEX, "", ""),
        ("shopify-token", "", "shpat_", 32, HEX, "", ""),
        ("newrelic-key", "", "NRAK-", 27, "ABCDEFGHIJ0123456789", "", ""),
        ("grafana-token", "", "glsa_", 32, ALL, "_12ab34cd", ""),
        ("huggingface-token", "", "hf_", 34, ALL, "", ""),
        ("openai-key", "", "sk-proj-", 60, ALL, "T3BlbkFJaB3dE6gH9jK2mN5pQ8sT1vW4yZ7b", ""),
        ("anthropic-key", "", "sk-ant-api03-", 93, ALL, "AA", ""),
        ("telegram-bot-token", "bot ", "12345678:AA", 33, ALL, "", "/send"),
        ("jwt", "", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqb2UifQ.", 43, ALL, "", ""),
        (
            "private-key",
            "-----BEGIN RSA PRIVATE KEY-----\n",
            "",
            64,
            ALL,
            "",
            "\n-----END RSA PRIVATE KEY-----",
        ),
        ("jdbc-password", "jdbc:postgresql://db/app?user=a&password=", "", 9, ALL, "!7", "&ssl=true"),
        ("url-password", "amqp://svc:", "", 12, ALL, "$9", "@mq:5672/vh"),
        ("connection-string-password", "Server=db;User Id=sa;Password=", "", 12, ALL, "#1", ";Encrypt=true"),
        ("authorization-bearer", "Authorization: Bearer ", "", 40, ALL, "1a", ""),
        ("session-cookie", "theme=dark; JSESSIONID=", "", 32, "0123456789ABCDEF", "", "; a=b"),
        ("oauth-token", "{\"access_token\":\"", "", 60, ALL, "1a", "\",\"expires_in\":3600}"),
        ("password-hash", "", "$2a$10$", 53, ALL, "", ""),
        ("key-value", "spring.mail.password=", "", 14, ALL, "7x", ""),
        ("api-key-header", "X-Api-Key: ", "", 24, ALL, "7x", "\r\n"),
        ("xml-password", "<db><password>", "", 14, ALL, "", "</password></db>"),
        ("curl-user", "curl -u joe:", "", 14, ALL, "", " https://host/"),
        ("command-line-password", "java -jar a.jar --password=", "", 14, ALL, "7x", " --fast"),
        ("jaas-password", "x.LoginModule required username=\"a\" password=\"", "", 14, ALL, "", "\";"),
        ("sonarqube-token", "", "squ_", 40, HEX, "", ""),
        ("postman-key", "", "PMAK-", 24, HEX, "-0123456789abcdef0123456789abcdef01", ""),
        ("age-secret-key", "", "AGE-SECRET-KEY-1", 58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "", ""),
    ];
    forms
        .into_iter()
        .map(|(rule, before, beginning, length, alphabet, end, after)| {
            let secret = format!("{beginning}{}{end}", random.text(length, alphabet));
            let text = format!("{before}{secret}{after}");
            Planted { rule, secret, text }
        })
        .collect()
}

/// A program's heap with a class `com.acme.Config`, whose instance holds everything that is added.
struct Heap {
    model: HeapModel,
    jdk: Jdk,
    /// Fields of the configuration, and their values.
    held: Vec<(String, ObjectId)>,
}

impl Heap {
    fn new() -> Self {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        Self { model, jdk, held: Vec::new() }
    }

    fn string(&mut self, text: &str) -> ObjectId {
        self.jdk.string(&mut self.model, text)
    }

    fn hold(&mut self, field: &str, object: ObjectId) {
        self.held.push((field.to_owned(), object));
    }

    fn class(&mut self, name: &str, fields: &[(&str, Type)]) -> ClassId {
        self.model.class(name, Some(self.jdk.object), fields)
    }

    fn chars(&mut self, text: &str) -> ObjectId {
        self.model.prim_array(Elements::of_chars(text))
    }

    /// Adds an object with one field.
    fn with(&mut self, class: &str, field: &str, value: ObjectId) -> ObjectId {
        let class = self.class(class, &[(field, Type::Object)]);
        self.model.instance(class, &[value.into()])
    }

    fn bytes(mut self) -> Vec<u8> {
        let fields: Vec<(&str, Type)> = self.held.iter().map(|(name, _)| (&**name, Type::Object)).collect();
        let class = self.model.class("com.acme.Config", Some(self.jdk.object), &fields);
        let values: Vec<Value> = self.held.iter().map(|(_, value)| (*value).into()).collect();
        let config = self.model.instance(class, &values);
        self.model.root(config, Root::JniGlobal { reference: 1 });
        self.model.root_boot_classes();
        self.model.write(&Options::hotspot()).bytes().to_vec()
    }
}

fn rows(output: &Output) -> Vec<Json> {
    let json: Json =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)));
    json["rows"].as_array().unwrap().clone()
}

/// Runs `secrets`, which has to find something exactly if there are rows.
fn secrets(folder: &Folder, dump: &str, more: &[&str]) -> Vec<Json> {
    let output = folder.run(&[&["secrets", dump, "--format", "json", "--quiet"], more].concat());
    let rows = rows(&output);
    assert_eq!(output.status.code(), Some(i32::from(!rows.is_empty())), "{}", stderr(&output));
    rows
}

fn text<'j>(row: &'j Json, key: &str) -> &'j str {
    row[key].as_str().unwrap_or_default()
}

#[test]
fn planted_secrets_of_many_kinds_are_found_and_nothing_else() {
    let (all, mut heap) = (planted(), Heap::new());
    for (number, planted) in all.iter().enumerate() {
        let string = heap.string(&planted.text);
        heap.hold(&format!("k{number}"), string);
    }
    let folder = Folder::new();
    let dump = folder.write("planted.hprof", heap.bytes());
    let found = secrets(&folder, &dump, &["--show-values"]);
    for (number, planted) in all.iter().enumerate() {
        let holder = format!("com.acme.Config.k{number}");
        let of: Vec<&Json> = found.iter().filter(|row| text(row, "holder") == holder).collect();
        assert_eq!(of.len(), 1, "{} {}: {of:#?}", planted.rule, planted.text);
        let row = of[0];
        assert_eq!((text(row, "rule"), text(row, "value").trim()), (planted.rule, &*planted.secret));
        assert_eq!(text(row, "class"), "java.lang.String");
        assert_eq!((row["copies"].as_u64(), row["reachable"].as_bool()), (Some(1), Some(true)));
        assert_eq!(row["length"].as_u64(), Some(text(row, "value").chars().count() as u64));
    }
    assert_eq!(found.len(), all.len());
    // By rule, then by object.
    let order: Vec<(&str, &str)> = found.iter().map(|row| (text(row, "rule"), text(row, "object"))).collect();
    assert!(order.is_sorted(), "{order:?}");
}

/// No format shows more of a value than its first four and its last two characters.
#[test]
fn masks_show_little_in_every_format() {
    let (all, mut heap) = (planted(), Heap::new());
    for (number, planted) in all.iter().enumerate() {
        let string = heap.string(&planted.text);
        heap.hold(&format!("k{number}"), string);
    }
    let folder = Folder::new();
    let dump = folder.write("planted.hprof", heap.bytes());
    for format in ["table", "json", "csv", "markdown", "sarif"] {
        let output = folder.run(&["secrets", &dump, "--format", format, "--top", "0", "--quiet"]);
        assert_eq!(output.status.code(), Some(1), "{format}: {}", stderr(&output));
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("github-token"), "{format}: {shown}");
        for planted in &all {
            let secret: Vec<char> = planted.secret.chars().collect();
            for window in secret[..].windows(8).skip(4) {
                let window: String = window.iter().collect();
                // Hexadecimal digits and names meet by chance in eight characters only if they are the same word.
                assert!(!shown.contains(&window), "{format}: {} shows {window}", planted.rule);
            }
        }
        assert!(!shown.contains("\"value\""), "{format}");
    }
    for row in secrets(&folder, &dump, &[]) {
        let (beginning, end) = text(&row, "masked").split_once('…').unwrap();
        let shown = beginning.chars().count() + end.chars().count();
        assert!(beginning.chars().count() <= 4 && end.chars().count() <= 2, "{row}");
        assert!(row["length"].as_u64().unwrap() >= 12 || shown == 0, "{row}");
    }
}

#[test]
fn every_encoding_and_holder_of_a_text_is_searched() {
    let key = |random: &mut Random| format!("AKIA{}", random.text(16, UPPER));
    let mut random = Random(3);
    let (mut heap, mut keys) = (Heap::new(), Vec::new());
    let mut next = || {
        let key = key(&mut random);
        keys.push(key.clone());
        key
    };
    let wide = format!("日本 {}", next());
    let wide = heap.string(&wide);
    heap.hold("wide", wide);
    let chars = heap.chars(&next());
    heap.hold("chars", chars);
    let low: Vec<u8> = next().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let low = heap.model.prim_array(Elements::of_bytes(&low));
    heap.hold("low", low);
    let high: Vec<u8> = next().encode_utf16().flat_map(u16::to_be_bytes).collect();
    let high = heap.model.prim_array(Elements::of_bytes(&[&[0xfe, 0xff], &*high].concat()));
    heap.hold("high", high);
    // What is left in a buffer.
    let bytes =
        heap.model.prim_array(Elements::of_bytes(&[b"\xff\0", next().as_bytes(), b"\0\xfe"].concat()));
    let buffer = heap.with("java.nio.HeapByteBuffer", "hb", bytes);
    heap.hold("buffer", buffer);
    let builder = heap.class(
        "java.lang.StringBuilder",
        &[("value", Type::Object), ("coder", Type::Byte), ("count", Type::Int)],
    );
    let value = heap.model.prim_array(Elements::of_bytes(&[next().as_bytes(), &[0; 14]].concat()));
    let builder = heap.model.instance(builder, &[value.into(), Value::Byte(0), Value::Int(20)]);
    heap.hold("builder", builder);
    // Garbage, and copies.
    let garbage = next();
    heap.string(&garbage);
    heap.string(&garbage);
    let folder = Folder::new();
    let dump = folder.write("encodings.hprof", heap.bytes());
    let found = secrets(&folder, &dump, &["--show-values"]);
    let row = |value: &str| {
        found.iter().find(|row| text(row, "value") == value).unwrap_or_else(|| panic!("{value}: {found:#?}"))
    };
    let holders: Vec<(&str, &str)> =
        keys.iter().map(|key| (text(row(key), "class"), text(row(key), "holder"))).collect();
    assert_eq!(
        holders,
        [
            ("java.lang.String", "com.acme.Config.wide"),
            ("char[]", "com.acme.Config.chars"),
            ("byte[]", "com.acme.Config.low"),
            ("byte[]", "com.acme.Config.high"),
            ("byte[]", "com.acme.Config.buffer"),
            ("java.lang.StringBuilder", "com.acme.Config.builder"),
            ("java.lang.String", ""),
        ]
    );
    let garbage = row(&garbage);
    assert_eq!((garbage["reachable"].as_bool(), garbage["copies"].as_u64()), (Some(false), Some(2)));
    assert_eq!(secrets(&folder, &dump, &["--live"]).len(), found.len() - 1);
}

/// Values without a form are found by what holds them.
#[test]
fn fields_and_entries_of_maps_are_found_by_their_names() {
    let mut heap = Heap::new();
    let node = heap.class(
        "java.util.HashMap$Node",
        &[("hash", Type::Int), ("key", Type::Object), ("value", Type::Object), ("next", Type::Object)],
    );
    let nodes = heap.model.array_class(node);
    let map = heap.class("java.util.HashMap", &[("table", Type::Object), ("size", Type::Int)]);
    let entries = |heap: &mut Heap, all: &[(&str, ObjectId)]| {
        let all: Vec<ObjectId> = all
            .iter()
            .map(|(key, value)| {
                let key = heap.string(key);
                heap.model.instance_with(node, &[("key", key.into()), ("value", (*value).into())])
            })
            .collect();
        let table = heap.model.object_array(nodes, &all);
        heap.model.instance(map, &[table.into(), Value::Int(i32::try_from(all.len()).unwrap())])
    };
    // Spring, also with values in objects of their own.
    let plain = heap.string("s3cr3t-in-spring");
    let tracked = heap.string("tracked9secret");
    let tracked = heap.with("org.springframework.boot.origin.OriginTrackedValue", "value", tracked);
    let label = heap.string("Password");
    let sentence = heap.string("Enter your password");
    let placeholder = heap.string("${vault.password}");
    let class_name = heap.string("com.acme.security.TokenFilter");
    let all = [
        ("spring.datasource.password", plain),
        ("spring.rabbitmq.password", tracked),
        ("label.password", label),
        ("prompt.password", sentence),
        ("mail.password", placeholder),
        ("filter.token", class_name),
        ("password.encoder", plain),
    ];
    let source = entries(&mut heap, &all);
    let source = heap.with("org.springframework.core.env.MapPropertySource", "source", source);
    heap.hold("environment", source);
    let value = heap.string("hunter2hunter2");
    let other = entries(&mut heap, &[("client-secret", value)]);
    heap.hold("settings", other);
    // Known classes, arrays of chars, keys, numbers.
    let password = heap.string("sa");
    let pool = heap.with("com.zaxxer.hikari.HikariConfig", "password", password);
    heap.hold("pool", pool);
    let chars = heap.chars("proxy-pass");
    let login = heap.with("java.net.PasswordAuthentication", "password", chars);
    heap.hold("login", login);
    let overwritten = heap.chars("        ");
    let blank = heap.with("javax.security.auth.callback.PasswordCallback", "inputPassword", overwritten);
    heap.hold("callback", blank);
    let key =
        heap.model.prim_array(Elements::of_bytes(&[7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]));
    let key = heap.with("javax.crypto.spec.SecretKeySpec", "key", key);
    heap.hold("cipher", key);
    let mag = heap.model.prim_array(Elements::Int(vec![1, 2, 3, 4]));
    let number = heap.with("java.math.BigInteger", "mag", mag);
    let rsa = heap.with("sun.security.rsa.RSAPrivateCrtKeyImpl", "d", number);
    heap.hold("rsa", rsa);
    let key = heap.model.prim_array(Elements::of_bytes(&[1, 2, 3, 4, 5, 6, 7, 9]));
    let shiro = heap.with("org.apache.shiro.web.mgt.CookieRememberMeManager", "encryptionCipherKey", key);
    heap.hold("shiro", shiro);
    // A field that only has such a name; and fields that do not count.
    let value = heap.string("pa55word!");
    let user = heap.with("com.acme.User", "dbPassword", value);
    heap.hold("user", user);
    let hint = heap.string("the name of my dog");
    let user = heap.with("com.acme.Hints", "passwordHint", hint);
    heap.hold("hint", user);
    // Several words, a list of one, bytes of a key, and what is no key.
    let words = heap.string("zwei blaue Hunde");
    let token = heap.string("q8Xv2LmZ91pRt4Wb");
    let objects = heap.model.array_class(heap.jdk.object);
    let elements = heap.model.object_array(objects, &[token]);
    let list = heap.with("java.util.ArrayList", "elementData", elements);
    let encrypted = heap.string("ENC(aB3dE6gH9jK2mN5pQ8sT1vW4y)");
    let all = [("spring.security.user.password", words), ("X-Api-Key", list), ("mail.password", encrypted)];
    let other = entries(&mut heap, &all);
    heap.hold("more", other);
    let key: Vec<u8> = (0..32u8).map(|byte| byte.wrapping_mul(37).wrapping_add(129)).collect();
    let hexadecimal: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = heap.model.prim_array(Elements::of_bytes(&key));
    let hmac = heap.with("com.acme.Hmac", "hmacSecret", key);
    heap.hold("hmac", hmac);
    let zeros = heap.model.prim_array(Elements::of_bytes(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]));
    let counter = heap.with("com.acme.Counter", "signingKey", zeros);
    heap.hold("counter", counter);
    let folder = Folder::new();
    let dump = folder.write("structure.hprof", heap.bytes());
    let found = secrets(&folder, &dump, &["--show-values"]);
    let shown: BTreeSet<(&str, &str, &str)> =
        found.iter().map(|row| (text(row, "rule"), text(row, "value"), text(row, "holder"))).collect();
    let environment = "org.springframework.core.env.MapPropertySource.source";
    let expected = BTreeSet::from([
        ("spring-property", "s3cr3t-in-spring", environment),
        ("spring-property", "tracked9secret", environment),
        ("named-value", "hunter2hunter2", "com.acme.Config.settings"),
        ("datasource-password", "sa", "com.zaxxer.hikari.HikariConfig.password"),
        ("password-authentication", "proxy-pass", "com.acme.Config.login"),
        ("secret-key", "070102030405060708090a0b0c0d0e0f", "com.acme.Config.cipher"),
        ("private-key-object", "00000001000000020000000300000004", "com.acme.Config.rsa"),
        (
            "shiro-remember-me-key",
            "0102030405060709",
            "org.apache.shiro.web.mgt.CookieRememberMeManager.encryptionCipherKey",
        ),
        ("named-field", "pa55word!", "com.acme.User.dbPassword"),
        ("named-value", "zwei blaue Hunde", "com.acme.Config.more"),
        ("named-value", "q8Xv2LmZ91pRt4Wb", "com.acme.Config.more"),
        ("named-field", &*hexadecimal, "com.acme.Hmac.hmacSecret"),
    ]);
    assert_eq!(shown, expected);
    // Of keys nothing is shown.
    let keys = found.iter().filter(|row| matches!(text(row, "rule"), "secret-key" | "private-key-object"));
    for key in keys {
        assert_eq!((text(key, "masked"), key["length"].as_u64()), ("…", Some(16)));
    }
}

/// False alarms: heaps of programs without credentials have no rows.
#[test]
fn healthy_samples_have_no_credentials() {
    let folder = Folder::new();
    for name in
        ["jdk/jdk8", "jdk/jdk11", "jdk/jdk17", "jdk/jdk25", "leaks/s1", "leaks/s4", "public/maven-jdk8"]
    {
        let found = secrets(&folder, &format!("samples/{name}.hprof.zst"), &["--show-values"]);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn rules_of_a_file_are_added_and_checked() {
    let mut heap = Heap::new();
    let (ours, token) = (heap.string("acme-1234567890"), format!("ghp_{}", Random(5).text(36, ALL)));
    heap.hold("ours", ours);
    let token = heap.string(&token);
    heap.hold("theirs", token);
    let folder = Folder::new();
    let dump = folder.write("rules.hprof", heap.bytes());
    let rules = folder.write(
        "ours.toml",
        "[[text]]\nid = \"acme-key\"\nname = \"Key of Acme\"\nkeywords = [\"acme-\"]\nregex = 'acme-(?P<secret>[0-9]{10})'\n\
         level = \"note\"\n[[text]]\nid = \"github-token\"\nkeywords = [\"nowhere\"]\nregex = 'nowhere'\n",
    );
    let ids = |rows: Vec<Json>| rows.iter().map(|row| text(row, "rule").to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(secrets(&folder, &dump, &[])), ["github-token"]);
    assert_eq!(ids(secrets(&folder, &dump, &["--rules", &rules])), ["acme-key"]);
    let wrong = folder.write("wrong.toml", "[[text]]\nid = \"a\"\nkeywords = [\"abc\"]\nregex = '(a'\n");
    let output = folder.run(&["secrets", &dump, "--rules", &wrong]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("wrong.toml:4:9: not a valid regular expression"),
        "{}",
        stderr(&output)
    );
    // All errors of a file, each in a line of its own.
    let wrong = folder.write("wrong.toml", "[[text]]\nid = \"A\"\nkeyword = [\"abc\"]\nregex = 3\n");
    let said = stderr(&folder.run(&["secrets", &dump, "--rules", &wrong]));
    let lines: Vec<_> = said.lines().filter(|line| line.contains(": error: ")).collect();
    for (line, expected) in lines.iter().zip([
        "wrong.toml:1:1: [[text]] has no `keywords`",
        "wrong.toml:2:6: invalid `id`",
        "wrong.toml:3:1: unknown key `keyword`; did you mean keywords?",
        "wrong.toml:4:9: `regex` is of type integer; expected a string in quotes",
    ]) {
        assert!(line.contains(expected), "{said}");
    }
    assert_eq!(lines.len(), 4, "{said}");
    // Files that are no rules files.
    for (file, expected) in [
        (&*dump, "rules.hprof is not a rules file: it is a heap dump; docs/secrets.md describes rules files"),
        (folder.path("").to_str().unwrap(), "is a directory; name a rules file in it"),
        (&*folder.write("latin.toml", b"# \xe9\n"), "latin.toml:1:3: not UTF-8, which TOML requires"),
    ] {
        let output = folder.run(&["secrets", &dump, "--rules", file]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn sarif_has_a_result_for_each_row() {
    let mut heap = Heap::new();
    let token = format!("ghp_{}", Random(5).text(36, ALL));
    let string = heap.string(&token);
    heap.hold("token", string);
    let folder = Folder::new();
    let dump = folder.write("sarif.hprof", heap.bytes());
    let output = folder.run(&["secrets", &dump, "--format", "sarif"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Json = serde_json::from_slice(&output.stdout).unwrap();
    let run = &json["runs"][0];
    let result = &run["results"][0];
    assert_eq!((run["results"].as_array().unwrap().len(), text(result, "ruleId")), (1, "github-token"));
    let rule =
        &run["tool"]["driver"]["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
    assert_eq!(text(rule, "id"), "github-token");
    let message = text(&result["message"], "text");
    assert!(
        message.starts_with("GitHub token: ghp_…") && message.contains("com.acme.Config.token"),
        "{message}"
    );
    let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(place.as_str().unwrap().ends_with("sarif.hprof"), "{place}");
    assert_eq!(result["properties"]["length"].as_u64(), Some(40));
}

#[test]
fn check_counts_them() {
    let mut heap = Heap::new();
    for (number, planted) in planted().iter().take(3).enumerate() {
        let string = heap.string(&planted.text);
        heap.hold(&format!("k{number}"), string);
    }
    let folder = Folder::new();
    let dump = folder.write("check.hprof", heap.bytes());
    let check = |of: &str, max: u32| {
        let rules = folder.write(
            "rules.toml",
            format!("[[rule]]\nname = \"r\"\nmeasure = \"secrets\"\n{of}\nmax = {max}\n"),
        );
        let output = folder.run(&["check", &dump, "--rules", &rules, "--format", "json"]);
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output),
        )
    };
    let (code, said) = check("", 0);
    assert!(code == 1 && said.contains("credentials: 3, at most 0"), "{code} {said}");
    assert_eq!(check("", 3).0, 0);
    assert_eq!(check("of = \"gcp-api-key\"", 0).0, 1);
    assert_eq!(check("of = \"npm-token\"", 0).0, 0);
    let (code, said) = check("of = \"npm-tokens\"", 0);
    assert!(code == 2 && said.contains("did you mean npm-token"), "{code} {said}");
}

/// Texts made of keywords, as dense as they can be, and values that would change a screen.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn hostile_texts_take_no_time_and_are_escaped() {
    let mut heap = Heap::new();
    for (number, keyword) in
        ["password=", "://", "eyJ", "\"kty\"", "-----BEGIN PRIVATE KEY-----", "AKIA"].iter().enumerate()
    {
        let long =
            heap.model.prim_array(Elements::of_bytes(keyword.repeat(2_000_000 / keyword.len()).as_bytes()));
        heap.hold(&format!("long{number}"), long);
        let wide = heap.chars(&keyword.repeat(500_000 / keyword.len()));
        heap.hold(&format!("wide{number}"), wide);
    }
    let evil = heap.string("jdbc:x://h?password=a\u{1b}[2J\u{202e}7");
    heap.hold("evil", evil);
    let folder = Folder::new();
    let dump = folder.write("hostile.hprof", heap.bytes());
    let start = std::time::Instant::now();
    for format in ["table", "csv", "markdown", "sarif"] {
        let output = folder.run(&["secrets", &dump, "--format", format, "--show-values", "--top", "0"]);
        assert!(output.status.code() == Some(1), "{}", stderr(&output));
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("jdbc-password"), "{format}");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{format}");
    }
    assert!(start.elapsed().as_secs() < 240, "{:?}", start.elapsed());
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let mut heap = Heap::new();
    for (number, planted) in planted().iter().enumerate() {
        for copy in 0..3 {
            let string = heap.string(&planted.text);
            heap.hold(&format!("k{number}x{copy}"), string);
        }
    }
    let folder = Folder::new();
    let dump = folder.write("threads.hprof", heap.bytes());
    let answer = |threads: &str| {
        let output = folder.run(&["secrets", &dump, "--format", "csv", "--quiet", "--threads", threads]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(answer("1"), answer("4"));
    let rows = secrets(&folder, &dump, &[]);
    assert!(rows.iter().all(|row| row["copies"].as_u64() == Some(3)), "{rows:#?}");
    fs::remove_file(&dump).unwrap();
}

#[test]
fn the_documentation_lists_all_rules() {
    let page = fs::read_to_string("docs/secrets.md").unwrap();
    for rule in hprof_query::secrets::SecretRules::builtin().rules() {
        assert!(page.contains(&format!("| `{}` | {} |", rule.id, rule.name)), "{}", rule.id);
    }
}

#[test]
fn what_is_not_looked_at_is_no_success() {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let held: Vec<_> = (0..9000).map(|_| jdk.string(&mut model, "password")).collect();
    let all = model.object_array(jdk.object_array, &held);
    model.root(all, Root::JavaFrame { thread: 1, frame: 0 });
    model.root_boot_classes();
    let folder = Folder::new();
    let dump = folder.write("decoys.hprof", model.write(&Options::hotspot()).bytes());
    let output = folder.run(&["secrets", &dump]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("were not examined"), "{}", stderr(&output));
}
