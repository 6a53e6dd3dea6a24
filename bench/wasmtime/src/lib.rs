//! The answer of the sample as a component for `wasmtime serve`.

use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

struct Greeter;

impl wasip2::exports::http::incoming_handler::Guest for Greeter {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let body = format!(
            r#"{{"message":"Hello, world!","method":"GET","path":"{path}","query":{{}},"body":"","principal":null}}"#
        );
        let headers = Fields::from_list(&[("Content-Type".to_string(), b"application/json".to_vec())]).unwrap();
        let response = OutgoingResponse::new(headers);
        let outgoing = response.body().unwrap();
        ResponseOutparam::set(out, Ok(response));
        let stream = outgoing.write().unwrap();
        stream.blocking_write_and_flush(body.as_bytes()).unwrap();
        drop(stream);
        OutgoingBody::finish(outgoing, None).unwrap();
    }
}

wasip2::http::proxy::export!(Greeter);
