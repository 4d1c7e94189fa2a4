//! Tests with assembled class files of kinds that compilers no longer write (`jsr` and `ret` of version 48), and with the
//! tracker's class.

#[path = "../../src/rewrite/tests/assemble.rs"]
mod assemble;

use crate::jdk::{TempDir, jdks};
use assemble::{Class, Code};
use hprof_agent::rewrite::{Tracker, rewrite, tracker_class};
use std::fs;

/// Program that runs `Made.sum(int)`, and prints its result and the tracker's counts.
const RUN_MADE: &str = "public class RunMade {
    public static void main(String[] args) throws Exception {
        Object sum = Class.forName(\"Made\").getMethod(\"sum\", int.class).invoke(null, 4);
        System.out.println(sum + \" \" + TestTracker.entries + TestTracker.stack + TestTracker.wrong);
    }
}";

/// Returns a class with `static int sum(int n)`. Its subroutine adds n to the sum and decrements n; it is called by two
/// instructions, in a loop and after the loop.
fn subroutines() -> Vec<u8> {
    #[rustfmt::skip]
    let code = vec![
        3, 60,           //  0 iconst_0; istore_1
        26,              //  2 iload_0
        154, 0, 13,      //  3 ifne 16
        168, 0, 16,      //  6 jsr 22
        27, 172,         //  9 iload_1; ireturn
        0, 0, 0, 0, 0,   // 11 nop
        168, 0, 6,       // 16 jsr 22
        167, 255, 239,   // 19 goto 2
        77,              // 22 astore_2
        27, 26, 96, 60,  // 23 iload_1; iload_0; iadd; istore_1
        132, 0, 255,     // 27 iinc 0 -1
        169, 2,          // 30 ret 2
    ];
    let mut class = Class::new(48);
    class.method(0x0009, "sum", "(I)I", Some(Code { max_stack: 2, max_locals: 3, code, ..Code::default() }));
    class.bytes()
}

#[test]
fn subroutines_of_old_classes() {
    for jdk in jdks("subroutines_of_old_classes") {
        let dir = TempDir::new(&format!("subroutines-{}", jdk.version));
        let classes = dir.text("classes");
        fs::write(dir.join("TestTracker.java"), include_str!("java/TestTracker.java")).unwrap();
        fs::write(dir.join("RunMade.java"), RUN_MADE).unwrap();
        jdk.run("javac", &["-d", &classes, &dir.text("TestTracker.java"), &dir.text("RunMade.java")]);
        let run = |class: &[u8]| {
            fs::write(dir.join("classes/Made.class"), class).unwrap();
            jdk.run("java", &["-Xverify:all", "-cp", &classes, "RunMade"])
        };
        let class = subroutines();
        // 4 + 3 + 2 + 1 and, at the end, 0.
        assert_eq!(run(&class), "10 {}[][]\n");
        let tracker = Tracker::new("TestTracker", "enter", "exit");
        let rewritten = rewrite(&class, &tracker, &mut |_| Some(7)).unwrap();
        assert_eq!(run(&rewritten.bytes.unwrap()), "10 {7=1}[][]\n");
    }
}

#[test]
fn the_class_of_the_tracker_is_valid() {
    for jdk in jdks("the_class_of_the_tracker_is_valid") {
        let dir = TempDir::new(&format!("tracker-{}", jdk.version));
        let tracker = Tracker::new("org/example/Tracker", "methodEnter", "methodExit");
        let file = dir.join("org/example/Tracker.class");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, tracker_class(&tracker)).unwrap();
        let text = jdk.run("javap", &["-cp", &dir.text("."), "org.example.Tracker"]);
        let expected = "public final class org.example.Tracker {\n  public static native void methodEnter(int);\n  \
                        public static native void methodExit(int);\n}\n";
        assert_eq!(text, expected);
        // The JVM links the class when its methods are read by reflection.
        let program = dir.join("Link.java");
        let source = "public class Link { public static void main(String[] args) throws Exception {
            System.out.println(Class.forName(\"org.example.Tracker\").getMethods().length > 2); } }";
        fs::write(&program, source).unwrap();
        let output = jdk.run("java", &["-Xverify:all", "-cp", &dir.text("."), program.to_str().unwrap()]);
        assert_eq!(output, "true\n");
    }
}
