//! Tests that damaged class files cause an error with an offset, never a panic.

use super::assemble::{Class, Code};
use super::{GOTO, NOP, RETURN, STATIC, TRACKER, UnexpectedContent, class_of, code, rewrite};

/// Returns a class with everything that the rewriter reads.
fn rich_class(major: u16) -> Vec<u8> {
    let mut bytes = vec![187, 0, 2, GOTO, 0, 3, 196, 132, 0, 1, 0, 1, 170, 0, 0, 0];
    for part in [24_i32, 0, 1, 24, -12] {
        bytes.extend(part.to_be_bytes());
    }
    bytes.extend([171, 0, 0, 0]);
    for part in [-36_i32, 1, 9, 20] {
        bytes.extend(part.to_be_bytes());
    }
    bytes.extend([RETURN, NOP, 200, 255, 255, 255, 255, RETURN]);
    let rich = Code {
        max_stack: 4,
        max_locals: 4,
        code: bytes,
        handlers: vec![[0, 36, 56, 0], [3, 64, 57, 4]],
        attributes: vec![
            ("LineNumberTable", vec![0, 2, 0, 0, 0, 9, 0, 36, 0, 8]),
            (
                "StackMapTable",
                vec![0, 4, 6, 252, 0, 29, 8, 0, 0, 255, 0, 19, 0, 1, 7, 0, 4, 0, 1, 1, 64, 7, 0, 2],
            ),
            ("LocalVariableTable", vec![0, 1, 0, 0, 0, 64, 0, 1, 0, 1, 0, 0]),
        ],
    };
    let mut class = Class::new(major);
    class.method(STATIC, "rich", "()V", Some(rich));
    class.method(0, "<init>", "()V", Some(code(&[RETURN])));
    class.method(0x0100, "native", "()V", None);
    class.method(STATIC, "last", "()I", Some(code(&[3, 172])));
    class.bytes()
}

/// Generator of pseudorandom numbers: SplitMix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

#[test]
fn mutated_classes_never_panic() {
    let mut random = Random(21);
    let mut damaged = 0;
    let mut changed = 0;
    for case in 0..40_000 {
        let mut class = rich_class(if case % 2 == 0 { 52 } else { 48 });
        for _ in 0..=random.below(3) {
            let at = random.below(class.len());
            match random.below(5) {
                0 => class[at] = random.next() as u8,
                1 => class[at] = [0, 1, 0x7f, 0x80, 0xff, 170, 171, 196, 255][random.below(9)],
                2 => class[at] ^= 1 << random.below(8),
                3 => class.truncate(at + 1),
                _ => class.insert(at, random.next() as u8),
            }
        }
        match rewrite(&class, &TRACKER, &mut |_| Some(random.next() as u32)) {
            Ok(result) => {
                changed += usize::from(result.bytes.is_some());
                // The result can be parsed: no offset is out of range.
                if let Some(bytes) = result.bytes {
                    let again = rewrite(&bytes, &TRACKER, &mut |_| Some(1));
                    assert!(again.is_ok(), "case {case}: {}", again.unwrap_err());
                }
            }
            Err(error) => {
                damaged += 1;
                assert!(error.offset <= class.len(), "case {case}: {error}");
            }
        }
    }
    assert!(damaged > 10_000 && changed > 4_000, "{damaged} damaged, {changed} changed");
}

#[test]
fn truncated_everywhere() {
    let class = rich_class(52);
    assert_eq!(rewrite(&class, &TRACKER, &mut |_| Some(1)).unwrap().methods, 3);
    for length in 0..class.len() {
        let error = rewrite(&class[..length], &TRACKER, &mut |_| Some(1)).unwrap_err();
        assert!(error.offset <= length && error.found == UnexpectedContent::End, "{length}: {error}");
    }
}

#[test]
fn errors_say_where() {
    let number = |class: &[u8]| {
        let error = rewrite(class, &TRACKER, &mut |_| Some(1)).unwrap_err();
        (error.offset, error.found)
    };
    let plain = class_of(52, code(&[RETURN]));
    let mut class = plain.clone();
    class[0] = 0;
    assert_eq!(number(&class), (0, UnexpectedContent::Number(0x00fe_babe)));
    class = plain.clone();
    class[7] = 70;
    assert_eq!(number(&class), (6, UnexpectedContent::Number(70)));
    class = plain.clone();
    class[10] = 2;
    assert_eq!(number(&class), (10, UnexpectedContent::Number(2)), "the tag of the first constant");
    class = plain.clone();
    class.push(1);
    assert_eq!(number(&class), (plain.len(), UnexpectedContent::Number(1)));

    // Start of the code: it is followed by the exception table and attributes of the method, and those of
    // the class.
    let at = |class: &[u8], code: &[u8]| {
        class.windows(code.len()).rposition(|bytes| bytes == code).expect("the code is in the class")
    };
    for (bytes, wrong, found) in [
        (&[NOP, 203, RETURN][..], 1, 203),
        (&[NOP, GOTO, 0, 4, RETURN], 2, 4),
        (&[NOP, GOTO, 0, 1, RETURN], 2, 1),
        (&[NOP, GOTO, 255, 254, RETURN], 2, -2),
        (&[NOP, NOP, 17, 0], 2, 17),
        (&[NOP, 196, NOP, RETURN], 1, 196),
    ] {
        let class = class_of(52, code(bytes));
        assert_eq!(
            number(&class),
            (at(&class, bytes) + wrong, UnexpectedContent::Number(found)),
            "{bytes:?}"
        );
    }
    let text = rewrite(&class_of(52, code(&[203])), &TRACKER, &mut |_| Some(1)).unwrap_err().to_string();
    assert!(text.starts_with("at offset 0x") && text.ends_with("expected an instruction, found 203"));
}
