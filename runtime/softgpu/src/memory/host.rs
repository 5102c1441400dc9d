//! What the host does: allocate, free, copy, and define the variables of a module.

use super::access::Wrong;
use super::agent::Agents;
use super::area::{Area, Sort};
use super::launch::Shape;
use super::order::Causality;
use super::place::wrong;
use super::random::Random;
use super::stale::Older;
use super::{GLOBAL_BASE, Memory, SLOT};
use crate::fault::Kind;
use crate::ptx::ast::Space;

/// What memory holds that nobody wrote: as f32 -1.97e-32 at most, as an index far outside everything.
const POISON: u8 = 0xcd;

impl Memory {
    /// An empty device. The seed decides what is open in asynchronous operations.
    pub fn new(seed: u64) -> Self {
        let nothing = Area::holding("parameters".into(), Sort::Param, 0, Vec::new(), true);
        Self {
            random: Random::new(seed),
            areas: vec![nothing],
            spare: Vec::new(),
            slots: Vec::new(),
            params: 0,
            shape: Shape::default(),
            order: Causality::default(),
            agents: Agents::default(),
            older: Older::default(),
            blocks: Vec::new(),
        }
    }

    /// Allocates device memory that nobody has written; aligned to 256 bytes and to no more.
    pub fn allocate(&mut self, bytes: u64, name: &str) -> u64 {
        let base = self.next_base(bytes);
        let area = Area::poisoned(name.into(), Sort::Global, base, bytes as usize, POISON);
        self.place_area(area)
    }

    /// Defines a variable of a module in device or constant memory.
    pub fn define(&mut self, name: &str, space: Space, bytes: Vec<u8>, valid: bool) -> u64 {
        let base = self.next_base(bytes.len() as u64);
        let sort = if space == Space::Const {
            Sort::Const
        } else {
            Sort::Global
        };
        self.place_area(Area::holding(name.into(), sort, base, bytes, valid))
    }

    /// Frees an allocation.
    ///
    /// # Errors
    /// Where it is not the start of one that is allocated.
    pub fn free(&mut self, address: u64) -> Result<(), Wrong> {
        let (area, base) = self.global_home(address)?;
        if base != address {
            return Err(wrong(
                Kind::OutOfBounds,
                format!("{address:#x} is not the start of an allocation"),
            ));
        }
        self.areas[area].free();
        Ok(())
    }

    /// Copies to the device.
    ///
    /// # Errors
    /// Where the bytes are not within one allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Wrong> {
        let (area, offset) = self.host_range(address, bytes.len())?;
        self.areas[area].write(offset, bytes);
        Ok(())
    }

    /// Copies from the device.
    ///
    /// # Errors
    /// Where the bytes are not within one allocation, or nobody wrote them.
    pub fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), Wrong> {
        let (area, offset) = self.host_range(address, out.len())?;
        if let Some(bad) = (0..out.len()).find(|&i| !self.areas[area].is_valid(offset + i, 1)) {
            let name = self.name(area, (offset + bad) as u64);
            let mut w = wrong(
                Kind::Uninitialised,
                format!("the host reads {name}, which nobody wrote"),
            );
            w.address = Some(name);
            return Err(w);
        }
        out.copy_from_slice(self.areas[area].bytes(offset, out.len()));
        Ok(())
    }

    fn host_range(&self, address: u64, bytes: usize) -> Result<(usize, usize), Wrong> {
        let (area, base) = self.global_home(address)?;
        let (offset, len) = (address.wrapping_sub(base), self.areas[area].len() as u64);
        if offset > len || len - offset < bytes as u64 {
            let name = self.name(area, offset);
            return Err(wrong(
                Kind::OutOfBounds,
                format!("the host copies {bytes} bytes at {name}, of {len}"),
            ));
        }
        Ok((area, offset as usize))
    }

    /// The next base: at an odd multiple of 256 within its slot, so that nothing is aligned further by luck, and with half a
    /// slot free before it.
    fn next_base(&self, bytes: u64) -> u64 {
        debug_assert!(bytes < u64::from(u32::MAX), "areas are addressed with 32 bits");
        GLOBAL_BASE + self.slots.len() as u64 * SLOT + SLOT / 2 + 256
    }

    fn place_area(&mut self, area: Area) -> u64 {
        let base = area.base;
        let end = base + area.len() as u64 - GLOBAL_BASE;
        let slots = (end + SLOT / 2).div_ceil(SLOT) as usize;
        let index = self.add_area(area);
        self.slots.resize(slots, index as u32);
        base
    }

    /// Keeps an area, in the place of one that is no longer used.
    pub(crate) fn add_area(&mut self, area: Area) -> usize {
        if let Some(index) = self.spare.pop() {
            self.areas[index] = area;
            return index;
        }
        self.areas.push(area);
        self.areas.len() - 1
    }

    /// A byte for memory that nobody wrote.
    pub(crate) const fn poison() -> u8 {
        POISON
    }
}
