//! Values that implement serde's traits, in requests, answers and calls. A crate of its own, so that a plugin without
//! serde needs no registry.

use plugin_host::{Context, HttpRequest, HttpResponse, PluginCall, Result};
use serde::{de::DeserializeOwned, Serialize};

/// What a handler can do with values of serde.
pub trait ContextExt {
    /// Answers with a value as JSON.
    fn json_of(&self, status: u16, value: &impl Serialize) -> Result;
    /// Answers a call of another plugin with a value as JSON.
    fn output_of(&self, value: &impl Serialize) -> Result;
    /// Calls a function of another plugin with a value, and reads its answer as another one.
    fn call_plugin_into<A: DeserializeOwned>(&self, target: &str, name: &str, value: &impl Serialize) -> Result<A>;
}

impl ContextExt for Context {
    fn json_of(&self, status: u16, value: &impl Serialize) -> Result {
        self.set_http_response(status, &[("Content-Type", "application/json")], serde_json::to_vec(value)?)
    }

    fn output_of(&self, value: &impl Serialize) -> Result {
        self.output_bytes(serde_json::to_vec(value)?)
    }

    fn call_plugin_into<A: DeserializeOwned>(&self, target: &str, name: &str, value: &impl Serialize) -> Result<A> {
        Ok(serde_json::from_slice(&self.call_plugin_raw(target, name, serde_json::to_vec(value)?)?)?)
    }
}

/// What came in as JSON, read as a value of serde.
pub trait ReadAs {
    fn read_as<T: DeserializeOwned>(&self) -> Result<T>;
}

impl ReadAs for HttpRequest {
    fn read_as<T: DeserializeOwned>(&self) -> Result<T> {
        Ok(serde_json::from_slice(&self.body_bytes())?)
    }
}

impl ReadAs for HttpResponse {
    fn read_as<T: DeserializeOwned>(&self) -> Result<T> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl ReadAs for PluginCall {
    fn read_as<T: DeserializeOwned>(&self) -> Result<T> {
        Ok(serde_json::from_slice(&self.bytes())?)
    }
}
