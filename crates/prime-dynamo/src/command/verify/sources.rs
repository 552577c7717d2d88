//! Which files are read, and in which order.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// The names in a directory that are read: JSON, and what may be compressed JSON.
const EXTENSIONS: [&str; 4] = ["jsonl", "json", "gz", "zst"];

/// Directories inside directories: more is a loop that no link made, or nothing that anybody wrote.
const MAX_DEPTH: usize = 64;

/// What a walk comes across.
pub(super) enum Found<'a> {
    /// A file to read.
    File(&'a Path),
    /// Something that is left out, and why; nobody asked for it by name.
    LeftOut(&'a Path, &'static str),
    /// Something that cannot be read, and why.
    Problem(&'a Path, String),
}

/// Goes through a directory: names in the order of their bytes, a directory's files where its name
/// stands, links not followed.
pub(super) fn walk(root: &Path, take: &mut dyn FnMut(Found<'_>)) {
    let mut open: Vec<std::vec::IntoIter<(OsString, PathBuf, Entry)>> = Vec::new();
    descend(root, &mut open, take);
    while let Some(entries) = open.last_mut() {
        let Some((name, path, entry)) = entries.next() else {
            open.pop();
            continue;
        };
        let is_read = Path::new(&name)
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
        match entry {
            Entry::Directory if open.len() >= MAX_DEPTH => {
                take(Found::Problem(&path, format!("more than {MAX_DEPTH} directories inside each other")));
            }
            Entry::Directory => descend(&path, &mut open, take),
            Entry::File if is_read => take(Found::File(&path)),
            Entry::Link if is_read => take(Found::LeftOut(&path, "a link, which is not followed")),
            Entry::Other if is_read => take(Found::LeftOut(&path, "not a regular file")),
            Entry::Unreadable(why) => take(Found::Problem(&path, why)),
            Entry::File | Entry::Link | Entry::Other => {}
        }
    }
}

enum Entry {
    Directory,
    File,
    Link,
    Other,
    Unreadable(String),
}

fn descend(
    directory: &Path,
    open: &mut Vec<std::vec::IntoIter<(OsString, PathBuf, Entry)>>,
    take: &mut dyn FnMut(Found<'_>),
) {
    match list(directory) {
        Ok(entries) => open.push(entries.into_iter()),
        Err(problem) => take(Found::Problem(directory, problem.to_string())),
    }
}

fn list(directory: &Path) -> io::Result<Vec<(OsString, PathBuf, Entry)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = match entry.file_type() {
            Err(problem) => Entry::Unreadable(problem.to_string()),
            Ok(kind) if kind.is_symlink() => Entry::Link,
            Ok(kind) if kind.is_dir() => Entry::Directory,
            Ok(kind) if kind.is_file() => Entry::File,
            Ok(_) => Entry::Other,
        };
        entries.push((entry.file_name(), entry.path(), kind));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

/// What somebody gave by name.
pub(super) enum Given {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// What a path is. A pipe is neither: opening one that nobody writes to would wait for ever.
///
/// # Errors
///
/// Why it is not read.
pub(super) fn given(path: &Path) -> Result<Given, String> {
    let kind = fs::metadata(path).map_err(|problem| problem.to_string())?.file_type();
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Ok(Given::Directory),
        (_, true) => Ok(Given::File),
        _ => Err("neither a file nor a directory; write `-` and redirect it to read a pipe".to_owned()),
    }
}

/// Opens a file.
///
/// # Errors
///
/// What the system says.
pub(super) fn open(path: &Path) -> io::Result<BufReader<File>> {
    Ok(BufReader::with_capacity(256 * 1024, File::open(path)?))
}
