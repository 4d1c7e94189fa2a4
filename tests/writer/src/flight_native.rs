//! Chunks of recordings with mallocs and frees, as async-profiler writes them.

use crate::flight::{BOOLEAN, FlightConstant, FlightField, FlightValues, FlightWriter, INT, LONG, TEXT};

/// A malloc or a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeEvent {
    /// Time in ticks: 100 are a second after 1970, and a tick is a millisecond.
    pub ticks: i64,
    /// Address of the memory.
    pub address: i64,
    /// Bytes, and number of the method that allocated them, from 1; `None` for a free.
    pub malloc: Option<(i64, i64)>,
}

/// Returns a chunk that starts at a time in ticks, with these events in this order. Each method is a stack of one frame.
pub fn native_memory(start_ticks: i64, methods: &[&str], events: &[NativeEvent]) -> Vec<u8> {
    const SYMBOL: i64 = 30;
    const CLASS: i64 = 31;
    const METHOD: i64 = 32;
    const FRAME: i64 = 34;
    const TRACE: i64 = 35;
    const THREAD: i64 = 37;
    let mut out = FlightWriter::starting_at(true, start_ticks);
    let symbols: Vec<_> = std::iter::once(&"a/B")
        .chain(methods)
        .map(|text| move |body: &mut FlightValues| body.text(text))
        .collect();
    let keyed = |constants: Vec<FlightConstant<'_>>, out: &mut FlightWriter, type_id| {
        out.checkpoint(type_id, &(1..).zip(constants).collect::<Vec<_>>());
    };
    keyed(symbols.iter().map(|symbol| symbol as FlightConstant<'_>).collect(), &mut out, SYMBOL);
    out.checkpoint(CLASS, &[(1, &|body| body.long(1))]);
    let numbers = || (1..).zip(methods).map(|(number, _)| number);
    let named: Vec<_> = numbers()
        .map(|number: i64| {
            move |body: &mut FlightValues| {
                body.long(1);
                body.long(number + 1);
            }
        })
        .collect();
    keyed(named.iter().map(|method| method as FlightConstant<'_>).collect(), &mut out, METHOD);
    let traces: Vec<_> = numbers()
        .map(|number: i64| {
            move |body: &mut FlightValues| {
                body.raw(&[0]);
                body.int(1);
                body.long(number);
                body.int(7);
            }
        })
        .collect();
    keyed(traces.iter().map(|trace| trace as FlightConstant<'_>).collect(), &mut out, TRACE);
    out.checkpoint(THREAD, &[(1, &|body| body.text("worker"))]);
    for NativeEvent { ticks, address, malloc } in events {
        match malloc {
            Some((bytes, method)) => out.event(40, |body| {
                [*ticks, 1, *method, *address, *bytes].into_iter().for_each(|value| body.long(value));
            }),
            None => out.event(41, |body| {
                [*ticks, 1, 0, *address].into_iter().for_each(|value| body.long(value));
            }),
        }
    }
    let constant = FlightField::constant;
    let freed = [
        ("startTime", LONG),
        ("eventThread", constant(THREAD)),
        ("stackTrace", constant(TRACE)),
        ("address", LONG),
    ];
    let allocated = [&freed[..], &[("size", LONG)]].concat();
    out.metadata(&[
        (SYMBOL, "jdk.types.Symbol", &[("string", TEXT)]),
        (CLASS, "java.lang.Class", &[("name", constant(SYMBOL))]),
        (METHOD, "jdk.types.Method", &[("type", constant(CLASS)), ("name", constant(SYMBOL))]),
        (FRAME, "jdk.types.StackFrame", &[("method", constant(METHOD)), ("lineNumber", INT)]),
        (TRACE, "jdk.types.StackTrace", &[("truncated", BOOLEAN), ("frames", FlightField::array(FRAME))]),
        (THREAD, "java.lang.Thread", &[("javaName", TEXT)]),
        (40, "profiler.Malloc", &allocated),
        (41, "profiler.Free", &freed),
    ]);
    out.finish()
}
