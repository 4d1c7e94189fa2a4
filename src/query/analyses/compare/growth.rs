//! Classification of a number's development over several dumps.

/// Development of a number over several dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Growth {
    /// Grew in every step.
    EveryStep,
    /// Grew, never shrank, and stayed the same in the last step.
    Stopped,
    /// Changed in any other way.
    Varies,
}

impl Growth {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EveryStep => "every_step",
            Self::Stopped => "stopped",
            Self::Varies => "varies",
        }
    }

    /// Classifies numbers in the order of their dumps; returns `None` if nothing changed. A step counts if it is at least a
    /// twentieth of the average step: a few bytes more or less are neither growth nor its end.
    pub fn from_figures(figures: &[u64]) -> Option<Self> {
        let (first, last) = (*figures.first()?, *figures.last()?);
        let steps = figures.len().saturating_sub(1) as u64;
        if figures.iter().all(|figure| *figure == first) {
            return None;
        }
        let least = (last.abs_diff(first) / (20 * steps.max(1))).max(1);
        let mut pairs = figures.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)));
        let grows = |(old, new): (u64, u64)| new >= old.saturating_add(least);
        let shrinks = |(old, new): (u64, u64)| old >= new.saturating_add(least);
        Some(if pairs.clone().all(grows) {
            Self::EveryStep
        } else if last > first
            && !pairs.clone().any(shrinks)
            && pairs.next_back().is_some_and(|pair| !grows(pair))
        {
            Self::Stopped
        } else {
            Self::Varies
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn developments() {
        for (figures, expected) in [
            (&[100, 300, 900][..], Some(Growth::EveryStep)),
            (&[100, 300, 300], Some(Growth::Stopped)),
            (&[100, 300, 301], Some(Growth::Stopped)),
            (&[100, 300, 50], Some(Growth::Varies)),
            (&[0, 0, 500], Some(Growth::Varies)),
            (&[800, 0, 0], Some(Growth::Varies)),
            (&[5, 5, 5], None),
            (&[5], None),
            (&[], None),
        ] {
            assert_eq!(Growth::from_figures(figures), expected, "{figures:?}");
        }
    }
}
