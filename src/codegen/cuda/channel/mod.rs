//! Channel kernels: one thread, or one group of lanes, for each channel and sequence.

mod ahead;
mod facts;
mod fold;
mod pointwise;
mod sequential;
mod space;
mod states;
mod work;

use super::kernel::{Context, Emission};
use rnnc_runtime::manifest::Argument;
use rnnc_runtime::plan::{Channel, Launch, Scope};

/// Prints a channel kernel.
pub fn emit(context: &Context, launch: &Launch, channel: &Channel) -> Emission {
    let channel = fold::simplified(channel);
    if channel.sequential {
        sequential::emit(context, launch, &channel)
    } else {
        pointwise::emit(context, launch, &channel)
    }
}

/// T and B, as far as a scope has them: as C parameters and for the manifest.
pub(super) fn extents(scope: Scope) -> (Vec<String>, Vec<Argument>) {
    let int = |name: &str| format!("int {name}");
    match scope {
        Scope::Const => (Vec::new(), Vec::new()),
        Scope::Batch | Scope::Window(_) => (vec![int("B")], vec![Argument::Batch]),
        Scope::Frame => (vec![int("T"), int("B")], vec![Argument::Frames, Argument::Batch]),
    }
}

/// Parameters, one a line.
pub(super) fn parameter_list(parameters: &[String]) -> String {
    let lines: Vec<String> = parameters.iter().map(|p| format!("    {p}")).collect();
    lines.join(",\n")
}

/// The user's names in a body.
fn user_names(channel: &Channel) -> Vec<&str> {
    let named = channel.body.names.iter().map(|(_, name)| name.as_str());
    named.chain(channel.carried.iter().map(|c| c.name.as_str())).collect()
}
