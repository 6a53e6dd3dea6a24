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

/// Which students a message is for; made by [`students`]. What is not named does not matter; a list that is named and
/// empty fits no student.
#[derive(Clone, Debug, Default)]
pub struct StudentFilter {
    members: Vec<(String, Json)>,
}

/// Begins a filter: `students().groups(["21-1"]).where_in("locale", ["ru"])`.
pub fn students() -> StudentFilter {
    StudentFilter::default()
}

impl StudentFilter {
    fn with(mut self, name: &str, value: Json) -> StudentFilter {
        self.members.retain(|(other, _)| other != name);
        self.members.push((name.to_owned(), value));
        self
    }

    fn list<T: Into<String>>(self, name: &str, values: impl IntoIterator<Item = T>) -> StudentFilter {
        let values = values.into_iter().map(|value| Json::String(value.into())).collect();
        self.with(name, Json::Array(values))
    }

    /// Those of one of these streams, by their external ids.
    pub fn streams<T: Into<String>>(self, ids: impl IntoIterator<Item = T>) -> StudentFilter {
        self.list("streams", ids)
    }

    /// Those of one of these study groups.
    pub fn groups<T: Into<String>>(self, ids: impl IntoIterator<Item = T>) -> StudentFilter {
        self.list("groups", ids)
    }

    /// Those of one of these subgroups.
    pub fn subgroups<T: Into<String>>(self, ids: impl IntoIterator<Item = T>) -> StudentFilter {
        self.list("subgroups", ids)
    }

    /// Those who have one of the values of `nationality_type`, `funding_type`, `education_form`, `locale` or
    /// `primary_channel`.
    pub fn where_in<T: Into<String>>(self, attribute: &str, values: impl IntoIterator<Item = T>) -> StudentFilter {
        self.list(attribute, values)
    }

    /// Every student.
    pub fn all(self) -> StudentFilter {
        self.with("all", Json::Bool(true))
    }

    fn to_json(&self) -> String {
        Json::Object(self.members.clone()).to_string()
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
