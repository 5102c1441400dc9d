//! Special registers: which there are, and how wide.

use crate::ops::File;

/// A special register whose value does not change while a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of PTX; the number is the axis")]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    ClusterId(u8),
    NclusterId(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    DynamicSharedBytes,
    TotalSharedBytes,
}

/// The special register of a name, such as `%tid.x`.
pub fn named(name: &str) -> Option<Special> {
    let (stem, axis) = match name.rsplit_once('.') {
        Some((stem, "x")) => (stem, 0),
        Some((stem, "y")) => (stem, 1),
        Some((stem, "z")) => (stem, 2),
        _ => (name, 3),
    };
    let vector = match stem {
        "%tid" => Some(Special::Tid(axis)),
        "%ntid" => Some(Special::Ntid(axis)),
        "%ctaid" => Some(Special::Ctaid(axis)),
        "%nctaid" => Some(Special::Nctaid(axis)),
        "%clusterid" => Some(Special::ClusterId(axis)),
        "%nclusterid" => Some(Special::NclusterId(axis)),
        "%cluster_ctaid" => Some(Special::ClusterCtaid(axis)),
        "%cluster_nctaid" => Some(Special::ClusterNctaid(axis)),
        _ => None,
    };
    if vector.is_some() {
        return vector.filter(|_| axis < 3);
    }
    Some(match name {
        "%cluster_ctarank" => Special::ClusterCtarank,
        "%cluster_nctarank" => Special::ClusterNctarank,
        "%is_explicit_cluster" => Special::IsExplicitCluster,
        "%laneid" => Special::Laneid,
        "%warpid" => Special::Warpid,
        "%nwarpid" => Special::Nwarpid,
        "%smid" => Special::Smid,
        "%nsmid" => Special::Nsmid,
        "%gridid" => Special::Gridid,
        "%lanemask_eq" => Special::LanemaskEq,
        "%lanemask_le" => Special::LanemaskLe,
        "%lanemask_lt" => Special::LanemaskLt,
        "%lanemask_ge" => Special::LanemaskGe,
        "%lanemask_gt" => Special::LanemaskGt,
        "%dynamic_smem_size" => Special::DynamicSharedBytes,
        "%total_smem_size" => Special::TotalSharedBytes,
        _ => return None,
    })
}

/// Clocks, which change: none is 64 bits wide where the answer is false.
pub fn clock(name: &str) -> Option<bool> {
    match name {
        "%clock" | "%clock_hi" | "%globaltimer_lo" => Some(false),
        "%clock64" | "%globaltimer" => Some(true),
        _ => None,
    }
}

/// The file that holds it.
pub fn file(special: Special) -> File {
    match special {
        Special::Gridid => File::Double,
        Special::IsExplicitCluster => File::Predicate,
        _ => File::Word,
    }
}
