#!/usr/bin/env python3
"""Runs the bundle of `cargo xtask gpu-check`: the kernels of every example cell against the reference, microbenchmarks, times of
every family beside cuDNN and a copy in device memory. Writes results.json and results.md.

    python3 run.py                          # on the first GPU; needs CUDA's NVRTC (PyTorch brings one) and PyTorch
    python3 run.py --device sim:h100        # without a GPU: a part of it, on a simulated one

Ends with 1 where a kernel is wrong or something did not run, with 2 where nothing did.
"""

import argparse
import datetime
import glob
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Seconds that a whole run may take.
LIMIT = 240


def nvrtc():
    """The NVRTC of PyTorch or of CUDA's own packages; none leaves the search to the program."""
    for folder in sys.path:
        for pattern in ("nvidia/*/lib/libnvrtc.so.1[23]", "torch/lib/libnvrtc*.so*"):
            for found in sorted(glob.glob(os.path.join(folder, pattern))):
                if "builtins" not in found:
                    return found
    return None


def program(device, out, seconds):
    environment = dict(os.environ)
    if "RNNC_NVRTC" not in environment and nvrtc():
        environment["RNNC_NVRTC"] = nvrtc()
    command = [str(HERE / "gpu_check"), "--device", device, "--data", str(HERE / "data"), "-o", str(out)]
    return subprocess.run(command, env=environment, timeout=seconds, check=False).returncode


def peers(seconds):
    try:
        done = subprocess.run([sys.executable, str(HERE / "peers.py")], capture_output=True, text=True, timeout=seconds, check=False)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as error:
        return {"missing": f"the peers did not run: {error}"}


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def span(value):
    return "-" if value is None else f"{value[0]:.1f} .. {value[1]:.1f}"


def suite_table(rows):
    wrong = [row for row in rows if not row["ok"]]
    cells = sorted({row["cell"] for row in rows})
    lines = [f"{len(rows)} comparisons of {len(cells)} cells, {len(wrong)} wrong.", ""]
    if wrong:
        lines += ["| cell | what | tensor | error | message |", "|---|---|---|---|---|"]
    for row in wrong:
        message = " ".join((row["message"] or "").split())[:300]
        error = "-" if row["error"] is None else f"{row['error']:.1e}"
        lines.append(f"| {row['cell']} | {row['what']} | {row['tensor']} | {error} | {message} |")
    return lines


def micro_table(rows):
    lines = ["| | measured | modelled | published | unit |", "|---|---|---|---|---|"]
    for row in rows:
        measured = row["message"] or number(row["measured"], 1)
        lines.append(f"| {row['name']} | {measured} | {span(row['modelled'])} | {span(row['published'])} | {row['unit']} |")
    return lines


def peer_of(row, found):
    """cuDNN's time for a pass: its backward pass is the difference of two."""
    for layer in found.get("layers", []):
        same = all(layer.get(key) == row[key] for key in ("cell", "size", "elem", "frames", "batch"))
        if same and "both" in layer:
            return layer["forward"] if row["pass"] == "forward" else layer["both"] - layer["forward"]
    return None


def times_table(rows, found):
    lines = ["| cell | pass | size | type | T x B | ms | us a frame | GB/s | of a copy | cuDNN, ms | cuDNN's over ours |"]
    lines.append("|---" * 11 + "|")
    for row in rows:
        head = f"| {row['cell']} | {row['pass']} | {row['size']} | {row['elem']} | {row['frames']} x {row['batch']} "
        if row["message"]:
            lines.append(head + f"| {' '.join(row['message'].split())[:200]} |" + " |" * 5)
            continue
        peer, copied = peer_of(row, found), found.get("copy")
        share = row["gigabytes"] / copied if copied else None
        ratio = peer / row["ms"] if peer else None
        cells = [number(row["ms"], 3), number(row["us_a_frame"]), number(row["gigabytes"], 0), number(share), number(peer, 3), number(ratio)]
        lines.append(head + "".join(f"| {cell} " for cell in cells) + "|")
    return lines


def report(results):
    rnnc, found = results["rnnc"], results["peers"]
    modelled = any(row["modelled"] for row in rnnc["times"])
    lines = [f"# GPU check, {results['date']}", "", f"Device: {rnnc['device']}; {results['seconds']:.0f} s in all."]
    if "missing" in found:
        lines.append(f"No peers: {found['missing']}.")
    else:
        lines.append(f"{found['gpu']}, PyTorch {found['torch']}, cuDNN {found['cudnn']}; a copy moves {found['copy']:.0f} GB/s.")
    lines += ["", "## Kernels against the reference", ""] + suite_table(rnnc["suite"])
    lines += ["", "## Microbenchmarks", ""] + micro_table(rnnc["micro"])
    lines += ["", "## Times", ""]
    if modelled:
        lines += ["Modelled at the slow end of published rates, not measured: no statement of speed.", ""]
    else:
        lines += ["Every launch is waited for; its overhead is in the figure.", ""]
    return "\n".join(lines + times_table(rnnc["times"], found)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path, default=Path("."))
    arguments = parser.parse_args()
    begin = time.monotonic()
    arguments.out.mkdir(parents=True, exist_ok=True)
    raw = arguments.out / "rnnc.json"
    code = program(arguments.device, raw, LIMIT - 40)
    if code not in (0, 1):
        sys.exit(2)
    results = {
        "date": datetime.date.today().isoformat(),
        "rnnc": json.loads(raw.read_text()),
        "peers": peers(max(20, LIMIT - (time.monotonic() - begin))),
        "seconds": time.monotonic() - begin,
    }
    raw.unlink()
    (arguments.out / "results.json").write_text(json.dumps(results, indent=1))
    text = report(results)
    (arguments.out / "results.md").write_text(text)
    print(text)
    sys.exit(code)


main()
