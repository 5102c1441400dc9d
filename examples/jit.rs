//! Compiles a cell at run time, runs it, and carries its state from one stretch of a sequence to the next.
//!
//! ```sh
//! cargo run --release --example jit
//! ```

use rnnc::{Cell, Device, Error, Options, Tensor, Tensors, compile};
use rnnc_runtime::plan::Role;

/// Hochreiter & Schmidhuber's LSTM with a forget gate that is tied to the input gate.
const SOURCE: &str = "
cell coupled_lstm(I, H) {
  input  x: [I]
  param  W: [3*H, I], R: [3*H, H], b: [3*H]
  state  h, c: [H]
  output h

  i, g, o = split(W @ x + R @ h[t-1] + b, 3)
  c = (1 - sigmoid(i)) * c[t-1] + sigmoid(i) * tanh(g)
  h = sigmoid(o) * tanh(c)
}
";

fn main() -> Result<(), Error> {
    let cell = compile(SOURCE, &Options::default().dim("I", 8).dim("H", 16))?;
    for launch in &cell.plan().launches {
        println!("{} computes {}", launch.name, launch.equations.join("; "));
    }

    let mut lstm = cell.load(&Device::Cpu { threads: 2 })?;
    lstm.set_params(&made_up_params(&cell))?;

    // 12 frames of 3 sequences at once ...
    let x = Tensor::new(&[12, 3, 8], (0..12 * 3 * 8).map(|i| (i as f32 * 0.7).sin()).collect());
    let whole = lstm.forward(&one("x", x.clone()), &Tensors::new())?;

    // ... are the same as 5 frames, and then 7 that start from the states after them.
    let (first, rest) = x.values().split_at(5 * 3 * 8);
    let head = lstm.forward(&one("x", Tensor::new(&[5, 3, 8], first.to_vec())), &Tensors::new())?;
    let tail = lstm.forward(&one("x", Tensor::new(&[7, 3, 8], rest.to_vec())), &head.states)?;
    let joined = [head.outputs["h"].values(), tail.outputs["h"].values()].concat();
    let difference = whole.outputs["h"]
        .values()
        .iter()
        .zip(&joined)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    println!(
        "on {}: in one run or two, the outputs differ by at most {difference:e}",
        lstm.device()
    );

    // Names and shapes are checked before anything runs.
    match lstm.forward(
        &one("x", Tensor::new(&[12, 3, 9], vec![0.0; 12 * 3 * 9])),
        &Tensors::new(),
    ) {
        Err(error) => println!("a wrong shape: {error}"),
        Ok(_) => println!("a wrong shape went unnoticed"),
    }
    Ok(())
}

fn one(name: &str, tensor: Tensor) -> Tensors {
    Tensors::from([(name.to_owned(), tensor)])
}

/// Numbers for every parameter, in its shape.
fn made_up_params(cell: &Cell) -> Tensors {
    let params = cell.plan().buffers.iter().filter(|b| b.role == Role::Param);
    let numbers = |n: usize| (0..n).map(|i| (i as f32 * 1.3).cos() * 0.3).collect();
    params
        .map(|b| (b.name.clone(), Tensor::new(&b.shape, numbers(b.elements()))))
        .collect()
}
