//! Rounding in the four directions: an operation's result as the nearest f64 and the sign of what that leaves out, and from
//! there to narrower formats, rounded once.
//!
//! The trick is rounding to odd: an inexact value is given an odd last bit of 53, after which rounding to 24 bits or fewer
//! sees everything it has to know (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
//! rounding to odd", 2008).

/// Where to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To the nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// To the nearest, ties away from zero.
    Away,
}

impl Round {
    /// The words of opcodes, for floating-point results.
    pub const WORDS: [(&'static str, Round); 5] = [
        ("rn", Round::Nearest),
        ("rz", Round::Zero),
        ("rm", Round::Down),
        ("rp", Round::Up),
        ("rna", Round::Away),
    ];

    /// As modifier bits.
    pub fn bits(self) -> u32 {
        match self {
            Round::Nearest => 0,
            Round::Zero => 1,
            Round::Down => 2,
            Round::Up => 3,
            Round::Away => 4,
        }
    }

    /// From modifier bits.
    #[inline(always)]
    pub fn from_bits(bits: u32) -> Round {
        match bits & 7 {
            0 => Round::Nearest,
            1 => Round::Zero,
            2 => Round::Down,
            3 => Round::Up,
            _ => Round::Away,
        }
    }
}

/// A result: the nearest f64, and what the exact value exceeds it by (of which only the sign is used, and zero means exact).
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// The nearest f64.
    pub near: f64,
    /// The rest.
    pub rest: f64,
    /// An exact zero from operands of different signs, or of negative sign: minus zero where one rounds down.
    pub cancelled: bool,
}

impl Exact {
    /// A value that is exactly representable.
    pub fn of(value: f64) -> Exact {
        Exact {
            near: value,
            rest: 0.0,
            cancelled: false,
        }
    }

    /// `a + b`.
    #[inline(never)]
    pub fn sum(a: f64, b: f64) -> Exact {
        let near = a + b;
        let back = near - a;
        let rest = (a - (near - back)) + (b - back);
        let cancelled = near == 0.0 && (a.is_sign_negative() || b.is_sign_negative());
        Exact { near, rest, cancelled }.finite()
    }

    /// `a * b`.
    #[inline(never)]
    pub fn product(a: f64, b: f64) -> Exact {
        let near = a * b;
        let rest = a.mul_add(b, -near);
        let exact = Exact {
            near,
            rest,
            cancelled: false,
        };
        exact.finite()
    }

    /// `a * b + c`: the error terms of Boldo and Muller, "Some functions computable with a fused-mac" (2005).
    #[inline(never)]
    pub fn fused(a: f64, b: f64, c: f64) -> Exact {
        let near = a.mul_add(b, c);
        let product = Exact::product(a, b);
        let tail = Exact::sum(c, product.rest);
        let head = Exact::sum(product.near, tail.near);
        let rest = (head.near - near) + head.rest + tail.rest;
        let negative = (a.is_sign_negative() != b.is_sign_negative()) || c.is_sign_negative();
        let cancelled = near == 0.0 && negative;
        Exact { near, rest, cancelled }.finite()
    }

    /// `a / b`.
    #[inline(never)]
    pub fn quotient(a: f64, b: f64) -> Exact {
        let near = a / b;
        let rest = (-near).mul_add(b, a) * b.signum();
        Exact {
            near,
            rest,
            cancelled: false,
        }
        .finite()
    }

    /// The square root.
    #[inline(never)]
    pub fn root(a: f64) -> Exact {
        let near = a.sqrt();
        let rest = (-near).mul_add(near, a);
        Exact {
            near,
            rest,
            cancelled: false,
        }
        .finite()
    }

    /// Infinite and undefined results leave nothing out.
    fn finite(self) -> Exact {
        let rest = if self.near.is_finite() && !self.rest.is_nan() {
            self.rest
        } else {
            0.0
        };
        Exact { rest, ..self }
    }

    /// With an odd last bit where it is not exact: ready for one more rounding to fewer bits.
    pub fn odd(self) -> f64 {
        if self.rest == 0.0 || self.near.to_bits() & 1 != 0 {
            return self.near;
        }
        if self.rest > 0.0 {
            self.near.next_up()
        } else {
            self.near.next_down()
        }
    }

    /// Rounded to f32.
    #[inline(never)]
    pub fn f32(self, round: Round) -> f32 {
        if self.cancelled && round == Round::Down {
            return -0.0;
        }
        to_f32(self.odd(), round)
    }

