//! Files: the requirement `file`.

use std::time::Duration;

use crate::context::{parked_json, Context};
use crate::error::{ErrorCode, HostError};
use crate::host::{check, parked_text, raw};
use crate::json::Json;

/// A file as the host knows it; its content is read with `ctx.file_read` and its like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    pub id: String,
    pub name: String,
    pub mime_type: String,
    pub size: i64,
    /// `photo`, `document`, `audio`, `video`, `voice` or `sticker`.
    pub file_type: String,
}

impl FileRef {
    /// None for what is no file.
    pub(crate) fn read(value: &Json) -> Option<FileRef> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(FileRef {
            id: text("id")?,
            name: text("name")?,
            mime_type: text("mime_type")?,
            size: value["size"].as_i64()?,
            file_type: text("file_type")?,
        })
    }
}

impl From<&FileRef> for Json {
    fn from(file: &FileRef) -> Json {
        let FileRef { id, name, mime_type, size, file_type } = file;
        crate::json!({ "id": id, "name": name, "mime_type": mime_type, "size": *size, "file_type": file_type })
    }
}

impl From<FileRef> for Json {
    fn from(file: FileRef) -> Json {
        Json::from(&file)
    }
}

/// A part of a file.
#[derive(Clone, Debug)]
pub struct FilePart {
    pub bytes: Vec<u8>,
    /// The file ends behind it.
    pub eof: bool,
}

const CHUNK_MAX: usize = 1 << 20;
/// The memory of an execution holds several copies of a file that is read whole.
const WHOLE_MAX: usize = 64 << 20;
const END_OF_FILE: i32 = 1 << 30;

fn read_into(file_id: &str, offset: usize, buffer: &mut [u8]) -> Result<(usize, bool), HostError> {
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    let read = check(unsafe {
        raw::file_read_into(file_id.as_ptr(), file_id.len(), offset, buffer.as_mut_ptr(), buffer.len())
    })?;
    Ok(((read & !END_OF_FILE) as usize, read & END_OF_FILE != 0))
}

fn parked_file(result: i32) -> Result<FileRef, HostError> {
    FileRef::read(&parked_json(result)?).ok_or_else(|| HostError::unexpected("a file without its fields"))
}

impl Context {
    /// What the host knows of a file.
    pub fn file_meta(&self, file_id: &str) -> Result<FileRef, HostError> {
        parked_file(unsafe { raw::file_meta(file_id.as_ptr(), file_id.len()) })
    }

    /// Reads a part: at most 1 MB, which is also what `max_bytes` 0 means.
    pub fn file_read(&self, file_id: &str, offset: usize, max_bytes: usize) -> Result<FilePart, HostError> {
        let most = if max_bytes == 0 { CHUNK_MAX } else { max_bytes.min(CHUNK_MAX) };
        let mut bytes = vec![0; most];
        let (length, eof) = read_into(file_id, offset, &mut bytes)?;
        bytes.truncate(length);
        Ok(FilePart { bytes, eof })
    }

    /// Reads a whole file.
    pub fn file_read_all(&self, file_id: &str) -> Result<Vec<u8>, HostError> {
        let size = usize::try_from(self.file_meta(file_id)?.size).unwrap_or(0);
        if size > WHOLE_MAX {
            let message = format!("the file has {size} bytes, more than 64 MiB: read it in parts with file_read");
            return Err(HostError { code: ErrorCode::TooLarge, message });
        }
        let mut content = vec![0; size];
        let mut at = 0;
        loop {
            let until = size.min(at + CHUNK_MAX);
            let (length, eof) = read_into(file_id, at, &mut content[at..until])?;
            at += length;
            if eof || length == 0 {
                content.truncate(at);
                return Ok(content);
            }
        }
    }

    /// An address at which the file can be read for a while; empty when the store has no such links.
    pub fn file_url(&self, file_id: &str) -> Result<String, HostError> {
        parked_text(unsafe { raw::file_url(file_id.as_ptr(), file_id.len()) })
    }

    /// Stores a new file.
    pub fn file_store(
        &self,
        name: &str,
        mime_type: &str,
        file_type: &str,
        data: impl AsRef<[u8]>,
    ) -> Result<FileRef, HostError> {
        self.file_store_with_ttl(name, mime_type, file_type, data, Duration::ZERO)
    }

    /// Stores a file that is deleted after a time. A `ttl` of zero means no end.
    pub fn file_store_with_ttl(
        &self,
        name: &str,
        mime_type: &str,
        file_type: &str,
        data: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<FileRef, HostError> {
        let mut order = vec![
            ("name".to_owned(), Json::from(name)),
            ("mime_type".to_owned(), mime_type.into()),
            ("file_type".to_owned(), file_type.into()),
        ];
        if !ttl.is_zero() {
            order.push(("ttl_ms".to_owned(), Json::Int(i64::try_from(ttl.as_millis().max(1)).unwrap_or(i64::MAX))));
        }
        let order = Json::Object(order).to_string();
        let data = data.as_ref();
        parked_file(unsafe { raw::file_store(order.as_ptr(), order.len(), data.as_ptr(), data.len()) })
    }
}
