//! Matrix instructions against plain products, and the tensor cores' layouts against the tables of the PTX manual.

use crate::host::{Host, hosts, line};
use half::{bf16, f16};
use softgpu::Arg;
use softgpu::fault::Kind;

/// A small whole number for a place of a matrix: products and their sums are exact in every format and every order.
fn small(row: usize, column: usize, salt: usize) -> f32 {
    ((row * 7 + column * 3 + salt) % 9) as f32 - 4.0
}

fn plain(k: usize) -> Vec<f32> {
    let at = |m: usize, n: usize| (0..k).map(|i| small(m, i, 1) * small(i, n, 5)).sum::<f32>() + small(m, n, 2);
    (0..16)
        .flat_map(|m| (0..8).map(move |n| (m, n)))
        .map(|(m, n)| at(m, n))
        .collect()
}

/// A kernel of one product whose lanes find their elements by the manual's formulas.
fn product(mma: &str, a: &str, b: &str) -> String {
    let list = |name: char, count: usize, constraint: char| {
        (0..count)
            .map(|i| format!("\"{constraint}\"({name}[{i}])"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let numbers = |from: usize, count: usize| {
        let names: Vec<String> = (from..from + count).map(|i| format!("%{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let (na, nb) = (a.matches("A(").count(), b.matches("B(").count());
    format!(
        r#"
        typedef unsigned u;
        extern "C" __global__ void k(float* d, const u* pa, const u* pb, const float* c) {{
            int lane = threadIdx.x, g = lane / 4, t = lane % 4;
            #define A(row, word) pa[(row) * WORDS + (word)]
            #define B(word, column) pb[(column) * WORDS + (word)]
            u a[] = {{ {a} }}, b[] = {{ {b} }};
            float s[4] = {{ c[g * 8 + t * 2], c[g * 8 + t * 2 + 1], c[(g + 8) * 8 + t * 2], c[(g + 8) * 8 + t * 2 + 1] }};
            asm volatile("{mma} {}, {}, {}, {};" : {} : {}, {});
            d[g * 8 + t * 2] = s[0]; d[g * 8 + t * 2 + 1] = s[1];
            d[(g + 8) * 8 + t * 2] = s[2]; d[(g + 8) * 8 + t * 2 + 1] = s[3];
        }}"#,
        numbers(0, 4),
        numbers(4, na),
        numbers(4 + na, nb),
        numbers(0, 4),
        (0..4).map(|i| format!("\"+f\"(s[{i}])")).collect::<Vec<_>>().join(", "),
        list('a', na, 'r'),
        list('b', nb, 'r'),
    )
}

/// Words of a matrix of `rows` rows of k elements each.
fn words(
    rows: usize,
    k: usize,
    at: impl Fn(usize, usize) -> f32,
    pack: impl Fn(&[f32]) -> u32,
    each: usize,
) -> Vec<u32> {
    let rows = (0..rows).flat_map(|row| (0..k).map(move |i| (row, i)));
    let numbers: Vec<f32> = rows.map(|(row, i)| at(row, i)).collect();
    numbers.chunks(each).map(pack).collect()
}

fn check(mma: &str, k: usize, each: usize, pack: impl Fn(&[f32]) -> u32 + Copy, (a, b): (&str, &str)) {
    let text = product(mma, a, b).replace("WORDS", &(k / each).to_string());
    for mut host in hosts(&text, "sm_90") {
        let pa = host.words("a", &words(16, k, |m, i| small(m, i, 1), pack, each));
        let pb = host.words("b", &words(8, k, |n, i| small(i, n, 5), pack, each));
        let sums: Vec<f32> = (0..16).flat_map(|m| (0..8).map(move |n| small(m, n, 2))).collect();
        let (d, c) = (host.floats("d", &[0.0; 128]), host.floats("c", &sums));
        let done = host.run(&line(1, 32), &[Arg::U64(d), Arg::U64(pa), Arg::U64(pb), Arg::U64(c)]);
        done.unwrap_or_else(|fault| panic!("{mma}: {fault:#?}"));
        assert_eq!(host.read_floats(d, 128), plain(k), "{mma} {}", host.version);
    }
}

#[test]
fn products_of_every_type_on_small_integers() {
    let bf = |x: &[f32]| u32::from(bf16::from_f32(x[0]).to_bits()) | u32::from(bf16::from_f32(x[1]).to_bits()) << 16;
    let hf = |x: &[f32]| u32::from(f16::from_f32(x[0]).to_bits()) | u32::from(f16::from_f32(x[1]).to_bits()) << 16;
    let tf = |x: &[f32]| x[0].to_bits();
    let wide = (
        "A(g, t), A(g + 8, t), A(g, t + 4), A(g + 8, t + 4)",
        "B(t, g), B(t + 4, g)",
    );
    let narrow = ("A(g, t), A(g + 8, t)", "B(t, g)");
    check("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, 2, bf, wide);
    check("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, 2, hf, wide);
    check("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 8, 2, bf, narrow);
    check("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 8, 2, hf, narrow);
    check("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, 1, tf, wide);
    check("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 4, 1, tf, narrow);
}

#[test]
fn ldmatrix_feeds_mma_from_row_major_tiles() {
    let text = r#"
        typedef unsigned u;
        extern "C" __global__ void k(float* d, const u* a, const u* b) {
            __shared__ __align__(16) u ta[16 * 8], tb[16 * 4], tt[16 * 4];
            for (int i = threadIdx.x; i < 128; i += 32) ta[i] = a[i];
            for (int i = threadIdx.x; i < 64; i += 32) tb[i] = b[i];
            __syncwarp();
            u lane = threadIdx.x, x[4], y[2];
            // A: 16 rows of 16; the second and fourth matrix are the lower rows. B: 16 rows of 8, transposed on the way.
            u at = (u)__cvta_generic_to_shared(ta + lane % 16 * 8 + lane / 16 * 4);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
            u bt = (u)__cvta_generic_to_shared(tb + lane % 16 * 4);
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(bt));
            // Through stmatrix, and transposed twice: the same again.
            u tr[2];
            for (int i = 0; i < 2; ++i) {
                asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(tr[i]) : "r"(y[i]));
            }
            u st = (u)__cvta_generic_to_shared(tt + lane % 16 * 4);
            asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" :: "r"(st), "r"(tr[0]), "r"(tr[1]));
            __syncwarp();
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(st));
            float s[4] = {};
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
                " {%0, %1, %2, %3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
            int g = lane / 4, t = lane % 4;
            for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = s[i];
        }"#;
    let pack = |x: &[f32]| u32::from(bf16::from_f32(x[0]).to_bits()) | u32::from(bf16::from_f32(x[1]).to_bits()) << 16;
    let expected: Vec<f32> = (0..128)
        .map(|at| (at / 8, at % 8))
        .map(|(m, n)| (0..16).map(|i| small(m, i, 1) * small(i, n, 5)).sum())
        .collect();
    for mut host in hosts(text, "sm_90") {
        let a = host.words("a", &words(16, 16, |m, i| small(m, i, 1), pack, 2));
        let b = host.words("b", &words(16, 8, |i, n| small(i, n, 5), pack, 2));
        let d = host.floats("d", &[0.0; 128]);
        let done = host.run(&line(1, 32), &[Arg::U64(d), Arg::U64(a), Arg::U64(b)]);
        done.unwrap_or_else(|fault| panic!("{fault:#?}"));
        assert_eq!(host.read_floats(d, 128), expected, "{}", host.version);
    }
}

#[test]
fn unwritten_rows_of_a_tile_spoil_only_their_own_results() {
    let text = r#"
        typedef unsigned u;
        extern "C" __global__ void k(float* d) {
            __shared__ __align__(16) u tile[16 * 8];
            // Rows 0 to 4 only.
            for (int i = threadIdx.x; i < 40; i += 32) tile[i] = 0x3F803F80;
            __syncwarp();
            u lane = threadIdx.x, g = lane / 4, t = lane % 4;
            u x[4] = { tile[g * 8 + t], tile[(g + 8) * 8 + t], tile[g * 8 + t + 4], tile[(g + 8) * 8 + t + 4] };
            u y = 0x3F803F80;
            float s[4] = {};
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8},"
                " {%0, %1, %2, %3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y));
            if (g < LIMIT) { d[g * 8 + t * 2] = s[0]; d[g * 8 + t * 2 + 1] = s[1]; }
        }"#;
    let run = |host: &mut Host| {
        let d = host.floats("d", &[0.0; 64]);
        host.run(&line(1, 32), &[Arg::U64(d)]).map(|_| host.read_floats(d, 40))
    };
    for mut host in hosts(&text.replace("LIMIT", "5"), "sm_90") {
        assert_eq!(run(&mut host).unwrap(), [16.0; 40]);
    }
    for mut host in hosts(&text.replace("LIMIT", "6"), "sm_90") {
        assert_eq!(run(&mut host).unwrap_err().kind, Kind::Uninitialised);
    }
}

#[test]
fn a_matrix_instruction_needs_all_lanes() {
    let text = r#"
        extern "C" __global__ void k(unsigned* out) {
            if (threadIdx.x < 24) {
                unsigned x = threadIdx.x;
                asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(x));
                out[threadIdx.x] = x;
            }
        }"#;
    for mut host in hosts(text, "sm_90") {
        let out = host.words("out", &[0; 32]);
        assert_eq!(
            host.run(&line(1, 32), &[Arg::U64(out)]).unwrap_err().kind,
            Kind::Unaligned
        );
    }
}
