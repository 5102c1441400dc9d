//! Drawings of small graphs, and of a large one in good time.

use super::*;
use crate::analysis;
use crate::ir::op::{Binary, Unary};
use crate::ir::testing::Build;
use crate::ir::{NodeId, Read};

fn drawn(graph: &Graph, format: Format) -> String {
    let facts = analysis::analyse(graph).expect("no cycle");
    draw(graph, &facts, &[], format)
}

#[test]
fn boxes_are_named_values_and_products() {
    let graph = Build::elman();
    let facts = analysis::analyse(&graph).expect("no cycle");
    let picture = picture::picture(&graph, &facts, &[]);
    let titles: Vec<&str> = picture.boxes.iter().map(|b| b.title.as_str()).collect();
    assert_eq!(titles, ["x", "h", "W @ x", "R @ h[t-1]"]);
    let late: Vec<&picture::Arrow> = picture.arrows.iter().filter(|a| a.delay == 1).collect();
    assert_eq!(late.len(), 1);
    assert_eq!((late[0].from, late[0].to), (1, 3));
    assert!(picture.boxes[1].output);
    assert_eq!(picture.boxes[1].recurrence, Some(0));
    assert_eq!(picture.boxes[2].recurrence, None);
}

#[test]
fn a_delayed_input_is_one_box() {
    let mut b = Build::new("taps", &["H"]);
    let x = b.input("x", &["H"]);
    let kept = b.state("x", 1, &["H"]);
    b.close(kept, x);
    let y = b.binary(Binary::Add, x, Read { node: kept, delay: 1 });
    b.name(y, "y");
    b.output("y", y);
    let facts = analysis::analyse(&b.graph).expect("no cycle");
    let picture = picture::picture(&b.graph, &facts, &[]);
    assert_eq!(picture.boxes.len(), 2);
    let delays: Vec<i32> = picture.arrows.iter().map(|a| a.delay).collect();
    assert_eq!(delays, [0, 1]);
}

#[test]
fn rows_follow_dependence_and_nothing_overlaps() {
    let graph = ladder(40);
    let facts = analysis::analyse(&graph).expect("no cycle");
    let picture = picture::picture(&graph, &facts, &[]);
    let layout = layout::layout(&picture);
    for arrow in picture.arrows.iter().filter(|a| a.delay == 0) {
        let (from, to) = (layout.boxes[arrow.from], layout.boxes[arrow.to]);
        assert!(from.y + from.h < to.y, "an arrow of this frame runs down");
    }
    for (i, a) in layout.boxes.iter().enumerate() {
        assert!(a.x >= 0.0 && a.x + a.w <= layout.width && a.y + a.h <= layout.height);
        for b in &layout.boxes[..i] {
            let apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
            assert!(apart, "two boxes overlap");
        }
    }
}

/// States in layers, each reading itself, the one before, and one far away.
fn ladder(n: usize) -> Graph {
    let mut b = Build::new("ladder", &["H"]);
    let x = b.input("x", &["H"]);
    let mut states: Vec<NodeId> = Vec::new();
    for i in 0..n {
        let state = b.state(&format!("h{i}"), 1, &["H"]);
        let below = states.last().copied().unwrap_or(x);
        let far = states.get(i.wrapping_sub(17)).copied().unwrap_or(x);
        let kept = b.binary(Binary::Mul, Read { node: state, delay: 1 }, below);
        let sum = b.binary(Binary::Add, kept, far);
        let value = b.unary(Unary::Tanh, sum);
        b.close(state, value);
        states.push(state);
    }
    b.output("y", states[n - 1]);
    b.graph
}

#[test]
fn a_large_graph_takes_less_than_a_second() {
    let graph = ladder(2000);
    let facts = analysis::analyse(&graph).expect("no cycle");
    // The best of three, so that a busy machine does not fail the test; an unoptimised build is ten times slower.
    let limit = if cfg!(debug_assertions) { 10.0 } else { 1.0 };
    let times = (0..3).map(|_| {
        let start = std::time::Instant::now();
        let text = draw(&graph, &facts, &[], Format::Svg);
        assert_eq!(text.matches("class=\"box\"").count(), 2001);
        start.elapsed().as_secs_f64()
    });
    let best = times.fold(f64::INFINITY, f64::min);
    assert!(best < limit, "{best} s");
}

