"""What PyTorch does on the same GPU: cuDNN's recurrent layers, and a copy in device memory. Prints JSON.

A time is the median of RUNS passes between two events, after two that are not counted. Input products are included, as in
rnnc's figures; copies to and from the host are not.
"""

import json
import statistics
import sys

try:
    import torch
except ImportError:
    print(json.dumps({"missing": "PyTorch is not installed"}))
    sys.exit(0)

RUNS = 7
CASES = [
    # layer, hidden size, type, T, B: as in timing.rs
    ("lstm", 768, "bf16", 1024, 16),
    ("lstm", 768, "f16", 1024, 16),
    ("lstm", 256, "f32", 1024, 8),
    ("gru", 512, "bf16", 1024, 16),
    ("elman", 512, "f32", 1024, 16),
]
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
LAYERS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "elman": torch.nn.RNN}


def timed(work):
    times = []
    for _ in range(RUNS + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[2:])


def layer(kind, size, elem, frames, batch):
    """Milliseconds forward, and forward and backward."""
    model = LAYERS[kind](size, size).to("cuda", TYPES[elem])
    x = torch.randn(frames, batch, size, device="cuda", dtype=TYPES[elem], requires_grad=True)
    dy = torch.randn_like(x)

    def both():
        model(x)[0].backward(dy)

    with torch.no_grad():
        forward = timed(lambda: model(x))
    return {"cell": kind, "size": size, "elem": elem, "frames": frames, "batch": batch, "forward": forward, "both": timed(both)}


def copy():
    """Gigabytes a second, read and written; buffers rotate, so that the cache does not help."""
    buffers = [torch.empty(64 << 20, device="cuda", dtype=torch.float32) for _ in range(4)]
    turn = iter(range(1 << 30))

    def step():
        i = next(turn)
        buffers[(i + 1) % 4].copy_(buffers[i % 4])

    return 2 * buffers[0].nbytes / (timed(step) * 1e6)


def main():
    if not torch.cuda.is_available():
        print(json.dumps({"missing": "PyTorch sees no GPU"}))
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    rows = []
    for case in CASES:
        try:
            rows.append(layer(*case))
        except RuntimeError as error:
            rows.append({"cell": case[0], "size": case[1], "elem": case[2], "message": str(error)})
    about = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "gpu": torch.cuda.get_device_name()}
    print(json.dumps({**about, "layers": rows, "copy": copy()}))


main()
