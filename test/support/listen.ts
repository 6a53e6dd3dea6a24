import { once } from 'node:events';
import type http from 'node:http';

/** Has a server listen on a free port until the test ends. @returns its address */
export async function listenFor(t: { teardown(fn: () => unknown): void }, server: http.Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
}
