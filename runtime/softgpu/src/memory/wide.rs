//! The loops over lanes and cells that run for every access, compiled for AVX2 beside the baseline; which one runs is decided
//! on the machine.

use super::access::Lanes;
use super::order::view::AGENT;

/// Defines a function whose body is also compiled with AVX2 and used where the machine has it.
macro_rules! wide {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $out:ty $body:block) => {
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name($($arg: $ty),*) -> $out {
            #[inline(always)]
            fn body($($arg: $ty),*) -> $out $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2($($arg: $ty),*) -> $out {
                    body($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the machine has AVX2.
                    return unsafe { with_avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

/// What all lanes of a warp know by numbers alone, and which records are their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Accesses of the grid, the block and the warp that are known.
    pub ticks: (u32, u32, u32),
    /// The first thread of the block, and how many numbers it has.
    pub block: (u32, u32),
    /// The first thread of the warp.
    pub warp: u32,
    /// The thread of the first cell.
    pub own: u32,
    /// log2 of the cells of a thread.
    pub shift: u32,
}

wide! {
    /// Whether every record is known.
    fn all_known(stamps: &[u32], whos: &[u32], known: &Known) -> bool {
        let (grid, block, warp) = known.ticks;
        let mut good = true;
        for (i, (&stamp, &who)) in stamps.iter().zip(whos).enumerate() {
            let own = who == known.own.wrapping_add(i as u32 >> known.shift);
            let of_block = (who.wrapping_sub(known.block.0) < known.block.1) & (stamp < block);
            let of_warp = (who.wrapping_sub(known.warp) < 32) & (stamp < warp);
            good &= (who < AGENT) & ((stamp < grid) | own | of_block | of_warp);
        }
        good
    }
}

wide! {
    /// Fills in who was there last: each thread has `1 << shift` cells.
    fn number(whos: &mut [u32], first: u32, shift: u32) -> () {
        for (i, who) in whos.iter_mut().enumerate() {
            *who = first + (i as u32 >> shift);
        }
    }
}

wide! {
    /// The offsets of addresses from `origin`; the lanes whose offset is `most` at most, and all bits that occur in offsets.
    fn offsets(addresses: &Lanes<u64>, origin: u64, most: u64, out: &mut Lanes<u32>) -> (u32, u32) {
        let (mut outside, mut bits) = (0u64, 0u32);
        for (address, out) in addresses.iter().zip(out.iter_mut()) {
            let offset = address.wrapping_sub(origin);
            outside |= u64::from(offset > most);
            *out = offset as u32;
            bits |= *out;
        }
        if outside == 0 {
            return (u32::MAX, bits);
        }
        let mut inside = 0;
        for (lane, address) in addresses.iter().enumerate() {
            inside |= u32::from(address.wrapping_sub(origin) <= most) << lane;
        }
        (inside, bits)
    }
}

wide! {
    /// The lanes at an offset.
    fn equal(offsets: &Lanes<u32>, to: u32) -> u32 {
        let mut lanes = 0;
        for (lane, &offset) in offsets.iter().enumerate() {
            lanes |= u32::from(offset == to) << lane;
        }
        lanes
    }
}

wide! {
    /// The least and the greatest offset of some lanes.
    fn extent(offsets: &Lanes<u32>, lanes: u32) -> (u32, u32) {
        let (mut least, mut most) = (u32::MAX, 0);
        for (lane, &offset) in offsets.iter().enumerate() {
            let out = (lanes >> lane & 1).wrapping_sub(1);
            least = least.min(offset | out);
            most = most.max(offset & !out);
        }
        (least, most)
    }
}

wide! {
    /// The lanes whose place in `bits` is set.
    fn bits_at(bits: u32, places: &Lanes<u32>) -> u32 {
        let mut lanes = 0;
        for (lane, &place) in places.iter().enumerate() {
            lanes |= (bits >> (place & 31) & 1) << lane;
        }
        lanes
    }
}

wide! {
    /// The lanes that are where the lane before them is, and those that lie `span` bytes further on.
    fn neighbours(offsets: &Lanes<u32>, span: u32) -> (u32, u32) {
        let (mut same, mut next) = (0, 0);
        for lane in 1..32 {
            let step = offsets[lane].wrapping_sub(offsets[lane - 1]);
            same |= u32::from(step == 0) << lane;
            next |= u32::from(step == span) << lane;
        }
        (same, next)
    }
}

wide! {
    /// Reads 32 words of four bytes, one after another.
    fn gather_words(bytes: &[u8], out: &mut Lanes<u64>) -> () {
        for (word, value) in bytes.chunks_exact(4).zip(out.iter_mut()) {
            *value = u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
}

wide! {
    /// Puts the lower halves of the lanes of a mask into words.
    fn put_low_words(words: &mut Lanes<u32>, values: &Lanes<u64>, mask: u32) -> () {
        for (lane, (word, value)) in words.iter_mut().zip(values).enumerate() {
            let taken = (mask >> lane & 1).wrapping_neg();
            *word = (*value as u32 & taken) | (*word & !taken);
        }
    }
}

wide! {
    /// Writes 32 words of four bytes, one after another.
    fn scatter_words(bytes: &mut [u8], values: &Lanes<u64>) -> () {
        for (word, value) in bytes.chunks_exact_mut(4).zip(values.iter()) {
            word.copy_from_slice(&(*value as u32).to_le_bytes());
        }
    }
}