#[test]
fn elman_as_text() {
    insta::assert_snapshot!(drawn(&Build::elman(), Format::Dot));
}

#[test]
fn elman_as_a_picture() {
    insta::assert_snapshot!(drawn(&Build::elman(), Format::Svg));
}

#[test]
fn a_page_needs_nothing_else() {
    let page = drawn(&Build::elman(), Format::Html);
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<title>elman</title>") && page.contains("<script>") && page.contains("</svg>"));
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http") && !outside.contains("src=") && !outside.contains("@import"));
}

#[test]
fn formats_follow_extensions() {
    assert_eq!(Format::of_extension("SVG"), Some(Format::Svg));
    assert_eq!(Format::of_extension("gv"), Some(Format::Dot));
    assert_eq!(Format::of_extension("html"), Some(Format::Html));
    assert_eq!(Format::of_extension("png"), None);
}

#[test]
fn the_same_graph_gives_the_same_bytes() {
    for format in [Format::Dot, Format::Svg, Format::Html] {
        assert_eq!(drawn(&ladder(30), format), drawn(&ladder(30), format));
    }
}

#[test]
fn text_from_the_user_is_escaped() {
    let mut b = Build::new("a<b>\"&", &["H"]);
    let x = b.input("x", &["H"]);
    let less = b.binary(Binary::Lt, x, x);
    b.name(less, "y");
    b.output("y", less);
    for format in [Format::Svg, Format::Html] {
        let text = drawn(&b.graph, format);
        assert!(text.contains("a&lt;b&gt;&quot;&amp;") && text.contains("x &lt; x"));
        assert!(!text.contains("a<b>"));
    }
    assert!(drawn(&b.graph, Format::Dot).contains("digraph \"a<b>\\\"&\""));
}

#[test]
fn kernels_colour_what_they_compute() {
    let graph = Build::elman();
    let facts = analysis::analyse(&graph).expect("no cycle");
    let product = graph
        .ids()
        .find(|id| matches!(graph.node(*id).op, crate::ir::Op::Contract { .. }));
    let kernel = Kernel {
        name: "product_0".to_owned(),
        what: "W @ x".to_owned(),
        nodes: product.into_iter().collect(),
    };
    let picture = picture::picture(&graph, &facts, std::slice::from_ref(&kernel));
    let coloured: Vec<&str> = picture
        .boxes
        .iter()
        .filter(|b| b.kernels == [0])
        .map(|b| b.title.as_str())
        .collect();
    assert_eq!(coloured, ["W @ x"]);
    assert!(draw(&graph, &facts, &[kernel], Format::Svg).contains("kernel product_0: W @ x"));
}

#[test]
fn a_box_has_the_colour_of_its_own_kernel() {
    let mut b = Build::new("two", &["H"]);
    let x = b.input("x", &["H"]);
    let inside = b.unary(Unary::Exp, x);
    let y = b.unary(Unary::Tanh, inside);
    b.name(y, "y");
    b.output("y", y);
    let facts = analysis::analyse(&b.graph).expect("no cycle");
    let kernel = |name: &str, node: NodeId| Kernel {
        name: name.to_owned(),
        what: String::new(),
        nodes: vec![node],
    };
    let kernels = [kernel("first", inside), kernel("second", y)];
    let picture = picture::picture(&b.graph, &facts, &kernels);
    assert_eq!(picture.boxes[1].kernels, [1]);
    let picture = picture::picture(&b.graph, &facts, &kernels[..1]);
    assert_eq!(picture.boxes[1].kernels, [0]);
}

#[test]
fn products_with_parts_of_a_parameter_say_which() {
    let mut b = Build::new("parts", &["H", "I"]);
    let (x, w) = (b.input("x", &["I"]), b.param("W", &["2*H", "I"]));
    let half = b.slice(w, 0, "H", "2*H");
    let y = b.contract("oi,i->o", &[half.into(), x.into()]);
    let y = b.unary(Unary::Tanh, y);
    b.name(y, "y");
    b.output("y", y);
    let facts = analysis::analyse(&b.graph).expect("no cycle");
    let picture = picture::picture(&b.graph, &facts, &[]);
    let product = picture.boxes.iter().find(|b| b.title == "W @ x").expect("the product");
    assert_eq!(product.text, "H .. 2*H of W");
}
