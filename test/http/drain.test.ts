import net from 'node:net';
import t from 'tap';
import { MANY_LANES, startTestService, TOKEN } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';

/** One connection on which requests are written by hand. */
class Wire {
  readonly #socket: net.Socket;
  #text = '';
  #seen: (() => void) | null = null;

  constructor(base: string) {
    this.#socket = net.connect(Number(new URL(base).port), '127.0.0.1');
    this.#socket.on('data', chunk => {
      this.#text += chunk.toString('latin1');
      this.#seen?.();
    });
  }

  write(data: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => this.#socket.write(data, e => (e ? reject(e) : resolve())));
  }

  /** Everything received so far, once it matches. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#text)) await new Promise<void>(resolve => (this.#seen = resolve));
    return this.#text;
  }

  close(): void {
    this.#socket.destroy();
  }
}

t.test('an upload under way is finished and answered before the service ends; what comes later is refused', async t => {
  const s = await startTestService(MANY_LANES);
  let stopped: Promise<void> | null = null;
  t.teardown(() => stopped ?? s.stop());
  const boundary = 'xxxxxxxx';
  const body = Buffer.concat([
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="p.wasm"\r\nContent-Type: application/wasm\r\n\r\n`,
    ),
    okPlugin('slow'),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  const uploading = new Wire(s.base);
  const later = new Wire(s.base);
  t.teardown(() => uploading.close());
  t.teardown(() => later.close());
  await uploading.write(
    `POST /api/admin/plugins/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  await uploading.write(body.subarray(0, 200));
  // An answer on a second connection says that what came before on the first has been read.
  await later.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await later.until(/alive/);
  stopped = s.stop();
  await later.write('GET /api/admin/plugins HTTP/1.1\r\nHost: x\r\n\r\n');
  t.match(await later.until(/"code":"draining"/), /HTTP\/1.1 503 .*Retry-After: 2/s);
  await later.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
  await later.until(/"status":"draining"/);
  await uploading.write(body.subarray(200));
  t.match(await uploading.until(/\r\n\r\n.*wasm_key/s), /^HTTP\/1.1 201 /);
  await stopped;
});
