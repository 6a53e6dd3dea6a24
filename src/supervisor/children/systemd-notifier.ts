import { foreignFunctions } from '../../base/foreign-functions.ts';

/** Constants of `socket` and `sendto` on Linux (asm-generic/socket.h, linux/socket.h). */
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;

/** While the service starts it asks for so much more time, again and again: a migration takes as long as it takes. */
const START_MORE_USEC = 30_000_000;
const START_AGAIN_MS = 5000;
/** Messages within the time after which systemd gives up. */
const WATCHDOG_PARTS = 3;

/** Variables of systemd that are meant for this process alone. */
export const SYSTEMD_VARIABLES = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'CREDENTIALS_DIRECTORY'] as const;

/** A `struct sockaddr_un`; a name that begins with @ is abstract: a NUL stands for the @ (unix(7)). */
function addressOf(socket: string): Buffer {
  const path = socket.startsWith('@') ? `\0${socket.slice(1)}` : `${socket}\0`;
  const address = Buffer.alloc(2 + Buffer.byteLength(path));
  address.writeUInt16LE(AF_UNIX);
  address.write(path, 2);
  return address;
}

/** Sends messages to a datagram socket, which Node itself cannot. @returns null, or why a message was not sent */
function makeSend(socket: string): (message: string) => string | null {
  const koffi = foreignFunctions();
  const libc = koffi.load('libc.so.6');
  const open = libc.func('int socket(int domain, int type, int protocol)');
  const sendto = libc.func(
    'int sendto(int fd, const void* message, size_t length, int flags, const void* address, uint32_t address_length)',
  );
  const fd: unknown = open(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const address = addressOf(socket);
  return message => {
    const bytes = Buffer.from(message);
    const sent: unknown = sendto(fd, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL, address, address.length);
    return sent === bytes.length ? null : `errno ${koffi.errno()}`;
  };
}

/** How long systemd waits for a message before it takes the service for hung, in ms; null when it does not. */
function watchdogMs(env: NodeJS.ProcessEnv): number | null {
  const { WATCHDOG_PID: pid = '', WATCHDOG_USEC: usec = '' } = env;
  if (pid !== '' && Number(pid) !== process.pid) return null;
  return /^[1-9]\d*$/.test(usec) ? Number(usec) / 1000 : null;
}

/**
 * Tells systemd how the service does (sd_notify(3)): when it is ready, what it does in words, and that its loops turn.
 * Without `NOTIFY_SOCKET` it tells nothing.
 */
export class SystemdNotifier {
  readonly #send: ((message: string) => string | null) | null;
  readonly #warn: (text: string) => void;
  readonly #watchdogMs: number | null;
  #starting: NodeJS.Timeout | null = null;
  #watchdog: NodeJS.Timeout | null = null;
  #hasWarned = false;

  /** @param warn called once when a message cannot be sent */
  constructor(env: NodeJS.ProcessEnv, warn: (text: string) => void) {
    const socket = env.NOTIFY_SOCKET ?? '';
    this.#warn = warn;
    this.#send = socket === '' ? null : makeSend(socket);
    this.#watchdogMs = socket === '' ? null : watchdogMs(env);
    if (this.#send !== null)
      this.#starting = setInterval(() => this.#notify(`EXTEND_TIMEOUT_USEC=${START_MORE_USEC}`), START_AGAIN_MS);
  }

  #notify(message: string): void {
    const problem = this.#send?.(message) ?? null;
    if (problem === null || this.#hasWarned) return;
    this.#hasWarned = true;
    this.#warn(`no message reaches systemd: ${problem}`);
  }

  /** What the service does now, in words. */
  status(text: string): void {
    this.#notify(`STATUS=${text.replaceAll('\n', ' ')}`);
  }

  /**
   * The service answers requests.
   *
   * @param isBeating whether all loops turn; while one does not, systemd hears nothing and restarts the service at last
   */
  ready(text: string, isBeating: () => boolean): void {
    this.#endStart();
    this.#notify(`READY=1\nSTATUS=${text}`);
    if (this.#watchdogMs === null) return;
    if (this.#watchdog !== null) return;
    const beat = (): void => {
      if (isBeating()) this.#notify('WATCHDOG=1');
    };
    // At once: a program that is reloaded again before its first turn would never beat.
    beat();
    this.#watchdog = setInterval(beat, this.#watchdogMs / WATCHDOG_PARTS);
  }

  /** The service ends; it takes as long as its longest request, and the watchdog goes on meanwhile. */
  stopping(): void {
    this.#endStart();
    this.#notify('STOPPING=1\nSTATUS=stopping');
  }

  #endStart(): void {
    if (this.#starting !== null) clearInterval(this.#starting);
    this.#starting = null;
  }

  close(): void {
    this.#endStart();
    if (this.#watchdog !== null) clearInterval(this.#watchdog);
    this.#watchdog = null;
  }
}
