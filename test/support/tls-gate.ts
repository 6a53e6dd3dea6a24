import http2 from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { generate } from 'selfsigned';

export type TlsGate = { port: number; certificate: string; refused: number; close(): Promise<void> };

/**
 * A graph store as an operator runs it elsewhere: the embedded engine behind TLS and a preshared key. Streams pass through as
 * they are; one without the key is answered as SpiceDB answers it (gRPC status 16).
 *
 * @param socket where the engine listens
 */
export async function startTlsGate(socket: string, token: string): Promise<TlsGate> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }], {
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] },
    ],
  });
  const upstream = http2.connect('http://localhost', { createConnection: () => net.connect(socket) });
  const sessions = new Set<http2.ServerHttp2Session>();
  const gate = {
    port: 0,
    certificate: cert,
    refused: 0,
    async close() {
      for (const session of sessions) session.destroy();
      upstream.destroy();
      await new Promise(resolve => server.close(resolve));
    },
  };
  const server = http2.createSecureServer({ key, cert });
  server.on('session', session => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    session.on('error', () => undefined);
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    if (headers.authorization !== `Bearer ${token}`) {
      gate.refused++;
      stream.respond(
        {
          ':status': 200,
          'content-type': 'application/grpc',
          'grpc-status': '16',
          'grpc-message': 'invalid preshared key',
        },
        { endStream: true },
      );
      return;
    }
    const passed = upstream.request({ ...headers, ':scheme': 'http' });
    passed.on('error', () => stream.close());
    passed.once('response', answer => {
      let trailers: http2.IncomingHttpHeaders = {};
      stream.respond(answer, { waitForTrailers: true });
      passed.once('trailers', t => {
        trailers = t;
      });
      stream.once('wantTrailers', () => stream.sendTrailers(trailers));
      passed.pipe(stream);
    });
    stream.pipe(passed);
    stream.once('close', () => passed.close());
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  gate.port = (server.address() as AddressInfo).port;
  return gate;
}
