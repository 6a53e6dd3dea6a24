import { FileRef } from "./files";
import { arr, Json, Obj, obj, quote } from "./json";

/** An outgoing message (docs/messengers.md "Outgoing messages"): a text, files, or both. */
export class Message {
  private files: string[] = [];
  constructor(private text: string) {}
  /** Attaches a file; calls chain to attach several. */
  File(ref: FileRef, caption: string = ""): Message {
    this.files.push(obj().object("file", ref.toObj()).str("caption", caption).toString());
    return this;
  }
  toObj(): Obj {
    return obj().str("text", this.text).raw("files", arr(this.files));
  }
}

export function NewMessage(text: string): Message {
  return new Message(text);
}

/** A message that came in to a messenger trigger. */
export class IncomingMessage {
  constructor(private event: Json) {}
  /** `TELEGRAM` or `VK`. */
  get Channel(): string {
    return this.event.str("channel");
  }
  get ChatID(): string {
    return this.event.str("chat_id");
  }
  /** The user who has linked the account; 0 for an account that is not linked. */
  get UserID(): i64 {
    return this.event.i64("user_id");
  }
  /** All of the text, with the command. */
  get Text(): string {
    return this.event.str("text");
  }
  /** The words behind the command. */
  get Args(): string[] {
    const items = this.event.get("args").items();
    const words: string[] = [];
    for (let i = 0; i < items.length; i++) words.push(items[i].text);
    return words;
  }
  get Files(): FileRef[] {
    const items = this.event.get("files").items();
    const files: FileRef[] = [];
    for (let i = 0; i < items.length; i++) files.push(FileRef.from(items[i]));
    return files;
  }
}

/** Which students a message is for; what is not named does not matter. */
export class StudentFilter {
  private streams: string[] = [];
  private groups: string[] = [];
  private subgroups: string[] = [];
  private names: string[] = [];
  private values: string[] = [];
  private allStudents: bool = false;
  Streams(ids: string[]): StudentFilter {
    this.streams = ids;
    return this;
  }
  Groups(ids: string[]): StudentFilter {
    this.groups = ids;
    return this;
  }
  Subgroups(ids: string[]): StudentFilter {
    this.subgroups = ids;
    return this;
  }
  /** `nationality_type`, `funding_type`, `education_form`, `locale` or `primary_channel`. */
  Where(attribute: string, value: string): StudentFilter {
    this.names.push(attribute);
    this.values.push(value);
    return this;
  }
  /** Means every student. */
  All(): StudentFilter {
    this.allStudents = true;
    return this;
  }
  toObj(): Obj {
    const o = obj();
    for (let i = 0; i < this.names.length; i++) o.str(this.names[i], this.values[i]);
    if (this.allStudents) o.bool("all", true);
    if (this.streams.length) o.raw("streams", list(this.streams));
    if (this.groups.length) o.raw("groups", list(this.groups));
    if (this.subgroups.length) o.raw("subgroups", list(this.subgroups));
    return o;
  }
}

export function Students(): StudentFilter {
  return new StudentFilter();
}

function list(ids: string[]): string {
  const quoted: string[] = [];
  for (let i = 0; i < ids.length; i++) quoted.push(quote(ids[i]));
  return arr(quoted);
}
