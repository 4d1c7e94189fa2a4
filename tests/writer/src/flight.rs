//! Recordings of Flight Recorder.

/// Writes one chunk of a recording.
#[derive(Debug, Clone)]
pub struct FlightWriter {
    bytes: Vec<u8>,
    is_compressed: bool,
    /// Offset of the last checkpoint; 0 for none.
    checkpoint: usize,
}

/// Values in one of the two encodings of integers.
#[derive(Debug, Clone)]
pub struct FlightValues {
    bytes: Vec<u8>,
    is_compressed: bool,
}

/// Type of a field.
#[derive(Debug, Clone, Copy)]
pub struct FlightField {
    /// ID of the type.
    pub type_id: i64,
    /// `true` if the value is the key of a constant.
    pub is_constant: bool,
    /// `true` if the value is an array.
    pub is_array: bool,
}

impl FlightField {
    /// Returns the type of a value that is written in place.
    pub const fn value(type_id: i64) -> Self {
        Self { type_id, is_constant: false, is_array: false }
    }

    /// Returns the type of a constant.
    pub const fn constant(type_id: i64) -> Self {
        Self { is_constant: true, ..Self::value(type_id) }
    }

    /// Returns the type of an array of values.
    pub const fn array(type_id: i64) -> Self {
        Self { is_array: true, ..Self::value(type_id) }
    }
}

/// A type: ID, name, fields.
pub type FlightType<'t> = (i64, &'t str, &'t [(&'t str, FlightField)]);

/// Function that writes a constant.
pub type FlightConstant<'c> = &'c dyn Fn(&mut FlightValues);

/// Field of the type `long` in [`FlightWriter::metadata`].
pub const LONG: FlightField = FlightField::value(4);
/// Field of the type `java.lang.String` in [`FlightWriter::metadata`].
pub const TEXT: FlightField = FlightField::value(5);
/// Field of the type `int` in [`FlightWriter::metadata`].
pub const INT: FlightField = FlightField::value(6);
/// Field of the type `boolean` in [`FlightWriter::metadata`].
pub const BOOLEAN: FlightField = FlightField::value(7);

