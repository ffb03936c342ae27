use std::error::Error;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::{ErrorKind, JobFlags, JobId, JobState, NodeId, StoreError};
use uuid::Uuid;

/// What a driver says about a cell that it could not read.
pub type CellError = Box<dyn Error + Send + Sync>;

/// The cells of one row, as a driver has them; indexes count from zero.
///
/// Reading is lazy, so that text and bytes need not be copied.
pub trait Cells: Send + Sync {
    /// The name of a column, for error texts.
    fn name(&self, index: usize) -> &str;
    /// A whole number.
    fn int(&self, index: usize) -> Result<Option<i64>, CellError>;
    /// A fraction.
    fn real(&self, index: usize) -> Result<Option<f64>, CellError>;
    /// Yes or no.
    fn bool(&self, index: usize) -> Result<Option<bool>, CellError>;
    /// Text or JSON.
    fn text(&self, index: usize) -> Result<Option<&str>, CellError>;
    /// The id of a job or a node.
    fn id(&self, index: usize) -> Result<Option<Uuid>, CellError>;
    /// A point in time.
    fn time(&self, index: usize) -> Result<Option<Timestamp>, CellError>;
}

/// One row of an answer.
pub struct Row(Box<dyn Cells>);

impl Row {
    /// A row of a driver's cells.
    pub fn new(cells: impl Cells + 'static) -> Self {
        Self(Box::new(cells))
    }

    /// Reads the row's fields in the order of the statement's columns.
    pub fn fields(&self) -> Fields<'_> {
        Fields { cells: &*self.0, next: 0 }
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Row")
    }
}

/// The fields of a row, read one after the other.
///
/// Every call names the column that it expects; the names are compared in debug builds.
pub struct Fields<'r> {
    cells: &'r dyn Cells,
    next: usize,
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").field("next", &self.next).finish_non_exhaustive()
    }
}

macro_rules! plain_fields {
    ($($(#[$doc:meta])* $get:ident / $get_opt:ident -> $type:ty;)*) => {$(
        $(#[$doc])*
        pub fn $get(&mut self, column: &'static str) -> Result<$type, StoreError> {
            self.$get_opt(column)?.ok_or_else(|| missing(column))
        }

        /// The same, if it is not NULL.
        pub fn $get_opt(&mut self, column: &'static str) -> Result<Option<$type>, StoreError> {
            let index = self.step(column);
            self.cells.$get(index).map_err(|error| unreadable(column).with_source(error))
        }
    )*};
}

impl<'r> Fields<'r> {
    plain_fields! {
        /// A whole number.
        int / opt_int -> i64;
        /// A fraction.
        real / opt_real -> f64;
        /// Yes or no.
        bool / opt_bool -> bool;
        /// Text or JSON.
        text / opt_text -> &'r str;
        /// The id of a job or a node.
        id / opt_id -> Uuid;
        /// A point in time.
        time / opt_time -> Timestamp;
    }

    /// A number that is never negative.
    pub fn number<T: TryFrom<i64>>(&mut self, column: &'static str) -> Result<T, StoreError> {
        let number = self.int(column)?;
        T::try_from(number).map_err(|_| invalid(column, format!("{number} is out of range")))
    }

    /// A duration in microseconds, if it is not NULL.
    pub fn opt_duration(&mut self, column: &'static str) -> Result<Option<Duration>, StoreError> {
        let Some(micros) = self.opt_int(column)? else { return Ok(None) };
        let micros = u64::try_from(micros).map_err(|_| invalid(column, format!("{micros} is negative")))?;
        Ok(Some(Duration::from_micros(micros)))
    }

    /// A duration in microseconds.
    pub fn duration(&mut self, column: &'static str) -> Result<Duration, StoreError> {
        self.opt_duration(column)?.ok_or_else(|| missing(column))
    }

    /// The id of a job.
    pub fn job_id(&mut self, column: &'static str) -> Result<JobId, StoreError> {
        self.opt_job_id(column)?.ok_or_else(|| missing(column))
    }

    /// The id of a job, if it is not NULL.
    pub fn opt_job_id(&mut self, column: &'static str) -> Result<Option<JobId>, StoreError> {
        Ok(self.opt_id(column)?.map(JobId))
    }

    /// The id of a node.
    pub fn node_id(&mut self, column: &'static str) -> Result<NodeId, StoreError> {
        self.opt_node_id(column)?.ok_or_else(|| missing(column))
    }

    /// The id of a node, if it is not NULL.
    pub fn opt_node_id(&mut self, column: &'static str) -> Result<Option<NodeId>, StoreError> {
        Ok(self.opt_id(column)?.map(NodeId))
    }

    /// The state of a job, if it is not NULL.
    pub fn opt_state(&mut self, column: &'static str) -> Result<Option<JobState>, StoreError> {
        self.opt_parsed(column, str::parse)
    }

    /// The state of a job.
    pub fn state(&mut self, column: &'static str) -> Result<JobState, StoreError> {
        self.opt_state(column)?.ok_or_else(|| missing(column))
    }

    /// How a job is tied to others.
    pub fn flow(&mut self, column: &'static str) -> Result<JobFlags, StoreError> {
        Ok(JobFlags::from_bits(self.number(column)?))
    }

    /// Text that means something, if it is not NULL.
    pub fn opt_parsed<T, E: Error + Send + Sync + 'static>(
        &mut self,
        column: &'static str,
        parse: impl FnOnce(&'r str) -> Result<T, E>,
    ) -> Result<Option<T>, StoreError> {
        let Some(text) = self.opt_text(column)? else { return Ok(None) };
        parse(text).map(Some).map_err(|error| unreadable(column).with_source(error))
    }

    /// Text that means something.
    pub fn parsed<T, E: Error + Send + Sync + 'static>(
        &mut self,
        column: &'static str,
        parse: impl FnOnce(&'r str) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        self.opt_parsed(column, parse)?.ok_or_else(|| missing(column))
    }

    fn step(&mut self, column: &'static str) -> usize {
        let index = self.next;
        debug_assert_eq!(self.cells.name(index), column, "columns are read in the order of the statement");
        self.next += 1;
        index
    }
}

fn missing(column: &str) -> StoreError {
    invalid(column, "it is NULL, which this version never writes".to_owned())
}

fn unreadable(column: &str) -> StoreError {
    invalid(column, "the stored value cannot be read; it was changed by hand or by another version".to_owned())
}

fn invalid(column: &str, problem: String) -> StoreError {
    StoreError::new(ErrorKind::Invalid, format!("reading column {column}"), problem)
}
