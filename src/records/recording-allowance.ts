import { LIMITS } from '../base/limits.ts';

const HOUR_MS = 3_600_000;

/** Keeps the recordings of a plugin within their bytes and their number an hour (docs/plugins.md "Recordings"). */
export class RecordingAllowance {
  readonly #used = new Map<string, { hour: number; bytes: number; count: number }>();

  /** @returns whether a recording of this size may be kept; then it counts */
  take(pluginId: string, startedAt: Date, size: number): boolean {
    const hour = Math.floor(startedAt.getTime() / HOUR_MS);
    const before = this.#used.get(pluginId);
    const used = before?.hour === hour ? before : { hour, bytes: 0, count: 0 };
    const bytes = used.bytes + size;
    if (bytes > LIMITS.recordingBytesPerPluginHour || used.count >= LIMITS.recordingsPerPluginHour) return false;
    this.#used.set(pluginId, { hour, bytes, count: used.count + 1 });
    return true;
  }
}
