//! Single instructions, written as PTX, against values from elsewhere: exact integers, f64, the `half` crate, tables of the
//! PTX manual.

use crate::host::{Host, line};
use softgpu::{Arg, Launch};

/// Runs an instruction for every triple of operands. Its registers are `h`, `r` and `x` (16, 32 and 64 bits) followed by `a`,
/// `b`, `c` or `d`, and the predicate `p`; the result is `d` of the given file.
fn evaluate(instruction: &str, file: char, operands: &[[u64; 3]]) -> Vec<u64> {
    let result = match file {
        'h' => "cvt.u64.u16 xd, hd;",
        'r' => "cvt.u64.u32 xd, rd;",
        'p' => "selp.u64 xd, 1, 0, p;",
        _ => "",
    };
    let text = format!(
        ".version 8.5\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 results, .param .u64 operands, .param .u32 count) {{
        .reg .pred p, q; .reg .b16 ha, hb, hc, hd; .reg .b32 ra, rb, rc, rd, i, n; .reg .b64 xa, xb, xc, xd, at, from, to;
        ld.param.u64 to, [results]; ld.param.u64 from, [operands]; ld.param.u32 n, [count];
        mov.u32 i, %ctaid.x; mov.u32 rd, %ntid.x; mov.u32 ra, %tid.x; mad.lo.s32 i, i, rd, ra;
        setp.ge.u32 p, i, n; @p bra done;
        mul.wide.u32 at, i, 24; add.s64 from, from, at; mul.wide.u32 at, i, 8; add.s64 to, to, at;
        ld.global.u64 xa, [from]; ld.global.u64 xb, [from+8]; ld.global.u64 xc, [from+16];
        cvt.u32.u64 ra, xa; cvt.u32.u64 rb, xb; cvt.u32.u64 rc, xc;
        cvt.u16.u64 ha, xa; cvt.u16.u64 hb, xb; cvt.u16.u64 hc, xc;
        {instruction}
        {result}
        st.global.u64 [to], xd;
        done: ret; }}"
    );
    let mut host = Host::new(&text, instruction.to_owned());
    let words: Vec<u32> = operands
        .iter()
        .flatten()
        .flat_map(|x| [*x as u32, (*x >> 32) as u32])
        .collect();
    let count = operands.len();
    let from = host.words("operands", &words);
    let to = host.words("results", &vec![0; 2 * count]);
    let launch = line((count as u32).div_ceil(64), 64);
    let done = host.run(&launch, &[Arg::U64(to), Arg::U64(from), Arg::U32(count as u32)]);
    done.unwrap_or_else(|fault| panic!("{instruction}: {fault:#?}"));
    host.read(to, 2 * count)
        .chunks(2)
        .map(|w| u64::from(w[0]) | u64::from(w[1]) << 32)
        .collect()
}

/// Compares with a function of the operands.
fn check(instruction: &str, file: char, operands: &[[u64; 3]], expected: impl Fn(u64, u64, u64) -> u64) {
    let results = evaluate(instruction, file, operands);
    for ([a, b, c], result) in operands.iter().zip(results) {
        assert_eq!(result, expected(*a, *b, *c), "{instruction} of {a:#x}, {b:#x}, {c:#x}");
    }
}

/// Numbers without pattern.
fn random(count: usize) -> Vec<[u64; 3]> {
    let mut state = 0x1234_5678_9ABC_DEF0u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    (0..count).map(|_| [next(), next(), next()]).collect()
}

/// Every pair of values at the edges of the integer types, and the third from the same list.
fn edges() -> Vec<[u64; 3]> {
    let values = [
        0,
        1,
        2,
        31,
        32,
        33,
        63,
        64,
        65,
        255,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x7FFF_FFFF,
        0x8000_0000,
        0xFFFF_FFFF,
    ];
    let wide = [0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF, u64::MAX];
    let all: Vec<u64> = values.into_iter().chain(wide).collect();
    let pairs = all
        .iter()
        .enumerate()
        .flat_map(|(i, a)| all.iter().map(move |b| (i, *a, *b)));
    pairs
        .map(|(i, a, b)| [a, b, all[(i * 7 + 3) % all.len()]])
        .chain(random(500))
        .collect()
}

