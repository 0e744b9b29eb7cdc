//! Running requests: a segment does not end under one.

use crate::placement::live::close::{Ignored, Released};
use crate::placement::live::{Found, Key, Live, Named, PlacementError, Result};

impl<K: Key> Live<K> {
    /// A request starts to run on segments: those that it reads and writes (a turn's new context and the history that it carries).
    /// The same start again changes nothing and is counted.
    ///
    /// # Errors
    /// `UnknownSegment`, `SegmentClosed` (also while the close waits); `DuplicateRequest` if it runs on other segments;
    /// `TooManyRequests`.
    pub fn start_request(&mut self, request: &K, segments: &[Named<'_, K>]) -> Result<()> {
        if let Some(running) = self.requests.get(request) {
            let is_same = segments
                .iter()
                .all(|named| matches!(self.find(*named), Found::Live(place) if running.contains(&place)));
            if !is_same {
                return Err(PlacementError::DuplicateRequest(request.to_string()));
            }
            self.counters.repeated_events += 1;
            return Ok(());
        }
        let mut places = Vec::with_capacity(segments.len());
        for named in segments {
            let place = self.writable(*named)?;
            let row = self.segments.row(place);
            if !row.life.is_open() {
                return Err(PlacementError::SegmentClosed(named.segment.to_string()));
            }
            if row.running == u16::MAX {
                let segment = named.segment.to_string();
                return Err(PlacementError::TooManyRequests { segment, most: u16::MAX });
            }
            if !places.contains(&place) {
                places.push(place);
            }
        }
        for &place in &places {
            let row = self.segments.row_mut(place);
            row.running += 1;
            row.touched = self.now;
        }
        self.requests.insert(request.clone(), places);
        self.counters.requests += 1;
        Ok(())
    }

    /// A request has ended: boundaries that waited for it take place.
    ///
    /// # Errors
    /// `UnknownRequest`; `Policy`.
    pub fn finish_request(&mut self, request: &K) -> Result<Released<K>> {
        self.end_request(request)
    }

    /// A request was given up. What it wrote stays with its segments until they end.
    ///
    /// # Errors
    /// As `finish_request`.
    pub fn abort(&mut self, request: &K) -> Result<Released<K>> {
        let released = self.end_request(request)?;
        self.counters.aborted += u64::from(released.ignored.is_none());
        Ok(released)
    }

    fn end_request(&mut self, request: &K) -> Result<Released<K>> {
        let Some(places) = self.requests.get(request).cloned() else {
            return if self.ended_requests.get(request).is_some() {
                self.counters.repeated_events += 1;
                Ok(Released::ignored(Ignored::Repeated))
            } else {
                Err(PlacementError::UnknownRequest(request.to_string()))
            };
        };
        for &place in &places {
            self.segments.row_mut(place).running -= 1;
        }
        let waiting: Vec<u32> = places
            .iter()
            .copied()
            .filter(|&place| {
                let row = self.segments.row(place);
                row.life.ends_with_use(row.in_use())
            })
            .collect();
        let released = self.close_all(&waiting);
        if released.is_err() {
            for &place in &places {
                self.segments.row_mut(place).running += 1;
            }
            return released;
        }
        for &place in &places {
            self.segments.row_mut(place).touched = self.now;
        }
        self.requests.remove(request);
        self.ended_requests.enter(request.clone(), 0);
        released
    }
}
