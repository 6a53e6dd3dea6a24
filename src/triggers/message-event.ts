import { type FileRecord, fileRefJson } from '../files/file-records.ts';
import type { IncomingMessage } from '../messaging/channel.ts';

/** Event JSON of a messenger trigger (docs/abi.md "Event JSON"). */
export function messageEvent(of: {
  trigger: string;
  requestId: string;
  deadlineMs: number;
  channel: string;
  message: IncomingMessage;
  args: readonly string[];
  userId: number | null;
  files: readonly FileRecord[];
}): string {
  return JSON.stringify({
    kind: 'messenger',
    trigger: of.trigger,
    request_id: of.requestId,
    deadline_ms: of.deadlineMs,
    message: {
      channel: of.channel,
      chat_id: of.message.chatId,
      user_id: of.userId,
      text: of.message.text,
      args: of.args,
      files: of.files.map(fileRefJson),
    },
  });
}
