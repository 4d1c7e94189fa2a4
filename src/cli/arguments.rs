//! The arguments of commands as a whole: their order in the help, and usage lines without what variables set.

use clap::{Arg, Command};

/// Arguments that nearly all commands have; those of a command itself come before them in its help.
const SHARED: &[&str] =
    &["dump", "heap_dump", "threads", "index_dir", "memory", "quiet", "format", "color", "no_values"];

/// Usage lines that clap would not write so.
const USAGES: &[(&str, &str)] = &[
    (
        "check",
        "hprof-cli check [OPTIONS] --rules <FILE> <DUMP>...\n       hprof-cli check --init [-o <FILE>] <DUMP>",
    ),
    ("export", "hprof-cli export [OPTIONS] --output-dir <DIR> <DUMP>...\n       hprof-cli export --schema"),
    ("run", "hprof-cli run [OPTIONS] -- java <ARGUMENT>..."),
    (
        "trend",
        "hprof-cli trend [OPTIONS] <DUMP|TEXT|PID>...\n       hprof-cli trend [OPTIONS] <PID> [--every <TIME>] [--for <TIME>]",
    ),
    ("waste", "hprof-cli waste [OPTIONS] <DUMP>\n       hprof-cli waste --explain <KIND>"),
];

/// Returns the command with its own arguments before the shared ones. Clap lists headings and options in the order in which
/// they are added, and shared arguments are added first, as the dump is the first argument of nearly all commands.
pub(super) fn own_first(name: &'static str, command: Command) -> Command {
    // A command with others is more than its arguments.
    if command.has_subcommands() {
        return command;
    }
    let is_shared = |arg: &&Arg| SHARED.contains(&arg.get_id().as_str());
    let is_option = |arg: &&Arg| !arg.is_positional();
    let options = || command.get_arguments().filter(is_option);
    let ordered = options().filter(|arg| !is_shared(arg));
    // Usage lines and manual pages have them in this order.
    let ordered = ordered.chain(command.get_positionals()).chain(options().filter(is_shared));
    let ordered = Command::new(name).args(ordered.map(|arg| arg.clone().display_order(None::<usize>)));
    let ordered = ordered.groups(command.get_groups().cloned());
    let ordered = match command.get_about() {
        Some(about) => ordered.about(about.clone()),
        None => ordered,
    };
    let ordered = match command.get_long_about() {
        Some(about) => ordered.long_about(about.clone()),
        None => ordered,
    };
    match USAGES.iter().find(|(command, _)| *command == name) {
        Some((_, usage)) => ordered.override_usage(*usage),
        None => ordered,
    }
}

/// Returns the parser without the environment variables of its options.
pub(super) fn without_variables(program: Command) -> Command {
    let plain = |arg: Arg| arg.env(None::<&str>);
    program.mut_subcommands(|command| command.mut_args(plain))
}
