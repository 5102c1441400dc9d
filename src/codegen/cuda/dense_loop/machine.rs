//! What a dense loop may use of a device: shared memory of a block, registers of a thread, how many blocks run at once.

/// Limits of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Multiprocessors: blocks of a cooperative launch that surely run at the same time.
    pub sms: usize,
    /// Bytes of shared memory that one block may opt in to.
    pub shared: usize,
}

/// The registers of a multiprocessor, on every architecture since sm_75.
const REGISTERS: usize = 65_536;

/// What the compiler may give one thread at most.
const PER_THREAD: usize = 255;

impl Machine {
    /// The limits of an architecture. How many multiprocessors a device has is no matter of architecture: where
    /// `sms` is not given, those of its smallest common server card are taken, so that the kernel fits the larger ones.
    pub fn new(sm: u32, sms: Option<usize>) -> Machine {
        let (usual, kilobytes) = match sm {
            ..80 => (40, 64),
            80 => (108, 163),
            87 => (16, 163),
            81..89 => (72, 99),
            89 => (58, 99),
            90..100 => (114, 227),
            100..120 => (140, 227),
            // Newer consumer cards, and whatever comes after them, have the least.
            120.. => (48, 99),
        };
        Machine {
            sms: sms.unwrap_or(usual).max(1),
            shared: kilobytes * 1024,
        }
    }

    /// Registers a thread may use where so many threads make a block.
    pub fn registers(threads: usize) -> usize {
        // The compiler allocates them in eights.
        (REGISTERS / threads / 8 * 8).min(PER_THREAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_architectures() {
        let shared = |sm| Machine::new(sm, None).shared / 1024;
        assert_eq!(
            [75, 80, 86, 89, 90, 100, 120].map(shared),
            [64, 163, 99, 99, 227, 227, 99]
        );
        assert_eq!(Machine::new(90, Some(132)).sms, 132);
    }

    #[test]
    fn registers_are_shared_by_the_threads() {
        assert_eq!([128, 256, 384, 512].map(Machine::registers), [255, 255, 168, 128]);
    }
}
