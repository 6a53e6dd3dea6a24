//! Messages: replies, and the requirement `notify_req`.

use crate::context::{parked_json, Context};
use crate::error::HostError;
use crate::files::FileRef;
use crate::host::{check, raw};
use crate::json::Json;

/// A message to be sent: a text, files, or both; made by [`new_message`].
#[derive(Clone, Debug)]
pub struct Message {
    text: String,
    files: Vec<Json>,
}

/// Makes a message; the text may be empty when files are attached.
pub fn new_message(text: impl Into<String>) -> Message {
    Message { text: text.into(), files: Vec::new() }
}

impl Message {
    /// Attaches a file; may be called several times. The caption may be empty.
    pub fn file(mut self, file: &FileRef, caption: &str) -> Message {
        self.files.push(crate::json!({ "file": file, "caption": caption }));
        self
    }

    pub(crate) fn to_json(&self) -> String {
        crate::json!({ "text": &self.text, "files": self.files.clone() }).to_string()
    }
}

/// Which students a message is for; what is left empty does not matter.
#[derive(Clone, Debug, Default)]
pub struct StudentFilter {
    pub all: bool,
    pub streams: Vec<String>,
    pub groups: Vec<String>,
    pub subgroups: Vec<String>,
    pub nationality_type: Vec<String>,
    pub funding_type: Vec<String>,
    pub education_form: Vec<String>,
    pub locale: Vec<String>,
    pub primary_channel: Vec<String>,
}

impl StudentFilter {
    fn to_json(&self) -> String {
        let lists = [
            ("streams", &self.streams),
            ("groups", &self.groups),
            ("subgroups", &self.subgroups),
            ("nationality_type", &self.nationality_type),
            ("funding_type", &self.funding_type),
            ("education_form", &self.education_form),
            ("locale", &self.locale),
            ("primary_channel", &self.primary_channel),
        ];
        let mut members: Vec<(String, Json)> = lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| (name.to_owned(), Json::from(list.clone())))
            .collect();
        if self.all {
            members.push(("all".to_owned(), Json::Bool(true)));
        }
        Json::Object(members).to_string()
    }
}

/// How many messages were queued, and how many students cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    pub queued: i64,
    pub unreachable: i64,
}

impl Context {
    /// Writes to a user, on the user's primary channel.
    pub fn notify_user(&self, user_id: i64, message: Message) -> Result<(), HostError> {
        let message = message.to_json();
        check(unsafe { raw::notify_user(user_id, message.as_ptr(), message.len()) })?;
        Ok(())
    }

    /// Writes to a chat that has written before.
    pub fn notify_chat(&self, chat_id: &str, message: Message) -> Result<(), HostError> {
        let message = message.to_json();
        check(unsafe { raw::notify_chat(chat_id.as_ptr(), chat_id.len(), message.as_ptr(), message.len()) })?;
        Ok(())
    }

    /// Writes to all students a filter selects.
    pub fn notify_students(&self, filter: &StudentFilter, message: Message) -> Result<Queued, HostError> {
        let (filter, message) = (filter.to_json(), message.to_json());
        let done = parked_json(unsafe {
            raw::notify_students(filter.as_ptr(), filter.len(), message.as_ptr(), message.len())
        })?;
        let number = |name: &str| done[name].as_i64().ok_or_else(|| HostError::unexpected(name));
        Ok(Queued { queued: number("queued")?, unreachable: number("unreachable")? })
    }
}
