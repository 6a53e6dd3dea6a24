//! What a handler has of its execution: the event, answers, log and configuration.

use std::collections::BTreeMap;

use crate::error::{ErrorCode, HostError, Result};
use crate::event::{HttpRequest, IncomingMessage, PluginCall};
use crate::files::FileRef;
use crate::host::{check, parked_text, raw};
use crate::json::Json;
use crate::messages::Message;

/// The event, and the functions of the host.
pub struct Context {
    pub trigger: String,
    pub request_id: String,
    pub(crate) http: Option<HttpRequest>,
    pub(crate) message: Option<IncomingMessage>,
    pub(crate) call: Option<PluginCall>,
}

/// What a host speaks and allows.
#[derive(Clone, Debug)]
pub struct Info {
    pub abi: i64,
    pub limits: Json,
    pub features: Vec<String>,
}

/// JSON that a call of the host has parked.
pub(crate) fn parked_json(result: i32) -> Result<Json, HostError> {
    Json::parse(&parked_text(result)?).map_err(HostError::unexpected)
}

const JSON_HEADERS: &str = r#"{"Content-Type":"application/json"}"#;

fn respond(status: u16, headers: &str, body: &[u8]) -> Result {
    check(unsafe { raw::respond(status.into(), headers.as_ptr(), headers.len(), body.as_ptr(), body.len()) })?;
    Ok(())
}

/// Random bytes of the execution.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let failed = unsafe { raw::random_get(bytes.as_mut_ptr(), N) };
    assert!(failed == 0, "the host gives no random numbers");
    bytes
}

impl Context {
    /// The request to an HTTP trigger.
    ///
    /// # Panics
    /// In the handler of anything else.
    #[track_caller]
    pub fn http(&self) -> &HttpRequest {
        self.http.as_ref().expect("ctx.http() is for handlers of HTTP triggers")
    }

    /// The message to a messenger trigger.
    ///
    /// # Panics
    /// In the handler of anything else.
    #[track_caller]
    pub fn message(&self) -> &IncomingMessage {
        self.message.as_ref().expect("ctx.message() is for handlers of messenger triggers")
    }

    /// The call of another plugin.
    ///
    /// # Panics
    /// In the handler of anything else.
    #[track_caller]
    pub fn call(&self) -> &PluginCall {
        self.call.as_ref().expect("ctx.call() is for functions other plugins call")
    }

    /// Whether the message has files.
    pub fn has_files(&self) -> bool {
        !self.files().is_empty()
    }

    /// The files of the message.
    pub fn files(&self) -> &[FileRef] {
        self.message.as_ref().map_or(&[], |message| &message.files)
    }

    /// Answers with JSON.
    pub fn json(&self, status: u16, value: impl Into<Json>) -> Result {
        respond(status, JSON_HEADERS, value.into().to_string().as_bytes())
    }

    /// Answers with any status, headers and body; a name may stand several times, as `Set-Cookie`. The host drops headers
    /// that act beyond the answer.
    pub fn set_http_response(&self, status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Result {
        let mut named: BTreeMap<String, Vec<Json>> = BTreeMap::new();
        for (name, value) in headers {
            named.entry((*name).to_owned()).or_default().push(Json::from(*value));
        }
        let one = |(name, mut values): (String, Vec<Json>)| match values.len() {
            1 => (name, values.remove(0)),
            _ => (name, Json::Array(values)),
        };
        respond(status, &Json::Object(named.into_iter().map(one).collect()).to_string(), body.as_ref())
    }

    /// Answers a command with a message; may be called 20 times.
    pub fn reply(&self, message: Message) -> Result {
        let message = message.to_json();
        check(unsafe { raw::reply(message.as_ptr(), message.len()) })?;
        Ok(())
    }

    /// Answers a call of another plugin with JSON.
    pub fn output(&self, value: impl Into<Json>) -> Result {
        self.output_bytes(value.into().to_string())
    }

    /// Answers a call of another plugin with bytes.
    pub fn output_bytes(&self, bytes: impl AsRef<[u8]>) -> Result {
        let bytes = bytes.as_ref();
        check(unsafe { raw::output(bytes.as_ptr(), bytes.len()) })?;
        Ok(())
    }

    /// Writes a line of the execution record.
    pub fn log(&self, line: &str) {
        unsafe { raw::log(1, line.as_ptr(), line.len()) };
    }

    /// Writes a line of the execution record, as an error.
    pub fn log_error(&self, line: &str) {
        unsafe { raw::log(3, line.as_ptr(), line.len()) };
    }

    /// A field of the configuration; None when the administrator has left it empty.
    pub fn config(&self, name: &str) -> Option<String> {
        parked_text(unsafe { raw::config_get(name.as_ptr(), name.len()) }).ok()
    }

    /// What this host speaks and allows.
    pub fn host_info(&self) -> Result<Info, HostError> {
        let mut info = parked_json(unsafe { raw::host_info() })?;
        let abi = info["abi"].as_i64().ok_or_else(|| HostError::unexpected("host_info without abi"))?;
        let features = info["features"].items().iter().filter_map(|f| f.as_str().map(str::to_owned)).collect();
        Ok(Info { abi, limits: info.take("limits"), features })
    }

    // ---------- events: the requirement events_req ----------

    /// Publishes an event; once it returns the event is stored and will be delivered.
    pub fn publish_event(&self, name: &str, payload: impl Into<Json>) -> Result<(), HostError> {
        let payload = payload.into().to_string();
        check(unsafe { raw::event_publish(name.as_ptr(), name.len(), payload.as_ptr(), payload.len()) })?;
        Ok(())
    }

    // ---------- other plugins: the requirement plugin_dep ----------

    /// Calls a function of another plugin with JSON, and reads its answer as JSON.
    pub fn call_plugin(&self, target: &str, name: &str, value: impl Into<Json>) -> Result<Json, HostError> {
        let answer = self.call_plugin_raw(target, name, value.into().to_string())?;
        // A function may give no answer.
        if answer.is_empty() {
            return Ok(Json::Null);
        }
        let text = crate::host::text_of(answer)?;
        Json::parse(&text).map_err(|e| HostError {
            code: ErrorCode::InvalidArgument,
            message: format!("the answer of {target} is {e}; read it with call_plugin_raw"),
        })
    }

    /// Calls a function of another plugin with bytes, and gives its answer.
    pub fn call_plugin_raw(&self, target: &str, name: &str, data: impl AsRef<[u8]>) -> Result<Vec<u8>, HostError> {
        let data = data.as_ref();
        crate::host::parked(unsafe {
            raw::plugin_call(target.as_ptr(), target.len(), name.as_ptr(), name.len(), data.as_ptr(), data.len())
        })
    }
}
