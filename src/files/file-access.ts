import type { FileRecord } from './file-records.ts';

/** Who wants to read a file from inside a plugin: the plugin, and for whom it runs. */
export type FileAsker = {
  pluginId: string;
  /** What started the execution. */
  kind: 'http' | 'messenger' | 'call';
  /** The user who called; null for a service key and without a credential. */
  userId: number | null;
  /** The chat whose message started the execution, as `CHANNEL:chat`; null for none. */
  chat: string | null;
};

/**
 * Whether a plugin may read a file (docs/files.md "Who may read"): its own files always; what a user uploaded only inside HTTP triggers of the plugin
 * it was uploaded for, called by that user; what came in a message only in answer to messages of the same chat.
 *
 * @param now time in ms: a file whose time has come is gone before it is cleaned away
 */
export function mayRead(file: FileRecord, asker: FileAsker, nowMs: number): boolean {
  if (file.state !== 'ready' || file.pluginId !== asker.pluginId) return false;
  if (file.expiresAt !== null && file.expiresAt.getTime() <= nowMs) return false;
  if (file.chat !== null) return asker.kind === 'messenger' && asker.chat === file.chat;
  if (file.userId === null) return true;
  return asker.kind === 'http' && asker.userId === file.userId;
}
