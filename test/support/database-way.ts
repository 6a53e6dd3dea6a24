import net from 'node:net';

/** The way of a service to its database, which a test cuts, freezes and mends. */
export type DatabaseWay = {
  url: string;
  /** Ends every connection and refuses new ones. */
  cut(): void;
  /** Nothing passes any more in either direction, and nothing is closed: a firewall that drops. */
  freeze(): void;
  mend(): void;
  /** Called with every piece a client sends, before it is passed on; false cuts that connection instead. */
  onSent: (bytes: Buffer) => boolean;
  close(): void;
};

export async function databaseWay(url: string): Promise<DatabaseWay> {
  const target = new URL(url);
  const socketFile = `${target.searchParams.get('host')}/.s.PGSQL.${target.port || '5432'}`;
  const open = new Set<net.Socket>();
  let isCut = false;
  let isFrozen = false;
  const server = net.createServer(client => {
    if (isCut) return void client.destroy();
    const upstream = net.connect(socketFile);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        open.delete(one);
        // While nothing passes, the other end learns of no close either.
        if (!isFrozen) other.destroy();
      });
      one.on('data', (bytes: Buffer) => {
        if (one === client && !way.onSent(bytes)) return void client.destroy();
        other.write(bytes);
      });
      if (isFrozen) one.pause();
    }
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as net.AddressInfo;
  const way: DatabaseWay = {
    url: `postgresql://${target.username}:${target.password}@127.0.0.1:${address.port}${target.pathname}`,
    onSent: () => true,
    cut() {
      isCut = true;
      for (const socket of open) socket.destroy();
    },
    freeze() {
      isFrozen = true;
      for (const socket of open) socket.pause();
    },
    mend() {
      isCut = false;
      isFrozen = false;
      for (const socket of open) socket.resume();
    },
    close() {
      isFrozen = false;
      way.cut();
      server.close();
    },
  };
  return way;
}
