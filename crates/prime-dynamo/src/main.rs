//! The `prime-dynamo` command. Everything is in the library; this file only runs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    prime_dynamo::cli::main()
}
