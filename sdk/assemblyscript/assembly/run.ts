import * as abi from "./plugin_host";
import { Context } from "./context";
import { Json, quote } from "./json";
import { definition, Handler } from "./manifest";
import { NOT_FOUND } from "./result";
import { pointer, utf8 } from "./text";

// What the host calls; the build makes these the exports of the module.

function fail(text: string): i32 {
  const b = utf8(text);
  abi.fail(pointer(b), b.byteLength);
  return NOT_FOUND;
}

/** Hands the manifest to the build. */
export function plugin_describe(): i32 {
  if (!definition.id.length) return fail("the plugin declares nothing: call Plugin(id, name, version) at the top of the entry file");
  const b = utf8(definition.toJSON());
  return abi.output(pointer(b), b.byteLength);
}

function functionOf(name: string): Handler | null {
  const all = definition.functions;
  for (let i = 0; i < all.length; i++) if (all[i].name == name) return all[i].handler;
  return null;
}

function handlerOf(trigger: string): Handler | null {
  const all = definition.triggers;
  for (let i = 0; i < all.length; i++) if (all[i].name == trigger) return all[i].handler;
  return null;
}

/** Handles one event. */
export function plugin_handle(): i32 {
  const n = abi.input_len(0);
  const b = new ArrayBuffer(n);
  abi.input_read(0, pointer(b), n);
  const event = Json.trusted(b);
  const isCall = event.str("kind") == "call";
  const name = isCall ? event.get("call").str("function") : event.str("trigger");
  const handler = isCall ? functionOf(name) : handlerOf(name);
  if (handler === null) return fail("the plugin has no " + (isCall ? "function " : "trigger ") + quote(name));
  handler(new Context(event));
  return 0;
}
