import { LIMITS } from '../base/limits.ts';

const HOUR_MS = 3_600_000;

/** Keeps the recordings of a plugin within their bytes and their number an hour (docs/plugins.md "Recordings"). */
export class RecordingAllowance {
  readonly #used = new Map<string, { hour: number; bytes: number; count: number }>();

  /** @returns the recording, or null when there is none or the hour has had its share */
  take(record: { pluginId: string; startedAt: Date; recording?: Buffer | null }): Buffer | null {
    const { pluginId, recording, startedAt } = record;
    if (recording === undefined || recording === null) return null;
    const hour = Math.floor(startedAt.getTime() / HOUR_MS);
    const before = this.#used.get(pluginId);
    const used = before?.hour === hour ? before : { hour, bytes: 0, count: 0 };
    const bytes = used.bytes + recording.length;
    if (bytes > LIMITS.recordingBytesPerPluginHour || used.count >= LIMITS.recordingsPerPluginHour) return null;
    this.#used.set(pluginId, { hour, bytes, count: used.count + 1 });
    return recording;
  }
}
