//! Tests of the rewriter with assembled and damaged classes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod assemble;
mod damaged;

use super::layout::{ClassFileLayout, CodeAttribute};
use super::{RewrittenClass, Tracker, UnexpectedContent, rewrite, tracker_class};
use assemble::{Class, Code};

const TRACKER: Tracker<'_> = Tracker::new("java/lang/Tracker", "enter", "exit");

const STATIC: u16 = 8;
const NOP: u8 = 0;
const ICONST_0: u8 = 3;
const GOTO: u8 = 167;
const IRETURN: u8 = 172;
const RETURN: u8 = 177;

/// Number of all methods in these tests, which can be pushed by an instruction of one byte.
const NUMBER: u32 = 5;

fn rewritten(class: &[u8]) -> RewrittenClass {
    rewrite(class, &TRACKER, &mut |_| Some(NUMBER)).unwrap()
}

/// Returns a class with one static method.
fn class_of(major: u16, code: Code) -> Vec<u8> {
    let mut class = Class::new(major);
    class.method(STATIC, "m", "()V", Some(code));
    class.bytes()
}

fn code(code: &[u8]) -> Code {
    Code { max_stack: 3, max_locals: 2, code: code.to_vec(), ..Code::default() }
}

/// Parts of a method after rewriting.
struct After {
    max_stack: u16,
    code: Vec<u8>,
    handlers: Vec<[u16; 4]>,
    /// Content of the `StackMapTable`, with its count.
    frames: Option<(u16, Vec<u8>)>,
    debug: Vec<Vec<u8>>,
}

fn after(class: &[u8]) -> After {
    let layout = ClassFileLayout::read(class).unwrap();
    let method = &layout.methods[0];
    let read = CodeAttribute::read(&layout.pool, method.code.clone()).unwrap();
    let rest = |reader: &super::reader::ClassFileReader<'_>| {
        let mut reader = reader.clone();
        let mut bytes = Vec::new();
        while !reader.is_at_end() {
            bytes.push(reader.u1("").unwrap());
        }
        bytes
    };
    let handlers = rest(&read.handlers);
    After {
        max_stack: read.max_stack,
        code: read.code.to_vec(),
        handlers: handlers
            .chunks_exact(8)
            .map(|entry| [0, 2, 4, 6].map(|at| u16::from_be_bytes([entry[at], entry[at + 1]])))
            .collect(),
        frames: read.frames.as_ref().map(|table| (table.count, rest(&table.entries))),
        debug: read.debug.iter().map(|(_, table)| rest(&table.entries)).collect(),
    }
}

/// Rewrites the method of an assembled class, and returns the result.
fn change(major: u16, code: Code) -> After {
    let result = rewritten(&class_of(major, code));
    assert_eq!((result.methods, result.skipped.len()), (1, 0));
    after(&result.bytes.unwrap())
}

/// Describes the code: `E` and `X` for the inserted calls, and the value of each other byte.
fn calls(after: &After) -> String {
    let mut text = String::new();
    let mut rest = after.code.as_slice();
    let enter = &rest[..4];
    while let Some(&first) = rest.first() {
        // iconst_5, invokestatic
        if rest.len() >= 4 && rest[..2] == [8, 184] {
            text += if rest[..4] == *enter { "E " } else { "X " };
            rest = &rest[4..];
        } else {
            text += &format!("{first} ");
            rest = &rest[1..];
        }
    }
    text.trim_end().to_owned()
}

#[test]
fn a_call_at_entry_before_each_return_and_in_the_handler() {
    let after = change(52, code(&[ICONST_0, IRETURN, ICONST_0, IRETURN]));
    assert_eq!(calls(&after), "E 3 X 172 3 X 172 X 191");
    assert_eq!(after.handlers, [[4, 16, 16, 0]]);
    assert_eq!(after.max_stack, 4);
    let (count, frames) = after.frames.unwrap();
    // full_frame at 16: no locals, one java/lang/Throwable.
    assert_eq!((count, &frames[..7]), (1, &[255, 0, 16, 0, 0, 0, 1][..]));
    assert_eq!(frames[7], 7);
    let old = change(49, code(&[RETURN]));
    assert_eq!((calls(&old).as_str(), old.frames), ("E X 177 X 191", None), "no frames before version 50");
}