/// Types that each chunk has.
const PRIMITIVES: [FlightType<'static>; 4] =
    [(4, "long", &[]), (5, "java.lang.String", &[]), (6, "int", &[]), (7, "boolean", &[])];

impl FlightValues {
    fn number(&mut self, value: i64, width: usize) {
        if !self.is_compressed {
            self.bytes.extend_from_slice(&value.to_be_bytes()[8 - width..]);
            return;
        }
        let mut left = value.cast_unsigned();
        for _ in 0..8 {
            if left < 0x80 {
                break;
            }
            self.bytes.push(left.to_le_bytes()[0] | 0x80);
            left >>= 7;
        }
        self.bytes.push(left.to_le_bytes()[0]);
    }

    /// Writes an `int`.
    pub fn int(&mut self, value: i64) {
        self.number(value, 4);
    }

    /// Writes a `long`, or the key of a constant.
    pub fn long(&mut self, value: i64) {
        self.number(value, 8);
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) {
        self.bytes.push(3);
        self.int(count(text.len()));
        self.raw(text.as_bytes());
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).expect("it is a count")
}

impl FlightWriter {
    /// Begins a chunk that starts at 100 ticks, a second after 1970; a tick is a millisecond.
    pub fn new(is_compressed: bool) -> Self {
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        bytes.resize(68, 0);
        bytes[32..40].copy_from_slice(&1_000_000_000i64.to_be_bytes());
        bytes[48..56].copy_from_slice(&100i64.to_be_bytes());
        bytes[56..64].copy_from_slice(&1_000i64.to_be_bytes());
        bytes[67] = is_compressed.into();
        Self { bytes, is_compressed, checkpoint: 0 }
    }

    /// Begins a chunk that starts at a time in ticks, which are those of [`FlightWriter::new`].
    pub fn starting_at(is_compressed: bool, ticks: i64) -> Self {
        let mut writer = Self::new(is_compressed);
        let nanos = 1_000_000_000 + (ticks - 100) * 1_000_000;
        writer.bytes[32..40].copy_from_slice(&nanos.to_be_bytes());
        writer.bytes[48..56].copy_from_slice(&ticks.to_be_bytes());
        writer
    }

    /// Writes a number of the header.
    fn state(&mut self, at: usize, value: usize) {
        self.bytes[at..at + 8].copy_from_slice(&count(value).to_be_bytes());
    }

    /// Returns the number of bytes so far.
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    fn values(&self) -> FlightValues {
        FlightValues { bytes: Vec::new(), is_compressed: self.is_compressed }
    }

    /// Writes an event.
    pub fn event(&mut self, type_id: i64, fields: impl FnOnce(&mut FlightValues)) {
        let mut body = self.values();
        body.long(type_id);
        fields(&mut body);
        let size = u32::try_from(body.bytes.len() + 4).expect("events are small");
        if self.is_compressed {
            // Four bytes for any size.
            let part = |at: u32| (size >> (7 * at)).to_le_bytes()[0] & 0x7f;
            self.bytes.extend([part(0) | 0x80, part(1) | 0x80, part(2) | 0x80, part(3)]);
        } else {
            self.bytes.extend(size.to_be_bytes());
        }
        self.bytes.extend(body.bytes);
    }

    /// Writes the metadata: these types, and primitive ones.
    pub fn metadata(&mut self, types: &[FlightType<'_>]) {
        let mut strings: Vec<String> = Vec::new();
        let mut tree = self.values();
        let mut string = |tree: &mut FlightValues, text: &str| {
            let known = strings.iter().position(|string| string == text);
            let index = known.unwrap_or_else(|| {
                strings.push(text.to_owned());
                strings.len() - 1
            });
            tree.int(count(index));
        };
        let types = PRIMITIVES.iter().chain(types);
        string(&mut tree, "root");
        tree.int(0);
        tree.int(count(types.clone().count()));
        for (id, name, fields) in types {
            string(&mut tree, "class");
            tree.int(2);
            for (key, value) in [("id", &*id.to_string()), ("name", name)] {
                string(&mut tree, key);
                string(&mut tree, value);
            }
            tree.int(count(fields.len()));
            for (name, field) in *fields {
                string(&mut tree, "field");
                tree.int(4);
                for (key, value) in [
                    ("name", *name),
                    ("class", &*field.type_id.to_string()),
                    ("constantPool", &*field.is_constant.to_string()),
                    ("dimension", if field.is_array { "1" } else { "0" }),
                ] {
                    string(&mut tree, key);
                    string(&mut tree, value);
                }
                tree.int(0);
            }
        }
        self.state(24, self.position());
        self.event(0, |body| {
            (0..3).for_each(|_| body.long(1));
            body.int(count(strings.len()));
            strings.iter().for_each(|string| body.text(string));
            body.raw(&tree.bytes);
        });
    }

    /// Writes a checkpoint with constants of one type.
    pub fn checkpoint(&mut self, type_id: i64, constants: &[(i64, FlightConstant<'_>)]) {
        let at = self.position();
        let distance = if self.checkpoint == 0 { 0 } else { count(self.checkpoint) - count(at) };
        (self.checkpoint, _) = (at, self.state(16, at));
        self.event(1, |body| {
            [0, 0, distance].into_iter().for_each(|value| body.long(value));
            body.raw(&[0]);
            body.int(1);
            body.long(type_id);
            body.int(count(constants.len()));
            for (key, value) in constants {
                body.long(*key);
                value(body);
            }
        });
    }

    /// Returns a chunk whose length the JVM has not written.
    pub fn unfinished(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the finished chunk.
    pub fn finish(mut self) -> Vec<u8> {
        self.state(8, self.bytes.len());
        self.bytes
    }
}

/// Returns a chunk with events of each kind that is read: two samples of `a.B.run`, called by `a.B.main`.
pub fn every_kind(is_compressed: bool) -> FlightWriter {
    const SYMBOL: i64 = 30;
    const CLASS: i64 = 31;
    const METHOD: i64 = 32;
    const FRAME_TYPE: i64 = 33;
    const FRAME: i64 = 34;
    const TRACE: i64 = 35;
    const GROUP: i64 = 36;
    const THREAD: i64 = 37;
    const WHEN: i64 = 38;
    const SPACE: i64 = 39;
    const GC_NAME: i64 = 57;
    let mut out = FlightWriter::new(is_compressed);
    let constant = FlightField::constant;
    let class = |name: i64| move |body: &mut FlightValues| body.long(name);
    let symbol = |text: &'static str| move |body: &mut FlightValues| body.text(text);
    out.checkpoint(
        SYMBOL,
        &[(1, &symbol("a/B")), (2, &symbol("[B")), (3, &symbol("run")), (4, &symbol("main"))],
    );
    out.checkpoint(CLASS, &[(1, &class(1)), (2, &class(2))]);
    let method = |name: i64| {
        move |body: &mut FlightValues| {
            body.long(1);
            body.long(name);
        }
    };
    out.checkpoint(METHOD, &[(1, &method(3)), (2, &method(4))]);
    out.checkpoint(FRAME_TYPE, &[(1, &symbol("Native")), (2, &symbol("Interpreted"))]);
    let trace = |frames: &'static [(i64, i64, i64)]| {
        move |body: &mut FlightValues| {
            body.raw(&[0]);
            body.int(count(frames.len()));
            for (method, line, kind) in frames {
                body.long(*method);
                body.int(*line);
                body.long(*kind);
            }
        }
    };
    out.checkpoint(TRACE, &[(1, &trace(&[(1, 12, 2), (2, 5, 2)])), (2, &trace(&[(2, -1, 1)]))]);
    let group = |parent: i64, name: &'static str| {
        move |body: &mut FlightValues| {
            body.long(parent);
            body.text(name);
        }
    };
    out.checkpoint(GROUP, &[(1, &group(0, "system")), (2, &group(1, "main"))]);
    let thread = |body: &mut FlightValues| {
        body.text("os");
        body.long(77);
        body.text("worker");
        body.long(9);
        body.long(2);
    };
    out.checkpoint(THREAD, &[(1, &thread)]);
    let sample = |out: &mut FlightWriter, type_id, trace| {
        out.event(type_id, |body| [101, 1, trace].into_iter().for_each(|value| body.long(value)));
    };
    for (type_id, trace) in [(40, 1), (40, 1), (40, 2), (41, 2), (42, 1), (42, 0)] {
        sample(&mut out, type_id, trace);
    }
    for (type_id, amount) in [(43, 1000), (43, 500), (44, 4096), (45, 70_000)] {
        out.event(type_id, |body| [102, 1, 1, 2, amount].into_iter().for_each(|value| body.long(value)));
    }
    for type_id in [46, 47, 48] {
        out.event(type_id, |body| [103, 25, 1, 1, 1].into_iter().for_each(|value| body.long(value)));
    }
    out.event(49, |body| [104, 1, 1].into_iter().for_each(|value| body.long(value)));
    out.event(50, |body| [105, 1].into_iter().for_each(|value| body.long(value)));
    out.event(51, |body| {
        body.long(106);
        ["JVM", "1.0", "-Xmx1g", "a.B 7"].into_iter().for_each(|text| body.text(text));
        body.long(4711);
    });
    // The heap before and after a full collection.
    out.checkpoint(GC_NAME, &[(1, &symbol("SerialOld"))]);
    out.checkpoint(WHEN, &[(1, &symbol("Before GC")), (2, &symbol("After GC"))]);
    for (when, used) in [(1, 900), (2, 300)] {
        out.event(52, |body| [107, 5, when, 1024, used].into_iter().for_each(|value| body.long(value)));
    }
    out.event(53, |body| [107, 5, 2, 77].into_iter().for_each(|value| body.long(value)));
    out.event(54, |body| [107, 5, 1].into_iter().for_each(|value| body.long(value)));
    out.event(55, |body| [107, 4096].into_iter().for_each(|value| body.long(value)));
    let sampled = [("startTime", LONG), ("sampledThread", constant(THREAD)), ("stackTrace", constant(TRACE))];
    let allocated = |amount: &'static str| {
        [
            ("startTime", LONG),
            ("eventThread", constant(THREAD)),
            ("stackTrace", constant(TRACE)),
            ("objectClass", constant(CLASS)),
            (amount, LONG),
        ]
    };
    let (weight, tlab, outside) = (allocated("weight"), allocated("tlabSize"), allocated("allocationSize"));
    let waited = |class: &'static str| {
        [
            ("startTime", LONG),
            ("duration", LONG),
            ("eventThread", constant(THREAD)),
            ("stackTrace", constant(TRACE)),
            (class, constant(CLASS)),
        ]
    };
    let (monitor, parked) = (waited("monitorClass"), waited("parkedClass"));
    let started = [("startTime", LONG), ("stackTrace", constant(TRACE)), ("thread", constant(THREAD))];
    let described = ["jvmName", "jvmVersion", "jvmArguments", "javaArguments"].map(|name| (name, TEXT));
    let described = [&[("startTime", LONG)][..], &described, &[("pid", LONG)]].concat();
    out.metadata(&[
        (SYMBOL, "jdk.types.Symbol", &[("string", TEXT)]),
        (CLASS, "java.lang.Class", &[("name", constant(SYMBOL))]),
        (METHOD, "jdk.types.Method", &[("type", constant(CLASS)), ("name", constant(SYMBOL))]),
        (FRAME_TYPE, "jdk.types.FrameType", &[("description", TEXT)]),
        (
            FRAME,
            "jdk.types.StackFrame",
            &[("method", constant(METHOD)), ("lineNumber", INT), ("type", constant(FRAME_TYPE))],
        ),
        (TRACE, "jdk.types.StackTrace", &[("truncated", BOOLEAN), ("frames", FlightField::array(FRAME))]),
        (GROUP, "jdk.types.ThreadGroup", &[("parent", constant(GROUP)), ("name", TEXT)]),
        (
            THREAD,
            "java.lang.Thread",
            &[
                ("osName", TEXT),
                ("osThreadId", LONG),
                ("javaName", TEXT),
                ("javaThreadId", LONG),
                ("group", constant(GROUP)),
            ],
        ),
        (40, "jdk.ExecutionSample", &sampled),
        (41, "jdk.NativeMethodSample", &sampled),
        (42, "jdk.CPUTimeSample", &sampled),
        (43, "jdk.ObjectAllocationSample", &weight),
        (44, "jdk.ObjectAllocationInNewTLAB", &tlab),
        (45, "jdk.ObjectAllocationOutsideTLAB", &outside),
        (46, "jdk.JavaMonitorEnter", &monitor),
        (47, "jdk.JavaMonitorWait", &monitor),
        (48, "jdk.ThreadPark", &parked),
        (49, "jdk.ThreadStart", &started),
        (50, "jdk.ThreadEnd", &[("startTime", LONG), ("thread", constant(THREAD))]),
        (51, "jdk.JVMInformation", &described),
        (WHEN, "jdk.types.GCWhen", &[("when", TEXT)]),
        (SPACE, "jdk.types.VirtualSpace", &[("committedSize", LONG)]),
        (56, "jdk.types.MetaspaceSizes", &[("used", LONG)]),
        (
            52,
            "jdk.GCHeapSummary",
            &[
                ("startTime", LONG),
                ("gcId", LONG),
                ("when", constant(WHEN)),
                ("heapSpace", FlightField::value(SPACE)),
                ("heapUsed", LONG),
            ],
        ),
        (
            53,
            "jdk.MetaspaceSummary",
            &[
                ("startTime", LONG),
                ("gcId", LONG),
                ("when", constant(WHEN)),
                ("metaspace", FlightField::value(56)),
            ],
        ),
        (GC_NAME, "jdk.types.GCName", &[("gcName", TEXT)]),
        (54, "jdk.GarbageCollection", &[("startTime", LONG), ("gcId", LONG), ("name", constant(GC_NAME))]),
        (55, "jdk.ContainerConfiguration", &[("startTime", LONG), ("memoryLimit", LONG)]),
    ]);
    out
}

/// Returns a chunk with full collections that left these bytes, at 1 s after 1970 and every 10 ms later. Half of the bytes are
/// objects of `a.B`, of 16 bytes each, if they are counted.
pub fn full_collections(used: &[i64], is_counted: bool) -> FlightWriter {
    let constant = FlightField::constant;
    let mut out = FlightWriter::new(true);
    out.checkpoint(57, &[(1, &|body| body.text("SerialOld"))]);
    out.checkpoint(58, &[(1, &|body| body.text("After GC"))]);
    out.checkpoint(30, &[(1, &|body| body.text("a/B"))]);
    out.checkpoint(31, &[(1, &|body| body.long(1))]);
    for (gc_id, used) in (0..).zip(used) {
        let ticks = 100 + 10 * gc_id;
        out.event(52, |body| {
            [ticks, gc_id, 1, 1 << 20, *used].into_iter().for_each(|value| body.long(value))
        });
        out.event(54, |body| [ticks, gc_id, 1].into_iter().for_each(|value| body.long(value)));
        if is_counted {
            let counted = [ticks, gc_id, 1, used / 32, used / 2];
            out.event(60, |body| counted.into_iter().for_each(|value| body.long(value)));
        }
    }
    out.metadata(&[
        (30, "jdk.types.Symbol", &[("string", TEXT)]),
        (31, "java.lang.Class", &[("name", constant(30))]),
        (57, "jdk.types.GCName", &[("gcName", TEXT)]),
        (58, "jdk.types.GCWhen", &[("when", TEXT)]),
        (59, "jdk.types.VirtualSpace", &[("committedSize", LONG)]),
        (
            52,
            "jdk.GCHeapSummary",
            &[
                ("startTime", LONG),
                ("gcId", LONG),
                ("when", constant(58)),
                ("heapSpace", FlightField::value(59)),
                ("heapUsed", LONG),
            ],
        ),
        (54, "jdk.GarbageCollection", &[("startTime", LONG), ("gcId", LONG), ("name", constant(57))]),
        (
            60,
            "jdk.ObjectCount",
            &[
                ("startTime", LONG),
                ("gcId", LONG),
                ("objectClass", constant(31)),
                ("count", LONG),
                ("totalSize", LONG),
            ],
        ),
    ]);
    out
}
