#![doc = include_str!("../README.md")]

mod deadline;
pub mod dialect;
pub mod discovery;
pub mod label;
mod operation_table;

pub use dialect::{Dialect, DynamoPython, PauseMode, TransferPath, VersionReading, dialects, path_check};
pub use label::{Label, LabelMatch, LabelRefusal};
pub use operation_table::{Ask, OperationRow, operation_table, operations_of, reachable};