#[test]
fn integers() {
    let s = |x: u64| i64::from(x as i32);
    let low = |x: i64| u64::from(x as u32);
    let all = edges();
    check("add.s32 rd, ra, rb;", 'r', &all, |a, b, _| low(s(a) + s(b)));
    check("add.sat.s32 rd, ra, rb;", 'r', &all, |a, b, _| {
        low((s(a) + s(b)).clamp(i64::from(i32::MIN), i64::from(i32::MAX)))
    });
    check("mul.hi.s32 rd, ra, rb;", 'r', &all, |a, b, _| low((s(a) * s(b)) >> 32));
    check("mul.hi.u64 xd, xa, xb;", 'x', &all, |a, b, _| {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    });
    check("mul.wide.s32 xd, ra, rb;", 'x', &all, |a, b, _| (s(a) * s(b)) as u64);
    check("mul.wide.u16 rd, ha, hb;", 'r', &all, |a, b, _| {
        (a & 0xFFFF) * (b & 0xFFFF)
    });
    check("mad.lo.s32 rd, ra, rb, rc;", 'r', &all, |a, b, c| {
        low((s(a) * s(b)).wrapping_add(s(c)))
    });
    check("min.s16 hd, ha, hb;", 'h', &all, |a, b, _| {
        u64::from((a as i16).min(b as i16) as u16)
    });
    check("max.u64 xd, xa, xb;", 'x', &all, |a, b, _| a.max(b));
    check("sad.s32 rd, ra, rb, rc;", 'r', &all, |a, b, c| {
        low((s(a) - s(b)).abs() + s(c))
    });
    check("abs.s32 rd, ra;", 'r', &all, |a, _, _| low(s(a).abs()));
    check(
        "{.reg .b32 t; add.cc.u32 t, ra, rb; addc.u32 rd, rc, 0;}",
        'r',
        &all,
        |a, b, c| (u64::from(c as u32) + ((u64::from(a as u32) + u64::from(b as u32)) >> 32)) & 0xFFFF_FFFF,
    );
    check(
        "{.reg .b64 t; sub.cc.u64 t, xa, xb; subc.u64 xd, xc, 0;}",
        'x',
        &all,
        |a, b, c| c.wrapping_sub(u64::from(a < b)),
    );
    let divisible: Vec<_> = all.iter().copied().filter(|[_, b, _]| *b as u32 != 0).collect();
    check("div.s32 rd, ra, rb;", 'r', &divisible, |a, b, _| low(s(a) / s(b)));
    check("rem.u32 rd, ra, rb;", 'r', &divisible, |a, b, _| {
        u64::from(a as u32 % b as u32)
    });
}

#[test]
fn shifts_clamp_and_funnels_wrap_or_clamp() {
    let all = edges();
    check("shl.b32 rd, ra, rb;", 'r', &all, |a, b, _| {
        if b as u32 > 31 {
            0
        } else {
            (a << (b as u32)) & 0xFFFF_FFFF
        }
    });
    check("shr.s32 rd, ra, rb;", 'r', &all, |a, b, _| {
        u64::from((a as i32 >> (b as u32).min(31)) as u32)
    });
    check("shr.u64 xd, xa, rb;", 'x', &all, |a, b, _| {
        if b as u32 > 63 { 0 } else { a >> (b as u32) }
    });
    check("shr.s16 hd, ha, rb;", 'h', &all, |a, b, _| {
        u64::from((a as i16 >> (b as u32).min(15)) as u16)
    });
    let both = |a: u64, b: u64| (b << 32) | (a & 0xFFFF_FFFF);
    check("shf.l.wrap.b32 rd, ra, rb, rc;", 'r', &all, |a, b, c| {
        (both(a, b) << (c & 31)) >> 32
    });
    check("shf.r.clamp.b32 rd, ra, rb, rc;", 'r', &all, |a, b, c| {
        (both(a, b) >> u64::from((c as u32).min(32))) & 0xFFFF_FFFF
    });
}

