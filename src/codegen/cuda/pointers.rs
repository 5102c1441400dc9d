//! The C names of buffers, the same in every kernel, in the header and in the manifest.

use super::names::Names;
use rnnc_runtime::plan::{BufferId, Elem, Plan, Role};

/// Names of a plan's buffers: `x_in`, `W`, `h_s0`, `h_out`, `h_sT`; `z_buf` between kernels.
#[derive(Clone, Debug)]
pub struct Pointers {
    names: Vec<String>,
}

impl Pointers {
    /// Names every buffer of a plan.
    pub fn of(plan: &Plan) -> Pointers {
        let mut names = Names::kernel();
        names.reserve(super::dense_loop::own_names());
        names.reserve(super::product::own_names());
        let names = plan
            .buffers
            .iter()
            .map(|b| names.unique(&format!("{}{}", b.name, suffix(&b.role))))
            .collect();
        Pointers { names }
    }

    /// The name of one.
    pub fn get(&self, id: BufferId) -> &str {
        &self.names[id.0 as usize]
    }
}

fn suffix(role: &Role) -> &'static str {
    match role {
        Role::Input => "_in",
        Role::Param => "",
        Role::Initial(_) => "_s0",
        Role::Output => "_out",
        Role::Final => "_sT",
        Role::Prologue => "_pre",
        Role::Temp => "_buf",
    }
}

/// The C type of a stored element.
pub fn element_type(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "float",
        Elem::F16 => "f16",
        Elem::Bf16 => "bf16",
        Elem::I32 => "int",
    }
}
