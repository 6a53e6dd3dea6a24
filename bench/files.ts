import { randomFillSync } from 'node:crypto';
import fs from 'node:fs';
import fsp from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { buildExample } from '../test/support/sdk.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../test/support/wat.ts';
import type { Caller } from './caller.ts';
import { add, median } from './report.ts';

const MIB = 1024 * 1024;
const CHUNK = MIB;

export type Transfer = { copyMbs: number; uploadMbs: number; completeMs: number; readMbs: number; linkMbs: number };

/** FNV-1a over 64-bit words, as the sample `filebox` computes it; in two halves, since a number holds 53 bits. */
class Checksum {
  #low = 0x84222325;
  #high = 0xcbf29ce4;

  add(bytes: Buffer): void {
    let [low, high] = [this.#low, this.#high];
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    for (let k = 0; k + 1 < words.length; k += 2) {
      low ^= words[k]!;
      high ^= words[k + 1]!;
      // times 2^40 + 0x1b3, modulo 2^64
      const a = (low >>> 0) * 0x1b3;
      const carry = Math.floor(a / 0x1_0000_0000);
      high = (Math.imul(high, 0x1b3) + carry + (low << 8)) | 0;
      low = a | 0;
    }
    this.#low = low;
    this.#high = high;
  }

  toString(): string {
    return ((BigInt(this.#high >>> 0) << 32n) | BigInt(this.#low >>> 0)).toString();
  }
}

/** A file of bytes that do not repeat, and its checksum. */
export async function makeSource(directory: string, bytes: number): Promise<{ file: string; checksum: string }> {
  const file = path.join(directory, `source-${bytes}`);
  const handle = await fsp.open(file, 'w');
  const checksum = new Checksum();
  const block = Buffer.alloc(8 * MIB);
  for (let at = 0; at < bytes; at += block.length) {
    randomFillSync(block);
    const part = block.subarray(0, Math.min(block.length, bytes - at));
    checksum.add(part);
    await handle.write(part);
  }
  await handle.sync();
  await handle.close();
  return { file, checksum: checksum.toString() };
}

/** Installs the sample `filebox`, open to users. */
export async function installFilebox(port: number, caller: Caller): Promise<void> {
  await installAs(port, caller, await buildExample('filebox'));
  for (const name of ['files', 'checksum', 'link'])
    await caller.post(`/api/admin/plugins/filebox/triggers/${name}/settings`, { allow_user_session: true }, 'PUT');
}

async function installAs(port: number, caller: Caller, bytes: Uint8Array): Promise<void> {
  const uploaded = await upload(port, caller, bytes);
  const done = await caller.post(`/api/admin/plugins/${uploaded.id}/install`, {
    wasm_key: uploaded.wasm_key,
    accept_permissions: true,
  });
  if (!done.ok) throw new Error(await done.text());
}

async function upload(port: number, { cookie }: Caller, bytes: Uint8Array): Promise<{ id: string; wasm_key: string }> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), 'p.wasm');
  const answer = await fetch(`http://127.0.0.1:${port}/api/admin/plugins/upload`, {
    method: 'POST',
    headers: { cookie },
    body: form,
  });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as { id: string; wasm_key: string };
}

/** One file through init, upload, complete, chunked reading in the plugin and its link, each timed; checked byte by byte. */
export async function transfer(
  port: number,
  { bearer }: Pick<Caller, 'bearer'>,
  source: { file: string; checksum: string },
): Promise<Transfer> {
  const base = `http://127.0.0.1:${port}`;
  const size = fs.statSync(source.file).size;
  const mbs = (from: number): number => size / MIB / ((performance.now() - from) / 1000);
  const ask = async (method: string, where: string, body?: unknown) => {
    const r = await fetch(base + where, {
      method,
      headers: { ...bearer, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!r.ok) throw new Error(`${method} ${where}: ${r.status} ${await r.text()}`);
    return (await r.json().catch(() => ({}))) as Record<string, string | number | boolean>;
  };

  const copy = `${source.file}.copy`;
  let at = performance.now();
  await pipeline(
    fs.createReadStream(source.file, { highWaterMark: MIB }),
    fs.createWriteStream(copy, { flush: true, highWaterMark: MIB }),
  );
  const copyMbs = mbs(at);
  fs.rmSync(copy);

  const file = await ask('POST', '/api/files/init', {
    plugin_id: 'filebox',
    name: 'big.bin',
    mime_type: 'application/octet-stream',
    file_type: 'document',
    size,
  });
  at = performance.now();
  await put(String(file.upload_url), source.file, size);
  const uploadMbs = mbs(at);
  at = performance.now();
  await ask('POST', `/api/files/${file.file_id}/complete`);
  const completeMs = performance.now() - at;
  await ask('POST', '/api/triggers/http/filebox/files', { file_id: file.file_id });

  at = performance.now();
  let [state, offset, eof] = ['', 0, false];
  while (!eof) {
    const where = `/api/triggers/http/filebox/files/${file.file_id}/checksum?offset=${offset}&state=${state}`;
    const answer = await ask('GET', where);
    [state, offset, eof] = [String(answer.state), Number(answer.offset), answer.eof === true];
  }
  const readMbs = mbs(at);
  if (state !== source.checksum) throw new Error(`the plugin read something else: ${state}, not ${source.checksum}`);

  const { url } = await ask('GET', `/api/triggers/http/filebox/files/${file.file_id}/link`);
  at = performance.now();
  const checksum = new Checksum();
  await new Promise<void>((resolve, reject) =>
    http.get(String(url), r => {
      let rest = Buffer.alloc(0);
      r.on('data', (chunk: Buffer) => {
        const all =
          rest.length === 0 && chunk.byteOffset % 4 === 0
            ? chunk
            : Buffer.from(new Uint8Array(Buffer.concat([rest, chunk])).buffer);
        const whole = all.length - (all.length % 8);
        checksum.add(all.subarray(0, whole));
        rest = Buffer.from(all.subarray(whole));
      });
      r.on('end', resolve);
      r.on('error', reject);
    }),
  );
  const linkMbs = mbs(at);
  if (checksum.toString() !== source.checksum) throw new Error('the link gave something else');
  await ask('DELETE', `/api/files/${file.file_id}`);
  return { copyMbs, uploadMbs, completeMs, readMbs, linkMbs };
}

async function put(url: string, file: string, size: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const request = http.request(
      url,
      { method: 'PUT', headers: { 'Content-Type': 'application/octet-stream', 'Content-Length': size } },
      answer => {
        answer.resume();
        if (answer.statusCode === 200) answer.on('end', resolve);
        else reject(new Error(`the upload was answered with ${answer.statusCode}`));
      },
    );
    request.on('error', reject);
    fs.createReadStream(file, { highWaterMark: 256 * 1024 }).pipe(request);
  });
}

/** Calls `file_read_into` for chunks of a size as often as asked, and nothing else. */
const reader = (): Uint8Array =>
  withManifest(
    assemble(
      `(module ${hostImports('input_read', 'file_read_into')}
        (memory (export "memory") 32)
        (func (export "plugin_handle") (result i32) (local $k i32)
          (drop (call $input_read (i32.const 1) (i32.const 0) (i32.const 40)))
          (loop $l
            (if (i32.lt_s (call $file_read_into (i32.const 8) (i32.const 32) (i64.const 0) (i32.const 65536) (i32.load (i32.const 4))) (i32.const 0))
              (then (return (i32.const -1))))
            (local.set $k (i32.add (local.get $k) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $k) (i32.load (i32.const 0)))))
          (i32.const 0)))`,
    ),
    manifestOf({ id: 'reader', requirements: [{ kind: 'file', description: 'f' }] }),
  );

/** Time of one chunk, of small ones and of the largest. */
async function chunkTimes(port: number, caller: Caller): Promise<void> {
  await installAs(port, caller, reader());
  await caller.post('/api/admin/plugins/reader/triggers/run/settings', { allow_user_session: true }, 'PUT');
  const base = `http://127.0.0.1:${port}`;
  const init = (await (
    await fetch(`${base}/api/files/init`, {
      method: 'POST',
      headers: { ...caller.bearer, 'content-type': 'application/json' },
      body: JSON.stringify({ plugin_id: 'reader', name: 'a', mime_type: 'a/b', file_type: 'document', size: CHUNK }),
    })
  ).json()) as { file_id: string; upload_url: string };
  await fetch(init.upload_url, { method: 'PUT', headers: { 'content-type': 'a/b' }, body: new Uint8Array(CHUNK) });
  await fetch(`${base}/api/files/${init.file_id}/complete`, { method: 'POST', headers: caller.bearer });
  const texts: string[] = [];
  for (const [bytes, count] of [
    [100, 1000],
    [65_536, 500],
    [CHUNK, 60],
  ] as const) {
    const times: number[] = [];
    for (let round = 0; round < 7; round++) {
      const run = async (n: number): Promise<number> => {
        const head = Buffer.alloc(8);
        head.writeInt32LE(n, 0);
        head.writeInt32LE(bytes, 4);
        const at = performance.now();
        const r = await fetch(`${base}/api/triggers/http/reader/run`, {
          method: 'POST',
          headers: caller.bearer,
          body: Buffer.concat([head, Buffer.from(init.file_id)]),
        });
        await r.arrayBuffer();
        if (!r.ok) throw new Error(`reader: ${r.status}`);
        return performance.now() - at;
      };
      const one = await run(1);
      times.push((((await run(count)) - one) * 1000) / (count - 1));
    }
    texts.push(median(times).toFixed(0));
  }
  add('file_read_into of 100 bytes, 64 KiB, 1 MiB', `${texts.join(', ')} us`, 'per call');
}

/** Rows of the benchmark. */
export async function files(port: number, caller: Caller, directory: string, rounds: number): Promise<void> {
  await installFilebox(port, caller);
  const source = await makeSource(directory, 256 * MIB);
  const runs: Transfer[] = [];
  for (let k = 0; k < rounds; k++) runs.push(await transfer(port, caller, source));
  fs.rmSync(source.file);
  const of = (key: keyof Transfer): number => median(runs.map(r => r[key]));
  const per = (key: keyof Transfer): string => median(runs.map(r => r[key] / r.copyMbs)).toFixed(2);
  add('copy of a file of 256 MiB through streams, synced', `${of('copyMbs').toFixed(0)} MB/s`);
  add('upload of it / copy', per('uploadMbs'), `${of('uploadMbs').toFixed(0)} MB/s`);
  add('read in chunks by a plugin / copy', per('readMbs'), `${of('readMbs').toFixed(0)} MB/s`);
  add('download by its link / copy', per('linkMbs'), `${of('linkMbs').toFixed(0)} MB/s`);
  await chunkTimes(port, caller);
}