#[test]
fn bit_fields_and_permutations() {
    let all = edges();
    check("popc.b64 rd, xa;", 'r', &all, |a, _, _| u64::from(a.count_ones()));
    check("clz.b32 rd, ra;", 'r', &all, |a, _, _| {
        u64::from((a as u32).leading_zeros())
    });
    check("brev.b32 rd, ra;", 'r', &all, |a, _, _| {
        u64::from((a as u32).reverse_bits())
    });
    check("bfind.s32 rd, ra;", 'r', &all, |a, _, _| {
        let x = a as i32;
        let x = if x < 0 { !x } else { x } as u32;
        u64::from(if x == 0 { u32::MAX } else { x.ilog2() })
    });
    // A field within the word: shift and mask; the sign is the field's top bit.
    let inside: Vec<_> = random(300)
        .into_iter()
        .map(|[a, b, c]| [a, b % 20, 1 + c % 12])
        .collect();
    check("bfe.u32 rd, ra, rb, rc;", 'r', &inside, |a, b, c| {
        (a & 0xFFFF_FFFF) >> b & ((1 << c) - 1)
    });
    check("bfe.s32 rd, ra, rb, rc;", 'r', &inside, |a, b, c| {
        u64::from(((a as i32) << (32 - b - c) >> (32 - c)) as u32)
    });
    check("bfi.b32 rd, ra, rb, 5, 9;", 'r', &all, |a, b, _| {
        let mask = 0x1FF << 5;
        (b & 0xFFFF_FFFF & !mask) | (a << 5 & mask)
    });
    check("lop3.b32 rd, ra, rb, rc, 0x96;", 'r', &all, |a, b, c| {
        (a ^ b ^ c) & 0xFFFF_FFFF
    });
    check("lop3.b32 rd, ra, rb, rc, 0xE8;", 'r', &all, |a, b, c| {
        ((a & b) | (a & c) | (b & c)) & 0xFFFF_FFFF
    });
    // The manual: 0x7531 picks the odd bytes; 0x8 asks for the sign.
    let bytes = [[0x8877_6655_4433_2211, 0xFFEE_DDCC_80AA_9900, 0]];
    check("prmt.b32 rd, ra, rb, 0x7531;", 'r', &bytes, |_, _, _| 0x8099_4422);
    check("prmt.b32 rd, ra, rb, 0x000F;", 'r', &bytes, |_, _, _| 0x1111_11FF);
    check("dp4a.s32.s32 rd, ra, rb, rc;", 'r', &all, |a, b, c| {
        let byte = |x: u64, i: u32| i32::from((x >> (8 * i)) as i8);
        u64::from((0..4).fold(c as i32, |sum, i| sum.wrapping_add(byte(a, i) * byte(b, i))) as u32)
    });
}

/// A finite f32 as a whole number of 2^-149; small exponents only.
fn exact(x: f32) -> i128 {
    let bits = x.to_bits();
    let exponent = (bits >> 23 & 255) as i32;
    let fraction = i128::from(bits & 0x7F_FFFF);
    let size = if exponent == 0 {
        fraction
    } else {
        (fraction | 1 << 23) << (exponent - 1)
    };
    if bits >> 31 != 0 { -size } else { size }
}

