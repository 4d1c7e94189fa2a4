//! Completion by the shells themselves, with the scripts of `completions`. If a shell is not installed, stderr names
//! it, and its test passes.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::kit::process::{Place, finish};

/// Asks bash, whose arguments are the script and the file of questions. Readline is not there: this splits at `=` and,
/// if the registration says so, falls back on file names, as readline does.
const BASH: &str = r#"
source "$1"
registration=$(complete -p hprof-cli)
[[ $registration =~ \ -F\ ([^ ]+) ]] && function=${BASH_REMATCH[1]}
# The builtin works only while readline completes.
compopt() { :; }
while IFS= read -r line; do
    read -r -a COMP_WORDS <<< "${line//=/ = }"
    [[ $line != *[\ =] ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    word=${COMP_WORDS[COMP_CWORD]}
    "$function" hprof-cli "$word" "${COMP_WORDS[COMP_CWORD - 1]}"
    if ((${#COMPREPLY[@]})); then
        printf '%s\n' "${COMPREPLY[@]}"
    elif [[ $registration == *' -o default '* ]]; then
        compgen -f -- "$word"
    fi
    echo ---
done < "$2"
"#;

/// As [`BASH`]; fish has a command for it.
const FISH: &str = r#"
source $argv[1]
while read line
    complete -C $line
    echo ---
end < $argv[2]
"#;

/// As [`BASH`]. Only the line editor of zsh completes, and it needs a terminal: zpty is one.
const ZSH: &str = r#"
zmodload zsh/zpty
export QUESTIONS=$2 ZDOTDIR=${1:h}
zpty shell zsh -i
while zpty -r shell text; do :; done
cat $ZDOTDIR/answers
"#;

/// Startup file of the zsh in the terminal. It completes as soon as there is a line to edit, so nothing depends on
/// time.
const ZSHRC: &str = r#"
fpath=($ZDOTDIR $fpath)
autoload -Uz compinit && compinit -u -D
unsetopt auto_menu list_beep beep
# Every candidate goes through `compadd`. With -O, -A or -D it only filters arrays.
compadd() {
    local -a found
    if [[ ${@[1,(i)(-|--)]} != *-[OAD]* ]]; then
        builtin compadd -O found "$@"
        (( ! $#found )) || print -rl -- $found >> $ZDOTDIR/answers
    fi
    builtin compadd "$@"
}
zle-line-init() {
    local line
    while IFS= read -r line; do
        BUFFER=$line CURSOR=$#line
        zle complete-word
        print -r -- --- >> $ZDOTDIR/answers
    done < $QUESTIONS
    exit
}
zle -N zle-line-init
"#;

fn text(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hprof-cli")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The commands, from the help.
fn commands() -> Vec<String> {
    let help = text(&["--help"]);
    // Groups of commands stand between usage and options, a line each.
    let (_, list) = help.split_once("Usage: ").unwrap();
    let (list, _) = list.split_once("Options:\n").unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    // Commands that every program has are not listed.
    names.chain(["help"]).map(str::to_owned).collect()
}

/// The long options of a command, from its help.
fn long_options(command: &str) -> Vec<String> {
    let help = text(&[command, "--help"]);
    let name = |line: &str| {
        let option = line.split_once("--").filter(|(before, _)| {
            // `      --live`, `  -q, --quiet`; lines with more indentation are descriptions.
            before.len() == 6 && (before.trim().is_empty() || before.trim().starts_with('-'))
        });
        option.map(|(_, rest)| format!("--{}", rest.split([' ', '=', '[']).next().unwrap()))
    };
    let names: Vec<_> = help.lines().filter_map(name).collect();
    assert!(names.iter().any(|name| name == "--help"), "{command}: {names:?}");
    names
}

/// Lines up to the cursor, and all that completes their last word.
fn questions() -> Vec<(String, Vec<String>)> {
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    let mut all: Vec<_> = commands
        .iter()
        .filter(|command| *command != "help")
        .map(|command| (format!("hprof-cli {command} --"), long_options(command)))
        .collect();
    let some = [
        ("hprof-cli paths", &["paths-to-root"][..]),
        ("hprof-cli help paths", &["paths-to-root"]),
        ("hprof-cli histo --format ", &["csv", "json", "markdown", "table"]),
        ("hprof-cli histo --format=j", &["json"]),
        ("hprof-cli histo heap.hprof --format c", &["csv"]),
        ("hprof-cli paths-to-root heap.hprof --color ", &["always", "auto", "never"]),
        ("hprof-cli histo ", &["heap.hprof", "java dump.txt"]),
        ("hprof-cli histo --live hea", &["heap.hprof"]),
        ("hprof-cli paths-to-root --top 3 ", &["heap.hprof", "java dump.txt"]),
        ("hprof-cli convert heap.hprof --output ja", &["java dump.txt"]),
        ("hprof-cli histo heap.hprof --top ", &[]),
    ];
    all.push(("hprof-cli ".to_owned(), commands));
    all.extend(
        some.map(|(line, answer)| (line.to_owned(), answer.iter().map(|&word| word.to_owned()).collect())),
    );
    all
}

/// Asks a shell all questions, in one process. `driver` is its program, with the script and the questions as arguments.
fn check(shell: &str, options: &[&str], driver: &str) {
    if let Err(error) = Command::new(shell).arg("--version").stdout(Stdio::null()).status() {
        // Not by a macro: the harness would keep that for itself.
        let text = format!("completions in {shell} are NOT TESTED: cannot run {shell}: {error}\n");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        return;
    }
    let place = Place::new("heap.hprof", b"");
    let [shell_dir, dumps] = ["shell", "dumps"].map(|name| place.path(name));
    for dir in [&shell_dir, &dumps] {
        fs::create_dir(dir).unwrap();
    }
    for dump in ["heap.hprof", "java dump.txt"] {
        fs::write(dumps.join(dump), "").unwrap();
    }
    let questions = questions();
    let lines: String = questions.iter().map(|(line, _)| format!("{line}\n")).collect();
    let files = [
        ("_hprof-cli", text(&["completions", shell])),
        ("questions", lines),
        ("driver", driver.to_owned()),
        (".zshenv", "unsetopt global_rcs\n".to_owned()),
        (".zshrc", ZSHRC.to_owned()),
    ];
    for (name, text) in files {
        fs::write(shell_dir.join(name), text).unwrap();
    }
    let child = Command::new(shell)
        .args(options)
        .args(["driver", "_hprof-cli", "questions"].map(|name| shell_dir.join(name)))
        .current_dir(dumps)
        .env("HOME", &shell_dir)
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let output = finish(child.unwrap());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
    let output = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<_> = output.split_terminator("---\n").collect();
    assert_eq!(answers.len(), questions.len(), "{shell}: {output}");
    let wrong: Vec<_> = questions
        .iter()
        .zip(answers)
        .filter_map(|((line, right), answer)| {
            let right: BTreeSet<_> = right.iter().cloned().collect();
            let is_long = line.ends_with(" --");
            let answer: BTreeSet<_> = answer
                .lines()
                // fish describes after a tab and repeats the option, zsh quotes, and nothing typed yet is no candidate.
                .map(|word| word.split('\t').next().unwrap().replace('\\', ""))
                .map(|word| if is_long { word } else { word.trim_start_matches("--format=").to_owned() })
                .filter(|word| !word.is_empty())
                .collect();
            (answer != right).then(|| format!("{line}\n  completes {answer:?}\n  must be   {right:?}\n"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{shell}: {} of {} are wrong:\n{}",
        wrong.len(),
        questions.len(),
        wrong.concat()
    );
}

#[test]
fn bash_completes_commands_options_values_and_files() {
    check("bash", &["--norc", "--noprofile"], BASH);
}

#[test]
fn fish_completes_commands_options_values_and_files() {
    check("fish", &["--no-config"], FISH);
}

#[test]
fn zsh_completes_commands_options_values_and_files() {
    check("zsh", &["-f"], ZSH);
}
