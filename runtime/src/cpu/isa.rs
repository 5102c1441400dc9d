//! Which instructions the machine has. Hot loops are written once and compiled for each.

/// An instruction set that hot loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// What every machine of the target has.
    Portable,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Isa {
    /// The best that this machine has.
    pub(super) fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return Isa::Avx2;
        }
        Isa::Portable
    }

    /// Every one that this machine has.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Isa> {
        let best = Isa::detect();
        if best == Isa::Portable {
            vec![best]
        } else {
            vec![Isa::Portable, best]
        }
    }
}

/// Defines `$name(isa, ...)`, which calls the inlined generic `$body::<FUSED>(...)` compiled for `isa`.
macro_rules! for_each_isa {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) = $body:ident) => {
        $(#[$meta])*
        pub(super) fn $name(isa: $crate::cpu::isa::Isa, $($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $type),*) {
                $body::<true>($($arg),*);
            }
            match isa {
                // SAFETY: `Isa::detect` returns Avx2 only where the machine has these instructions.
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::isa::Isa::Avx2 => unsafe { avx2($($arg),*) },
                $crate::cpu::isa::Isa::Portable => $body::<{ cfg!(target_arch = "aarch64") }>($($arg),*),
            }
        }
    };
}
pub(super) use for_each_isa;
