//! Writes the JSON Schema of every document into a directory: `schemas DIR`.

use std::error::Error;
use std::path::PathBuf;

use prime_dynamo::schema::{DocumentSchema, documents};

fn main() -> Result<(), Box<dyn Error>> {
    let directory: PathBuf = std::env::args_os().nth(1).ok_or("usage: schemas DIR")?.into();
    std::fs::create_dir_all(&directory)?;
    for DocumentSchema { name, schema } in documents() {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema)?);
        std::fs::write(directory.join(format!("{name}.json")), text)?;
    }
    Ok(())
}