#[test]
fn the_constructor_has_no_handler() {
    let mut class = Class::new(52);
    class.method(0, "<init>", "()V", Some(code(&[RETURN])));
    let after = after(&rewritten(&class.bytes()).bytes.unwrap());
    assert_eq!(calls(&after), "E X 177");
    assert!(after.handlers.is_empty() && after.frames.is_none());
}

#[test]
fn branches_to_the_start_and_to_returns() {
    // 0: goto 0 does not enter again; 3: goto 6 runs the call before the return; 7: goto_w 6.
    let after = change(48, code(&[GOTO, 0, 0, GOTO, 0, 3, RETURN, 200, 255, 255, 255, 255]));
    assert_eq!(calls(&after), "E 167 0 0 167 0 3 X 177 200 255 255 255 251 X 191");
}

#[test]
fn switches_at_every_alignment() {
    for nops in 0..8 {
        let mut bytes = vec![NOP; nops];
        bytes.push(170);
        bytes.resize((nops + 4) & !3, 0);
        let end = bytes.len() as i32 - nops as i32 + 12 + 8;
        for part in [end, 1, 2, -(nops as i32), end] {
            bytes.extend(part.to_be_bytes());
        }
        bytes.push(RETURN);
        let lookup = bytes.len();
        bytes.push(171);
        bytes.resize((lookup + 4) & !3, 0);
        for part in [nops as i32 - lookup as i32, 1, -7, -1] {
            bytes.extend(part.to_be_bytes());
        }
        let after = change(48, code(&bytes));
        let int = |at: usize| i32::from_be_bytes(after.code[at..at + 4].try_into().unwrap());
        let table = 4 + nops;
        assert_eq!(after.code[table], 170);
        let operands = (table + 4) & !3;
        assert!(after.code[table + 1..operands].iter().all(|&pad| pad == 0));
        let exit = operands + 20;
        assert_eq!(after.code[exit + 4], RETURN);
        let distance = (exit - table) as i32;
        assert_eq!(
            [0, 4, 8, 12, 16].map(|at| int(operands + at)),
            [distance, 1, 2, -(nops as i32), distance]
        );
        let lookup = exit + 5;
        assert_eq!(after.code[lookup], 171);
        let operands = (lookup + 4) & !3;
        let targets = [table as i32 - lookup as i32, 1, -7, exit as i32 + 4 - lookup as i32];
        // -1 is the return, whose call begins four bytes before it.
        let targets = [targets[0], targets[1], targets[2], targets[3] - 4];
        assert_eq!([0, 4, 8, 12].map(|at| int(operands + at)), targets);
    }
}

#[test]
fn tables_move_with_the_code() {
    let mut made = code(&[NOP, NOP, RETURN, NOP, RETURN]);
    made.handlers = vec![[0, 2, 3, 4], [3, 5, 2, 0]];
    made.attributes = vec![
        ("LineNumberTable", vec![0, 2, 0, 0, 0, 9, 0, 3, 0, 8]),
        ("LocalVariableTable", vec![0, 2, 0, 0, 0, 5, 0, 1, 0, 1, 0, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0, 1]),
        ("LocalVariableTypeTable", vec![0, 1, 0, 3, 0, 2, 0, 1, 0, 1, 0, 1]),
        ("RuntimeVisibleTypeAnnotations", vec![0, 0]),
        ("org.example.Unknown", vec![1, 2, 3]),
    ];
    let bytes = class_of(52, made);
    let mut line = None;
    let result = rewrite(&bytes, &TRACKER, &mut |method| {
        line = method.first_line;
        Some(NUMBER)
    });
    assert_eq!(line, Some(9));
    let after = after(&result.unwrap().bytes.unwrap());
    // 0 nop; 1 nop; 2 return; 3 nop; 4 return; 5 end
    assert_eq!(calls(&after), "E 0 0 X 177 0 X 177 X 191");
    assert_eq!(after.handlers, [[4, 6, 11, 4], [11, 17, 6, 0], [4, 17, 17, 0]]);
    assert_eq!(
        after.debug,
        [
            vec![0, 0, 0, 9, 0, 11, 0, 8],
            vec![0, 0, 0, 17, 0, 1, 0, 1, 0, 0, 0, 5, 0, 6, 0, 1, 0, 1, 0, 1],
            vec![0, 11, 0, 6, 0, 1, 0, 1, 0, 1],
        ],
        "annotations and unknown attributes are dropped"
    );
}

