//! What an instruction does to memory, kept once for each instruction: records of accesses name it by a number.

use super::super::access::{Access, Order, Scope};
use super::super::hash::QuickMap;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic operation.
    Atomic,
    /// The initialisation of an mbarrier, which holds its place until `mbarrier.inval`.
    Mbarrier,
    /// An asynchronous copy reads its source.
    CopyRead,
    /// An asynchronous operation writes its destination.
    CopyWrite,
}

/// An instruction as memory sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    /// The place in the program.
    pub at: u32,
    /// What it does.
    pub what: What,
    /// How it orders.
    pub order: Order,
    /// Among whom.
    pub scope: Scope,
    /// Bytes of an element.
    pub bytes: u32,
}

impl Site {
    /// The site of an access.
    pub fn of(a: &Access, what: What) -> Self {
        Self {
            at: a.at,
            what,
            order: a.order,
            scope: a.scope,
            bytes: a.bytes,
        }
    }

    /// Whether it is a strong access.
    pub fn strong(&self) -> bool {
        !matches!(self.order, Order::Weak | Order::NonCoherent)
    }

    /// Accesses of one class other than 0 never race: strong ones of this many bytes, in the scope of which are all threads.
    pub fn class(&self) -> u32 {
        if self.strong() && self.scope >= Scope::Gpu {
            self.bytes
        } else {
            0
        }
    }

    /// For reports: `relaxed.gpu write of 4 bytes`.
    pub fn describe(&self) -> String {
        let order = match self.order {
            Order::Weak => "weak",
            Order::NonCoherent => "non-coherent",
            Order::Relaxed => "relaxed",
            Order::Acquire => "acquire",
            Order::Release => "release",
            Order::AcquireRelease => "acq_rel",
        };
        let scope = match (self.strong(), self.scope) {
            (false, _) => "",
            (_, Scope::Block) => ".cta",
            (_, Scope::Cluster) => ".cluster",
            (_, Scope::Gpu) => ".gpu",
            (_, Scope::System) => ".sys",
        };
        let what = match self.what {
            What::Read => "read",
            What::Write => "write",
            What::Atomic => "atomic operation",
            What::Mbarrier => return "mbarrier.init".into(),
            What::CopyRead => return format!("read of {} bytes by an asynchronous copy", self.bytes),
            What::CopyWrite => return format!("write of {} bytes by an asynchronous copy", self.bytes),
        };
        format!("{order}{scope} {what} of {} bytes", self.bytes)
    }
}

/// The sites of a launch.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    all: Vec<Site>,
    numbers: QuickMap<Site, u32>,
    /// The last site looked up for a few places of the program.
    recent: Vec<u32>,
}

impl Sites {
    const RECENT: usize = 256;

    /// The number of a site.
    pub fn number(&mut self, site: Site) -> u32 {
        let place = site.at as usize % Self::RECENT;
        if let Some(&number) = self.recent.get(place)
            && self.all.get(number as usize) == Some(&site)
        {
            return number;
        }
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(site).or_insert(next);
        if number == next {
            self.all.push(site);
        }
        self.recent.resize(Self::RECENT, u32::MAX);
        self.recent[place] = number;
        number
    }

    /// A site.
    pub fn get(&self, number: u32) -> &Site {
        &self.all[number as usize]
    }
}
