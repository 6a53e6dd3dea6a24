import * as raw from './host-functions.js';

/** The event of an execution as the host words it (docs/abi.md "Event JSON"). */
export type HostEvent = {
  kind: 'http' | 'messenger' | 'call';
  trigger: string;
  request_id: string;
  deadline_ms: number;
  http?: {
    method: string;
    path: string;
    query: Record<string, string>;
    query_all: Record<string, string[]>;
    raw_query: string;
    headers: Record<string, string>;
    params: Record<string, string>;
    remote_addr: string;
    auth: HostAuth;
  };
  message?: {
    channel: string;
    chat_id: string;
    user_id: number | bigint | null;
    text: string;
    args: string[];
    files: Array<{ id: string; name: string; mime_type: string; size: number; file_type: FileType }>;
  };
  call?: { from: string; function: string; auth: HostAuth };
};
type FileType = 'photo' | 'document' | 'audio' | 'video' | 'voice' | 'sticker';
type HostAuth = { kind: 'user' | 'service'; user_id?: number | bigint; service_key_id?: number | bigint } | null;

/** For whom the host has let an execution in. */
export type HTTPAuthInfo =
  | { Kind: 'user'; UserID: bigint; ServiceKeyID: null }
  | { Kind: 'service'; UserID: null; ServiceKeyID: bigint };

/** The principal of an event; null without a credential. */
export function authOf(auth: HostAuth): HTTPAuthInfo | null {
  if (auth === null || auth === undefined) return null;
  return auth.kind === 'user'
    ? { Kind: 'user', UserID: BigInt(auth.user_id ?? 0), ServiceKeyID: null }
    : { Kind: 'service', UserID: null, ServiceKeyID: BigInt(auth.service_key_id ?? 0) };
}

/** Reads an event; ids with more digits than a `number` holds become a `bigint`. */
export function readEvent(text: string): HostEvent {
  const event: HostEvent = JSON.parse(text);
  const ids = [
    event.http?.auth?.user_id,
    event.http?.auth?.service_key_id,
    event.message?.user_id,
    event.call?.auth?.user_id,
    event.call?.auth?.service_key_id,
  ];
  if (ids.every(id => typeof id !== 'number' || Number.isSafeInteger(id))) return event;
  return JSON.parse(text, (_key, value, { source = '' }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) ? BigInt(source) : value,
  ) as HostEvent;
}

/** Kind of the raw body among the inputs of an execution. */
const BODY = 1;
export const inputText = (): string => raw.input_text(BODY) ?? '';
export const inputBytes = (): Uint8Array => raw.input_bytes(BODY) ?? new Uint8Array();
