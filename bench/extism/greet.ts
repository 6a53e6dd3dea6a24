// The logic of the sample plugin's `greet` on the Extism AssemblyScript kit: same JSON in, same JSON out.
import { Host } from "@extism/as-pdk";
import { Json, obj } from "../../sdk/assemblyscript/assembly/json";

export function myAbort(_message: string | null, _file: string | null, _line: u32, _column: u32): void {
  unreachable();
}

export function greet(): i32 {
  const event = Json.parseText(Host.inputString());
  const http = event.get("http");
  const name = http.get("query").str("name");
  const answer = obj()
    .str("message", "Hello, " + (name.length ? name : "world") + "!")
    .str("method", http.str("method"))
    .str("path", http.str("path"))
    .json("query", http.get("query"))
    .str("body", "")
    .object("principal", null);
  Host.outputString(answer.toString());
  return 0;
}
