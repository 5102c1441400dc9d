//! The model of cost: microbenchmarks print what was published, loops of known times come out, counts are right.

use crate::nvrtc;
use softgpu::cost::kind::Class;
use softgpu::cost::microbench::{self, Microbench};
use softgpu::cost::trace::Term;
use softgpu::cost::{Cost, Modelled, rates};
use softgpu::{Arg, Device, Gpu, Launch};
use std::fmt::Write as _;

const CARDS: &[(&str, &str)] = &[
    ("a100", "sm_80"),
    ("h100", "sm_90"),
    ("rtx4090", "sm_89"),
    ("l4", "sm_89"),
];

/// Whether a figure is within a tenth of what was published. A range must agree at both ends; where one figure was published
/// and the slow end of the rates is an estimate, the fast end must. What is put together of many rates (a barrier of the
/// grid) must have its middle there.
fn agrees(bench: &Microbench, modelled: [f64; 2], published: [f64; 2]) -> bool {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() <= 0.1;
    let middle = |x: [f64; 2]| (x[0] + x[1]) / 2.0;
    if bench.kernel == "grid_sync" {
        return near(middle(modelled), middle(published));
    }
    let single = published[0] == published[1];
    near(modelled[0], published[0]) && (single || near(modelled[1], published[1]))
}

#[test]
fn microbenchmarks_print_what_was_published() {
    let (mut table, mut wrong, mut compared) = (String::new(), Vec::new(), 0);
    for (card, arch) in CARDS {
        let Some(any) = nvrtc::compile(microbench::ANY, arch, &[]).pop() else {
            return;
        };
        let clusters = *arch == "sm_90";
        let of_cluster = clusters
            .then(|| nvrtc::compile(microbench::CLUSTER, arch, &[]).pop())
            .flatten();
        for bench in microbench::ALL {
            let ptx = if bench.of_cluster() {
                of_cluster.as_ref()
            } else {
                Some(&any)
            };
            let Some(ptx) = ptx else { continue };
            let [low, high] = bench.modelled(&ptx.text, card).unwrap();
            let published = microbench::published(bench.name, card);
            let unit = bench.unit.name();
            writeln!(
                table,
                "{card:8} {:36} {low:8.1} {high:8.1} {unit:6} {published:?}",
                bench.name
            )
            .unwrap();
            compared += usize::from(published.is_some());
            if published.is_some_and(|published| !agrees(bench, [low, high], published)) {
                wrong.push(format!(
                    "{card} {}: {low:.1} to {high:.1}, published {published:?}",
                    bench.name
                ));
            }
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 30, "{compared}");
}

/// Launches a kernel of a text with one buffer of zeros and an integer.
fn cost(text: &str, kernel: &str, (blocks, threads): (u32, u32), bytes: usize, n: i32) -> Option<Cost> {
    let ptx = nvrtc::compile(text, "sm_90", &[]).pop()?;
    let mut gpu = Gpu::new(Device::named("h100").unwrap(), 0);
    let module = gpu.load(&ptx.text).unwrap();
    let memory = gpu.upload("memory", &vec![0; bytes]).unwrap();
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        ..Launch::default()
    };
    let rates = rates::card("h100").unwrap();
    let arguments = [Arg::U64(memory), Arg::I32(n), Arg::I32(0)];
    let done = gpu.launch_modelled(&module, kernel, &launch, &arguments, &rates);
    Some(done.unwrap().1)
}

const COUNTED: &str = r#"
extern "C" __global__ void strided(float* x, int step, int unused) {
  __shared__ float s[32 * 32];
  const float v = x[threadIdx.x * step];
  s[threadIdx.x * step] = v;
  __syncthreads();
  x[threadIdx.x] = fmaf(s[threadIdx.x * step], 2.0f, 1.0f);
}
extern "C" __global__ void waits(unsigned* x, int n, int unused) {
  if (blockIdx.x == 0) {
    for (int i = 0; i < n; ++i) asm volatile("nanosleep.u32 20;");
    asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(x) : "memory");
  } else {
    unsigned got;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(got) : "l"(x) : "memory"); while (got == 0);
  }
}
"#;

