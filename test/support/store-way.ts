import net from 'node:net';

/** The way of a service to a store, which a test cuts, freezes and mends. */
export type StoreWay = {
  port: number;
  /** Ends every connection and refuses new ones. */
  cut(): void;
  /** Nothing passes any more in either direction, and nothing is closed: a firewall that drops. */
  freeze(): void;
  /** The same of the connections that are open; new ones pass. @param count of the newest; all unless given */
  freezeOpen(count?: number): void;
  mend(): void;
  /** Called with every piece a client sends, before it is passed on; false cuts that connection instead. */
  onSent: (bytes: Buffer) => boolean;
  /** How late every piece a client sends comes to the store, in ms. */
  lateMs: number;
  close(): void;
};

/** The same to a database, with an address of its own. */
export type DatabaseWay = StoreWay & { url: string };

export async function databaseWay(url: string): Promise<DatabaseWay> {
  const target = new URL(url);
  const way = await storeWay(`${target.searchParams.get('host')}/.s.PGSQL.${target.port || '5432'}`);
  return Object.assign(way, {
    url: `postgresql://${target.username}:${target.password}@127.0.0.1:${way.port}${target.pathname}`,
  });
}

/** @param target path of a socket, or a port on loopback */
export async function storeWay(target: string | number): Promise<StoreWay> {
  const open = new Set<net.Socket>();
  let isCut = false;
  let isFrozen = false;
  const server = net.createServer(client => {
    if (isCut) return void client.destroy();
    const upstream = typeof target === 'number' ? net.connect(target, '127.0.0.1') : net.connect(target);
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
        if (one === client && way.lateMs > 0) setTimeout(() => other.write(bytes), way.lateMs);
        else other.write(bytes);
      });
      if (isFrozen) one.pause();
    }
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as net.AddressInfo;
  const way: StoreWay = {
    port: address.port,
    onSent: () => true,
    lateMs: 0,
    cut() {
      isCut = true;
      for (const socket of open) socket.destroy();
    },
    freeze() {
      isFrozen = true;
      for (const socket of open) socket.pause();
    },
    freezeOpen(count = open.size) {
      // Both ends of each.
      for (const socket of [...open].slice(-2 * count)) socket.pause();
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