/// Rounds `value`, in units of 2^-`scale` * 2^-149, by trying the neighbours of a guess and comparing exactly.
fn rounded(value: i128, scale: u32, mode: &str) -> f32 {
    let guess = value as f64 * 2f64.powi(-149 - scale as i32);
    let near = guess as f32;
    let size = |x: f32| exact(x) << scale;
    let candidates = [near.next_down(), near, near.next_up()];
    let below = candidates
        .into_iter()
        .filter(|x| size(*x) <= value)
        .fold(f32::NEG_INFINITY, f32::max);
    let above = candidates
        .into_iter()
        .filter(|x| size(*x) >= value)
        .fold(f32::INFINITY, f32::min);
    match mode {
        "rm" => below,
        "rp" => above,
        "rz" => {
            if value > 0 {
                below
            } else {
                above
            }
        }
        _ => {
            let (down, up) = (value - size(below), size(above) - value);
            let even = if below.to_bits() & 1 == 0 { below } else { above };
            match down.cmp(&up) {
                std::cmp::Ordering::Less => below,
                std::cmp::Ordering::Greater => above,
                std::cmp::Ordering::Equal => even,
            }
        }
    }
}

/// Triples of f32 whose exponents are so close that exact sums of products fit into 128 bits.
fn close_floats(count: usize) -> Vec<[u64; 3]> {
    let float = |x: u64, exponent: u64| (x & 0x8000_0000) | ((exponent + (x >> 40) % 12) << 23) | (x & 0x7F_FFFF);
    let mixed = random(count)
        .into_iter()
        .map(|[a, b, c]| [float(a, 1), float(b, 12), float(c, 1)]);
    mixed.collect()
}

#[test]
fn sums_products_and_fused_sums_round_in_every_direction() {
    let sums = close_floats(2000);
    let f = |x: u64| f32::from_bits(x as u32);
    let bits = |x: f32| u64::from(x.to_bits());
    for mode in ["rn", "rz", "rm", "rp"] {
        check(&format!("add.{mode}.f32 rd, ra, rb;"), 'r', &sums, |a, b, _| {
            bits(rounded(exact(f(a)) + exact(f(b)), 0, mode))
        });
        check(&format!("sub.{mode}.f32 rd, ra, rb;"), 'r', &sums, |a, b, _| {
            bits(rounded(exact(f(a)) - exact(f(b)), 0, mode))
        });
        // Scaled by 2^130, so that products are normal: 2^130 * 2^-149 = 2^-19.
        let scaled: Vec<_> = sums.iter().map(|[a, b, c]| [*a + (125 << 23), *b, *c]).collect();
        let unscale = |a: u64| exact(f32::from_bits(a as u32 - (125 << 23)));
        check(&format!("mul.{mode}.f32 rd, ra, rb;"), 'r', &scaled, |a, b, _| {
            bits(rounded(unscale(a) * exact(f(b)), 24, mode))
        });
        check(&format!("fma.{mode}.f32 rd, ra, rb, rc;"), 'r', &scaled, |a, b, c| {
            bits(rounded(unscale(a) * exact(f(b)) + (exact(f(c)) << 24), 24, mode))
        });
    }
}

#[test]
fn quotients_and_roots_are_the_nearest_in_every_direction() {
    let all: Vec<_> = random(1500)
        .into_iter()
        .map(|[a, b, c]| {
            let float = |x: u64| ((x & 0x7F_FFFF) | (100 + (x >> 40) % 50) << 23) & 0x7FFF_FFFF;
            [float(a), float(b), float(c)]
        })
        .collect();
    let f = |x: u64| f64::from(f32::from_bits(x as u32));
    // q is right if q * b, exact in f64, lies on the right side of a, and the next q does not.
    for (mode, up) in [("rm", false), ("rp", true), ("rz", false)] {
        for ([a, b, _], q) in all
            .iter()
            .zip(evaluate(&format!("div.{mode}.f32 rd, ra, rb;"), 'r', &all))
        {
            let (q, next) = (f32::from_bits(q as u32), f32::from_bits(q as u32));
            let next = if up { next.next_down() } else { next.next_up() };
            let side = |q: f32| {
                if up {
                    f64::from(q) * f(*b) >= f(*a)
                } else {
                    f64::from(q) * f(*b) <= f(*a)
                }
            };
            assert!(side(q) && !side(next), "div.{mode} {a:#x} {b:#x}");
        }
        for ([a, ..], root) in all.iter().zip(evaluate(&format!("sqrt.{mode}.f32 rd, ra;"), 'r', &all)) {
            let root = f32::from_bits(root as u32);
            let next = if up { root.next_down() } else { root.next_up() };
            let side = |r: f32| {
                if up {
                    f64::from(r) * f64::from(r) >= f(*a)
                } else {
                    f64::from(r) * f64::from(r) <= f(*a)
                }
            };
            assert!(side(root) && !side(next), "sqrt.{mode} {a:#x}");
        }
    }
}

