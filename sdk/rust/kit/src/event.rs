//! The event of an execution.

use std::collections::BTreeMap;

use crate::error::HostError;
use crate::files::FileRef;
use crate::host;
use crate::json::{Json, JsonError};

/// What the host has let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    User,
    Service,
}

impl PrincipalKind {
    /// `user` or `service`.
    pub fn as_str(self) -> &'static str {
        match self {
            PrincipalKind::User => "user",
            PrincipalKind::Service => "service",
        }
    }
}

/// The principal the host has let in.
#[derive(Clone, Debug)]
pub struct HttpAuthInfo {
    pub kind: PrincipalKind,
    /// 0 unless the principal is a user.
    pub user_id: i64,
    /// 0 unless the principal is a service key.
    pub service_key_id: i64,
}

impl HttpAuthInfo {
    fn read(auth: &Json) -> Option<HttpAuthInfo> {
        let kind = match auth["kind"].as_str()? {
            "user" => PrincipalKind::User,
            _ => PrincipalKind::Service,
        };
        let number = |name: &str| auth[name].as_i64().unwrap_or(0);
        Some(HttpAuthInfo { kind, user_id: number("user_id"), service_key_id: number("service_key_id") })
    }
}

/// The request to an HTTP trigger.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: String,
    pub path: String,
    /// Of a name that is given several times the last value.
    pub query: BTreeMap<String, String>,
    /// All values of each name, in the order they were sent.
    pub query_all: BTreeMap<String, Vec<String>>,
    /// The query as it was sent, without `?`.
    pub raw_query: String,
    /// By names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Values of the `:name` segments of the path.
    pub params: BTreeMap<String, String>,
    pub remote_addr: String,
    /// None for a public trigger.
    pub auth: Option<HttpAuthInfo>,
}

impl HttpRequest {
    /// A value of the path; empty when the path has no such segment.
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// A header by any spelling.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// The body as bytes.
    pub fn body_bytes(&self) -> Vec<u8> {
        host::input(1)
    }

    /// The body as text. Fails when it is not UTF-8.
    pub fn body(&self) -> Result<String, HostError> {
        host::text_of(self.body_bytes())
    }

    /// The body as JSON.
    pub fn json(&self) -> crate::Result<Json> {
        Ok(Json::parse(&self.body()?)?)
    }
}

/// A message with a command, as it came in.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    pub channel: String,
    pub chat_id: String,
    /// The user who has linked the account; None for an account that is not linked.
    pub user_id: Option<i64>,
    /// All of the text, with the command.
    pub text: String,
    /// The words behind the command.
    pub args: Vec<String>,
    pub files: Vec<FileRef>,
}

/// What another plugin asked for.
#[derive(Clone, Debug)]
pub struct PluginCall {
    /// The id of the plugin that calls.
    pub from: String,
    pub function: String,
    pub auth: Option<HttpAuthInfo>,
}

impl PluginCall {
    /// What the caller gave.
    pub fn bytes(&self) -> Vec<u8> {
        host::input(1)
    }

    /// As JSON.
    pub fn value(&self) -> crate::Result<Json> {
        Ok(Json::parse(&host::text_of(self.bytes())?)?)
    }
}

/// An event as it is parked.
pub struct Event {
    pub trigger: String,
    pub request_id: String,
    pub http: Option<HttpRequest>,
    pub message: Option<IncomingMessage>,
    pub call: Option<PluginCall>,
}

fn present(value: Json) -> Option<Json> {
    (!value.is_null()).then_some(value)
}

impl Event {
    pub fn parse(text: &str) -> Result<Event, JsonError> {
        let mut event = Json::parse(text)?;
        let http = present(event.take("http")).map(|mut http| HttpRequest {
            method: http.take("method").into_text(),
            path: http.take("path").into_text(),
            query: http.take("query").into_texts(),
            query_all: http.take("query_all").into_lists(),
            raw_query: http.take("raw_query").into_text(),
            headers: http.take("headers").into_texts(),
            params: http.take("params").into_texts(),
            remote_addr: http.take("remote_addr").into_text(),
            auth: HttpAuthInfo::read(&http["auth"]),
        });
        let message = present(event.take("message")).map(|mut message| IncomingMessage {
            channel: message.take("channel").into_text(),
            chat_id: message.take("chat_id").into_text(),
            user_id: message["user_id"].as_i64(),
            text: message.take("text").into_text(),
            args: message["args"].items().iter().filter_map(|word| word.as_str().map(str::to_owned)).collect(),
            files: message["files"].items().iter().filter_map(FileRef::read).collect(),
        });
        let call = present(event.take("call")).map(|mut call| PluginCall {
            from: call.take("from").into_text(),
            function: call.take("function").into_text(),
            auth: HttpAuthInfo::read(&call["auth"]),
        });
        let text = |value: Json| value.into_text();
        Ok(Event {
            trigger: text(event.take("trigger")),
            request_id: text(event.take("request_id")),
            http,
            message,
            call,
        })
    }
}
