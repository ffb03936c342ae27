//! How urgent a job is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::invalid::InvalidInput;

/// How urgent a job is; the longer it waits, the more its effective priority grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[repr(u8)]
pub enum Priority {
    /// 0
    Lowest = 0,
    /// 1
    Low = 1,
    /// 2, unless said otherwise
    #[default]
    Normal = 2,
    /// 3
    High = 3,
    /// 4
    Critical = 4,
}

impl Priority {
    /// Every priority, the least urgent first.
    pub const ALL: [Self; 5] = [Self::Lowest, Self::Low, Self::Normal, Self::High, Self::Critical];

    /// The number that is stored.
    pub const fn level(self) -> u8 {
        self as u8
    }

    /// The priority of a stored number.
    pub const fn from_level(level: u8) -> Option<Self> {
        match level {
            0 => Some(Self::Lowest),
            1 => Some(Self::Low),
            2 => Some(Self::Normal),
            3 => Some(Self::High),
            4 => Some(Self::Critical),
            _ => None,
        }
    }

    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lowest => "LOWEST",
            Self::Low => "LOW",
            Self::Normal => "NORMAL",
            Self::High => "HIGH",
            Self::Critical => "CRITICAL",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Priority {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        Self::ALL.into_iter().find(|p| p.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
            InvalidInput::new("priority", format!("is {text:?}; use lowest, low, normal, high or critical"))
        })
    }
}
