import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { readEngine } from '../../../sdk/typescript/engine/stored-engine.ts';
import { messageOf, OperatorError } from '../../base/errors.ts';
import { serviceVersion } from '../../base/version.ts';
import type { Reply } from '../../http/message.ts';
import { packProgram } from '../../kits/pack-program.ts';
import type { Route } from '../contract/route.ts';
import type { GalleryEntry } from './gallery-api.ts';
import { KITS_STYLE, kitsPage } from './kits-page.ts';

/**
 * `GET /kits/`: where authors begin, and which plugins come with the service.
 * `GET /kits/plugin-host.tgz`: this program as a package, for authors (sdk/typescript/README.md).
 * `GET /kits/schema/NAME`: the JSON Schemas of what authors write (docs/plugins.md "Manifest").
 */

const SCHEMAS = fileURLToPath(new URL('../../../sdk/schema/', import.meta.url));

/** The archive of this process' sources; made when it is first asked for. */
class ProgramArchive {
  readonly #directory: string;
  #made: Promise<Reply> | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  read(): Promise<Reply> {
    this.#made ??= this.#make().catch((error: unknown) => {
      this.#made = null;
      throw error;
    });
    return this.#made;
  }

  async #make(): Promise<Reply> {
    const engine = await readEngine();
    fs.mkdirSync(this.#directory, { recursive: true });
    const hash = createHash('sha256').update(engine).digest('hex').slice(0, 8);
    const file = path.join(this.#directory, `plugin-host-${serviceVersion()}-${process.pid}-${hash}.tgz`);
    await packProgram(file, engine);
    const archive = fs.readFileSync(file);
    fs.rmSync(file);
    const { headers, status } = fileReply(archive, 'application/gzip');
    // In parts, as the client takes them: all that ask share these bytes.
    return { status, headers, body: { length: archive.length, open: async () => Readable.from(piecesOf(archive)) } };
  }
}

const PIECE_BYTES = 64 * 1024;

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

function fileReply(body: Buffer, type: string): Reply {
  const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 32)}"`;
  return {
    status: 200,
    headers: [
      ['Content-Type', type],
      ['ETag', etag],
    ],
    body,
  };
}

const schemaRoute = (name: string): Route => ({
  method: 'GET',
  path: `/kits/schema/${name}`,
  guard: 'none',
  async handle(): Promise<Reply> {
    return fileReply(await fs.promises.readFile(path.join(SCHEMAS, name)), 'application/schema+json');
  },
});

const STYLE_HASH = createHash('sha256').update(KITS_STYLE).digest('base64');
const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/**
 * @param directory for the archive while it is made
 * @param base address under which the service is reached
 * @param plugins those of the gallery
 */
export function kitRoutes(directory: string, base: () => string, plugins: () => readonly GalleryEntry[]): Route[] {
  const archive = new ProgramArchive(directory);
  return [
    {
      method: 'GET',
      path: '/kits/',
      guard: 'none',
      handle(): Reply {
        const { body, headers, status } = fileReply(
          Buffer.from(kitsPage(base(), plugins())),
          'text/html; charset=utf-8',
        );
        return {
          status,
          headers: [...headers, ['Content-Security-Policy', PAGE_POLICY], ['Cache-Control', 'no-cache']],
          body,
        };
      },
    },
    {
      method: 'GET',
      path: '/kits/plugin-host.tgz',
      guard: 'none',
      async handle(): Promise<Reply> {
        try {
          return await archive.read();
        } catch (error) {
          if (!(error instanceof OperatorError)) throw error;
          const body = `${messageOf(error)}\n`;
          return { status: 503, headers: [['Content-Type', 'text/plain; charset=utf-8']], body };
        }
      },
    },
    ...['manifest.json', 'plugin-host.json'].map(schemaRoute),
  ];
}