#[test]
fn frames_move_with_the_code() {
    // `new` at 1, returns at 60 to 69.
    let mut bytes = vec![NOP, 187, 0, 2];
    bytes.resize(60, NOP);
    bytes.resize(70, RETURN);
    let mut made = code(&bytes);
    let mut frames = vec![0, 8];
    frames.extend([0]); // same_frame at 0
    frames.extend([63 - 4]); // at 60
    frames.extend([64, 8, 0, 1]); // same_locals_1_stack_item at 61: uninitialized of 1
    frames.extend([247, 0, 0, 1]); // extended, at 62: int
    frames.extend([250, 0, 0]); // chop, at 63
    frames.extend([253, 0, 0, 7, 0, 4, 8, 0, 1]); // append two, at 64
    frames.extend([251, 0, 0]); // same_frame_extended, at 65
    frames.extend([255, 0, 1, 0, 1, 8, 0, 1, 0, 2, 0, 1]); // full, at 67
    made.attributes = vec![("StackMapTable", frames)];
    let after = change(52, made);
    let (count, frames) = after.frames.unwrap();
    assert_eq!(count, 9);
    // Each return takes five bytes: the first frame is at 4, the next one at 64, then 69, 74, 79, 84, 89, 99.
    let mut expected = vec![4, 59, 64 + 4, 8, 0, 5, 64 + 4, 1, 250, 0, 4];
    expected.extend([253, 0, 4, 7, 0, 4, 8, 0, 5, 4, 255, 0, 9, 0, 1, 8, 0, 5, 0, 2, 0, 1]);
    // The frame of the handler, at 114.
    expected.extend([255, 0, 14, 0, 0, 0, 1, 7]);
    assert_eq!(frames[..expected.len()], expected);
    assert_eq!(frames.len(), expected.len() + 2);
}

#[test]
fn short_frames_become_long_ones() {
    let mut bytes = vec![RETURN; 30];
    bytes.push(NOP);
    let mut made = code(&bytes);
    made.attributes = vec![("StackMapTable", vec![0, 2, 14, 64 + 14, 1])];
    let (_, frames) = change(52, made).frames.unwrap();
    // At 4 + 14 * 5, and 15 returns later.
    assert_eq!(frames[..7], [251, 0, 74, 247, 0, 74, 1]);
}

#[test]
fn instructions_that_push_numbers() {
    let pushes = [
        (0, vec![3]),
        (5, vec![8]),
        (6, vec![16, 6]),
        (127, vec![16, 127]),
        (128, vec![17, 0, 128]),
        (32_767, vec![17, 127, 255]),
        (u32::MAX, vec![16, 255]),
    ];
    let class = class_of(52, code(&[RETURN]));
    for (number, push) in pushes {
        let result = rewrite(&class, &TRACKER, &mut |_| Some(number)).unwrap();
        let code = after(&result.bytes.unwrap()).code;
        assert_eq!(code[..push.len()], push, "{number}");
        assert_eq!(code[push.len()], 184);
    }
    for number in [32_768_u32, 1 << 31] {
        let result = rewrite(&class, &TRACKER, &mut |_| Some(number)).unwrap().bytes.unwrap();
        let code = after(&result).code;
        assert_eq!((code[0], code[3]), (19, 184), "ldc_w");
        let mut constant = vec![3];
        constant.extend(number.to_be_bytes());
        assert!(result.windows(5).any(|bytes| bytes == constant));
    }
}

