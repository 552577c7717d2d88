//! The exit codes of the command: public contract, one constant each.

/// The work is done; for `demo --fault`, the fence held; for `verify`, every record passed.
pub const DONE: u8 = 0;
/// A finding: a rejected document, a refused round, a round that ended `aborted-clean`, a record that is
/// rejected or unverifiable.
pub const FINDING: u8 = 1;
/// Usage, configuration, or an input that is not what the flag says it is; for `verify`, a line that is no
/// record, or no record at all.
pub const USAGE: u8 = 2;
/// The fleet was not ready before the deadline. Nothing was sent to any engine.
pub const NOT_READY: u8 = 3;
/// The fleet is closed: an operator is needed, and the output names the engines and the next command.
pub const CLOSED: u8 = 4;
