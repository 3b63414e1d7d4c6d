//! What the process is to serve, as bytes, with the content of the files that it needs and may not read itself:
//!
//! ```text
//!  length: 4 bytes | settings, as JSON | for each file: length: 4 | its path | permissions: 4 | length: 4 | its content
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use baton_tls::PemFile;

use super::settings::Settings;

/// Appends the settings and files.
pub(super) fn write(settings: &Settings, files: &[PemFile], to: &mut Vec<u8>) {
    // Nothing in the settings fails to be JSON.
    let settings = serde_json::to_vec(settings).unwrap_or_default();
    let length = |file: &PemFile| 12 + file.file.as_os_str().len() + file.text.len();
    // With room for all of it, no private key is left behind in memory by growing.
    to.reserve(4 + settings.len() + files.iter().map(length).sum::<usize>());
    write_part(&settings, to);
    for file in files {
        write_part(file.file.as_os_str().as_bytes(), to);
        to.extend(file.mode.to_be_bytes());
        write_part(&file.text, to);
    }
}

/// The settings and files that were written; `None` if the bytes are none.
pub(super) fn read(mut bytes: &[u8]) -> Option<(Settings, Vec<PemFile>)> {
    let settings = serde_json::from_slice(read_part(&mut bytes)?).ok()?;
    let mut files = Vec::new();
    while !bytes.is_empty() {
        files.push(PemFile {
            file: OsStr::from_bytes(read_part(&mut bytes)?).into(),
            mode: read_number(&mut bytes)?,
            text: read_part(&mut bytes)?.to_vec().into(),
        });
    }
    Some((settings, files))
}

fn write_part(part: &[u8], to: &mut Vec<u8>) {
    // No part is near 4 GiB; otherwise the message would be too long.
    to.extend((part.len() as u32).to_be_bytes());
    to.extend(part);
}

fn read_part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = read_number(bytes)?;
    let (part, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    Some(part)
}

fn read_number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let files: Vec<_> = (0..3)
            .map(|number| PemFile {
                file: format!("/{number}.pem").into(),
                mode: 0o600 + number,
                text: vec![number as u8; 100 * number as usize].into(),
            })
            .collect();
        let mut bytes = Vec::new();
        write(&Settings::default(), &files, &mut bytes);
        let expected = (Settings::default(), files.clone());
        assert_eq!(read(&bytes), Some(expected));
        let ends = (0..bytes.len()).filter(|cut| read(&bytes[..*cut]).is_some());
        // Without files, and behind each.
        assert_eq!(ends.count(), files.len());
    }
}
