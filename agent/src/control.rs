//! Commands from the socket to which output is sent ("HPROF Agent", Socket Connection and Communication).

use std::net::TcpStream;

use hprof_format::commands::{self, Command, Incoming};

use crate::jvm::{Argument, Jni};
use crate::messages::complain;

/// Starts a thread that reads commands and passes them to `act`.
pub fn listen(stream: TcpStream, act: impl Fn(Command) + Send + 'static) {
    let started = std::thread::Builder::new().name("HPROF commands".to_owned()).spawn(move || {
        read(stream, &act);
    });
    if let Err(error) = started {
        complain(&format!("cannot start a thread for commands: {error}"));
    }
}

/// Reads commands until the other end closes the connection, or announces that it sends no more.
fn read(mut stream: TcpStream, act: &dyn Fn(Command)) {
    loop {
        match commands::read(&mut stream) {
            Ok(Some(Incoming::Request(request))) if request.command == Command::Eof => return,
            Ok(Some(Incoming::Request(request))) => act(request.command),
            Ok(Some(Incoming::Wrong(wrong))) => complain(&format!("command ignored: {wrong}")),
            Ok(None) => return,
            Err(error) => {
                // The JVM is ending, or the other end closed the connection.
                if error.kind() == std::io::ErrorKind::InvalidData {
                    complain(&format!("no longer reading commands: {error}"));
                }
                return;
            }
        }
    }
}

/// Ends the JVM in the same way as `System.exit(0)`, as if there were no agent.
pub fn exit(jni: &Jni<'_>) {
    let ended = jni.frame(4, |jni| {
        let class = jni.find_class(c"java/lang/System")?;
        jni.call_static_void(class, c"exit", c"(I)V", &[Argument::Int(0)]).then_some(())
    });
    if ended.flatten().is_none() {
        complain("cannot call System.exit to end the JVM");
    }
}
