//! The frames of a connection, all of them or the last.

use std::collections::VecDeque;

use crate::wire::{Frame, MAX_FRAME, Trace};

/// How many bytes a limited buffer keeps: a frame of the maximum size, and others around it.
const BYTES: usize = 2 * MAX_FRAME;

/// Frames with their numbers, which do not change when the first frames are dropped.
#[derive(Debug, Default)]
pub(super) struct FrameBuffer {
    frames: VecDeque<Frame>,
    /// How many were dropped.
    dropped: usize,
    /// The limit, if there is one.
    kept: Option<usize>,
    /// The size of the frames in bytes.
    bytes: usize,
}

impl FrameBuffer {
    /// A buffer of the last `kept` frames, or of those that fit into 64 MiB.
    pub(super) fn with_limit(kept: usize) -> FrameBuffer {
        FrameBuffer { kept: Some(kept.max(1)), ..FrameBuffer::default() }
    }

    pub(super) fn push(&mut self, frame: Frame) {
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
        let Some(kept) = self.kept else { return };
        while self.frames.len() > kept || (self.bytes > BYTES && self.frames.len() > 1) {
            self.bytes -= self.frames.pop_front().map_or(0, |frame| frame.bytes.len());
            self.dropped += 1;
        }
    }

    /// The limit, if there is one.
    pub(super) fn kept(&self) -> Option<usize> {
        self.kept
    }

    /// The number of the first frame that is kept.
    pub(super) fn start(&self) -> usize {
        self.dropped
    }

    /// The number of the next frame.
    pub(super) fn end(&self) -> usize {
        self.dropped + self.frames.len()
    }

    /// The frames from a number on, as far as they are kept.
    pub(super) fn since(&self, index: usize) -> Trace {
        self.numbered_since(index).map(|(_, frame)| frame.clone()).collect()
    }

    /// As [`FrameBuffer::since`], each with its number.
    pub(super) fn numbered_since(&self, index: usize) -> impl Iterator<Item = (usize, &Frame)> {
        (self.dropped..).zip(&self.frames).skip(index.saturating_sub(self.dropped))
    }

    /// The frames before a number, as far as they are kept.
    pub(super) fn before(&self, index: usize) -> impl Iterator<Item = &Frame> {
        self.frames.iter().take(index.saturating_sub(self.dropped))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::wire::Direction;

    #[test]
    fn what_is_kept_is_bounded_in_frames_and_in_bytes() {
        let frame = |size: usize| {
            let (direction, at) = (Direction::ServerToClient, Duration::ZERO);
            Frame { direction, at, bytes: Bytes::from(vec![b'x'; size]) }
        };
        let mut record = FrameBuffer::with_limit(3);
        (0..4).for_each(|_| record.push(frame(1)));
        assert_eq!((record.start(), record.end()), (1, 4));
        record.push(frame(BYTES - 1));
        assert_eq!((record.start(), record.end()), (3, 5));
        record.push(frame(BYTES + 1));
        assert_eq!((record.start(), record.end(), record.bytes), (5, 6, BYTES + 1), "the last one is always there");
        let mut all = FrameBuffer::default();
        (0..2).for_each(|_| all.push(frame(BYTES)));
        assert_eq!(all.since(0).len(), 2);
    }
}
