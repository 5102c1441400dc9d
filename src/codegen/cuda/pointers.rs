//! The C names of buffers, the same in every kernel, in the header and in the manifest.

use super::names::Names;
use rnnc_runtime::plan::{Body, BufferId, Elem, Frame, Plan, Role, Step};

/// Names of a plan's buffers: `x_in`, `W`, `h_s0`, `h_out`, `h_sT`; `z_buf` between kernels.
#[derive(Clone, Debug)]
pub struct Pointers {
    names: Vec<String>,
}

impl Pointers {
    /// Names every buffer of a plan.
    pub fn of(plan: &Plan) -> Pointers {
        let mut names = Names::kernel();
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

/// What a kernel reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Buffers read, each once, in order of id.
    pub reads: Vec<BufferId>,
    /// Buffers written, each once, in order of id.
    pub writes: Vec<BufferId>,
}

impl Access {
    /// Adds what a body loads and stores.
    pub fn body(&mut self, body: &Body) {
        for step in &body.steps {
            match step {
                Step::Load(load) => {
                    self.read(load.buffer);
                    if let Frame::At { window: Some(w), .. } = load.frame {
                        self.read(w);
                    }
                }
                Step::Gather { table, .. } => self.read(*table),
                _ => {}
            }
        }
        for store in &body.stores {
            insert(&mut self.writes, store.buffer);
        }
    }

    /// Adds a buffer that is read.
    pub fn read(&mut self, id: BufferId) {
        insert(&mut self.reads, id);
    }

    /// All of them as parameters of a kernel: what is read, then what is written.
    pub fn parameters(&self, plan: &Plan, pointers: &Pointers) -> Vec<String> {
        let declare = |id: &BufferId, constant: &str| {
            let ty = element_type(plan.buffer(*id).elem);
            format!("{constant}{ty}* __restrict__ {}", pointers.get(*id))
        };
        let reads = self.reads.iter().map(|id| declare(id, "const "));
        let writes = self.writes.iter().map(|id| declare(id, ""));
        reads.chain(writes).collect()
    }

    /// Reads, then writes.
    pub fn all(&self) -> impl Iterator<Item = BufferId> {
        self.reads.iter().chain(&self.writes).copied()
    }
}

fn insert(list: &mut Vec<BufferId>, id: BufferId) {
    if let Err(at) = list.binary_search(&id) {
        list.insert(at, id);
    }
}
