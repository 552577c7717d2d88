//! The fence from outside: whole rounds against a scripted fleet.

// `cfg(test)` tells clippy that what the tests share is test code too.
#[cfg(test)]
mod causes;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod plain_data;
#[cfg(test)]
mod probes;
#[cfg(test)]
mod totality;
