import { LIMITS } from '../base/limits.ts';

const HOUR_MS = 3_600_000;

/** Keeps the recordings of a plugin within their bytes an hour (docs/plugins.md "Recordings"). */
export class RecordingAllowance {
  readonly #used = new Map<string, { hour: number; bytes: number }>();

  /** @returns the recording, or null when there is none or the hour has had its share */
  take(record: { pluginId: string; startedAt: Date; recording?: Buffer | null }): Buffer | null {
    const { pluginId, recording, startedAt } = record;
    if (recording === undefined || recording === null) return null;
    const hour = Math.floor(startedAt.getTime() / HOUR_MS);
    const used = this.#used.get(pluginId);
    const bytes = (used?.hour === hour ? used.bytes : 0) + recording.length;
    if (bytes > LIMITS.recordingBytesPerPluginHour) return null;
    this.#used.set(pluginId, { hour, bytes });
    return recording;
  }
}
