//! What whoever runs the backward graph does to numbers: it puts the tape together from a forward run, and the gradients of
//! initial windows from the final windows of the backward run.
//!
//! Numbers lie frame by frame, each frame as large as any other; of what type they are is the caller's matter.

use super::{Before, Source, Taped, Window};
use std::ops::AddAssign;

/// What a forward run was given and what it gave, by name.
pub trait Forward<T> {
    /// All frames of an input.
    fn input(&self, name: &str) -> Option<&[T]>;
    /// All frames of an output, or the output itself where it has no frames.
    fn output(&self, name: &str) -> Option<&[T]>;
    /// The initial window of a name that is read delayed, if one was given.
    fn window(&self, name: &str) -> Option<&[T]>;
}

impl Taped {
    /// The input of the backward graph, `frames` frames in the order of time; none if the run lacks its source.
    pub fn values<T: Copy + Default>(&self, run: &impl Forward<T>, frames: usize) -> Option<Vec<T>> {
        let source = match &self.source {
            Source::Input(name) => run.input(name)?,
            Source::Output(name) => run.output(name)?,
        };
        let frame = source.len() / frames.max(1);
        let by = frame * self.delay.unsigned_abs() as usize;
        let both = by.min(source.len()); // where there are fewer frames than the delay
        let mut values = Vec::with_capacity(source.len() + by);
        if self.delay < 0 {
            values.extend_from_slice(&source[both..]);
            values.resize(source.len(), T::default());
            return Some(values);
        }
        if let Some(window) = &self.window {
            window.extend(&mut values, run, (by, frame));
        }
        values.truncate(source.len());
        values.extend_from_slice(&source[..source.len() - both]);
        Some(values)
    }
}

impl Before {
    /// Adds the last `length` numbers before the first frame.
    fn extend<T: Copy + Default>(&self, values: &mut Vec<T>, run: &impl Forward<T>, (length, frame): (usize, usize)) {
        let default = self.default.as_ref().and_then(|name| run.output(name));
        match (run.window(&self.name), default) {
            (Some(window), _) => values.extend_from_slice(&window[window.len().saturating_sub(length)..]),
            (None, Some(every)) => values.extend(every[..frame].iter().cycle().take(length)),
            (None, None) => values.resize(length, T::default()),
        }
    }
}

impl Window {
    /// The gradient of the initial window: the final windows of the parts added up, aligned at their last frames.
    /// `last` finds the final window of a state of the backward graph.
    pub fn gradient<'a, T: Copy + AddAssign + 'a>(&self, last: impl Fn(&str) -> Option<&'a [T]>) -> Option<Vec<T>> {
        let mut parts = self.parts.iter();
        let mut sum = last(&parts.next()?.0)?.to_vec();
        for (name, _) in parts {
            let part = last(name)?;
            let from = sum.len().checked_sub(part.len())?;
            sum[from..].iter_mut().zip(part).for_each(|(s, p)| *s += *p);
        }
        Some(sum)
    }
}

/// The sum over the frames of a window, for frames of `frame` numbers.
pub fn over_frames<T: Copy + Default + AddAssign>(window: &[T], frame: usize) -> Vec<T> {
    let mut sum = vec![T::default(); frame];
    for one in window.chunks(frame.max(1)) {
        sum.iter_mut().zip(one).for_each(|(s, v)| *s += *v);
    }
    sum
}
