import { App, SSLApp, type us_listen_socket, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js';
import { diskFullError, fullDiskOf } from '../base/disk-space.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import { REQUEST_LIMITS } from '../base/request-limits.ts';
import type { Tracing } from '../base/tracing.ts';
import { isUnavailable } from '../db/database.ts';
import type { AnswerCounts } from './answer-counts.ts';
import type { ClientAddress } from './client-address.ts';
import type { Connections } from './connections.ts';
import { Door } from './door.ts';
import { Exchange } from './exchange.ts';
import type { Intake } from './intake.ts';
import { makeLimitReceiveBuffer } from './receive-buffer.ts';
import type { TlsFiles } from './tls-files.ts';
import { UnderWay } from './under-way.ts';
import { WaitingAnswers } from './waiting-answers.ts';

export type ServerParts = {
  /** Path prefix of plugin triggers, which have a line of their own. */
  triggerPrefix: string;
  clientAddress: ClientAddress;
  /** What bodies may take of this host. */
  intake: Intake;
  /** Bounds open connections; without it there are none. */
  connections?: Connections;
  /** Files of the certificate; null: no TLS. */
  tls?: TlsFiles | null;
  /** Counts answers; left out when no program reads the counts. */
  counts?: AnswerCounts | null;
  tracing?: Tracing | null;
  /** Whether the trace context of a peer counts; left out: of none. */
  trustsTraceOf?: (peer: string) => boolean;
  /** Bytes that clients have not taken yet, at most; left out: as many as a serving process may hold. */
  waitingBytesMax?: number;
  /** Called when connections were closed because more waited. */
  onAnswersCut?: () => void;
  /** Browsers shall use https alone from now on (RFC 6797). */
  isHttpsOnly?: boolean;
  handleTrigger(x: Exchange): undefined | Promise<void>;
  handleRoute(x: Exchange): Promise<void>;
  onUnknownError(error: unknown, x: Exchange): void;
};

export type Server = {
  readonly port: number;
  /** Whether no client can hold up the others by sending fast. */
  readonly bounded: boolean;
  /** Why one can; null when `bounded`. */
  readonly unboundedBecause: string | null;
  /** Stops listening; answers under way go on. */
  stopListening(): void;
  /** Closes connections behind their answers from now on, all of them after `ms`. @param connections that are open now */
  closeDoor(ms: number, connections: number): void;
  /** Resolves when all requests that are under way now, except those of triggers, have their answers. */
  answered(): Promise<void>;
  close(): void;
};

/** For a year, and not for other names below this one, which belong to others. */
const STRICT_TRANSPORT = '\r\nStrict-Transport-Security: max-age=31536000';

/**
 * The library closes a connection that has been idle for 8 to 12 s. A client that knows sends no request on one that is just being closed
 * (docs/operating.md "Behind a proxy"). Not from RFC 9112: `Keep-Alive` is what RFC 2068 section 19.7.1.1 left, and clients read.
 */
const KEEP_ALIVE = '\r\nKeep-Alive: timeout=7';

/**
 * Suites of TLS 1.2 with forward secrecy and authenticated encryption (RFC 9325 section 4.2); all of TLS 1.3 have both, and older
 * versions are refused by the library.
 */
const TLS12_CIPHERS = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** The one place that turns anything thrown into a reply: refusals as they are, everything else as a 500 without its text. */
function answerThrown(parts: ServerParts, x: Exchange, error: unknown): void {
  if (error instanceof ServiceError) return x.replyError(error);
  if (isUnavailable(error))
    return x.replyError(
      new ServiceError('unavailable', 'the database does not answer; try again', {
        cause: error,
        headers: [['Retry-After', '2']],
      }),
    );
  parts.onUnknownError(error, x);
  const disk = fullDiskOf(error);
  if (disk !== null) return x.replyError(diskFullError(disk, error));
  x.replyError(
    new ServiceError('internal', `something went wrong here; the log has it under request id ${x.requestId}`),
  );
}

/**
 * Starts the HTTP server.
 *
 * @returns once it listens
 * @throws Error when the address cannot be listened on, OperatorError when a package is missing
 */
export async function startServer(host: string, port: number, parts: ServerParts): Promise<Server> {
  const limitReceiveBuffer = makeLimitReceiveBuffer();
  const { counts = null, isHttpsOnly = false, tls = null, tracing = null, trustsTraceOf = () => false } = parts;
  const { onAnswersCut = () => {}, waitingBytesMax = REQUEST_LIMITS.waitingAnswersBytesMax } = parts;
  const waiting = new WaitingAnswers(waitingBytesMax, onAnswersCut);
  const app =
    tls === null ? App() : SSLApp({ cert_file_name: tls.cert, key_file_name: tls.key, ssl_ciphers: TLS12_CIPHERS });
  const door = new Door(
    isHttpsOnly ? STRICT_TRANSPORT + KEEP_ALIVE : KEEP_ALIVE,
    waiting,
    counts,
    tracing,
    trustsTraceOf,
  );
  parts.connections?.watch(app);
  app.any(`${parts.triggerPrefix}*`, (res, req) => {
    const x = new Exchange(res, req, parts.clientAddress, parts.intake, door);
    if (x.headProblem !== null) return x.refuseHead();
    try {
      parts.handleTrigger(x)?.catch(error => answerThrown(parts, x, error));
    } catch (error) {
      answerThrown(parts, x, error);
    }
  });
  const underWay = new UnderWay();
  app.any('/*', (res, req) => {
    const x = new Exchange(res, req, parts.clientAddress, parts.intake, door);
    if (x.headProblem !== null) return x.refuseHead();
    parts
      .handleRoute(x)
      .catch(error => answerThrown(parts, x, error))
      .finally(underWay.begin());
  });
  return await new Promise((resolve, reject) => {
    app.listen(host, port, (socket: us_listen_socket | false) => {
      if (!socket) return reject(new Error(`cannot listen on ${host}:${port}`));
      let listening: us_listen_socket | null = socket;
      const stopListening = (): void => {
        if (listening !== null) us_listen_socket_close(listening);
        listening = null;
      };
      const listensOn = us_socket_local_port(socket);
      parts.connections?.listensOn(listensOn);
      const unboundedBecause = limitReceiveBuffer(listensOn);
      resolve({
        port: listensOn,
        bounded: unboundedBecause === null,
        unboundedBecause,
        stopListening,
        closeDoor(ms, connections) {
          door.close(ms, connections);
        },
        answered: () => underWay.ended(),
        close() {
          stopListening();
          try {
            app.close();
          } catch (error) {
            throw new Error(`closing the server failed: ${messageOf(error)}`);
          }
        },
      });
    });
  });
}