    /// Rounded to f64.
    #[inline(never)]
    pub fn f64(self, round: Round) -> f64 {
        if self.cancelled && round == Round::Down {
            return -0.0;
        }
        let (near, rest) = (self.near, self.rest);
        match round {
            Round::Nearest | Round::Away => near,
            Round::Up if rest > 0.0 => near.next_up(),
            Round::Down if rest < 0.0 => near.next_down(),
            Round::Zero if near > 0.0 && rest < 0.0 => near.next_down(),
            Round::Zero if near < 0.0 && rest > 0.0 => near.next_up(),
            _ => near,
        }
    }
}

/// An f64 (with an odd last bit if it is itself rounded) to f32.
#[inline(never)]
pub fn to_f32(value: f64, round: Round) -> f32 {
    let near = value as f32;
    let wide = f64::from(near);
    if wide == value || value.is_nan() {
        return near;
    }
    let up = |near: f32| if wide < value { near.next_up() } else { near };
    let down = |near: f32| if wide > value { near.next_down() } else { near };
    match round {
        Round::Nearest | Round::Away => near,
        Round::Up => up(near),
        Round::Down => down(near),
        Round::Zero if value > 0.0 => down(near),
        Round::Zero => up(near),
    }
}

/// Rounds the significand of a positive or negative finite f64 to `digits` bits, with the exponent of the last bit at least
/// `least`; returns the magnitude as a whole number of units in the last place, and the exponent of that unit.
#[inline(never)]
pub fn significand(value: f64, digits: i32, least: i32, round: Round) -> (u64, i32) {
    let bits = value.abs().to_bits();
    let exponent = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    // value = whole * 2^unit
    let (whole, unit) = if exponent == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, exponent - 1075)
    };
    let length = 64 - whole.leading_zeros() as i32;
    let target = (unit + length - digits).max(least);
    let shift = target - unit;
    if shift <= 0 {
        return (whole << (-shift).min(63), target);
    }
    let (kept, half, lost) = split(whole, shift as u32);
    let up = match round {
        Round::Nearest => lost > half || (lost == half && kept & 1 != 0),
        Round::Away => lost >= half,
        Round::Zero => false,
        Round::Down => lost > 0 && value < 0.0,
        Round::Up => lost > 0 && value > 0.0,
    };
    (kept + u64::from(up), target)
}

/// `whole` shifted right, what one half of a unit is then, and what was shifted out, on one scale.
fn split(whole: u64, shift: u32) -> (u64, u64, u64) {
    if shift > 60 {
        // Below half of a unit: any number above zero and below the half will do.
        return (0, 2, u64::from(whole != 0));
    }
    (whole >> shift, 1 << (shift - 1), whole & ((1 << shift) - 1))
}

/// A small binary format: IEEE-like, with `digits` of significand (the hidden one counted).
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Bits of significand.
    pub digits: i32,
    /// Bits of exponent.
    pub exponent: i32,
}

/// IEEE binary16.
pub const F16: Format = Format {
    digits: 11,
    exponent: 5,
};
/// bfloat16.
pub const BF16: Format = Format { digits: 8, exponent: 8 };

impl Format {
    /// The exponent's bias.
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Bits of infinity without the sign.
    pub const fn infinity(self) -> u16 {
        (((1 << self.exponent) - 1) << (self.digits - 1)) as u16
    }

    /// Rounds an f64 (with an odd last bit if it is itself rounded). NaN is PTX's canonical one, `0x7fff`.
    #[inline(never)]
    pub fn round(self, value: f64, round: Round) -> u16 {
        if value.is_nan() {
            return 0x7FFF;
        }
        let sign = u16::from(value.is_sign_negative()) << 15;
        if value.is_infinite() {
            return sign | self.infinity();
        }
        let least = 2 - self.bias() - self.digits;
        let (whole, unit) = significand(value, self.digits, least, round);
        sign | self.encode(whole, unit - least, value, round)
    }

    /// Adding the exponent to the significand carries over from one binade to the next by itself.
    fn encode(self, whole: u64, above: i32, value: f64, round: Round) -> u16 {
        let bits = whole as i64 + (i64::from(above) << (self.digits - 1));
        if whole == 0 {
            return 0;
        }
        if bits < i64::from(self.infinity()) {
            return bits as u16;
        }
        let inward = match round {
            Round::Zero => true,
            Round::Down => value > 0.0,
            Round::Up => value < 0.0,
            Round::Nearest | Round::Away => false,
        };
        self.infinity() - u16::from(inward)
    }
}
