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
use rnnc_runtime::plan::{Channel, Launch};

/// Prints a channel kernel.
pub fn emit(context: &Context, launch: &Launch, channel: &Channel) -> Emission {
    let channel = fold::simplified(channel);
    if channel.sequential {
        sequential::emit(context, launch, &channel)
    } else {
        pointwise::emit(context, launch, &channel)
    }
}

/// The user's names in a body.
fn user_names(channel: &Channel) -> Vec<&str> {
    let named = channel.body.names.iter().map(|(_, name)| name.as_str());
    named.chain(channel.carried.iter().map(|c| c.name.as_str())).collect()
}
