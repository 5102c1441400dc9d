//! One page that needs nothing else: the picture, to drag and zoom, with details of what the pointer is over.

use super::layout::Layout;
use super::palette::escaped;
use super::picture::Picture;
use super::svg;

const HEAD: &str = include_str!("page_head.html");
const TAIL: &str = include_str!("page_tail.html");

/// Writes a picture as a page.
pub(super) fn html(picture: &Picture, layout: &Layout) -> String {
    let title = escaped(&picture.title);
    format!("{}{}{TAIL}", HEAD.replace("CELL", &title), svg::svg(picture, layout))
}
