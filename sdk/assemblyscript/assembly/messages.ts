import { FileRef } from "./files";
import { Json, List, list, Obj, obj, strings } from "./json";

/** An outgoing message (docs/messengers.md "Outgoing messages"): a text, files, or both. */
export class Message {
  private files: List = list();
  constructor(private text: string) {}
  /** Attaches a file; calls chain to attach several. */
  File(ref: FileRef, caption: string = ""): Message {
    this.files.add(obj().object("file", ref.toObj()).str("caption", caption));
    return this;
  }
  toObj(): Obj {
    return obj().str("text", this.text).list("files", this.files);
  }
}

/** A message; the text may be empty when files are attached. @example ctx.Reply(NewMessage("The menu").File(ref, "Menu")) */
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

/** How many messages were queued, and how many students cannot be reached. */
export class Queued {
  constructor(public queued: i64, public unreachable: i64) {}
}

/** Which students a message is for; what is not named does not matter. */
export class StudentFilter {
  private order: Obj = obj();
  Streams(ids: string[]): StudentFilter {
    this.order.list("streams", strings(ids));
    return this;
  }
  Groups(ids: string[]): StudentFilter {
    this.order.list("groups", strings(ids));
    return this;
  }
  Subgroups(ids: string[]): StudentFilter {
    this.order.list("subgroups", strings(ids));
    return this;
  }
  /** `nationality_type`, `funding_type`, `education_form`, `locale` or `primary_channel`. */
  Where(attribute: string, value: string): StudentFilter {
    this.order.str(attribute, value);
    return this;
  }
  /** Only those who have one of the values. */
  WhereIn(attribute: string, values: string[]): StudentFilter {
    this.order.list(attribute, strings(values));
    return this;
  }
  /** Means every student. */
  All(): StudentFilter {
    this.order.bool("all", true);
    return this;
  }
  toObj(): Obj {
    return this.order;
  }
}

/** @example ctx.NotifyStudents(Students().Groups(["21-1"]).Where("locale", "ru"), NewMessage("Moved")) */
export function Students(): StudentFilter {
  return new StudentFilter();
}
