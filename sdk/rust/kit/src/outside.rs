//! Requests to other hosts: the requirement `http`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::context::{parked_json, Context};
use crate::error::HostError;
use crate::host::{parked_body, raw, text_of};
use crate::json::Json;

/// A request to another host.
#[derive(Clone, Debug)]
pub struct HttpOrder {
    method: String,
    url: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    timeout: Option<Duration>,
}

impl HttpOrder {
    pub fn new(method: &str, url: &str) -> HttpOrder {
        let (method, url) = (method.to_owned(), url.to_owned());
        HttpOrder { method, url, headers: BTreeMap::new(), body: Vec::new(), timeout: None }
    }

    pub fn header(mut self, name: &str, value: &str) -> HttpOrder {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> HttpOrder {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Without it the request may take until just before the execution ends.
    pub fn timeout(mut self, timeout: Duration) -> HttpOrder {
        self.timeout = Some(timeout);
        self
    }
}

/// Text as it stands in an address: all but letters of ASCII, digits and `-._~` becomes `%XX` (RFC 3986 section 2.1).
pub fn url_encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// What a server outside answered.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub status: i64,
    /// By names in lower case; several values of one name are one list with commas.
    pub headers: BTreeMap<String, String>,
    /// Where the answer came from, behind redirects.
    pub url: String,
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// A header by any spelling.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// The body as text. Fails when it is not UTF-8.
    pub fn text(&self) -> Result<String, HostError> {
        text_of(self.body.clone())
    }

    /// The body as JSON.
    pub fn json(&self) -> crate::Result<Json> {
        Ok(Json::parse(&self.text()?)?)
    }
}

impl Context {
    /// Sends a request. An answer with status 404 or 500 is no error.
    pub fn http_request(&self, order: HttpOrder) -> Result<HttpResponse, HostError> {
        let mut wire = vec![
            ("method".to_owned(), Json::from(order.method)),
            ("url".to_owned(), order.url.into()),
            ("headers".to_owned(), order.headers.into()),
        ];
        if let Some(timeout) = order.timeout {
            wire.push(("timeout_ms".to_owned(), Json::Int(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX))));
        }
        let wire = Json::Object(wire).to_string();
        let body = &order.body;
        let mut answer =
            parked_json(unsafe { raw::http_request(wire.as_ptr(), wire.len(), body.as_ptr(), body.len()) })?;
        Ok(HttpResponse {
            status: answer["status"].as_i64().ok_or_else(|| HostError::unexpected("no status"))?,
            headers: answer.take("headers").into_texts(),
            url: answer.take("url").into_text(),
            body: parked_body(),
        })
    }

    /// Asks for an address.
    pub fn http_get(&self, url: &str) -> Result<HttpResponse, HostError> {
        self.http_request(HttpOrder::new("GET", url))
    }

    /// Sends a body to an address.
    pub fn http_post(&self, url: &str, content_type: &str, body: impl AsRef<[u8]>) -> Result<HttpResponse, HostError> {
        self.http_request(HttpOrder::new("POST", url).header("Content-Type", content_type).body(body))
    }
}
