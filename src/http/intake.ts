import { callerKey } from '../base/caller-key.ts';
import { ServiceError } from '../base/errors.ts';
import { removeOwnDirectory } from '../base/own-directory.ts';
import { ReusedEntries } from '../base/reused-entries.ts';

/** What bodies that come in may take of this host, as configured. */
export type IntakeLimits = {
  /** Bytes of all bodies that are received or wait for their execution, and of those of one network (`http.max_receiving*`). */
  bytesMax: number;
  bytesPerAddressMax: number;
  /** Time for one body, and the least it brings in a second on average (`http.body_timeout`, `http.min_body_rate`). */
  bodyMsMax: number;
  bytesPerSecondMin: number;
  /** A body may come as slowly as it likes for so long. */
  graceMs: number;
  /** Where bodies lie that are too large for memory; below the data directory. */
  directory: string;
};

const LOOK_MS = 1000;

const busy = (limit: string, detail: string): ServiceError =>
  new ServiceError('unavailable', `${detail}; try again`, { headers: [['Retry-After', '2']], extra: { limit } });

/** Bodies that come in: what they take together and by network, and how long each takes. */
export class Intake {
  readonly limits: IntakeLimits;
  #bytes = 0;
  readonly #byNetwork = new ReusedEntries<{ bytes: number }>(held => held.bytes > 0);
  /** An array, because a set that is filled and emptied at each request is slow (`base/reused-entries`). */
  readonly #arriving: IntakeShare[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(limits: IntakeLimits) {
    this.limits = limits;
    this.#timer = setInterval(() => this.#endSlow(Date.now()), LOOK_MS).unref();
  }

  /** Bytes that are held for all bodies now. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The share of one body; it must be released.
   *
   * @param address of the client, asked for when the body does not come at once
   */
  open(address: () => string): IntakeShare {
    return new IntakeShare(this, address);
  }

  /** @throws ServiceError `unavailable` with the limit's name */
  take(network: string, bytes: number): void {
    const { bytesMax, bytesPerAddressMax } = this.limits;
    if (this.#bytes + bytes > bytesMax)
      throw busy(
        'http.max_receiving',
        `this host is already receiving bodies of ${bytesMax} bytes; http.max_receiving allows no more`,
      );
    const held = this.#byNetwork.get(network);
    if ((held?.bytes ?? 0) + bytes > bytesPerAddressMax)
      throw busy(
        'http.max_receiving_per_address',
        `bodies of ${bytesPerAddressMax} bytes are received from ${network} already (http.max_receiving_per_address)`,
      );
    this.#bytes += bytes;
    if (held === undefined) this.#byNetwork.add(network, { bytes });
    else held.bytes += bytes;
  }

  give(network: string, bytes: number): void {
    this.#bytes -= bytes;
    const held = this.#byNetwork.get(network);
    if (held !== undefined) held.bytes = Math.max(0, held.bytes - bytes);
  }

  watch(share: IntakeShare): void {
    if (share.place < 0) share.place = this.#arriving.push(share) - 1;
  }

  unwatch(share: IntakeShare): void {
    if (share.place < 0) return;
    const last = this.#arriving.pop()!;
    if (last !== share) {
      this.#arriving[share.place] = last;
      last.place = share.place;
    }
    share.place = -1;
  }

  #endSlow(now: number): void {
    const { bodyMsMax, bytesPerSecondMin, graceMs } = this.limits;
    for (const share of [...this.#arriving]) {
      const ms = now - share.since;
      if (ms > bodyMsMax)
        share.end(
          new ServiceError('request_timeout', `the body did not arrive within ${bodyMsMax} ms (http.body_timeout)`),
        );
      else if (ms > graceMs && share.received < (bytesPerSecondMin * ms) / 1000)
        share.end(
          new ServiceError(
            'request_timeout',
            `${share.received} bytes of the body arrived in ${Math.round(ms / 1000)} s; at least ${bytesPerSecondMin} bytes a second must (http.min_body_rate)`,
          ),
        );
    }
  }

  /** No body comes in any more. */
  close(): void {
    clearInterval(this.#timer);
    removeOwnDirectory(this.limits.directory);
  }
}

/** Bytes that one body takes, until it is released. */
export class IntakeShare {
  readonly #intake: Intake;
  readonly #address: () => string;
  #network: string | null = null;
  #held = 0;
  #released = false;
  #onSlow: ((error: ServiceError) => void) | null = null;
  since = 0;
  received = 0;
  /** Index among the bodies that arrive, or -1. */
  place = -1;

  constructor(intake: Intake, address: () => string) {
    this.#intake = intake;
    this.#address = address;
  }

  get directory(): string {
    return this.#intake.limits.directory;
  }

  /** From now on the body must come fast enough. @param onSlow told once when it does not */
  watch(onSlow: (error: ServiceError) => void): void {
    if (this.#released) return;
    if (this.since === 0) this.since = Date.now();
    this.#onSlow = onSlow;
    this.#intake.watch(this);
  }

  /** The body is there. */
  unwatch(): void {
    this.#onSlow = null;
    this.#intake.unwatch(this);
  }

  end(error: ServiceError): void {
    const onSlow = this.#onSlow;
    this.unwatch();
    onSlow?.(error);
  }

  /** @throws ServiceError `unavailable` with the limit's name */
  take(bytes: number): void {
    this.received += bytes;
    if (this.#released) return;
    this.#network ??= callerKey(null, this.#address());
    this.#intake.take(this.#network, bytes);
    this.#held += bytes;
  }

  give(bytes: number): void {
    if (this.#released || this.#network === null) return;
    this.#intake.give(this.#network, bytes);
    this.#held -= bytes;
  }

  /** Gives everything back; nothing is held from now on. */
  release(): void {
    if (this.#released) return;
    this.unwatch();
    this.give(this.#held);
    this.#released = true;
  }
}