#[test]
fn nan_flush_and_saturation() {
    let f = |x: f32| u64::from(x.to_bits());
    let nan = 0x7FC0_1234;
    let one = |instruction: &str, a: u64, b: u64| evaluate(instruction, 'r', &[[a, b, 0]])[0];
    assert_eq!(one("add.f32 rd, ra, rb;", nan, f(1.0)), 0x7FFF_FFFF);
    assert_eq!(one("min.f32 rd, ra, rb;", nan, f(1.0)), f(1.0));
    assert_eq!(one("min.NaN.f32 rd, ra, rb;", nan, f(1.0)), 0x7FFF_FFFF);
    assert_eq!(one("max.f32 rd, ra, rb;", f(-0.0), f(0.0)), f(0.0));
    assert_eq!(one("min.f32 rd, ra, rb;", f(0.0), f(-0.0)), f(-0.0));
    assert_eq!(one("min.xorsign.abs.f32 rd, ra, rb;", f(-3.0), f(2.0)), f(-2.0));
    assert_eq!(one("add.sat.f32 rd, ra, rb;", f(0.7), f(0.7)), f(1.0));
    assert_eq!(one("add.sat.f32 rd, ra, rb;", nan, f(0.7)), 0);
    assert_eq!(one("mul.sat.f32 rd, ra, rb;", f(-1.0), f(0.7)), 0);
    assert_eq!(one("add.ftz.f32 rd, ra, rb;", 1, 1), 0);
    assert_eq!(one("add.f32 rd, ra, rb;", 1, 1), 2);
    assert_eq!(one("mul.ftz.f32 rd, ra, rb;", f(-1e-30), f(1e-10)), f(-0.0));
    assert_eq!(one("abs.ftz.f32 rd, ra;", 0x8000_0001, 0), 0);
    assert_eq!(one("sub.rm.f32 rd, ra, rb;", f(1.0), f(1.0)), f(-0.0));
    assert_eq!(one("mul.rz.f32 rd, ra, rb;", f(3e38), f(3e38)), f(f32::MAX));
    assert_eq!(one("copysign.f32 rd, ra, rb;", f(-1.0), f(2.0)), f(-2.0));
}

#[test]
fn integers_convert_as_rust_converts_them_where_it_agrees() {
    let all = edges();
    check("cvt.s64.s32 xd, ra;", 'x', &all, |a, _, _| i64::from(a as i32) as u64);
    check("cvt.s32.s8 rd, ra;", 'r', &all, |a, _, _| {
        u64::from(i32::from(a as i8) as u32)
    });
    check("cvt.u16.u8 hd, ra;", 'h', &all, |a, _, _| a & 255);
    check("cvt.s64.s16 xd, ha;", 'x', &all, |a, _, _| i64::from(a as i16) as u64);
    check("cvt.sat.s8.s32 rd, ra;", 'r', &all, |a, _, _| {
        u64::from((a as i32).clamp(-128, 127) as u32)
    });
    check("cvt.sat.u32.s64 rd, xa;", 'r', &all, |a, _, _| {
        (a as i64).clamp(0, 0xFFFF_FFFF) as u64
    });
    check("cvt.rn.f32.s64 rd, xa;", 'r', &all, |a, _, _| {
        u64::from((a as i64 as f32).to_bits())
    });
    check("cvt.rn.f64.u64 xd, xa;", 'x', &all, |a, _, _| (a as f64).to_bits());
    check("cvt.rz.f32.u32 rd, ra;", 'r', &all, |a, _, _| {
        // Truncation keeps the upper 24 bits.
        let x = a as u32;
        let drop = 8u32.saturating_sub(x.leading_zeros());
        u64::from(((x >> drop << drop) as f32).to_bits())
    });
}

