//! Attacks on root's `dump` by the user of the JVM: a portion of `docs/capture/doors.py`.

use std::path::Path;
use std::process::Command;

use crate::kit::{each_jdk, not_run};

#[test]
fn a_jvms_user_cannot_have_root_touch_what_is_not_his() {
    const TEST: &str = "a_jvms_user_cannot_have_root_touch_what_is_not_his";
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/capture/doors.py");
    each_jdk(TEST, |jdk| {
        let mut command = Command::new("python3");
        command.arg(&script).arg(env!("CARGO_BIN_EXE_hprof-cli")).arg(jdk.home.join("bin/java"));
        let Ok(output) = command.env("PORTION", "1").output() else { return not_run(TEST, "no python3") };
        let said = String::from_utf8_lossy(&output.stdout);
        if said.contains("NOT RUN") {
            return not_run(TEST, said.trim());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("6 attacks, 0 got through"), "{said}{errors}");
    });
}
