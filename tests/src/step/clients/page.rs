//! Pages whose right answers are known, because they are files of the lab.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::get::lab_file;

/// A page and its right answer.
pub(crate) struct Page {
    pub path: String,
    /// The data server that must answer, if the path names one: only ds1 may answer /ds1/4k, and any one /4k.
    pub server: Option<String>,
    pub body: Vec<u8>,
}

impl Page {
    /// Reads the lab's file that the page serves.
    pub fn new(path: &str) -> Result<Page> {
        Page::from_file(path, &lab_file(path)?)
    }

    /// Reads the file that the page serves.
    pub fn from_file(path: &str, file: &Path) -> Result<Page> {
        let named = path.trim_start_matches('/').split_once('/');
        Ok(Page {
            path: path.to_owned(),
            server: named.map(|(server, _)| server.to_owned()),
            body: std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?,
        })
    }
}
