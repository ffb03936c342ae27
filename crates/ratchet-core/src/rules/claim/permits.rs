use std::collections::HashMap;

/// The permits that a claim may still take.
///
/// Resources that were not added have no limit.
#[derive(Debug, Clone, Default)]
pub struct Permits {
    left: HashMap<String, usize>,
}

impl Permits {
    /// Adds the limit of a resource, and how many of its permits are out.
    ///
    /// Nobody else may take or return one until the claim has ended.
    pub fn add(&mut self, resource: impl Into<String>, max: usize, in_use: usize) {
        self.left.insert(resource.into(), max.saturating_sub(in_use));
    }

    /// Returns how many permits of a resource are left; `None` if its limit was not added.
    pub fn left(&self, resource: &str) -> Option<usize> {
        self.left.get(resource).copied()
    }

    /// Takes a permit for a job that needs `resource`, which is empty if it needs none; `false` if none is left.
    pub(super) fn take(&mut self, resource: &str) -> bool {
        if resource.is_empty() {
            return true;
        }
        match self.left.get_mut(resource) {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    /// Gives back what was taken for a job that needs `resource`.
    pub(super) fn give_back(&mut self, resource: &str) {
        if let Some(left) = self.left.get_mut(resource) {
            *left += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_can_be_taken() {
        let check = |max, in_use, taken: usize| {
            let mut permits = Permits::default();
            permits.add("printer", max, in_use);
            assert_eq!(permits.left("printer"), Some(taken), "{in_use} of {max}");
            for _ in 0..taken {
                assert!(permits.take("printer"), "{in_use} of {max}");
            }
            assert!(!permits.take("printer"), "{in_use} of {max}");
            permits.give_back("printer");
            assert!(permits.take("printer") && !permits.take("printer"), "{in_use} of {max}");
            assert!(permits.take("") && permits.take("other"), "neither has a limit");
        };
        check(0, 0, 0);
        check(2, 0, 2);
        check(2, 1, 1);
        check(2, 2, 0);
        // The limit was lowered.
        check(2, 5, 0);
    }
}
