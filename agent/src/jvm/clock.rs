//! Fast clock for `cpu=times`, which reads it twice per measured call.
//!
//! `clock_gettime` waits until all previous instructions are completed, which costs more than a small method. If the kernel
//! itself derives time from the processor's counter, which it does only if the counter runs evenly on all processors, the
//! counter is read directly.

use std::sync::OnceLock;
use std::time::Instant;

#[derive(Debug, Clone, Copy)]
enum ClockSource {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Counter,
    Nanoseconds(Instant),
}

static SOURCE: OnceLock<ClockSource> = OnceLock::new();

fn source() -> ClockSource {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        const NAME: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        if std::fs::read_to_string(NAME).is_ok_and(|name| name.trim() == "tsc") {
            return ClockSource::Counter;
        }
    }
    ClockSource::Nanoseconds(Instant::now())
}

/// Returns the current time in ticks, whose length is measured by [`Clock`].
#[inline]
pub fn ticks() -> u64 {
    match SOURCE.get_or_init(source) {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        // SAFETY: all processors of this architecture have the counter, and Linux lets programs read it
        // unless they requested otherwise.
        ClockSource::Counter => unsafe { std::arch::x86_64::_rdtsc() },
        ClockSource::Nanoseconds(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
    }
}

/// Measures the length of a tick over the time from the creation of the clock to the call of [`Clock::nanoseconds`].
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    ticks: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { start: Instant::now(), ticks: ticks() }
    }
}

impl Clock {
    /// Returns the length of a tick in nanoseconds.
    pub fn nanoseconds(&self) -> f64 {
        let (nanos, ticks) = (self.start.elapsed().as_nanos(), ticks().saturating_sub(self.ticks));
        if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ticks_are_as_long_as_the_clock_says() {
        let clock = Clock::default();
        let (start, before) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(20));
        let (after, elapsed) = (ticks(), start.elapsed());
        let measured = (after - before) as f64 * clock.nanoseconds();
        // A thread that has to wait for a processor between two readings makes them differ.
        assert!(measured > 15e6 && measured < 2.0 * elapsed.as_nanos() as f64, "{measured} {elapsed:?}");
    }
}
