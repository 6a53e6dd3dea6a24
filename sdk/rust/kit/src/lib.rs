//! Plugins of the plugin host in Rust.
//!
//! A plugin declares itself in one function, which the macro [`plugin!`] names:
//!
//! ```no_run
//! use plugin_host::*;
//!
//! plugin!(declare);
//!
//! fn declare() -> Plugin {
//!     Plugin::new("hello", "Hello", "1.0.0").trigger(Trigger::http("greet", "/greet/:name", greet))
//! }
//!
//! fn greet(ctx: &Context) -> Result {
//!     ctx.json(200, json!({ "message": format!("Hello, {}!", ctx.http().param("name")) }))?;
//!     Ok(())
//! }
//! ```

mod base64;
mod context;
mod error;
mod event;
mod files;
mod host;
mod json;
mod kv;
mod manifest;
mod messages;
mod outside;
mod run;
mod sql;

pub use context::{random_bytes, Context, Info};
pub use error::{ErrorCode, HostError, Result};
pub use event::{HttpAuthInfo, HttpRequest, IncomingMessage, PluginCall, PrincipalKind};
pub use files::{FilePart, FileRef};
pub use json::{Json, JsonError};
pub use kv::{KvPage, KvUpdate};
pub use manifest::{
    database, events_req, file, http, kv, notify_req, plugin_dep, string, Access, ConfigField, Handler, Plugin,
    Requirement, Trigger,
};
pub use messages::{new_message, students, Message, Queued, StudentFilter};
pub use outside::{url_encode, HttpOrder, HttpResponse};
pub use sql::{Connection, FromSql, Row, Rows, Statements, ToSql, Transaction};

#[doc(hidden)]
pub use run::{describe, handle};

/// Exports the entries of the module; the argument is the function that declares the plugin.
#[macro_export]
macro_rules! plugin {
    ($declare:path) => {
        #[no_mangle]
        pub extern "C" fn plugin_handle() -> i32 {
            $crate::handle($declare)
        }
        #[no_mangle]
        pub extern "C" fn plugin_describe() -> i32 {
            $crate::describe($declare)
        }
    };
}
