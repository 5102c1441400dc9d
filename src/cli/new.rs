//! `rnnc new`.

use super::{Failure, Outcome, input};
use std::path::{Path, PathBuf};

/// The cells that a new one may start from.
const CELLS: &[(&str, &str)] = &[
    ("elman", include_str!("../../examples/cells/elman.rnn")),
    ("gilr_lstm", include_str!("../../examples/cells/gilr_lstm.rnn")),
    ("gru", include_str!("../../examples/cells/gru.rnn")),
    ("indrnn", include_str!("../../examples/cells/indrnn.rnn")),
    ("lstm", include_str!("../../examples/cells/lstm.rnn")),
    (
        "lstm_layer_norm",
        include_str!("../../examples/cells/lstm_layer_norm.rnn"),
    ),
    ("mamba_s6", include_str!("../../examples/cells/mamba_s6.rnn")),
    ("mingru", include_str!("../../examples/cells/mingru.rnn")),
    ("mlstm", include_str!("../../examples/cells/mlstm.rnn")),
    ("rwkv4", include_str!("../../examples/cells/rwkv4.rnn")),
    ("slstm", include_str!("../../examples/cells/slstm.rnn")),
    ("sru", include_str!("../../examples/cells/sru.rnn")),
];

/// Arguments of `rnnc new`.
#[derive(clap::Args)]
pub struct NewArgs {
    /// The new cell's name; the file is NAME.rnn
    name: String,
    /// The cell to start from
    #[arg(long, default_value = "lstm", value_parser = CELLS.iter().map(|c| c.0).collect::<Vec<_>>())]
    from: String,
    /// The folder to write to
    #[arg(short = 'C', long, default_value = ".")]
    directory: PathBuf,
}

/// Writes the file; an existing one stays.
pub fn run(args: &NewArgs) -> Outcome {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !args.name.chars().all(valid) || args.name.starts_with(|c: char| c.is_ascii_digit()) || args.name.is_empty() {
        return Err(Failure::Usage(format!(
            "`{}` is not a name: letters, digits and _, no digit first",
            args.name
        )));
    }
    let (_, text) = CELLS.iter().find(|(name, _)| *name == args.from).unwrap_or(&CELLS[0]);
    let text = text.replacen(&format!("cell {}(", args.from), &format!("cell {}(", args.name), 1);
    let path = args.directory.join(format!("{}.rnn", args.name));
    create(&path, &text)?;
    let shown = path.display();
    super::print(&format!(
        "wrote {shown}\nnext: rnnc check {shown}; rnnc explain-plan {shown}; rnnc compile {shown}"
    ))
}

fn create(path: &Path, text: &str) -> Outcome {
    let mut file = std::fs::File::create_new(path).map_err(input(path.display()))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(input(path.display()))
}
