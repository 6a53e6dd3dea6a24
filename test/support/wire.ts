import net from 'node:net';

/** One connection on which requests are written by hand. */
export class Wire {
  readonly #socket: net.Socket;
  readonly #ended: Promise<void>;
  #text = '';
  #seen: (() => void) | null = null;

  constructor(base: string, options: { localAddress?: string } = {}) {
    this.#socket = net.connect({ port: Number(new URL(base).port), host: '127.0.0.1', ...options });
    this.#socket.on('data', chunk => {
      this.#text += chunk.toString('latin1');
      this.#seen?.();
    });
    // A connection the server gives up may be reset.
    this.#socket.on('error', () => {});
    this.#ended = new Promise(resolve => this.#socket.once('close', () => resolve()));
  }

  write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === 'string' ? Buffer.from(data, 'latin1') : data;
    return new Promise((resolve, reject) => this.#socket.write(bytes, e => (e ? reject(e) : resolve())));
  }

  /** Everything received so far, once it matches. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#text)) await new Promise<void>(resolve => (this.#seen = resolve));
    return this.#text;
  }

  /** Everything received, once the server has closed the connection. */
  async closed(): Promise<string> {
    await this.#ended;
    return this.#text;
  }

  /** Says that nothing more will be written. */
  end(): void {
    this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }
}
