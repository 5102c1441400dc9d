//! Narrow values in wide registers, and segments of a warp that name a mask each: both are legal, and NVRTC writes them.

use softgpu::fault::Kind;
use softgpu::{Arg, Device, Gpu, Launch};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Runs a kernel of one warp with a 32-bit argument; two words a lane come back.
fn run(body: &str, argument: i32) -> Result<Vec<u32>, Kind> {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 out, .param .u32 n)
{{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 8;
	add.s64 %rd3, %rd1, %rd2;
{body}
	ret;
}}"
    );
    let mut gpu = Gpu::new(Device::named("a100").unwrap(), 3);
    let module = gpu.load(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let out = gpu.upload("out", &[0; 256]).unwrap();
    let launch = Launch {
        block: [32, 1, 1],
        ..Launch::default()
    };
    let arguments = [Arg::U64(out), Arg::I32(argument)];
    gpu.launch(&module, "k", &launch, &arguments)
        .map_err(|fault| fault.kind)?;
    let bytes = gpu.download(out, 256).unwrap();
    Ok(bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|w| u32::from_le_bytes(*w))
        .collect())
}

#[test]
fn parameters_fill_wider_registers_by_their_sign() {
    let signed = run("ld.param.s32 %rd4, [n];\nst.global.u64 [%rd3], %rd4;", -5).unwrap();
    assert_eq!(signed[..2], [-5_i32 as u32, u32::MAX]);
    let unsigned = run("ld.param.u32 %rd4, [n];\nst.global.u64 [%rd3], %rd4;", -5).unwrap();
    assert_eq!(unsigned[62..], [-5_i32 as u32, 0]);
    let byte = run("ld.param.s8 %rd4, [n+1];\nst.global.u64 [%rd3], %rd4;", 0x80ff).unwrap();
    assert_eq!(byte[..2], [-128_i32 as u32, u32::MAX]);
}

#[test]
fn stores_take_the_low_bytes_of_wider_registers() {
    let words = run("mov.u64 %rd4, 0x1234567889abcdef;\nst.global.u32 [%rd3+4], %rd4;", 0).unwrap();
    assert_eq!(words[..4], [0, 0x89ab_cdef, 0, 0x89ab_cdef]);
}

/// Each quarter of the warp shuffles under its own mask; `skip` lets one lane jump over the shuffle.
fn quarters(skip: &str) -> Result<Vec<u32>, Kind> {
    run(
        &format!(
            "	shr.u32 %r2, %r1, 3;
	shl.b32 %r3, %r2, 3;
	shl.b32 %r4, 255, %r3;
	setp.eq.u32 %p1, %r1, 9;
	mov.u32 %r5, 0;
	{skip}
	shfl.sync.bfly.b32 %r5|%p2, %r1, 1, 0x1f, %r4;
LAST:
	st.global.u32 [%rd3], %r5;"
        ),
        0,
    )
}

#[test]
fn segments_of_a_warp_name_a_mask_each() {
    let words = quarters("").unwrap();
    let found: Vec<u32> = words.iter().step_by(2).copied().collect();
    assert_eq!(found, (0..32).map(|lane| lane ^ 1).collect::<Vec<u32>>());
}

#[test]
fn a_segment_that_waits_for_a_lane_in_vain_is_a_fault() {
    let kind = quarters("@%p1 bra LAST;").unwrap_err();
    assert!(matches!(kind, Kind::WarpMask | Kind::Deadlock), "{kind:?}");
}