/// Returns a `goto` over `distance` bytes, one of which is a return.
fn long_branch(distance: u16) -> Vec<u8> {
    let [high, low] = distance.to_be_bytes();
    let mut bytes = vec![GOTO, high, low, RETURN];
    bytes.resize(usize::from(distance), NOP);
    bytes.push(RETURN);
    bytes
}

#[test]
fn methods_that_become_too_long() {
    let methods = |code_bytes: &[u8]| {
        let class = class_of(48, code(code_bytes));
        let result = rewritten(&class);
        assert_eq!(result.bytes.is_none(), result.methods == 0);
        (result.methods, result.skipped)
    };
    // A return takes four bytes more.
    assert_eq!(methods(&long_branch(32_763)), (1, vec![]));
    assert_eq!(methods(&long_branch(32_764)), (0, vec![NUMBER]));
    // Entry, one return, and the handler with `athrow`: 13 bytes.
    let long = |length: usize| {
        let mut bytes = vec![NOP; length - 1];
        bytes.push(RETURN);
        bytes
    };
    assert_eq!(methods(&long(65_522)), (1, vec![]));
    assert_eq!(methods(&long(65_523)), (0, vec![NUMBER]));
    let mut deep = code(&[RETURN]);
    deep.max_stack = u16::MAX;
    assert_eq!(rewritten(&class_of(48, deep)).skipped, [NUMBER]);
}

#[test]
fn the_others_are_rewritten_if_one_is_too_long() {
    let mut class = Class::new(48);
    class.method(STATIC, "a", "()V", Some(code(&[RETURN])));
    class.method(STATIC, "b", "()V", Some(code(&long_branch(32_764))));
    class.method(STATIC, "c", "()V", Some(code(&[NOP, RETURN])));
    class.method(0x0100, "native", "()V", None);
    class.method(0x0400, "abstract", "()V", None);
    class.method(0, "finalize", "()V", Some(code(&[RETURN])));
    let bytes = class.bytes();
    let mut names = Vec::new();
    let result = rewrite(&bytes, &TRACKER, &mut |method| {
        names.push(String::from_utf8(method.name.to_vec()).unwrap());
        Some(names.len() as u32 - 1)
    })
    .unwrap();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!((result.methods, result.skipped), (2, vec![1]));
    let new = result.bytes.unwrap();
    let layout = ClassFileLayout::read(&new).unwrap();
    let lengths: Vec<usize> = layout
        .methods
        .iter()
        .map(|method| CodeAttribute::read(&layout.pool, method.code.clone()).unwrap().code.len())
        .collect();
    assert_eq!(lengths, [14, 32_765, 15, 1]);
    // The bytes after the methods are unchanged.
    let tail = bytes.len() - 30;
    assert!(new.ends_with(&bytes[tail..]));
    assert!(rewrite(&bytes, &TRACKER, &mut |_| None).unwrap().bytes.is_none(), "none is wanted");
}

#[test]
fn full_constant_pools() {
    // 12 constants of the calls; the class has four constants, its method three.
    for (count, methods) in [(65_535 - 12, 1), (65_535 - 11, 0)] {
        let mut class = Class::new(52);
        for _ in 1 + 4 + 3..count {
            class.utf8("");
        }
        class.method(STATIC, "m", "()V", Some(code(&[RETURN])));
        let bytes = class.bytes();
        let result = rewritten(&bytes);
        assert_eq!((result.methods, result.skipped.len()), (methods, 1 - methods));
        let large = rewrite(&bytes, &TRACKER, &mut |_| Some(1 << 20)).unwrap();
        assert_eq!((large.methods, large.skipped), (0, vec![1 << 20]), "no space for the number");
    }
}

#[test]
fn the_class_of_the_tracker() {
    let bytes = tracker_class(&TRACKER);
    let layout = ClassFileLayout::read(&bytes).unwrap();
    assert_eq!(layout.name, b"java/lang/Tracker");
    assert!(layout.methods.is_empty(), "native methods have no code");
    for name in ["enter", "exit", "(I)V"] {
        assert!(bytes.windows(name.len()).any(|part| part == name.as_bytes()));
    }
    assert_eq!(rewritten(&bytes).bytes, None);
}
