//! The agent in JVMs: what it records, against what the programs do and what the JVM says of itself.
//!
//! Tests need a JDK: that of `$HPROF_AGENT_JDKS` (homes, separated by colons), or `java` and `javac` on the path. Where there
//! is none they say NOT RUN and pass.