#[test]
fn counts_tell_classes_sectors_and_conflicts() {
    let Some(straight) = cost(COUNTED, "strided", (1, 32), 1 << 12, 1) else {
        return;
    };
    let counts = &straight.counts;
    let of = |class| counts.instructions.get(&class).copied().unwrap_or(0);
    let classes = [
        Class::LoadGlobal,
        Class::StoreGlobal,
        Class::LoadShared,
        Class::StoreShared,
        Class::Fma,
    ];
    assert_eq!(classes.map(of), [1, 1, 1, 1, 1]);
    assert_eq!(
        (counts.global_requests, counts.global_sectors, counts.coalescing()),
        (2, 8, 1.0)
    );
    assert_eq!((counts.shared_passes, counts.conflicts(), counts.barriers), (2, 0, 1));
    let wide = cost(COUNTED, "strided", (1, 32), 1 << 12, 8).unwrap();
    assert_eq!(wide.counts.global_sectors, 32 + 4);
    assert_eq!((wide.counts.conflicts(), wide.counts.global_least_sectors), (14, 8));
    assert!(wide.modelled.microseconds[0] > straight.modelled.microseconds[0]);
    assert!(wide.modelled.microseconds[0] <= wide.modelled.microseconds[1]);
}

#[test]
fn looks_in_vain_are_not_counted_and_take_no_time() {
    let Some(short) = cost(COUNTED, "waits", (2, 1), 4, 1) else {
        return;
    };
    let long = cost(COUNTED, "waits", (2, 1), 4, 4000).unwrap();
    assert_eq!((short.counts.exchanges, long.counts.exchanges), (1, 1));
    let looks = |cost: &Cost| cost.counts.instructions[&Class::LoadGlobal];
    assert_eq!((looks(&short), looks(&long)), (1, 1));
    // The path is that of the block that is waited for, and then one hand-over.
    let [fast, _] = rates::card("h100").unwrap();
    let hand_over = long.modelled.terms[&Term::HandOver][0] * fast.clock * 1e3;
    assert!((hand_over - fast.hand_over).abs() < 1.0, "{hand_over}");
}

/// The terms of a path add up to it, whatever decides it: words, barriers, bytes, units.
#[test]
fn terms_add_up() {
    let kernels = [
        ("ping_pong", (2, 1), 5),
        ("grid_sync", (8, 64), 3),
        ("copy", (160, 128), 4),
        ("mma_rate", (4, 256), 16),
        ("barrier", (300, 1024), 4),
    ];
    for (kernel, shape, n) in kernels {
        let Some(cost) = cost(microbench::ANY, kernel, shape, 1 << 21, n) else {
            return;
        };
        let Modelled {
            microseconds, terms, ..
        } = &cost.modelled;
        for end in 0..2 {
            let sum: f64 = terms.values().map(|both| both[end]).sum();
            assert!(
                (sum / microseconds[end] - 1.0).abs() < 1e-6,
                "{kernel}: {sum} of {microseconds:?}"
            );
        }
    }
}

/// A frame of an anchor on H100: the slope between two lengths.
fn anchor(ptx: &str, kernel: &str) -> Modelled {
    const FRAMES: [i32; 2] = [2, 4];
    let rates = rates::card("h100").unwrap();
    let times = FRAMES.map(|frames| {
        let mut gpu = Gpu::new(Device::named("h100").unwrap(), 0);
        let module = gpu.load(ptx).unwrap();
        let t = frames as usize;
        let sizes = [
            48 * 8 * 24 * 32 * 16,
            t * 16 * 4 * 768 * 4,
            16 * 768 * 2,
            t * 16 * 768 * 4,
            4,
        ];
        let buffers = sizes.map(|bytes| Arg::U64(gpu.upload("buffer", &vec![0; bytes]).unwrap()));
        let [r, x, h, y, counter] = buffers;
        let launch = Launch {
            grid: [48, 1, 1],
            block: [256, 1, 1],
            cooperative: true,
            registers: 255,
            ..Launch::default()
        };
        let arguments = [r, x, h, y, counter, Arg::I32(frames)];
        let done = gpu.launch_modelled(&module, kernel, &launch, &arguments, &rates);
        done.unwrap().1.modelled
    });
    times[1].less(&times[0], f64::from(FRAMES[1] - FRAMES[0]))
}

/// FlashRNN's fused kernel takes 4.75 us a frame on H100, H = 768, B = 16; docs/softgpu.md says what the others show.
#[test]
fn anchors_come_out() {
    let Some(ptx) = nvrtc::compile(microbench::ANCHORS, "sm_90", &[]).pop() else {
        return;
    };
    let [counter, ahead, grid_sync] = ["lstm_counter", "lstm_counter_ahead", "lstm_grid_sync"].map(|kernel| {
        let frame = anchor(&ptx.text, kernel);
        println!("{kernel}: {:.2?} us a frame, {:.2?}", frame.microseconds, frame.terms);
        frame.microseconds
    });
    let middle = (counter[0] + counter[1]) / 2.0;
    assert!((middle / 4.75 - 1.0).abs() <= 0.25, "{counter:?}");
    // Reading ahead helps, and fences cost.
    assert!(
        ahead[0] < counter[0] && counter[0] < grid_sync[0],
        "{ahead:?} {counter:?} {grid_sync:?}"
    );
}
