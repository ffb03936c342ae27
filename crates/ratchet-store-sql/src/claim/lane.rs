//! Lanes: ranges of the claim index.

pub(crate) use ratchet_core::claim::Lane;

use crate::waist::value::Value;

/// A lane in a statement.
pub(crate) trait BindLane {
    /// Adds the values that the claim index begins with.
    fn bind(&self, values: &mut Vec<Value>);
}

impl BindLane for Lane<'_> {
    fn bind(&self, values: &mut Vec<Value>) {
        values.extend([
            Value::from(self.probation),
            (&*self.resource).into(),
            self.queue.into(),
            self.kind.into(),
            Value::count(self.priority.level()),
        ]);
    }
}
