"""The LSTM forward pass as a NumPy loop, timed on request.

Each line of standard input is `T B I H` and answered by the seconds of one pass. The peer of `benches/cpu.rs`.
"""

import sys
import time

import numpy as np


def sigmoid(x):
    out = np.negative(x)
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def lstm(x, W, R, b):
    """x: [T, B, I], W: [I, 4H], R: [H, 4H], b: [4H], gates in the order i, f, o, g. Returns h: [T, B, H]."""
    T, B, I = x.shape
    H = R.shape[0]
    hoisted = (x.reshape(-1, I) @ W + b).reshape(T, B, 4 * H)
    h = np.zeros((B, H), np.float32)
    c = np.zeros_like(h)
    y = np.empty((T, B, H), np.float32)
    for t in range(T):
        gates = hoisted[t] + h @ R
        s = sigmoid(gates[:, : 3 * H])
        c = s[:, H : 2 * H] * c + s[:, :H] * np.tanh(gates[:, 3 * H :])
        h = np.multiply(s[:, 2 * H :], np.tanh(c), out=y[t])
    return y


def main():
    rng = np.random.default_rng(0)
    draw = lambda *shape: (rng.standard_normal(shape) * 0.1).astype(np.float32)
    known = {}
    print("ready", np.__version__, flush=True)
    for line in sys.stdin:
        T, B, I, H = map(int, line.split())
        if line not in known:
            known[line] = draw(T, B, I), draw(I, 4 * H), draw(H, 4 * H), draw(4 * H)
        start = time.perf_counter()
        lstm(*known[line])
        print(time.perf_counter() - start, flush=True)


main()
