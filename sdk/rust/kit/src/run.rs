//! The entries of the module.

use std::panic::PanicHookInfo;

use crate::context::Context;
use crate::event::Event;
use crate::host::{fail, input, raw, text_of};
use crate::manifest::{Handler, Plugin};

/// The result of a handler that has failed; the host reads the text of `fail`.
const FAILED: i32 = -7;

/// A panic ends the instance: its text and place must reach the record before.
fn report_panic(panic: &PanicHookInfo) {
    let text = match panic.payload() {
        payload if payload.is::<String>() => payload.downcast_ref::<String>().map(String::as_str),
        payload => payload.downcast_ref::<&str>().copied(),
    };
    let text = text.unwrap_or("a value that is no text");
    match panic.location() {
        Some(place) => fail(&format!("panic: {text}\n    at {}:{}:{}", place.file(), place.line(), place.column())),
        None => fail(&format!("panic: {text}")),
    }
}

fn handler_of(plugin: &Plugin, event: &Event) -> Result<Handler, String> {
    if let Some(call) = &event.call {
        let function = plugin.functions.iter().find(|(name, _)| *name == call.function);
        return function
            .map(|(_, handler)| *handler)
            .ok_or_else(|| format!("the plugin has no function {:?}", call.function));
    }
    let trigger = plugin.triggers.iter().find(|trigger| trigger.name == event.trigger);
    trigger.map(|trigger| trigger.handler).ok_or_else(|| format!("the plugin has no trigger {:?}", event.trigger))
}

fn run(plugin: Plugin) -> crate::Result {
    let event = Event::parse(&text_of(input(0))?)?;
    let handler = handler_of(&plugin, &event)?;
    let Event { call, http, message, request_id, trigger } = event;
    handler(&Context { trigger, request_id, http, message, call })
}

/// `plugin_handle`: handles the parked event.
pub fn handle(declare: fn() -> Plugin) -> i32 {
    std::panic::set_hook(Box::new(report_panic));
    match run(declare()) {
        Ok(()) => 0,
        Err(error) => {
            fail(&error.to_string());
            FAILED
        }
    }
}

/// `plugin_describe`: hands the manifest to the host.
pub fn describe(declare: fn() -> Plugin) -> i32 {
    std::panic::set_hook(Box::new(report_panic));
    let manifest = declare().to_json();
    unsafe { raw::output(manifest.as_ptr(), manifest.len()) }
}
