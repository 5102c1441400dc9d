//! Counts and modelled times as tables.

use rnnc::modelled::{CellCost, KernelCost};
use rnnc_runtime::sim::{CostCounts, Modelled};
use std::fmt::Write as _;

/// What stands under every table.
const CAUTION: &str = "Modelled from published rates, at their fast and slow ends; not measured. It compares variants and shows what a \
                       kernel waits for; it is no statement of speed (docs/softgpu.md).\n";

/// A table of what a cell came to on each card.
pub fn table(cell: &str, costs: &[CellCost]) -> String {
    let mut text = String::new();
    for cost in costs {
        let _ = writeln!(
            text,
            "{cell} T={} B={} on {} (simulated)",
            cost.frames, cost.batch, cost.gpu
        );
        for (name, kernel) in cost.prologue.iter().chain(&cost.kernels) {
            text += &kernel_lines(name, kernel);
        }
        let _ = writeln!(text, "  all kernels    {}", time(&cost.total));
        let _ = writeln!(
            text,
            "  one more frame {}; {} exchanges of warps, {} barriers",
            time(&cost.frame),
            cost.exchanges_a_frame,
            cost.barriers_a_frame
        );
        text.push('\n');
    }
    text + CAUTION
}

fn kernel_lines(name: &str, kernel: &KernelCost) -> String {
    let counts = &kernel.counts;
    let mut text = format!("  {name}: {} launches, {}\n", kernel.launches, instructions(counts));
    let _ = writeln!(
        text,
        "    {} sectors of device memory for {} requests ({:.0} % needed), {} beyond the caches; {} bank conflicts in {} requests \
         of shared memory",
        counts.global_sectors,
        counts.global_requests,
        100.0 * counts.coalescing(),
        counts.memory_sectors,
        counts.conflicts(),
        counts.shared_requests
    );
    let _ = writeln!(
        text,
        "    modelled {}: {}",
        time(&kernel.modelled),
        terms(&kernel.modelled)
    );
    text
}

/// Instructions of warps by class, the most first.
fn instructions(counts: &CostCounts) -> String {
    let mut all: Vec<(String, u64)> = counts
        .instructions
        .iter()
        .map(|(class, count)| (format!("{class:?}"), *count))
        .collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let total: u64 = all.iter().map(|(_, count)| count).sum();
    let parts: Vec<String> = all.iter().map(|(class, count)| format!("{class} {count}")).collect();
    format!("{total} instructions of warps ({})", parts.join(", "))
}

/// A range in microseconds.
fn time(modelled: &Modelled) -> String {
    let [low, high] = modelled.microseconds;
    let launch = match modelled.launch {
        [0.0, _] => String::new(),
        [low, high] => format!(" and {low:.1} .. {high:.1} us for launching"),
    };
    format!("{low:.2} .. {high:.2} us{launch}")
}

/// What the path is made of, the largest first.
fn terms(modelled: &Modelled) -> String {
    let mut all: Vec<_> = modelled.terms.iter().collect();
    all.sort_by(|a, b| (b.1[0] + b.1[1]).total_cmp(&(a.1[0] + a.1[1])));
    let visible = all.iter().filter(|(_, [low, high])| low.max(*high) >= 0.005);
    let parts: Vec<String> = visible
        .map(|(term, [low, high])| format!("{} {low:.2} .. {high:.2}", term.name()))
        .collect();
    parts.join(", ")
}
