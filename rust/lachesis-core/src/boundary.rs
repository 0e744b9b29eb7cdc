//! Context boundaries, and which of them close a segment.

use crate::units::SegmentClass;

/// An event of the harness after which some context is never read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BoundaryKind {
    /// A turn's last output.
    TurnEnd = 0,
    /// A sub-agent has returned.
    SubagentReturn = 1,
    /// The session is over.
    SessionEnd = 2,
    /// The context was replaced by a summary.
    Compaction = 3,
    /// A request's end, in harnesses that strip reasoning every round.
    RequestEnd = 4,
    /// A rewind, an edit, a change of model.
    Reset = 5,
}

impl BoundaryKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::TurnEnd,
        Self::SubagentReturn,
        Self::SessionEnd,
        Self::Compaction,
        Self::RequestEnd,
        Self::Reset,
    ];

    /// The name used by harnesses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TurnEnd => "turn_end",
            Self::SubagentReturn => "subagent_return",
            Self::SessionEnd => "session_end",
            Self::Compaction => "compaction",
            Self::RequestEnd => "request_end",
            Self::Reset => "reset",
        }
    }

    /// The kind of a number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A set of boundary kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundaryKinds(u8);

impl BoundaryKinds {
    /// The kinds given.
    #[must_use]
    pub fn of(kinds: &[BoundaryKind]) -> Self {
        Self(kinds.iter().fold(0, |set, &kind| set | 1 << kind as u8))
    }

    /// Whether a kind is among them.
    #[must_use]
    pub const fn contains(self, kind: BoundaryKind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }

    /// What closes a segment of a class: its own boundary, or `own` instead, and what ends any context. A prompt outlives
    /// compaction and reset.
    #[must_use]
    pub fn closing(class: SegmentClass, own: Option<BoundaryKind>) -> Self {
        let own = own.unwrap_or(match class {
            SegmentClass::ReasoningLaden => BoundaryKind::TurnEnd,
            SegmentClass::Worker | SegmentClass::Reviewer => BoundaryKind::SubagentReturn,
            _ => BoundaryKind::SessionEnd,
        });
        let mut kinds = Self::of(&[own, BoundaryKind::SessionEnd]).0;
        if class != SegmentClass::Prompt {
            kinds |= Self::of(&[BoundaryKind::Compaction, BoundaryKind::Reset]).0;
        }
        Self(kinds)
    }

    /// Whether a boundary that names no segment closes this one of `class`: it speaks of the lead's context, except at the session's end.
    #[must_use]
    pub fn meets_unnamed(self, kind: BoundaryKind, class: SegmentClass) -> bool {
        let is_of_the_lead = !matches!(class, SegmentClass::Worker | SegmentClass::Reviewer);
        self.contains(kind) && (is_of_the_lead || kind == BoundaryKind::SessionEnd)
    }
}