#[test]
fn floats_convert_to_integers_saturating() {
    let values = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        1e9,
        -1e9,
        3e9,
        -3e9,
        1e19,
        -1e19,
        1e30,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    let all: Vec<_> = values
        .iter()
        .map(|x| [u64::from(x.to_bits()), f64::from(*x).to_bits(), 0])
        .collect();
    let f = |a: u64| f32::from_bits(a as u32);
    check("cvt.rni.s32.f32 rd, ra;", 'r', &all, |a, _, _| {
        u64::from(f(a).round_ties_even() as i32 as u32)
    });
    check("cvt.rzi.u32.f32 rd, ra;", 'r', &all, |a, _, _| u64::from(f(a) as u32));
    check("cvt.rmi.s64.f32 xd, ra;", 'x', &all, |a, _, _| {
        f(a).floor() as i64 as u64
    });
    check("cvt.rpi.u64.f64 xd, xb;", 'x', &all, |_, b, _| {
        f64::from_bits(b).ceil() as u64
    });
    check("cvt.rni.f32.f32 rd, ra;", 'r', &all, |a, _, _| {
        u64::from(f(a).round_ties_even().to_bits())
    });
    // NaN: 0, or the sign bit alone where 64 bits are involved (PTX manual, cvt).
    let nan = [[u64::from(f32::NAN.to_bits()), f64::NAN.to_bits(), 0]];
    assert_eq!(evaluate("cvt.rni.s32.f32 rd, ra;", 'r', &nan), [0]);
    assert_eq!(evaluate("cvt.rni.s64.f32 xd, ra;", 'x', &nan), [1 << 63]);
    assert_eq!(evaluate("cvt.rni.s32.f64 rd, xb;", 'r', &nan), [1 << 31]);
}

#[test]
fn every_half_converts_both_ways() {
    use half::{bf16, f16};
    let all: Vec<_> = (0..=0xFFFFu64).map(|bits| [bits, 0, 0]).collect();
    let same = |ours: u64, theirs: f32| {
        let ours = f32::from_bits(ours as u32);
        assert!(
            ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
            "{ours} {theirs}"
        );
    };
    for ([bits, ..], x) in all.iter().zip(evaluate("cvt.f32.f16 rd, ha;", 'r', &all)) {
        same(x, f16::from_bits(*bits as u16).to_f32());
    }
    for ([bits, ..], x) in all.iter().zip(evaluate("cvt.f32.bf16 rd, ha;", 'r', &all)) {
        same(x, bf16::from_bits(*bits as u16).to_f32());
    }
    let floats: Vec<_> = random(4000)
        .into_iter()
        .map(|[a, b, _]| {
            let exponent = 90 + (b % 60);
            [(a & 0x807F_FFFF) | exponent << 23, b & 0xFFFF_FFFF, 0]
        })
        .filter(|[_, b, _]| !f32::from_bits(*b as u32).is_nan())
        .collect();
    check("cvt.rn.f16.f32 hd, ra;", 'h', &floats, |a, _, _| {
        u64::from(f16::from_f32(f32::from_bits(a as u32)).to_bits())
    });
    check("cvt.rn.bf16.f32 hd, rb;", 'h', &floats, |_, b, _| {
        u64::from(bf16::from_f32(f32::from_bits(b as u32)).to_bits())
    });
    check("cvt.rn.f16x2.f32 rd, ra, rb;", 'r', &floats, |a, b, _| {
        let half = |x: u64| u64::from(f16::from_f32(f32::from_bits(x as u32)).to_bits());
        half(a) << 16 | half(b)
    });
}

