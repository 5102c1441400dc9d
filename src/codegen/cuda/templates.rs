//! The skeletons of kernels, and the only file that knows the template engine.
//!
//! A template has places for finished text and nothing else. Each has one view, whose fields are exactly those places.

use serde::Serialize;
use std::sync::OnceLock;
use tera::{Context, Tera};

/// A skeleton with the view that fills it.
pub trait View: Serialize {
    /// The template's name in [`TEMPLATES`].
    const TEMPLATE: &'static str;
}

/// Every template.
const TEMPLATES: &[(&str, &str)] = &[
    ("header.h", include_str!("../../../templates/header.h")),
    ("file.cu", include_str!("../../../templates/file.cu")),
    ("pointwise.cu", include_str!("../../../templates/pointwise.cu")),
    ("product.cu", include_str!("../../../templates/product.cu")),
    ("total.cu", include_str!("../../../templates/total.cu")),
    ("channel.cu", include_str!("../../../templates/channel.cu")),
    ("channel_ahead.cu", include_str!("../../../templates/channel_ahead.cu")),
    ("loop.cu", include_str!("../../../templates/loop.cu")),
];

/// The text of a view.
#[expect(
    clippy::expect_used,
    reason = "templates are part of the program, and a test renders each of them"
)]
pub fn render<V: View>(view: &V) -> String {
    let context = Context::from_serialize(view).expect("views are structs of strings");
    engine()
        .render(V::TEMPLATE, &context)
        .expect("a view has every place of its template")
}

#[expect(
    clippy::expect_used,
    reason = "templates are part of the program, and a test parses all of them"
)]
fn engine() -> &'static Tera {
    static ENGINE: OnceLock<Tera> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut tera = Tera::new();
        // C is not HTML.
        tera.autoescape_on(Vec::<String>::new());
        tera.add_raw_templates(TEMPLATES.iter().copied())
            .expect("templates parse");
        tera
    })
}

/// Checks that a template's places are exactly the fields of its view.
#[cfg(test)]
pub fn assert_exact<V: View>(view: &V) {
    use std::collections::BTreeSet;
    let value = serde_json::to_value(view).unwrap();
    let fields: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let places: BTreeSet<&str> = engine()
        .get_template_variables(V::TEMPLATE)
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(fields, places, "{}", V::TEMPLATE);
    assert!(!render(view).contains("{{"));
}
