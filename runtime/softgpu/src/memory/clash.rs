//! Says what two accesses that collide did, and what would order them.

use super::Memory;
use super::access::Wrong;
use super::order::shadow::Clash;
use super::order::site::{Site, What};
use super::order::view::{AGENT, AT_MBARRIER, THREAD};
use super::place::wrong;
use crate::fault::Kind;

/// A collision in memory's terms; the lane is left to the caller.
pub(crate) fn describe(memory: &Memory, kind: Kind, area: usize, (site, clash): (u32, Clash)) -> Wrong {
    let sites = &memory.order.sites;
    let (mine, other) = (sites.get(site), sites.get(clash.site));
    let name = memory.name(area, u64::from(clash.offset));
    let asynchronous = clash.who & AGENT != 0 || matches!(mine.what, What::CopyRead | What::CopyWrite);
    let kind = match (clash.non_coherent, asynchronous) {
        _ if mine.what == What::Mbarrier || other.what == What::Mbarrier => Kind::Mbarrier,
        (true, _) => Kind::NonCoherent,
        (_, true) => Kind::AsyncRace,
        _ => kind,
    };
    let text = if clash.non_coherent {
        format!(
            "{name}: a non-coherent load and a {} in one kernel",
            written(mine, other).describe()
        )
    } else {
        format!(
            "{} of {name} is not ordered after a {} there",
            mine.describe(),
            other.describe()
        )
    };
    let mut w = wrong(kind, text);
    w.address = Some(name);
    w.earlier = earlier(memory, clash);
    w.hint = hint(kind, mine, other);
    w
}

fn written<'a>(mine: &'a Site, other: &'a Site) -> &'a Site {
    if mine.what == What::Read { other } else { mine }
}

fn earlier(memory: &Memory, clash: Clash) -> Option<(u32, u32, u32, String)> {
    let other = memory.order.sites.get(clash.site);
    let who = if clash.who & AT_MBARRIER == AT_MBARRIER {
        memory.starter(clash.who)
    } else {
        clash.who & THREAD
    };
    let a_block = memory.order.ids.warps * 32;
    Some((who / a_block, who % a_block, other.at, other.describe()))
}

fn hint(kind: Kind, mine: &Site, other: &Site) -> Option<String> {
    let text = match kind {
        Kind::NonCoherent => "load it with ld.global (no const __restrict__, no __ldg), or write it in another kernel",
        Kind::Mbarrier => {
            "use an mbarrier only through its instructions, and mbarrier.inval before its place is used again"
        }
        Kind::AsyncRace => "wait for the copy (its group or its mbarrier) first",
        Kind::SharedRace => "put __syncthreads(), or __syncwarp() within a warp, between them",
        _ if mine.strong() && other.strong() => {
            "both are strong, but one is outside the other's scope, or they differ in size"
        }
        _ if mine.strong() || other.strong() => {
            "one of the two is weak: make it relaxed or atomic, or order them by a release and an acquire"
        }
        _ => {
            "order them: a release (or __threadfence and a flag) after the first, an acquire before the second, or a barrier"
        }
    };
    Some(text.into())
}
