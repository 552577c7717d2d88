//! Weights of real policy directories, for a fleet behind sockets that is told to load one.

use std::io::{self, Read};
use std::path::Path;

use crate::fleet::Fleet;
use crate::language::{mix, mix_bytes};

/// The digest of a policy directory: of the names, lengths and bytes of its files, hidden ones left out.
///
/// # Errors
///
/// The first error of the file system; a path that is no directory; a directory without a file.
pub fn weights_of(directory: &Path) -> io::Result<u64> {
    let mut files = std::fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| (entry.file_name(), entry.path())))
        .collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let mut digest = 0x6469_7265_6374_6f72;
    let mut found = false;
    let mut buffer = vec![0; 1 << 20];
    for (name, path) in files {
        let name = name.to_string_lossy();
        if name.starts_with('.') || !path.is_file() {
            continue;
        }
        found = true;
        digest = mix_bytes(digest, name.as_bytes());
        let mut file = std::fs::File::open(&path)?;
        let mut length = 0_u64;
        loop {
            let read = fill(&mut file, &mut buffer)?;
            if read == 0 {
                break;
            }
            length += read as u64;
            digest = mix_bytes(digest, &buffer[..read]);
        }
        digest = mix(digest, length);
    }
    if found { Ok(digest) } else { Err(io::Error::new(io::ErrorKind::NotFound, "no file in this directory")) }
}

/// Fills the buffer as far as the file goes, so that short reads do not change the digest.
fn fill(file: &mut std::fs::File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl Fleet {
    /// The same fleet, whose engines load policy directories that the plan does not name from the file
    /// system, with [`weights_of`]. The read blocks the caller of the fleet.
    #[must_use]
    pub fn with_directories(self) -> Self {
        self.with_loader(|path| weights_of(Path::new(path)).ok())
    }
}