#[test]
fn half_arithmetic_against_f64() {
    use half::f16;
    let all: Vec<_> = random(4000);
    let value = |x: u64| f16::from_bits(x as u16).to_f64();
    let agree = |ours: u64, theirs: f64| {
        let theirs = f16::from_f64(theirs);
        assert!(
            ours == u64::from(theirs.to_bits()) || theirs.is_nan() && ours == 0x7FFF,
            "{ours:#x} {theirs:?}"
        );
    };
    for ([a, b, _], sum) in all.iter().zip(evaluate("add.f16 hd, ha, hb;", 'h', &all)) {
        agree(sum, value(*a) + value(*b));
    }
    for ([a, b, _], product) in all.iter().zip(evaluate("mul.rn.f16 hd, ha, hb;", 'h', &all)) {
        agree(product, value(*a) * value(*b));
    }
    for ([a, b, c], sum) in all.iter().zip(evaluate("fma.rn.f16x2 rd, ra, rb, rc;", 'r', &all)) {
        // An exact sum of three terms would need more than 53 bits only where one of them is far below half a unit.
        let low = value(*a).mul_add(value(*b), value(*c));
        agree(sum & 0xFFFF, low);
        let high = value(*a >> 16).mul_add(value(*b >> 16), value(*c >> 16));
        agree(sum >> 16 & 0xFFFF, high);
    }
}

#[test]
fn comparisons_with_a_third_predicate() {
    let all = edges();
    check("setp.lt.s32 p, ra, rb;", 'p', &all, |a, b, _| {
        u64::from((a as i32) < b as i32)
    });
    check("setp.hi.u64 p, xa, xb;", 'p', &all, |a, b, _| u64::from(a > b));
    check(
        "setp.gt.s32 q, rc, 0; setp.eq.and.b32 p, ra, rb, q;",
        'p',
        &all,
        |a, b, c| u64::from(a as u32 == b as u32 && c as i32 > 0),
    );
    check(
        "setp.gt.s32 q, rc, 0; setp.ne.or.u16 p, ha, hb, !q;",
        'p',
        &all,
        |a, b, c| u64::from(a as u16 != b as u16 || c as i32 <= 0),
    );
    check("setp.lt.s32 q|p, ra, rb;", 'p', &all, |a, b, _| {
        u64::from((a as i32) >= b as i32)
    });
    check("set.lt.u32.s32 rd, ra, rb;", 'r', &all, |a, b, _| {
        if (a as i32) < b as i32 { 0xFFFF_FFFF } else { 0 }
    });
    check(
        "slct.b32.s32 rd, ra, rb, rc;",
        'r',
        &all,
        |a, b, c| if c as i32 >= 0 { a } else { b } & 0xFFFF_FFFF,
    );
    check("mov.b64 xd, {rb, ra};", 'x', &all, |a, b, _| a << 32 | b & 0xFFFF_FFFF);
    check("{.reg .b16 t; mov.b32 {t, hd}, ra;}", 'h', &all, |a, _, _| {
        a >> 16 & 0xFFFF
    });
}

#[test]
fn perturbed_functions_differ_within_their_bound() {
    let text = r#"extern "C" __global__ void k(float* out) {
        float x = 0.1f * threadIdx.x; out[threadIdx.x] = exp2f(x) + __sinf(x); }"#;
    for mut host in crate::host::hosts(text, "sm_90") {
        let mut run = |perturb| {
            let out = host.floats("out", &[0.0; 32]);
            host.run(
                &Launch {
                    perturb,
                    seed: 5,
                    ..line(1, 32)
                },
                &[Arg::U64(out)],
            )
            .unwrap();
            host.read_floats(out, 32)
        };
        let (plain, moved) = (run(false), run(true));
        assert_ne!(plain, moved);
        for (a, b) in plain.iter().zip(&moved) {
            assert!((a - b).abs() <= a.abs() * 2f32.powi(-20), "{a} {b}");
        }
    }
}
