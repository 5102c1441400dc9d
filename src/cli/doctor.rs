//! `rnnc doctor`.

use super::Outcome;
use rnnc_runtime::doctor;

/// Arguments of `rnnc doctor`.
#[derive(clap::Args)]
pub struct DoctorArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints what is on this machine.
pub fn run(args: &DoctorArgs) -> Outcome {
    let report = doctor::examine();
    if args.json {
        super::print_json(&report)
    } else {
        super::print(report.to_string().trim_end())
    }
}
